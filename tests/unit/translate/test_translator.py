"""Defaults, the pod, annotations: which value ends up in the request, and where each came from."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model import job, marks
from slurm_bridge.model.job import Gres, Memory
from slurm_bridge.model.pod import Pod, ResourceNeeds
from slurm_bridge.model.workload import Deadline
from slurm_bridge.translate import annotations, claims, rules, translator
from tests.unit.translate.translating import (
    a_workload,
    configured,
    container,
    keys,
    one_pod,
    rejected,
    request,
    translated,
)

GPUS = {"nvidia.com/gpu": "1", "amd.com/gpu": "2"}

#: A good value for each key on one pod, and what the request then holds.
ANNOTATED: list[tuple[str, str, str, object]] = [
    ("account", "physics", "account", "physics"),
    ("constraints", "rack1&nvme", "constraints", "rack1&nvme"),
    ("cpu-per-task", "2500m", "cpus_per_task", 3),
    ("exclusive", "True", "exclusive", True),
    ("gres", "gpu:2", "gres", (Gres(name="gpu", count=2),)),
    ("group-id", "2000", "group", "2000"),
    ("user-id", "alice", "user", "alice"),
    ("job-name", "research", "name", "research"),
    ("licenses", "matlab:1", "licenses", "matlab:1"),
    ("max-nodes", "3", "maximum_nodes", 3),
    ("min-nodes", "1", "minimum_nodes", 1),
    ("mem-per-node", "8Gi", "memory", Memory(mib=8192)),
    ("partition", "debug,gpu", "partition", "debug,gpu"),
    ("priority", "7", "priority", 7),
    ("qos", "high", "qos", "high"),
    ("reservation", "course", "reservation", "course"),
    ("wckey", "thesis", "wckey", "thesis"),
    ("timelimit", "90", "time_limit_minutes", 90),
]

#: Every default, and where it shows.
DEFAULTS: list[tuple[str, Any, str, object]] = [
    ("partition", "debug", "partition", "debug"),
    ("account", "a", "account", "a"),
    ("qos", "q", "qos", "q"),
    ("gres", "gpu:a100:1", "gres", (Gres(name="gpu", type="a100", count=1),)),
    ("timelimit", 5, "time_limit_minutes", 5),
    ("exclusive", True, "exclusive", True),
    ("mcs_label", "green", "mcs_label", "green"),
    ("cpus", 3, "cpus_per_task", 3),
    ("memory_mib", 7, "memory", Memory(mib=7)),
    ("user", "bridge", "user", "bridge"),
    ("group", "bridges", "group", "bridges"),
]


def said(found: translator.Translated, field: str) -> translator.Value:
    """The one explanation of a field."""
    (value,) = [one for one in found.values if one.field == field]
    return value


def test_a_plain_pod_is_one_task_with_the_defaults_on_a_shared_node() -> None:
    """Neither a whole node nor all of its memory by omission, and no number of nodes, which would make Slurm spread."""
    assert request() == job.JobRequest(
        name="web",
        owner=marks.Owner(cluster="here", kind="Pod", namespace="team", name="web-0", uid="uid-0"),
        memory=Memory(mib=512),
        comment="team/web-0 (Pod)",
    )


def test_c6_a_pod_asks_for_what_it_needs_and_not_for_the_node() -> None:
    """Sixty-four such pods fit a node of sixty-four cpus."""
    found = request(one_pod(container({"cpu": "1", "memory": "1Gi"})))
    assert (found.exclusive, found.tasks, found.cpus_per_task, found.memory) == (False, 1, 1, Memory(mib=1024))


@pytest.mark.parametrize(
    ("asked", "cpus", "mib"),
    [
        ({}, 2, 100),
        ({"cpu": "0", "memory": "0"}, 2, 100),
        ({"cpu": "1m", "memory": "1"}, 1, 1),
        ({"cpu": "1001m", "memory": "512Ki"}, 2, 1),
        ({"cpu": "3"}, 3, 100),
        ({"memory": "1048577"}, 2, 2),
    ],
)
def test_t03_amounts_are_rounded_up_and_missing_ones_are_the_configured_defaults(
    asked: dict[str, str], cpus: int, mib: int
) -> None:
    """Never 0, which Slurm takes for everything."""
    found = request(one_pod(container(asked)), cpus=2, memory_mib=100)
    assert (found.cpus_per_task, found.memory) == (cpus, Memory(mib=mib))


@given(st.integers(0, 2**50), st.integers(0, 10**7))
def test_t03_no_pod_asks_slurm_for_nothing(memory: int, millis: int) -> None:
    """Whatever it says."""
    found = request(one_pod(container({"cpu": f"{millis}m", "memory": memory})))
    assert found.cpus_per_task >= max(1, millis / 1000)
    assert found.memory.mib >= max(1, memory / 2**20)


@pytest.mark.parametrize(
    ("seconds", "minutes"),
    [(None, None), (0, None), (-1, None), (1, 1), (60, 1), (61, 2), (3600, 60), (2**62, 71582788)],
)
def test_t04_the_deadline_of_a_pod_is_its_time_limit(seconds: int | None, minutes: int | None) -> None:
    """Rounded up to Slurm's minutes."""
    assert request(one_pod(active_deadline_seconds=seconds)).time_limit_minutes == minutes


