"""Judges of what only gangs need: objects that group pods can be followed, and jobs of several components start."""

from collections.abc import Iterator

from slurm_bridge.checks.facts import Expectations, Facts
from slurm_bridge.checks.findings import Remark, failure, info, ok, warning

#: What Slurm takes where slurm.conf says nothing: seconds from one backfill cycle to the next.
_USUAL_INTERVAL = 30

_INTERVAL = "bf_interval="


def followed(facts: Facts, _: Expectations) -> Iterator[Remark]:
    """A pod of a group must not be taken for a single one: no replica is ready before it has seen all groups."""
    wanted = [right for right in facts.rights if right.verb != "patch"]
    if lacking := [str(right) for right in wanted if not right.allowed]:
        yield failure(f"not allowed: {', '.join(lacking)}")
    else:
        kinds = dict.fromkeys(right.resource for right in wanted)
        yield ok(f"may list and watch {', '.join(kinds) or 'all that it needs'}")


def told(facts: Facts, _: Expectations) -> Iterator[Remark]:
    """Who waits for a PodGroup looks at its status."""
    wanted = [right for right in facts.rights if right.verb == "patch"]
    if lacking := [str(right) for right in wanted if not right.allowed]:
        yield warning(f"not allowed: {', '.join(lacking)}")
    elif wanted:
        yield ok(f"may write the status of {' and '.join(right.resource.replace('/status', '') for right in wanted)}")
    else:
        yield ok("the cluster has no PodGroups")


def components(facts: Facts, wanted: Expectations) -> Iterator[Remark]:
    """Without them every member is asked for as the largest."""
    if not wanted.heterogeneous:
        yield info("switched off by workloads.heterogeneous: members that differ are asked for as the largest of them")
    elif not facts.heterogeneous:
        yield info("not in this Slurm: members that differ, and have no node for all, are asked for as the largest")
    else:
        yield ok("members that differ become components of one job")


def backfill(facts: Facts, wanted: Expectations) -> Iterator[Remark]:
    """Slurm's main scheduler passes over heterogeneous jobs."""
    if not (wanted.heterogeneous and facts.heterogeneous):
        yield ok("no heterogeneous jobs are asked for")
    elif facts.conf is None:
        yield info("SchedulerType and bf_interval are not visible in this API version: scontrol show config shows them")
    elif facts.conf.scheduler_type != "sched/backfill":
        yield warning(f"SchedulerType is {facts.conf.scheduler_type or 'not set'}: heterogeneous jobs never start")
    else:
        seconds = _interval(facts.conf.scheduler_parameters)
        said = f"a heterogeneous job starts in a backfill cycle, of which one begins every {seconds} s at the earliest"
        yield ok(said) if seconds <= _USUAL_INTERVAL else info(said)


def _interval(parameters: tuple[str, ...]) -> int:
    said = (text.removeprefix(_INTERVAL) for text in parameters if text.startswith(_INTERVAL))
    return next((int(text) for text in said if text.isdecimal()), _USUAL_INTERVAL)
