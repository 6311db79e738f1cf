"""Equal pods are translated once, and each gets what it would get alone."""

import dataclasses
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_bridge.model import job, meta, pod, verdict, workload
from slurm_bridge.translate import rules, templates, translator
from slurm_bridge.translate.templates import TranslationCache
from tests.unit.translate import translating
from tests.unit.translate.translating import asking, keys

RULES = rules.Rules(cluster_id="c", partition="main", account="a")
#: Names that begin, end or contain each other, as users may choose them.
NAMES = ("web", "web-0", "web-01", "0", "team", "pod", "a-web-0")


def one(name: str, spec: pod.PodSpec, said: dict[str, str], above: str = "", deadline: int = 0) -> workload.Workload:
    """Pod team/name, made by an object called `above`, whose Job has a deadline."""
    metadata = meta.ObjectMeta(name=name, namespace="team", uid=f"uid-{name}", annotations=said)
    sources = [workload.Source(kind="Pod", name=name, annotations=said)]
    if above:
        sources.append(workload.Source(kind="ReplicaSet", name=above, annotations=keys(constraints="gpu&large")))
    return workload.Workload(
        root=workload.Root(kind="Pod", namespace="team", name=name, uid=f"uid-{name}"),
        pods=(pod.Pod(metadata=metadata, spec=spec),),
        sources=tuple(sources),
        job_name=name,
        controller=workload.Root(kind="ReplicaSet", namespace="team", name=above, uid="u") if above else None,
        deadline=workload.Deadline(seconds=deadline, subject="Job team/web") if deadline else None,
    )


SPECS = st.builds(
    pod.PodSpec,
    containers=st.sampled_from([(asking(),), (asking(2, "3Gi"),), (asking(gpus=1),), (translating.container(),)]),
    active_deadline_seconds=st.sampled_from([None, 0, 90]),
    node_selector=st.sampled_from([{}, {"disk": "ssd"}]),
    priority=st.sampled_from([None, 5]),
    volumes=st.sampled_from([(), ({"persistentVolumeClaim": {"claimName": "data"}},)]),
)
SAID = st.sampled_from(
    [
        {},
        keys(account="physics"),
        keys(timelimit="30", constraints="ssd"),
        keys(cpu_per_task="0"),
        keys(licenses="Pod team/web-0"),
        keys(job_name="web-0"),
        keys(gres="gpu:1", nonsense="Pod team/web-0"),
        {"example.com/other": "value"},
    ]
)
WORKLOADS = st.builds(
    one,
    st.sampled_from(NAMES),
    SPECS,
    SAID,
    st.sampled_from(["", "web", "web-0"]),
    st.sampled_from([0, 600]),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(WORKLOADS, min_size=1, max_size=12))
def test_a_template_gives_each_pod_the_request_that_it_would_get_alone(workloads: list[workload.Workload]) -> None:
    """Whatever equal and different pods came before, with all sources, and also where it is refused."""
    cache = TranslationCache()
    for each in workloads:
        found, alone = cache.translate(each, RULES), translator.translate(each, RULES)
        if isinstance(found, translator.Translated):
            found = dataclasses.replace(found, template=None)
        assert found == alone


def translated(cache: TranslationCache, each: workload.Workload, by: rules.Rules = RULES) -> translator.Translated:
    found = cache.translate(each, by)
    assert not isinstance(found, verdict.Reject), found
    return found


PLAIN = pod.PodSpec(containers=(asking(),))


def test_equal_pods_name_one_template() -> None:
    """By this other steps know that they are equal; other rules have templates of their own."""
    cache = TranslationCache()
    first, second = (translated(cache, one(name, PLAIN, {})) for name in ("a", "b"))
    assert first.template is second.template is not None
    assert first.request.owner.uid == "uid-a"
    assert second.request.owner.uid == "uid-b"
    later = translated(cache, one("c", PLAIN, {}), dataclasses.replace(RULES, account="b"))
    assert later.template is not first.template
    assert later.request.account == "b"