def test_t04_an_annotation_wins_over_the_deadline_and_the_deadline_over_the_default() -> None:
    """The user knows best, the administrator least."""
    found = one_pod(active_deadline_seconds=600)
    assert request(found, keys(timelimit="3"), timelimit=99).time_limit_minutes == 3
    assert request(found, timelimit=99).time_limit_minutes == 10
    assert request(timelimit=99).time_limit_minutes == 99


def below(deadline: Deadline, pod_: Pod | None = None, said: Any = None, **values: Any) -> translator.Translated:
    """What becomes of a pod whose Job has this deadline."""
    asked = dataclasses.replace(a_workload(pod_, said), deadline=deadline)
    found = translator.translate(asked, configured(**values))
    assert isinstance(found, translator.Translated), found
    return found


@pytest.mark.parametrize(
    ("own", "jobs", "minutes"),
    [(None, 61, 2), (600, 61, 2), (61, 600, 2), (None, 0, None), (300, 0, 5), (None, 2**62, 71582788)],
)
def test_the_deadline_of_the_job_is_a_time_limit(own: int | None, jobs: int, minutes: int | None) -> None:
    """The smaller one of the pod's and of its Job's, in whole minutes; the source names whose it is."""
    deadline = Deadline(seconds=jobs, subject="Job team/train")
    found = below(deadline, one_pod(active_deadline_seconds=own))
    assert found.request.time_limit_minutes == minutes
    source = next((one.source for one in found.values if one.field == "time_limit_minutes"), "")
    assert source in ("", "activeDeadlineSeconds of Job team/train", "activeDeadlineSeconds of Pod team/web-0")
    assert ("Job" in source) == (jobs in (61, 2**62))


@pytest.mark.security("neighbours")
def test_an_annotation_wins_over_the_deadline_of_the_job() -> None:
    """A Job's own activeDeadlineSeconds is the time limit in Slurm unless the annotation timelimit says another."""
    deadline = Deadline(seconds=600, subject="Job team/train")
    assert below(deadline, None, keys(timelimit="30")).request.time_limit_minutes == 30
    assert below(deadline, None, timelimit=99).request.time_limit_minutes == 10


