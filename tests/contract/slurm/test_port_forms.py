"""Gangs from pods to nodes: the form of the request, the allocation, and the place of each pod in it."""

import dataclasses

import pytest
from slurm_port import Port

from slurm_bridge.model import meta, names, pod
from slurm_bridge.model.job import Done, JobAllocation, JobRequest, NodeShare
from slurm_bridge.model.verdict import Reject
from slurm_bridge.model.workload import Gang, Root, Source, Workload
from slurm_bridge.scheduler.placement import place
from slurm_bridge.translate import limits, translator
from slurm_bridge.translate.rules import Rules
from slurm_bridge.translate.shapes import Form, Shape

#: cpus, memory, GPUs: of the first pod, and of each of the others.
Size = tuple[int, str, int]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A gang, where it runs, and how it is expected to be asked for and spread."""

    form: Form
    pods: tuple[Size, ...]
    feature: str
    nodes: int
    said: tuple[tuple[str, str], ...] = ()
    partition: str = "gpu"


CASES = {
    "cpus": Case(form=Form.TASKS, pods=((3, "1000Mi", 0),) * 7, feature="plain", nodes=1, partition="debug"),
    "memory": Case(form=Form.TASKS, pods=((1, "100Gi", 0),) * 3, feature="plain", nodes=2, partition="debug"),
    "threads": Case(form=Form.TASKS, pods=((3, "1000Mi", 0),) * 3, feature="smt", nodes=1, partition="smt"),
    "whole threads": Case(form=Form.PER_NODE, pods=((1, "200Gi", 0),) * 2, feature="smt", nodes=2, partition="smt"),
    "gpus": Case(form=Form.TASKS, pods=((1, "1001Mi", 3),) * 4, feature="gpu", nodes=2),
    "typed gpus": Case(form=Form.PER_NODE, pods=((5, "1000Mi", 1),) * 11, feature="v100", nodes=2),
    "whole nodes": Case(
        form=Form.PER_NODE, pods=((1, "60Gi", 0),) * 6, feature="plain", nodes=2, said=(("exclusive", "true"),),
        partition="debug",
    ),
    "one per node": Case(
        form=Form.PER_NODE, pods=((2, "1Gi", 0),) * 3, feature="plain", nodes=3, said=(("one-per-node", "true"),),
        partition="debug",
    ),
    "memory per node": Case(
        form=Form.PER_NODE, pods=((1, "2Gi", 0),) * 5, feature="plain", nodes=3, said=(("mem-per-node", "5Gi"),),
        partition="debug",
    ),
    "at least two nodes": Case(
        form=Form.TASKS, pods=((1, "1Gi", 0),) * 4, feature="plain", nodes=2,
        said=(("min-nodes", "2"), ("max-nodes", "3")), partition="debug",
    ),
    "sum": Case(form=Form.SUM, pods=((4, "8Gi", 2), *((2, "1Gi", 1),) * 4), feature="gpu", nodes=1),
    "typed sum": Case(form=Form.SUM, pods=((4, "8Gi", 2), *((2, "1Gi", 1),) * 4), feature="a100", nodes=1),
    "components": Case(form=Form.HET, pods=((4, "8Gi", 2), *((2, "1Gi", 1),) * 7), feature="gpu", nodes=2),
    "typed components": Case(form=Form.HET, pods=((4, "8Gi", 2), *((2, "1Gi", 1),) * 7), feature="v100", nodes=2),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_member_has_a_place_in_what_slurm_gives(port: Port, name: str) -> None:
    """On as few nodes as was expected."""
    case = CASES[name]
    port.desk.idle(case.feature, case.nodes)
    _runs(port, case, heterogeneous=True)


def test_without_components_each_pod_is_asked_for_as_the_largest(port: Port) -> None:
    """Two nodes with eight GPUs take eight pods of two each."""
    _runs(port, dataclasses.replace(CASES["components"], form=Form.BOUND), heterogeneous=False)


@pytest.mark.parametrize("name", ["cpus", "gpus", "typed gpus", "sum"])
def test_t43_a_waiting_gang_grows_and_shrinks_by_updates(port: Port, name: str) -> None:
    """Each update is read back, and the allocation is for the members of the last one."""
    case = CASES[name]
    port.desk.idle(case.feature, case.nodes)
    requests = [_settled(port, dataclasses.replace(case, pods=pods), heterogeneous=True).request for pods in _few(case)]
    first, *others = requests
    job_id = port.made(dataclasses.replace(first, hold=True))
    for each in others:
        assert port.client.update(job_id, dataclasses.replace(each, owner=first.owner)) == Done(job_id=job_id)
    assert port.desk.update(job_id, hold=False).errors == []
    port.desk.started(job_id)
    held = port.client.allocation(job_id)
    assert held is not None
    assert sum(share.cpus for share in held.shares) == others[-1].tasks * others[-1].cpus_per_task


def _few(case: Case) -> list[tuple[Size, ...]]:
    """One less, all of them, and two less."""
    return [case.pods[:-1], case.pods, case.pods[:-2]]


def _runs(port: Port, case: Case, *, heterogeneous: bool) -> None:
    found = _settled(port, case, heterogeneous=heterogeneous)
    assert found.form is case.form
    held = _allocations(port, found.request)
    assert sum(len(one.shares) for one in held) == case.nodes
    together = [share for one in held for share in one.shares]
    one_per_node = 1 if found.one_per_node else None
    placed = place.place(_parts(found, held), per_node=one_per_node)
    assert not isinstance(placed, Reject), placed
    assert len(placed) == len(case.pods)
    assert set(placed.values()) == {share.node for share in together}


def _settled(port: Port, case: Case, *, heterogeneous: bool) -> translator.Translated:
    known = {one.name: one for one in port.client.nodes()}
    facts = limits.SlurmFacts(
        partitions=tuple(port.client.partitions()), nodes=tuple(known.values()), heterogeneous=heterogeneous
    )
    eligible = frozenset(one.name for one in known.values() if case.feature in one.features)
    translated = translator.translate(_workload(case), Rules(cluster_id=port.desk.job_name))
    assert isinstance(translated, translator.Translated), translated
    asked = dataclasses.replace(
        translated.request,
        name=port.desk.job_name,
        partition=case.partition,
        constraints=case.feature,
        time_limit_minutes=5,
    )
    found = limits.settle(dataclasses.replace(translated, request=asked), facts, (eligible,))
    assert isinstance(found, translator.Translated), found
    return found


def _workload(case: Case) -> Workload:
    root = Root(kind="Job", namespace="contract", name="gang", uid="gang-uid")
    return Workload(
        root=root,
        pods=tuple(_pod(number, *size) for number, size in enumerate(case.pods)),
        sources=(
            Source(kind="Job", name="gang", annotations={names.JOB_PREFIX + key: text for key, text in case.said}),
        ),
        job_name="gang",
        gang=Gang(minimum=len(case.pods)),
    )


def _pod(number: int, cpus: int, memory: str, gpus: int) -> pod.Pod:
    asked: dict[str, str | int | float] = {"cpu": cpus, "memory": memory}
    if gpus:
        asked["nvidia.com/gpu"] = gpus
    container = pod.Container(name="main", resources=pod.ResourceNeeds(requests=asked))
    metadata = meta.ObjectMeta(name=f"gang-{number}", namespace="contract", uid=f"uid-{number}")
    return pod.Pod(metadata=metadata, spec=pod.PodSpec(containers=(container,)))


def _allocations(port: Port, request: JobRequest) -> list[JobAllocation]:
    outcome = port.client.submit(request)
    assert isinstance(outcome, Done), outcome
    port.desk.made.append(outcome.job_id)
    port.desk.until(lambda: "RUNNING" in port.desk.state(outcome.job_id), f"job {outcome.job_id} runs", 60.0)
    ids = [one.job_id for one in port.client.components(outcome.job_id)] or [outcome.job_id]
    found = [port.client.allocation(job_id) for job_id in ids]
    return [one for one in found if one is not None]


def _parts(found: translator.Translated, held: list[JobAllocation]) -> list[place.Part]:
    if len(held) > 1:
        return [_part((shape,), one.shares) for shape, one in zip(found.shapes, held, strict=True)]
    return [_part(found.shapes, held[0].shares)]


def _part(shapes: tuple[Shape, ...], shares: tuple[NodeShare, ...]) -> place.Part:
    members = (
        place.Member(uid=one.uid, cpus=shape.cpus, memory_mib=shape.memory_mib, gres=shape.gres)
        for shape in shapes
        for one in shape.pods
    )
    return place.Part(members=tuple(members), shares=shares)
