"""A gang before its form is settled: its shapes, the most that any pod asks for, and what is said of all of them."""

import dataclasses
from typing import Any

import msgspec
import pytest

from slurm_bridge.model import pod as pods
from slurm_bridge.model.job import Gres, Memory
from slurm_bridge.translate import members as measuring
from slurm_bridge.translate import translator
from slurm_bridge.translate.shapes import Form, Needs
from tests.unit.translate.translating import (
    a_gang,
    asking,
    configured,
    container,
    gang,
    keys,
    members,
    one_pod,
    rejected,
    renamed,
    translated,
)

LEADER, WORKERS = members(1, asking(4, "8Gi", 2)), members(3, asking(2, "16Gi", 1), first=1)


def anti(**term: Any) -> dict[str, object]:
    """A required anti-affinity on the node's name."""
    terms = [{"topologyKey": "kubernetes.io/hostname", **term}]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def labelled(affinity: dict[str, object], count: int = 2) -> tuple[pods.Pod, ...]:
    """Pods of app=web, tier=back that say so."""
    return tuple(
        renamed(one_pod(asking(), affinity=affinity), number, labels={"app": "web", "tier": "back"})
        for number in range(count)
    )


def value(found: translator.Translated, field: str) -> translator.Value:
    """The one explanation of a field."""
    (one,) = [one for one in found.values if one.field == field]
    return one


def test_equal_pods_are_one_shape_with_a_task_each() -> None:
    """In rank order."""
    four = members(4, asking(2, "1Gi", 1))
    found = gang(four)
    (shape,) = found.shapes
    assert (shape.pods, found.request.tasks, found.form) == (four, 4, Form.TASKS)
    assert shape.needs == Needs(cpus=2, memory_mib=1024, gres=(Gres(name="gpu", count=1),))
    assert value(found, "cpus_per_task").source == "requests of Pod team/web-0 and 3 like it"
    assert value(found, "tasks").source == "pods of Job team/web, each is one task"


def test_t01_the_request_of_different_pods_bounds_every_one_of_them() -> None:
    """The cpus and GPUs of the leader, the memory of the workers."""
    found = gang((*LEADER, *WORKERS))
    request = found.request
    assert (request.tasks, request.cpus_per_task, request.memory) == (4, 4, Memory(mib=16384))
    assert request.gres == (Gres(name="gpu", count=2),)
    assert [len(shape.pods) for shape in found.shapes] == [1, 3]
    assert found.form is Form.BOUND
    assert value(found, "memory").source == "the most that any of 4 pods requests, such as Pod team/web-0"


def test_t01_limits_count_as_well_as_requests() -> None:
    """A member without requests is as large as its limits."""
    limited = members(1, container(limits={"cpu": "8", "memory": "2Gi"}), first=1)
    request = gang((*members(1, asking(1, "1Gi")), *limited)).request
    assert (request.cpus_per_task, request.memory) == (8, Memory(mib=2048))


def test_members_that_ask_for_nothing_get_the_defaults_each() -> None:
    """A default above what others ask for bounds the gang too."""
    found = gang((*members(1, asking(2, "1Gi")), *members(1, first=1)), cpus=3, memory_mib=100, gres="nic:1")
    assert [shape.needs for shape in found.shapes] == [
        Needs(cpus=3, memory_mib=100, gres=(Gres(name="nic", count=1),)),
        Needs(cpus=2, memory_mib=1024, gres=(Gres(name="nic", count=1),)),
    ]
    assert (found.request.cpus_per_task, found.request.memory) == (3, Memory(mib=1024))
    plain = gang(members(2), cpus=3)
    assert value(plain, "cpus_per_task").source == "setting defaults.cpus"


def test_annotations_about_a_task_speak_of_every_member() -> None:
    """Whatever it asks for itself; the members may then be equal."""
    found = gang((*LEADER, *WORKERS), keys(cpu_per_task="3", gres="gpu:v100:1"))
    assert {(shape.cpus, shape.gres) for shape in found.shapes} == {(3, (Gres(name="gpu", type="v100", count=1),))}
    assert found.request.cpus_per_task == 3
    assert value(found, "gres").key == "gres"


@pytest.mark.parametrize(
    "spec",
    [
        {"node_selector": {"disk": "ssd"}},
        {"tolerations": (pods.Toleration(key="gpu", operator="Exists"),)},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}},
    ],
)
def test_members_that_may_run_elsewhere_are_another_shape(spec: dict[str, Any]) -> None:
    """Though they ask for the same amounts."""
    found = gang((*members(2, asking()), *members(2, asking(), first=2, **spec)))
    assert [len(shape.pods) for shape in found.shapes] == [2, 2]
    assert found.form is Form.TASKS