def test_limits_count_where_they_are_to() -> None:
    """Of cpu and memory, and only where there are some; a container without a limit counts by its request."""
    both = container({"cpu": "1", "memory": "1Gi"}, {"cpu": "4", "memory": "8Gi"})
    beside = container({"cpu": "2", "memory": "1Gi"}, name="beside")
    found = request(one_pod(both, beside), count="limits")
    assert (found.cpus_per_task, found.memory.mib) == (6, 9 * 1024)
    usual = request(one_pod(both, beside))
    assert (usual.cpus_per_task, usual.memory.mib) == (3, 2 * 1024)
    value = next(one for one in translated(one_pod(both), count="limits").values if one.field == "memory")
    assert value.source == "limits of Pod team/web-0"


def test_limits_of_a_whole_pod_count_where_they_are_to() -> None:
    """They replace what its containers say, as its requests do."""
    needs = ResourceNeeds(requests={"cpu": "2"}, limits={"cpu": "8", "memory": "4Gi"})
    found = request(one_pod(container({"cpu": "1", "memory": "1Gi"}), resources=needs), count="limits")
    assert (found.cpus_per_task, found.memory.mib) == (8, 4096)


def test_limits_beyond_all_bounds_are_refused() -> None:
    """As requests are."""
    found = rejected(a_workload(one_pod(container({"cpu": "1"}, {"cpu": "65534"}))), count="limits")
    assert "65534 cpus" in found.message


@pytest.mark.security("input")
@pytest.mark.parametrize("count", ["4294967294", "9223372036854775807"])
def test_devices_beyond_all_bounds_are_refused(count: str) -> None:
    """More devices than Slurm can count are refused, whether a request or an annotation asks for them."""
    found = rejected(a_workload(one_pod(container(limits={"nvidia.com/gpu": count}))))
    assert found.reason == "InvalidResources"
    assert found.message == f"Pod team/web-0: requests {count} of gres gpu; at most 4294967293 are allowed"
    assert rejected(a_workload(None, keys(gres=f"gpu:{count}"))).reason == "InvalidAnnotation"


def test_t02_two_kinds_of_devices_are_both_kept() -> None:
    """Called the same in Slurm they add up, called differently they stand side by side."""
    found = one_pod(container(limits=GPUS))
    assert request(found).gres == (Gres(name="gpu", count=3),)
    typed = {"nvidia.com/gpu": "gpu:h100", "amd.com/gpu": "gpu:mi300"}
    assert request(found, gres_names=typed).gres == (
        Gres(name="gpu", type="h100", count=1),
        Gres(name="gpu", type="mi300", count=2),
    )


def test_t02_devices_of_a_single_pod_are_counted_per_node() -> None:
    """Per task they leak on nodes with typed devices."""
    assert request(one_pod(container(limits=GPUS))).gres_per is job.GresPer.NODE


def test_devices_that_nobody_configured_are_left_to_kubernetes() -> None:
    """And none of something is nothing."""
    assert request(one_pod(container(limits={"example.com/fpga": "1", "nvidia.com/gpu": "0"}))).gres == ()


@pytest.mark.parametrize(
    ("text", "expected"), [("gpu:v100:1", (Gres(name="gpu", type="v100", count=1),)), ("none", ())]
)
def test_the_gres_annotation_replaces_what_the_pod_implies_as_a_whole(text: str, expected: tuple[Gres, ...]) -> None:
    """It is not added to it, and it can take it all away."""
    assert request(one_pod(container(limits=GPUS)), keys(gres=text), gres="nic:1").gres == expected


@pytest.mark.parametrize(("default", "expected"), [("nic:1", Gres(name="nic", count=1)), ("none", None), (None, None)])
def test_a_default_gres_holds_for_pods_without_devices(default: str | None, expected: Gres | None) -> None:
    """Devices that the pod asks for replace it."""
    assert request(gres=default).gres == ((expected,) if expected else ())
    assert request(one_pod(container(limits=GPUS)), gres=default).gres == (Gres(name="gpu", count=3),)


