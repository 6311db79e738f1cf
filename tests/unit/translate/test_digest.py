"""A digest changes exactly when something has to be done about it."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model.job import Gres, GresPer, JobRequest, Memory, MemoryPer
from slurm_bridge.model.marks import Owner
from slurm_bridge.slurm import fields
from slurm_bridge.translate import digest, translator
from tests.unit.translate.translating import asking, container, gang, keys, members, one_pod, request, translated

OTHER: dict[str, Any] = {
    "name": "other",
    "owner": Owner(cluster="x", kind="Pod", namespace="n", name="n", uid="u", attempt=3),
    "job_id": 7,
    "partition": "p",
    "account": "a",
    "qos": "q",
    "reservation": "r",
    "wckey": "w",
    "licenses": "l:1",
    "constraints": "c",
    "user": "u",
    "group": "g",
    "priority": 5,
    "nice": 5,
    "hold": True,
    "time_limit_minutes": 5,
    "minimum_nodes": 1,
    "maximum_nodes": 2,
    "tasks": 2,
    "tasks_per_node": 2,
    "cpus_per_task": 2,
    "memory": Memory(mib=513),
    "gres": (Gres(name="gpu", count=1),),
    "gres_per": GresPer.TASK,
    "exclusive": True,
    "excluded_nodes": ("c", "d"),
    "mcs_label": "m",
    "comment": "other",
    "components": (request(),),
}


def halves(found: JobRequest) -> tuple[str, str]:
    """What is fixed, and the shape."""
    fixed, shape = digest.digest(found).split(":")
    assert (len(fixed), len(shape)) == (8, 8)
    return fixed, shape


def changed(field: str) -> tuple[bool, bool, bool]:
    """Whether another value of the field changes the fixed half, the shape, the intent."""
    before = request()
    after = dataclasses.replace(before, **{field: OTHER[field]})
    (fixed, shape), (fixed_after, shape_after) = halves(before), halves(after)
    return fixed != fixed_after, shape != shape_after, intent(before) != intent(after)


def intent(found: JobRequest, retry: str = "") -> str:
    """What the user of a single pod wants."""
    return digest.intent(dataclasses.replace(translated(), request=found), retry)


def test_every_field_of_a_request_is_in_one_place() -> None:
    """A new field has to be filed, or its changes would go unnoticed."""
    filed = [*digest.IDENTITY, *digest.FIXED, *digest.SHAPE, *digest.PARTS]
    assert sorted(filed) == sorted(field.name for field in dataclasses.fields(JobRequest)) == sorted(OTHER)


def test_what_an_update_does_not_carry_is_fixed() -> None:
    """The adapter's own table says what it carries."""
    nothing = {field.name for field in fields.FIELDS if field.update is fields._nothing}
    assert nothing - {"job_id", "gres_per", "components"} == set(digest.FIXED)


@pytest.mark.parametrize("field", digest.IDENTITY)
def test_whose_job_it_is_changes_no_digest(field: str) -> None:
    """The owner record holds the digest itself."""
    assert changed(field) == (False, False, False)


@pytest.mark.parametrize("field", digest.FIXED)
def test_what_cannot_be_updated_changes_the_first_half(field: str) -> None:
    """A new job has to be submitted."""
    assert changed(field) == (True, False, True)


@pytest.mark.parametrize(
    "field",
    [
        field
        for field in digest.SHAPE
        if field not in (*digest.NOT_REMOVABLE, *digest.NODES, "gres_per", "tasks_per_node")
    ],
)
def test_what_can_be_updated_changes_the_second_half(field: str) -> None:
    """The job keeps its place in the queue."""
    assert changed(field) == (False, True, True)


@pytest.mark.parametrize("field", digest.NODES)
def test_nodes_are_shape_but_not_intent(field: str) -> None:
    """The cluster changes them, not the user; their order says nothing."""
    assert changed(field) == (False, True, False)
    one, two = (dataclasses.replace(request(), **{field: names}) for names in (("a", "b"), ("b", "a")))
    assert digest.digest(one) == digest.digest(two)


@pytest.mark.parametrize("field", digest.NOT_REMOVABLE)
def test_what_cannot_be_taken_away_again_is_fixed_in_its_absence(field: str) -> None:
    """Another value is an update; none where there was one, or the other way round, is a new job."""
    assert changed(field) == (True, True, True)
    one, two = (dataclasses.replace(request(), **{field: value}) for value in (3, 4))
    assert halves(one)[0] == halves(two)[0]
    assert halves(one)[1] != halves(two)[1]


@given(st.sampled_from(sorted(OTHER)), st.sampled_from(sorted(OTHER)))
def test_equal_requests_have_equal_digests_however_they_came_about(first: str, second: str) -> None:
    """The order of changes leaves no trace."""
    one = dataclasses.replace(dataclasses.replace(request(), **{first: OTHER[first]}), **{second: OTHER[second]})
    two = dataclasses.replace(dataclasses.replace(request(), **{second: OTHER[second]}), **{first: OTHER[first]})
    assert digest.digest(one) == digest.digest(two)
    assert intent(one, "x") == intent(two, "x")