def _with_status(status: pod.PodStatus) -> workload.Workload:
    (made,) = one("b", PLAIN, {}).pods
    return dataclasses.replace(one("b", PLAIN, {}), pods=(msgspec.structs.replace(made, status=status),))


def _scheduled(job_id: int) -> meta.Condition:
    return meta.Condition(type="PodScheduled", status="False", reason="SlurmJobPending", message=f"Slurm job {job_id}")


def test_volumes_and_the_bridges_own_words_make_no_pod_different() -> None:
    """Nearly every pod has a volume, and each one that waits is told of its own job."""
    cache, spec = TranslationCache(), msgspec.structs.replace(PLAIN, volumes=({"name": "shm", "emptyDir": {}},))
    first = one("a", spec, {})
    (like,) = one("b", spec, {}).pods
    told = msgspec.structs.replace(like, status=pod.PodStatus(conditions=(_scheduled(7),)))
    second = dataclasses.replace(one("b", spec, {}), pods=(told,))
    assert translated(cache, first).template is translated(cache, second).template is not None


@pytest.mark.parametrize(
    "other",
    [
        one("b", msgspec.structs.replace(PLAIN, volumes=({"name": "root", "hostPath": {"path": "/"}},)), {}),
        _with_status(pod.PodStatus(nominated_node_name="n")),
        _with_status(pod.PodStatus(conditions=(meta.Condition(type="Ready", status="False"),))),
        one("b", PLAIN, {"example.com/any": "annotation"}),
        one("b", msgspec.structs.replace(PLAIN, service_account_name="other"), {}),
        one("b", msgspec.structs.replace(PLAIN, scheduler_name="other"), {}),
        one("b", msgspec.structs.replace(PLAIN, priority_class_name="system-node-critical"), {}),
        dataclasses.replace(one("b", PLAIN, {}), creators={}),
        one("b", PLAIN, {}, above="web"),
    ],
)
def test_pods_that_differ_in_anything_but_names_are_not_equal(other: workload.Workload) -> None:
    """Hooks and policies may look at all of it."""
    cache = TranslationCache()
    assert translated(cache, one("a", PLAIN, {})).template is not translated(cache, other).template


def _changed(**fields: Any) -> workload.Workload:
    (made,) = one("b", PLAIN, {}).pods
    metadata = msgspec.structs.replace(made.metadata, **{k: v for k, v in fields.items() if k != "spec"})
    spec = msgspec.structs.replace(made.spec, **fields.get("spec", {}))
    return dataclasses.replace(one("b", PLAIN, {}), pods=(msgspec.structs.replace(made, metadata=metadata, spec=spec),))


@pytest.mark.parametrize(
    "single",
    [
        translating.a_gang(translating.members(2)),
        _changed(spec={"volumes": ({"persistentVolumeClaim": {"claimName": "data"}},)}),
        _changed(spec={"topology_spread_constraints": ({"topologyKey": "zone", "maxSkew": 1},)}),
        _changed(deletion_timestamp="2026-01-01T00:00:00Z"),
        _changed(spec={"node_name": "n"}),
    ],
)
def test_what_depends_on_more_than_the_pod_has_no_template(single: workload.Workload) -> None:
    """Gangs, claims, demands of hooks, and pods that are bound or leave."""
    cache = TranslationCache()
    for _ in range(3):
        assert translated(cache, single).template is None


def test_the_cache_is_bounded() -> None:
    """A user with pods that all differ makes it forget, and not grow."""
    cache = TranslationCache()
    for number in range(3 * templates.MOST):
        translated(cache, one("a", PLAIN, {"example.com/number": str(number)}))
        assert len(cache._kept[1]) <= templates.MOST


def test_a_pod_that_is_refused_does_not_harm_its_neighbours() -> None:
    """One with a wrong annotation is told so by its own name, each time; others are translated."""
    cache, wrong = TranslationCache(), keys(nonsense="x")
    for name in ("a", "b"):
        found = cache.translate(one(name, PLAIN, wrong), RULES)
        assert isinstance(found, verdict.Reject)
        assert f"Pod team/{name}:" in found.message
    assert translated(cache, one("c", PLAIN, {})).request.memory == job.Memory(mib=1024)