@pytest.mark.parametrize(("key", "text", "field", "value"), ANNOTATED)
def test_every_annotation_reaches_its_field_and_nothing_else_changes(
    key: str, text: str, field: str, value: object
) -> None:
    """And says that it did."""
    found = translated(None, keys(**{key: text}))
    assert found.request == dataclasses.replace(request(), **{field: value})
    one = said(found, field)
    assert (one.key, one.subject) == (key, "Pod team/web-0")
    assert one.source == f'annotation slurmjob.slinky.slurm.net/{key}="{text}" of Pod team/web-0'


def test_every_annotation_that_sets_a_field_is_tried_here() -> None:
    """The table above is complete."""
    assert {key for key, *_ in ANNOTATED} == {row.key for row in annotations.ANNOTATIONS if not row.hint}


@pytest.mark.parametrize(("setting", "chosen", "field", "value"), DEFAULTS)
def test_every_default_reaches_its_field(setting: str, chosen: Any, field: str, value: object) -> None:
    """And says that it did."""
    found = translated(**{setting: chosen})
    assert getattr(found.request, field) == value
    assert said(found, field).source.startswith("setting defaults.")


def test_every_default_is_tried_here() -> None:
    """The table above is complete."""
    settings = {field.name for field in dataclasses.fields(rules.Rules)} - {
        "cluster_id",
        "count",
        "environment",
        "one_per_node",
        "gres_names",
        "parts_of",
        "devices_of",
        "class_gres",
    }
    assert {setting for setting, *_ in DEFAULTS} == settings


def test_an_annotation_can_take_an_exclusive_default_away() -> None:
    """False is an answer too."""
    assert request(None, keys(exclusive="false"), exclusive=True).exclusive is False


def test_t05_the_stronger_voice_wins_and_different_keys_combine() -> None:
    """Sources come weakest first."""
    workload = a_workload(None, keys(partition="a", account="x"), ("Job", keys(partition="b")), ("Workload", {}))
    found = translator.translate(workload, configured())
    assert isinstance(found, translator.Translated)
    assert (found.request.partition, found.request.account) == ("b", "x")
    assert said(found, "partition").subject == "Job team/web"


def test_hints_travel_beside_the_request() -> None:
    """Hooks read them, Slurm never sees them."""
    found = translated(None, keys(queue="root.a", node_sort_policy="fair", gang="false"))
    assert found.request == request()
    assert found.hints == {"queue": "root.a", "node-sort-policy": "fair", "gang": "false"}
    assert said(found, "queue").key == "queue"


def test_everything_that_is_sent_says_where_it_came_from() -> None:
    """No value of the request appears from nowhere, and none is explained that is not there."""
    values = {key: text for key, text, *_ in ANNOTATED}
    found = translated(one_pod(container(limits=GPUS)), keys(**values), mcs_label="x")
    sent = {
        field.name
        for field in dataclasses.fields(job.JobRequest)
        if getattr(found.request, field.name) not in (None, "", (), False) and field.name != "gres_per"
    }
    assert {one.field for one in found.values} == sent
    assert all(one.source and one.value for one in found.values)


def test_the_owner_record_names_the_workload() -> None:
    """Its cluster, and this very incarnation."""
    owner = request(cluster_id="green").owner
    assert owner == marks.Owner(cluster="green", kind="Pod", namespace="team", name="web-0", uid="uid-0")


def test_the_comment_tells_people_whose_job_it_is() -> None:
    """In squeue's own columns there is no room for it."""
    found = translator.translate(a_workload(controller="Job"), configured())
    assert isinstance(found, translator.Translated)
    assert found.request.comment == "team/web-0 (Pod, Job team/web)"


@given(st.text(max_size=300), st.text(max_size=300))
def test_the_comment_always_fits(namespace: str, name: str) -> None:
    """A long one would refuse the whole submit."""
    workload = a_workload()
    strange = dataclasses.replace(workload, root=dataclasses.replace(workload.root, namespace=namespace, name=name))
    found = translator.translate(strange, configured())
    assert isinstance(found, translator.Translated)
    comment = found.request.comment
    assert len(comment.encode()) <= claims.MOST_COMMENT
    assert comment.isascii()
    assert comment.isprintable()


