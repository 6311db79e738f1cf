"""Checks that only gangs need: the objects that group pods can be watched, and jobs of several components start."""

from collections.abc import Iterator

from slurm_bridge.checks.facts import CheckFacts, Expectations
from slurm_bridge.checks.findings import Remark, advice, failure, info, ok, warning

#: Slurm's default if slurm.conf has no value: seconds from one backfill cycle to the next.
_USUAL_INTERVAL = 30

_INTERVAL = "bf_interval="


def followed(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """A pod of a group must not be taken for a single pod: no replica is ready before it has listed all groups."""
    wanted = [right for right in facts.rights if right.verb != "patch"]
    if lacking := [str(right) for right in wanted if not right.allowed]:
        yield failure(f"not allowed: {', '.join(lacking)}")
    else:
        kinds = dict.fromkeys(right.resource for right in wanted)
        yield ok(f"may list and watch {', '.join(kinds) or 'all that it needs'}")


def told(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """Other components read the status of a PodGroup."""
    wanted = [right for right in facts.rights if right.verb == "patch"]
    if lacking := [str(right) for right in wanted if not right.allowed]:
        yield warning(f"not allowed: {', '.join(lacking)}")
    elif wanted:
        yield ok(f"may write the status of {' and '.join(right.resource.replace('/status', '') for right in wanted)}")
    else:
        yield ok("the cluster has no PodGroups")


def components(facts: CheckFacts, wanted: Expectations) -> Iterator[Remark]:
    """Without components every member is requested like the largest one."""
    if not wanted.heterogeneous:
        yield info("switched off by workloads.heterogeneous: members that differ all request as much as the largest")
    elif not facts.heterogeneous:
        yield info(
            "not in this Slurm: members that differ, and fit on no node together, all request as much as the largest"
        )
    else:
        yield ok("members that differ become components of one job")


def backfill(facts: CheckFacts, wanted: Expectations) -> Iterator[Remark]:
    """Slurm's main scheduler skips heterogeneous jobs."""
    if not (wanted.heterogeneous and facts.heterogeneous):
        yield ok("no heterogeneous jobs are requested")
    elif facts.conf is None:
        yield info("SchedulerType and bf_interval are not visible in this API version: scontrol show config shows them")
    elif facts.conf.scheduler_type != "sched/backfill":
        yield warning(f"SchedulerType is {facts.conf.scheduler_type or 'not set'}: heterogeneous jobs never start")
    else:
        given = (text for text in facts.conf.scheduler_parameters if text.startswith(_INTERVAL))
        numbers = (text.removeprefix(_INTERVAL) for text in given)
        seconds = next((int(text) for text in numbers if text.isdecimal()), _USUAL_INTERVAL)
        said = f"a heterogeneous job starts in a backfill cycle, which begins every {seconds} s at the earliest"
        yield ok(said) if seconds <= _USUAL_INTERVAL else advice(said)