def test_what_is_no_demand_on_nodes_makes_no_shapes() -> None:
    """Preferences, and affinity to pods, which differs from Job to Job of one JobSet."""
    spread = [
        {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {"a": str(number)}}]}}
        for number in range(3)
    ]
    preferring = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    several = [renamed(one_pod(asking(), affinity=one), number) for number, one in enumerate([*spread, preferring])]
    assert len(gang(tuple(several)).shapes) == 1


def test_members_written_differently_that_come_to_the_same_are_one_shape_in_rank_order() -> None:
    """1000m and 1 are the same amount."""
    mixed = (
        *members(1, asking()),
        *members(1, container({"cpu": "1000m", "memory": "1024Mi"}), first=1),
        *members(1, asking(), first=2),
    )
    (shape,) = gang(mixed).shapes
    assert shape.pods == mixed


def test_equal_pods_are_measured_once() -> None:
    """Two thousand of them cost little more than one."""
    (group,), problems = measuring.groups(members(2000, asking()))
    assert (len(group.pods), problems) == (2000, ())


# -- nodes


def test_min_nodes_of_a_gang_are_at_most_its_members() -> None:
    """Each node takes at least one; members that have done their work count."""
    assert gang(members(4), keys(min_nodes="4")).request.minimum_nodes == 4
    message = rejected(a_gang(members(4), keys(min_nodes="5"))).message
    assert message.endswith("every node takes at least one of the 4 pods: use at most 4")
    found = translator.translate(a_gang(members(1), keys(min_nodes="4"), minimum=4), configured())
    assert isinstance(found, translator.Translated)


def test_mem_per_node_caps_and_does_not_replace() -> None:
    """It is kept beside the request until the form is settled, and says where it came from."""
    found = gang(members(4, asking(1, "2Gi")), keys(mem_per_node="8Gi"))
    assert (found.request.memory, found.node_memory_mib) == (Memory(mib=2048), 8192)
    assert value(found, "mem-per-node").subject == "Job team/web"


def test_mem_per_node_below_the_largest_member_is_refused() -> None:
    """No pod could run there."""
    message = rejected(a_gang((*LEADER, *WORKERS), keys(mem_per_node="15Gi"))).message
    assert message.endswith("use at least the memory that the largest of the pods requests, 16384Mi")


@pytest.mark.parametrize(
    ("term", "apart"),
    [
        ({"labelSelector": {"matchLabels": {"app": "web"}}}, True),
        ({"labelSelector": {}}, True),
        ({"labelSelector": {"matchLabels": {"app": "db"}}}, False),
        ({"labelSelector": {"matchLabels": {"app": "web", "tier": "front"}}}, False),
        ({}, False),
        ({"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}, False),
        ({"labelSelector": {"matchLabels": {"app": "web"}}, "namespaces": ["team"]}, True),
        ({"labelSelector": {"matchLabels": {"app": "web"}}, "namespaces": ["other"]}, False),
        ({"labelSelector": {"matchLabels": {"app": "web"}}, "namespaceSelector": {}}, True),
        ({"labelSelector": {"matchLabels": {"app": "web"}}, "namespaceSelector": {"matchLabels": {"a": "b"}}}, False),
        ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}}, True),
        ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}}, False),
        ({"labelSelector": {"matchExpressions": [{"key": "gone", "operator": "NotIn", "values": ["web"]}]}}, True),
        ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}, True),
        ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}, False),
        ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Like"}]}}, False),
    ],
)
def test_pods_that_keep_away_from_their_like_get_a_node_each(term: dict[str, Any], *, apart: bool) -> None:
    """A required anti-affinity to their own labels on the node's name says the same as the annotation."""
    found = gang(labelled(anti(**term)))
    assert found.one_per_node is apart
    assert ("one-per-node" in found.hints) is apart


def test_a_default_gives_each_pod_of_a_gang_a_node_and_the_annotation_takes_it_away() -> None:
    """A single pod has nothing to do with it."""
    pods = members(2, asking(2, "1Gi", 1))
    assert gang(pods, one_per_node=True).one_per_node
    assert value(gang(pods, one_per_node=True), "one-per-node").source == "setting defaults.one_per_node"
    assert not gang(pods, keys(one_per_node="false"), one_per_node=True).one_per_node
    assert not gang(pods).one_per_node
    assert "one-per-node" not in translated(one_per_node=True).hints


