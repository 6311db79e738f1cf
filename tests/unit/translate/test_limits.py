"""What Slurm has decides whether a translated request can ever start, before it is sent."""

import dataclasses

import pytest

from slurm_bridge.model import slurmnode, verdict
from slurm_bridge.model.job import Gres
from slurm_bridge.translate import limits, translator
from tests.unit.translate.translating import facts, keys, node, partition, translated

SHORT = partition("short", default_minutes=5, maximum_minutes=10)
LONG = partition("long", default_minutes=60, maximum_minutes=600)
ENDLESS = partition("debug")
GPUS = (
    node("g1", (Gres(name="gpu", type="v100", count=8),)),
    node("g2", (Gres(name="gpu", type="a100", count=4),), ("other",)),
    node("g3", (Gres(name="nic", count=1),)),
)


def settled(found: translator.Translated, there: limits.SlurmFacts) -> translator.Translated:
    """What is sent."""
    answer = limits.settle(found, there)
    assert isinstance(answer, translator.Translated), answer
    return answer


def refused(found: translator.Translated, there: limits.SlurmFacts) -> verdict.Reject:
    """Why nothing is sent."""
    answer = limits.settle(found, there)
    assert isinstance(answer, verdict.Reject), answer
    return answer


def source(found: translator.Translated, field: str) -> str:
    """The one explanation of a field."""
    (value,) = [one for one in found.values if one.field == field]
    return value.source


@pytest.mark.parametrize(
    ("partitions", "names", "minutes"),
    [
        ((ENDLESS,), "debug", None),
        ((SHORT,), "short", 5),
        ((partition("a", maximum_minutes=7),), "a", 7),
        ((partition("a", default_minutes=9, maximum_minutes=7),), "a", 7),
        ((SHORT, LONG), "long,short", 5),
        ((SHORT, ENDLESS), "debug,short", 5),
        ((dataclasses.replace(SHORT, default=True), ENDLESS), None, 5),
        ((SHORT, ENDLESS), None, None),
    ],
)
def test_a_limit_that_nobody_asked_for_is_sent_as_slurm_would_set_it(
    partitions: tuple[slurmnode.Partition, ...], names: str | None, minutes: int | None
) -> None:
    """The default, else the maximum; of several partitions the smallest, which holds in each."""
    found = settled(translated(partition=names), facts(*partitions))
    assert found.request.time_limit_minutes == minutes
    if minutes:
        assert source(found, "time_limit_minutes").startswith("default of partition ")


@pytest.mark.parametrize(
    ("names", "asked", "kept"),
    [
        ("short", 10, "short"),
        ("short,long", 10, "short,long"),
        ("short,long", 11, "long"),
        ("debug,short,long", 601, "debug"),
    ],
)
def test_only_partitions_that_allow_the_limit_are_asked(names: str, asked: int, kept: str) -> None:
    """Elsewhere the job would wait for ever without a word."""
    found = settled(translated(None, keys(timelimit=str(asked)), partition=names), facts(SHORT, LONG, ENDLESS))
    assert (found.request.partition, found.request.time_limit_minutes) == (kept, asked)
    assert ("those that allow the time limit" in source(found, "partition")) is (kept != names)


def test_a_limit_that_no_partition_allows_is_refused_with_what_they_allow() -> None:
    """And with where the limit came from."""
    found = refused(translated(None, keys(timelimit="601"), partition="short,long"), facts(SHORT, LONG))
    assert found == verdict.Reject(
        reason="TimeLimitTooLong",
        message="Pod team/web-0: no partition allows a time limit of 601 minutes: short at most 10, long at most 600 "
        '(annotation slurmjob.slinky.slurm.net/timelimit="601" of Pod team/web-0)',
    )


def test_the_default_partition_limits_jobs_that_name_none() -> None:
    """Slurm puts them there."""
    there = facts(dataclasses.replace(SHORT, default=True), LONG)
    assert refused(translated(None, keys(timelimit="11")), there).reason == "TimeLimitTooLong"
    assert settled(translated(None, keys(timelimit="10")), there).request.partition is None


def test_an_unknown_partition_is_refused_with_those_there_are() -> None:
    """Names are Slurm's own, upper and lower case matter."""
    found = refused(translated(None, keys(partition="Short,long,nope")), facts(SHORT, LONG))
    assert found.reason == "UnknownPartition"
    assert "partition Short, nope does not exist in Slurm, which has long, short" in found.message
    assert 'partition="Short,long,nope" of Pod team/web-0' in found.message


def test_a_partition_that_is_down_is_fine() -> None:
    """Slurm queues for it."""
    down = partition("closed", states=frozenset({"DOWN"}))
    assert settled(translated(partition="closed"), facts(down)).request.partition == "closed"


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ("GPU:V100:2", Gres(name="gpu", type="v100", count=2)),
        ("Gpu:3", Gres(name="gpu", count=3)),
        ("gpu:v100", Gres(name="gpu", type="v100", count=1)),
        ("NIC", Gres(name="nic", count=1)),
    ],
)
def test_gres_is_sent_as_slurm_spells_it(asked: str, sent: Gres) -> None:
    """To Slurm upper and lower case matter."""
    assert settled(translated(None, keys(gres=asked), partition="debug"), facts(nodes=GPUS)).request.gres == (sent,)


def test_an_exact_spelling_is_kept_where_slurm_has_two() -> None:
    """Names that differ only in case are different names."""
    both = (node("a", (Gres(name="gpu", type="A", count=1), Gres(name="gpu", type="a", count=1))),)
    found = settled(translated(None, keys(gres="gpu:a"), partition="debug"), facts(nodes=both))
    assert found.request.gres == (Gres(name="gpu", type="a", count=1),)


@pytest.mark.parametrize(("asked", "unknown"), [("gpu:a100:1", "gpu:a100"), ("fpga:1,nic:1", "fpga")])
def test_gres_that_no_node_of_the_partition_has_is_refused_with_what_there_is(asked: str, unknown: str) -> None:
    """Slurm would refuse it without a list."""
    found = refused(translated(None, keys(gres=asked), partition="debug"), facts(nodes=GPUS))
    assert found.reason == "UnknownGres"
    assert f"no node of partition debug has gres {unknown}; there is gpu:v100, nic (" in found.message


def test_one_of_several_partitions_is_enough_for_gres() -> None:
    """Slurm takes the one that has it; without a known partition every one counts."""
    there = facts(partition("debug"), partition("other"), nodes=GPUS)
    wanted = keys(gres="gpu:A100:1")
    assert settled(translated(None, wanted, partition="debug,other"), there).request.gres[0].type == "a100"
    assert settled(translated(None, wanted), there).request.gres[0].type == "a100"


def test_before_slurm_has_told_anything_a_workload_waits() -> None:
    """An empty answer is no reason to refuse."""
    for there in (limits.SlurmFacts(partitions=(), nodes=GPUS), limits.SlurmFacts(partitions=(ENDLESS,), nodes=())):
        answer = limits.settle(translated(), there)
        assert isinstance(answer, verdict.Wait)
        assert answer.reason == "SlurmUnavailable"


def test_what_fits_is_left_as_it_is() -> None:
    """The same request, the same explanations."""
    found = translated(None, keys(timelimit="5", gres="nic:1"), partition="debug")
    assert settled(found, facts(nodes=GPUS)) == found