def test_t06_all_problems_of_all_sources_are_told_in_one_refusal() -> None:
    """Also that of a value which a stronger voice overrules, and that of the pod's own amounts."""
    workload = a_workload(
        one_pod(container({"cpu": "x"})),
        keys(timelimit="0", user_id="root"),
        ("Job", keys(timelimit="5", gang="true", partitions="red", min_nodes="3", max_nodes="2")),
    )
    found = rejected(workload)
    assert found.reason == "InvalidAnnotation"
    expected = [
        'Pod team/web-0: annotation slurmjob.slinky.slurm.net/timelimit="0"',
        'Pod team/web-0: annotation slurmjob.slinky.slurm.net/user-id="root"',
        'Job team/web: annotation slurmjob.slinky.slurm.net/partitions="red"',
        "use at most max-nodes, which is 2",
        'slurmjob.slinky.slurm.net/min-nodes="3": one pod cannot span nodes',
        "Pod team/web-0: container main: cpu: 'x' is not a Kubernetes quantity",
    ]
    assert [words for words in expected if words not in found.message] == []


def test_a_contradiction_is_seen_between_two_objects_too() -> None:
    """Each alone is right."""
    found = rejected(a_workload(None, keys(max_nodes="1"), ("Job", keys(min_nodes="2"))))
    assert "use at most max-nodes, which is 1" in found.message


@pytest.mark.parametrize("marks_", [keys(min_nodes="2"), keys(min_nodes="2", max_nodes="4")])
def test_what_only_several_pods_could_do_is_refused_with_what_one_can(marks_: dict[str, str]) -> None:
    """One pod cannot span nodes."""
    message = rejected(a_workload(None, marks_)).message
    assert "one pod cannot span nodes: use 1" in message


def test_a_maximum_above_one_is_accepted_for_one_pod() -> None:
    """It allows, it does not demand."""
    found = request(None, keys(max_nodes="3", min_nodes="1"))
    assert (found.minimum_nodes, found.maximum_nodes, found.tasks) == (1, 3, 1)


def test_less_memory_than_the_pod_requests_is_refused() -> None:
    """The kubelet counts the pod's own request, whatever Slurm was told."""
    small = one_pod(container({"memory": "1Gi"}))
    assert (
        "at least the memory that the pod requests, 1024Mi"
        in rejected(a_workload(small, keys(mem_per_node="1023Mi"))).message
    )
    assert request(small, keys(mem_per_node="1Gi")).memory == Memory(mib=1024)
    assert request(None, keys(mem_per_node="1Mi")).memory == Memory(mib=1)


def test_amounts_that_are_none_are_refused_without_blaming_annotations() -> None:
    """The reason says where to look."""
    found = rejected(a_workload(one_pod(container({"memory": "1GB"}))))
    assert found.reason == "InvalidResources"
    assert "Pod team/web-0: container main: memory: '1GB'" in found.message


def test_more_cpus_than_slurm_can_count_are_refused() -> None:
    """It would cut the number to what fits."""
    found = rejected(a_workload(one_pod(container({"cpu": "65534"}))))
    assert found.message == "Pod team/web-0: requests 65534 cpus; at most 65533 are allowed"


def test_rules_that_no_job_could_follow_do_not_exist() -> None:
    """All that is wrong with them is told at once."""
    with pytest.raises(ValueError, match="default partition") as error:
        configured(
            partition="a b", timelimit=0, cpus=0, memory_mib=0, user="root", gres="gpu:0", gres_names={"x/y": "gpu:2"}
        )
    for words in ("timelimit 0", "cpus 0", "memory_mib 0", "user 'root'", "gres 'gpu:0'", "gres of x/y: 'gpu:2'"):
        assert words in str(error.value)