#: Written by the release that knew single pods only.
EARLIER: list[tuple[dict[str, str], dict[str, str], dict[str, Any], str, str]] = [
    ({}, {}, {}, "e1b58301:4fb9ec93", "c84e842c9d9b"),
    ({}, {}, {"partition": "debug"}, "d4e82417:4fb9ec93", "dcd23c917807"),
    (
        {"cpu": "2", "memory": "4Gi"},
        {},
        {"partition": "gpu", "account": "physics", "user": "bridge", "group": "bridges", "mcs_label": "green"},
        "bba4dee6:8d919ffc",
        "5517ca53a62c",
    ),
    (
        {"cpu": "500m", "nvidia.com/gpu": "2"},
        keys(timelimit="90", max_nodes="3", min_nodes="1"),
        {},
        "a3ffb728:cd7efaba",
        "f5a6cfe1b67a",
    ),
    (
        {},
        keys(
            min_nodes="1",
            max_nodes="1",
            exclusive="true",
            mem_per_node="8Gi",
            licenses="matlab:1",
            constraints="a&b",
            gres="gpu:v100:2",
        ),
        {"qos": "q"},
        "c5167a2b:eb808816",
        "17ff189c2563",
    ),
    (
        {"memory": "100Mi"},
        keys(job_name="x", priority="7", queue="root.a", gang="false"),
        {"timelimit": 5},
        "0e6ebf16:cad80be6",
        "325d8cdeacd3",
    ),
]


@pytest.mark.parametrize(("asked", "said", "rules", "written", "wanted"), EARLIER)
def test_the_digests_of_single_pods_are_those_of_earlier_releases(
    asked: dict[str, str], said: dict[str, str], rules: dict[str, Any], written: str, wanted: str
) -> None:
    """They are kept in owner records: were they to change, an upgrade would submit every placeholder anew."""
    found = translated(one_pod(container(asked)), said, **rules)
    assert digest.digest(found.request) == written
    assert digest.intent(found, "again") == wanted


def test_the_users_word_changes_the_intent() -> None:
    """Asking for another try of the same."""
    assert digest.intent(translated(), "") != digest.intent(translated(), "again")
    assert len(digest.intent(translated(), "again")) == 12


# -- gangs


def test_t17_members_that_come_and_go_change_the_shape_and_not_the_intent() -> None:
    """The pending job is updated, and the work of a controller does not count as a change by the user."""
    four, five = gang(members(4, asking())), gang(members(5, asking()))
    assert halves(four.request)[0] == halves(five.request)[0]
    assert halves(four.request)[1] != halves(five.request)[1]
    assert digest.intent(four, "") == digest.intent(five, "")


@pytest.mark.parametrize(
    "other",
    [
        gang(members(4, asking(2))),
        gang((*members(3, asking()), *members(1, asking(2), first=3))),
        gang(members(4, asking()), keys(one_per_node="true")),
        gang(members(4, asking()), keys(mem_per_node="9Gi")),
        gang(members(4, asking()), keys(min_nodes="2")),
    ],
)
def test_another_shape_of_the_members_is_another_intent(other: translator.Translated) -> None:
    """And so is every word of the user."""
    assert digest.intent(gang(members(4, asking())), "") != digest.intent(other, "")


@pytest.mark.parametrize(
    "changes",
    [
        {"memory": Memory(mib=512, per=MemoryPer.CPU)},
        {"memory": Memory(mib=512, per=MemoryPer.GPU)},
        {"gres_per": GresPer.TASK},
        {"minimum_nodes": 2, "maximum_nodes": 2, "tasks": 2},
        {"minimum_nodes": 3, "maximum_nodes": 3, "tasks": 3},
        {"tasks_per_node": 1},
    ],
)
def test_amounts_counted_otherwise_and_another_number_of_nodes_ask_for_a_new_job(changes: dict[str, Any]) -> None:
    """Slurm would keep some of the old amounts, or compute too many cpus, and never start the job."""
    before = dataclasses.replace(request(), maximum_nodes=1)
    after = dataclasses.replace(before, **changes)
    assert halves(before)[0] != halves(after)[0]


def test_a_number_of_tasks_per_node_can_be_changed_and_not_taken_away() -> None:
    """Slurm refuses to do without one, so that a job without it is another job."""
    two, three = (dataclasses.replace(request(), tasks=6, tasks_per_node=number) for number in (2, 3))
    assert halves(two)[0] == halves(three)[0] != halves(dataclasses.replace(two, tasks_per_node=None))[0]
    assert halves(two)[1] != halves(three)[1]


@pytest.mark.parametrize("field", digest.NODES)
def test_nodes_that_come_and_go_change_nothing_of_a_heterogeneous_job(field: str) -> None:
    """It would have to be submitted anew, and wait all over again, for each of them."""
    other = dataclasses.replace(request(), **{field: OTHER[field]})
    before, after = (dataclasses.replace(one, components=(one,)) for one in (request(), other))
    assert digest.digest(before) == digest.digest(after)


@pytest.mark.parametrize("field", [field for field in (*digest.FIXED, *digest.SHAPE) if field not in digest.NODES])
def test_whatever_else_changes_in_a_component_asks_for_a_new_job(field: str) -> None:
    """An update reaches one component only."""
    component = request()
    other = dataclasses.replace(component, **{field: OTHER[field]})
    before, after = (dataclasses.replace(request(), components=(one,)) for one in (component, other))
    assert halves(before)[0] != halves(after)[0]
    whole = dataclasses.replace(before, **{field: OTHER[field]})
    assert halves(before)[0] != halves(whole)[0]


def test_a_component_more_asks_for_a_new_job() -> None:
    """Also the first one."""
    none, one, two = (dataclasses.replace(request(), components=(request(),) * number) for number in range(3))
    assert len({halves(found)[0] for found in (none, one, two)}) == 3
