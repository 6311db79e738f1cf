"""The rows of the live view, on a whole core between two pocket worlds."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from slurm_bridge.mirror import table
from slurm_bridge.model import kinds, names
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Container, Pod, PodSpec, ResourceNeeds
from slurm_bridge.runtime.clock import thread_seconds
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.view import details
from slurm_bridge.view.live_model import EVERYTHING, ViewScope
from tests.component.scheduler.whole_core import Bridge
from tests.component.view.conftest import Pictures, Window
from tests.simulation.world import NAMESPACE


def test_the_first_step_has_every_workload_and_every_node(bridge: Bridge) -> None:
    """Those that were there before there was a viewer."""
    bridge.bound("a")
    bridge.waiting("b")
    first = Window(bridge).step()
    assert {row["name"]: row["stage"] for row in first["workloads"]} == {"a": "running", "b": "queued"}
    assert len(first["nodes"]) == len(bridge.core.context.keeper.snapshot().nodes)


class Restless(Pictures):
    """While a row is made, a workload changes, as it may by any thread."""

    def __init__(self, change: Callable[[], None]) -> None:
        self._change = change

    def devices(self) -> frozenset[str]:
        change = self._change

        class Devices(frozenset[str]):
            def __contains__(self, name: object) -> bool:
                change()
                return super().__contains__(name)

        return Devices()


def changed(bridge: Bridge, keys: list[names.WorkloadKey]) -> None:
    """Something of these workloads is new."""
    for key in keys:
        bridge.core.context.table.changed(key)


def test_what_changes_during_a_step_takes_no_place_of_others(bridge: Bridge) -> None:
    """A busy core does not keep a workload from being shown."""
    for name in ("a", "b", "c"):
        bridge.pod(name)
    bridge.step()
    keys = [bridge.key(name) for name in ("a", "b", "c")]
    window = Window(bridge, pictures=Restless(lambda: changed(bridge, keys)))
    assert {row["name"] for row in window.step()["workloads"]} == {"a", "b", "c"}


def test_a_step_without_a_change_is_empty(bridge: Bridge) -> None:
    """What a step costs and sends follows what has changed."""
    bridge.bound("a")
    window = Window(bridge)
    window.step()
    assert not window.model.step()
    assert window.step() == {}


def test_a_step_has_only_the_rows_that_differ(bridge: Bridge) -> None:
    """A workload that is looked at again without a change of its row is not sent again."""
    bridge.waiting("a")
    bridge.pod("b")
    bridge.step()
    window = Window(bridge)
    window.step()
    bridge.core.context.table.changed(bridge.key("a"))
    bridge.delete("b")
    bridge.step()
    step = window.step()
    assert [row["name"] for row in step.get("workloads", ())] in ([], ["b"])
    bridge.run(5)
    gone = [number for one in (step, window.step()) for number in one.get("gone", ())]
    assert len(gone) == 1


def test_a_job_that_waits_says_slurms_reason_and_what_to_do(bridge: Bridge) -> None:
    """The reason as squeue shows it, with words and a next step that name the job."""
    for number in range(6):
        bridge.pod(f"p{number}", cpu="4")
    bridge.run(20)
    window = Window(bridge)
    row = next(row for row in window.step()["workloads"] if row["reason"] == "Resources")
    job = bridge.job(row["name"])
    assert (row["stage"], row["job"]) == ("queued", job.job_id)
    assert row["message"] == "the cluster is full; it is next when nodes become free"
    found = details.workload(records(window), bridge.key(row["name"]))
    assert found is not None
    assert found["message"].startswith(f"Slurm job {job.job_id} is pending (Resources: {row['message']})")
    assert f"scontrol show job {job.job_id}" in found["step"]
    assert [line["what"] for line in found["timeline"]][:2] == ["created", "submitted"]


def records(window: Window):
    """What details are made of."""
    snapshot = window.bridge.core.context.keeper.snapshot()
    return window.model.records(snapshot, frozenset({"nvidia.com/gpu"}))


def test_what_the_bridge_told_a_pod_is_shown_at_once(bridge: Bridge) -> None:
    """Before the condition is written on the pod."""
    window = Window(bridge)
    bridge.pod("a", annotations={names.JOB_PREFIX + "partition": "nowhere"})
    bridge.settle()
    step = window.step()
    (row,) = step["workloads"]
    assert (row["stage"], row["reason"]) == ("held", "UnknownPartition")
    assert [(one["name"], one["reason"]) for one in step["decisions"]] == [("a", "UnknownPartition")]


def test_a_pod_that_was_told_before_there_was_a_viewer_shows_its_condition(bridge: Bridge) -> None:
    """Also after a restart of the daemon."""
    bridge.pod("a", annotations={names.JOB_PREFIX + "partition": "nowhere"})
    bridge.run(10)
    (row,) = Window(bridge).step()["workloads"]
    assert row["reason"] == "UnknownPartition"


def test_a_running_workload_says_where_it_runs_and_its_node_says_what_it_has(bridge: Bridge) -> None:
    """The amounts of the pod are with those of the bridge; the foreign pod and the foreign jobs are apart."""
    window = Window(bridge)
    window.step()
    job = bridge.bound("a", cpu="2")
    bridge.run(3)
    (row,) = window.step()["workloads"]
    assert (row["stage"], row["bound"], row["job"], row["nodes"]) == ("running", 1, job.job_id, [bridge.node_of("a")])
    node = next(one for one in window.full()["nodes"] if one["name"] == bridge.node_of("a"))
    assert node["cpus"][:2] == [4, 2]


def test_jobs_and_pods_of_others_are_amounts_without_names(bridge: Bridge) -> None:
    """A neighbour of the bridge is seen as what it holds, and as nothing else."""
    access_name = "theirs"
    bridge.kube.create(
        kinds.PODS,
        {
            "metadata": {"name": access_name, "namespace": NAMESPACE},
            "spec": {
                "schedulerName": "default-scheduler",
                "nodeName": next(iter(sorted(bridge.core.context.keeper.snapshot().nodes or {"n1": 1}))),
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
            },
        },
    )
    bridge.run(35)
    window = Window(bridge)
    text = json.dumps(window.step())
    assert access_name not in text
    assert any(node["cpus"][2] for node in window.full()["nodes"])


@pytest.mark.security("rights")
def test_a_viewer_of_one_namespace_gets_no_word_of_another(bridge: Bridge) -> None:
    """A viewer of the live view gets no name, number or decision of a namespace whose pods it may not list."""
    bridge.kube.create(kinds.NAMESPACES, {"metadata": {"name": "secret"}})
    window = Window(bridge)
    bridge.pod("a")
    bridge.pod("hidden", "secret", annotations={names.JOB_PREFIX + "partition": "nowhere"})
    bridge.run(3)
    delta = window.model.step()
    scope = ViewScope(frozenset({NAMESPACE}), totals=False)
    sent = [delta.text(scope), *window.model.full(scope)]
    assert b"hidden" in delta.text(EVERYTHING)
    assert all(b"hidden" not in one and b"secret" not in one and b'"nodes"' not in one for one in sent)
    assert b'"a"' in sent[0]
    bridge.kube.delete(kinds.PODS, ("secret", "hidden"))
    bridge.run(5)
    assert b"gone" not in window.model.step().text(scope)


def test_viewers_of_one_scope_share_one_serialisation(bridge: Bridge) -> None:
    """The second viewer gets the very same bytes."""
    bridge.pod("a")
    bridge.step()
    delta = Window(bridge).model.step()
    assert delta.text(ViewScope(frozenset({"x"}), totals=True)) is delta.text(ViewScope(frozenset({"x"}), totals=True))


def test_names_and_texts_of_users_are_bounded_and_printable(bridge: Bridge) -> None:
    """A group by name may have any name: the row has it cut off, without what a terminal obeys."""
    evil = "<img src=x onerror=alert(1)>\x1b[2J" + "x" * 400
    bridge.pod("a", annotations={names.GROUP: evil, names.GROUP_SIZE: "1"})
    bridge.pod("good")
    bridge.run(3)
    found = Window(bridge).step()["workloads"]
    assert {"good"} <= {row["name"] for row in found}
    assert all(len(str(value)) <= 300 and str(value).isprintable() for row in found for value in row.values())


def test_names_of_nodes_that_users_write_are_bounded_and_printable(bridge: Bridge) -> None:
    """The annotation that names Slurm's node of a bound pod is the user's to change."""
    group = {names.GROUP: "g", names.GROUP_SIZE: "2"}
    bridge.pod("a", annotations=group)
    bridge.pod("b", annotations=group)
    bridge.pod("good")
    bridge.run(20)
    for number, name in enumerate(("a", "b")):
        evil = f"\x1b[2J{number}" + "x" * 100_000
        merged = {"metadata": {"annotations": {names.ANNOTATION_SLURM_NODE: evil}}}
        bridge.kube.merge(kinds.PODS, (NAMESPACE, name), merged)
    bridge.run(3)
    found = {row["name"]: row for row in Window(bridge).step()["workloads"]}
    assert [name[:5] for name in found["g"]["nodes"]] == ["?[2J0", "?[2J1"]
    assert all(name.isprintable() and len(name) <= 253 for name in found["g"]["nodes"])
    assert found["good"]["nodes"] == [bridge.node_of("good")]


def test_beyond_the_most_workloads_only_the_number_is_shown(bridge: Bridge) -> None:
    """When one that is shown goes, another takes its place."""
    for number in range(4):
        bridge.pod(f"p{number}")
    bridge.run(3)
    window = Window(bridge, most=2)
    first = window.step()
    assert (len(first["workloads"]), first["left_out"]) == (2, 2)
    bridge.delete(first["workloads"][0]["name"])
    bridge.run(6)
    steps = [window.step(), window.step()]
    assert sum(len(one.get("workloads", ())) for one in steps) >= 1
    assert len(window.full()["workloads"]) == 2
    assert [one["left_out"] for one in steps if "left_out" in one][-1] == 1


@pytest.mark.security("rights")
def test_only_viewers_of_all_namespaces_learn_how_many_are_not_shown(bridge: Bridge) -> None:
    """A viewer of the live view without the right to list all pods learns no number of those left out."""
    for name in ("a", "b"):
        bridge.pod(name)
    bridge.run(3)
    window = Window(bridge, most=1)
    delta, scope = window.model.step(), ViewScope(frozenset({NAMESPACE}), totals=True)
    assert b"left_out" in delta.text(EVERYTHING)
    assert all(b"left_out" not in one for one in (delta.text(scope), *window.model.full(scope)))


def test_a_workload_that_comes_while_a_view_begins_is_shown(bridge: Bridge) -> None:
    """Changes are reported before the list of workloads is read."""
    bridge.pod("a")
    bridge.step()
    index, key = bridge.core.context.pod_index, bridge.key("a")
    bridge.core.context.pod_index = Late(index, lambda: bridge.core.context.table.changed(key))  # type: ignore[assignment]
    window = Window(bridge)
    bridge.core.context.pod_index = index
    assert [row["name"] for row in window.step()["workloads"]] == ["a"]


class Late:
    """The pod index, of which a workload is reported as soon as its list, without this workload, was read."""

    def __init__(self, inner: PodIndex, after: Callable[[], None]) -> None:
        self._inner, self._after = inner, after

    def roots(self) -> tuple[names.WorkloadKey, ...]:
        self._after()
        return ()

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


def test_a_picture_or_a_decision_that_cannot_be_written_stops_only_itself(bridge: Bridge) -> None:
    """Half a letter has no place in JSON: the workloads of others are shown all the same."""
    window = Window(bridge, pictures=Broken())
    bridge.pod("a")
    bridge.pod("good")
    bridge.step()
    root = bridge.core.context.pod_index.workload(bridge.key("a")).root
    broken = dataclasses.replace(root, kind="\ud800")
    bridge.core.context.status.waiting_together(broken, bridge.core.context.pod_index.workload(root.key), "X", "x")
    step = window.step()
    assert {"good"} <= {row["name"] for row in step["workloads"]}
    assert "queues" not in step
    assert "X" not in [one["reason"] for one in step.get("decisions", ())]


class Broken(Pictures):
    """The queues have half a letter."""

    def queues(self) -> Mapping[str, Any]:
        return {"partition": "\ud800", "queues": None}


def test_after_the_last_viewer_the_core_reports_nothing(bridge: Bridge) -> None:
    """Without viewers no call of the scheduler is any longer than it was."""
    context = bridge.core.context
    reporter = context.status
    window = Window(bridge)
    assert context.status is not reporter
    window.model.close()
    assert context.status is reporter
    assert context.table.changed is table.unobserved


def test_a_view_changes_nothing_of_what_the_core_does(bridge: Bridge) -> None:
    """Conditions and events reach the pods as without it."""
    window = Window(bridge)
    bridge.pod("a", annotations={names.JOB_PREFIX + "partition": "nowhere"})
    bridge.run(10)
    window.step()
    conditions = bridge.manifest("a")["status"]["conditions"]
    assert [one["reason"] for one in conditions if one["type"] == "PodScheduled"] == ["UnknownPartition"]


def made_pod(number: int, *, priority: int = 0) -> Pod:
    """A pod as the watch tells of it."""
    needs = ResourceNeeds(requests={"cpu": "2", "memory": "1Gi"})
    spec = PodSpec(
        scheduler_name=names.SCHEDULER_NAME,
        priority=priority,
        containers=(Container(name="c", image="i", resources=needs),),
    )
    meta = ObjectMeta(
        name=f"pod-{number}",
        namespace=f"team-{number % 5}",
        uid=f"uid-{number}",
        creation_timestamp="2026-01-01T00:00:00Z",
    )
    return Pod(metadata=meta, spec=spec)


def test_a_minute_of_a_viewer_costs_less_than_a_fifth_of_a_second(bridge: Bridge) -> None:
    """With 2 000 workloads, of which one changes in each second, in time of the processor."""
    for number in range(2000):
        bridge.core.on_pod(None, made_pod(number))
    window = Window(bridge)
    window.model.step()
    began = thread_seconds()
    for number in range(60):
        old = bridge.core.pod_index.get(f"uid-{number}")
        bridge.core.on_pod(old, made_pod(number, priority=1))
        window.model.step().text(EVERYTHING)
    assert thread_seconds() - began < 0.2
