"""Whether a job has its nodes for itself: only hooks that may say so are asked, at every binding."""

from typing import ClassVar

import pytest

from slurm_bridge.families.policy import PolicyDefaults
from slurm_bridge.families.yunikorn.options import TargetOptions
from slurm_bridge.hooks import calls
from slurm_bridge.hooks.base import Ask, Fields, Session
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.model.verdict import Reject
from tests.unit.hooks.builders import Around, cluster, hook, node, translated, workload

ONE = cluster([node("a")])


class Charges:
    """Says nothing about sharing nodes, and counts how often it is asked."""

    keeps_exclusive: ClassVar = True

    def __init__(self, **fields: object) -> None:
        self.asked = 0
        self._fields = fields

    def express(self, _session: Session, _ask: Ask) -> Fields:
        self.asked += 1
        return Fields(account="a", **self._fields)  # type: ignore[arg-type]


def _says(*hooks: calls.Hook, around: Around, exclusive: bool = False) -> bool:
    return Chain(hooks, around.make()).exclusive(workload(), translated(exclusive=exclusive), ONE)


@pytest.mark.parametrize("exclusive", [False, True])
def test_hooks_that_leave_it_alone_are_not_asked(around: Around, *, exclusive: bool) -> None:
    """It is what the request says, and what it is without any hook."""
    charges = Charges()
    one = calls.Hook(name="charges", hook=charges)
    assert _says(one, around=around, exclusive=exclusive) is _says(around=around, exclusive=exclusive) is exclusive
    assert charges.asked == 0


def test_a_hook_that_may_say_so_is_asked_after_the_others(around: Around) -> None:
    """It may look at the fields that they give."""
    charges, seen = Charges(), list[str | None]()

    def express(_session: Session, ask: Ask) -> Fields:
        seen.append(ask.request.account)
        return Fields(exclusive=True)

    assert _says(calls.Hook(name="charges", hook=charges), hook("whole", express=express), around=around)
    assert (charges.asked, seen) == (1, ["a"])


def test_a_hook_of_a_site_is_asked_whatever_it_claims(around: Around) -> None:
    """What it says about itself may be wrong."""
    worker = calls.Worker("site", calls.Left())
    try:
        site = calls.Hook(name="site", hook=Charges(exclusive=True), worker=worker, budget_seconds=60)
        assert _says(site, around=around)
    finally:
        worker.close()


def test_where_a_hook_fails_it_is_what_the_request_says(around: Around) -> None:
    """A failure is told when the job is planned."""
    for wrong in (Reject(reason="No", message="no"), None):
        assert _says(hook("wrong", express=wrong), around=around, exclusive=True)


@pytest.mark.parametrize("options", [PolicyDefaults, TargetOptions])
def test_hooks_that_are_included_leave_it_alone_indeed(options: type) -> None:
    """Policy and queues cannot be configured to give the field."""
    assert "exclusive" not in options.model_fields  # type: ignore[attr-defined]
