"""Chains of a few hooks, and plans made by them."""

from typing import Any

from slurm_bridge.hooks.base import Audience
from slurm_bridge.hooks.chain import Chain, Plan
from slurm_bridge.model.verdict import Reject, Wait
from slurm_bridge.translate.translator import Translated
from tests.unit.hooks.builders import cluster, node, translated, workload

FOUR = cluster([node(name) for name in ("a", "b", "c", "d")])


def planned(chain: Chain, asked: Translated | None = None, seen: Any = FOUR, **others: Any) -> Plan:
    """The plan of a workload that gets one."""
    plan = chain.plan(workload(), asked or translated(), seen, now=100.0, **others)
    assert isinstance(plan, Plan), plan
    return plan


def told_users(plan: Plan) -> list[str]:
    """What the lines of a plan say for its user."""
    return [line.reason for line in plan.lines if line.reason and line.audience is Audience.USER]


def told_operators(plan: Plan) -> list[str]:
    """Likewise for operators alone."""
    return [line.reason for line in plan.lines if line.reason and line.audience is Audience.OPERATOR]


def stopped(chain: Chain, seen: Any = FOUR, **others: Any) -> Wait | Reject:
    """The obstacle of a workload that gets none."""
    asked = others.pop("asked", translated())
    found = chain.plan(workload(), asked, seen, now=100.0, **others)
    assert isinstance(found, Wait | Reject), found
    return found