def test_pods_with_the_same_port_of_the_host_get_a_node_each() -> None:
    """A node has it once. A port of the leader alone keeps no worker away."""

    def serving(number: int, *ports: int) -> pods.Pod:
        made = renamed(one_pod(asking()), number)
        claimed = tuple(pods.ContainerPort(host_port=port) for port in ports)
        (first,) = made.spec.containers
        containers = (msgspec.structs.replace(first, ports=claimed),)
        return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, containers=containers))

    assert gang((serving(0, 80), serving(1, 80, 443))).one_per_node
    assert not gang((serving(0, 80), serving(1, 443))).one_per_node
    assert not gang((serving(0, 80), serving(1))).one_per_node


@pytest.mark.security("input")
@pytest.mark.parametrize(
    "term",
    [
        {"labelSelector": {"matchLabels": ["app"]}},
        {"labelSelector": {"matchLabels": "app"}},
        {"labelSelector": {"matchExpressions": True}},
        {"labelSelector": {"matchExpressions": {"key": "app", "operator": "Exists"}}},
        {"labelSelector": {"matchExpressions": ["app"]}},
        {"labelSelector": {"matchExpressions": [{"key": "app", "operator": ["Exists"]}]}},
        {"labelSelector": {"matchExpressions": [{"key": ["app"], "operator": "Exists"}]}},
        {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": 7}]}},
        {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": "a web page"}]}},
        {"labelSelector": {}, "namespaces": 7},
        {"labelSelector": {}, "namespaces": "the team of others"},
        {"labelSelector": {}, "topologyKey": ["kubernetes.io/hostname"]},
    ],
)
def test_a_term_that_makes_no_sense_keeps_no_pods_apart(term: dict[str, Any]) -> None:
    """An affinity term with a value of the wrong type selects no pod."""
    assert not gang(labelled(anti(**term))).one_per_node


@pytest.mark.security("input")
@pytest.mark.parametrize("terms", [True, 7, "terms", {"topologyKey": "kubernetes.io/hostname"}, ["term"], None])
def test_terms_that_are_no_list_of_terms_keep_no_pods_apart(terms: object) -> None:
    """A value of the wrong type in place of the list of terms has no terms."""
    written: dict[str, object] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert not gang(labelled(written)).one_per_node


def test_a_preference_to_keep_away_is_none() -> None:
    """Only what is required binds."""
    preferred: dict[str, object] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}
    assert not gang(labelled(preferred)).one_per_node
    assert not gang(labelled({"podAntiAffinity": None})).one_per_node


def test_the_annotation_says_it_too() -> None:
    """And takes it back."""
    own = anti(labelSelector={"matchLabels": {"app": "web"}})
    assert gang(members(2), keys(one_per_node="true")).one_per_node
    assert not gang(labelled(own), keys(one_per_node="false")).one_per_node
    assert not translated(None, keys(one_per_node="true")).one_per_node


# -- time


@pytest.mark.parametrize(
    ("seconds", "minutes"), [((60, 600, 61), 10), ((60, None), None), ((60, 0), None), ((None, None), None)]
)
def test_t04_the_longest_deadline_is_the_time_limit_of_a_gang(
    seconds: tuple[int | None, ...], minutes: int | None
) -> None:
    """It ends as a whole: no member is cut short, and one without a deadline has all the time."""
    several = tuple(
        renamed(one_pod(asking(), active_deadline_seconds=limit), number) for number, limit in enumerate(seconds)
    )
    assert gang(several).request.time_limit_minutes == minutes
    assert gang(several, keys(timelimit="3")).request.time_limit_minutes == 3


# -- words


def test_wrong_amounts_of_many_pods_are_told_once() -> None:
    """With how many there are."""
    found = rejected(a_gang(members(5, container({"cpu": "x"}))))
    assert found.message.startswith("Pod team/web-0 (and 4 more pods): container main: cpu: 'x'")


def test_the_owner_record_names_the_group() -> None:
    """The pods are in it only as a digest, which the scheduler adds."""
    request = gang(members(3)).request
    assert (request.owner.kind, request.owner.name, request.owner.uid) == ("Job", "web", "job-uid")
    assert request.comment == "team/web (Job)"


def test_hints_are_passed_on() -> None:
    """What the gang's own annotations say is for others."""
    found = gang(members(2), keys(gang="true", member_lost="restart-group"))
    assert found.hints == {"gang": "true", "member-lost": "restart-group"}
    assert found.request == dataclasses.replace(gang(members(2)).request)


def test_a_single_pod_has_one_shape_of_what_it_asks_for() -> None:
    """Nothing else changes for it."""
    found = translated(one_pod(asking(2, "1Gi", 1)))
    (shape,) = found.shapes
    assert (shape.needs, found.form) == (
        Needs(cpus=2, memory_mib=1024, gres=(Gres(name="gpu", count=1),)),
        Form.SINGLE,
    )
    assert msgspec.json.encode(shape.needs)
