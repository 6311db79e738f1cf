"""The hook in a chain over a small cluster."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kube_scheduler.hook import KubeScheduler
from slurm_bridge.families.kube_scheduler.options import KubeSchedulerOptions
from slurm_bridge.families.kube_scheduler.profiles import Profiles
from slurm_bridge.hooks import calls
from slurm_bridge.hooks.base import Ask, Denied, Scores
from slurm_bridge.hooks.chain import Chain, asked
from slurm_bridge.hooks.needs import Need
from slurm_bridge.hooks.services import HookServices, NotAnswered, Target, unheard
from slurm_bridge.model.meta import Object
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod
from slurm_bridge.runtime.clock import VirtualClock
from tests.unit.families.kube_scheduler import scenes
from tests.unit.families.kube_scheduler.scenes import ZONE, node
from tests.unit.hooks.builders import Around, partition, slurm_node, translated, workload


class Objects:
    """What is watched of one kind."""

    def __init__(self, *objects: Object, version: int = 1) -> None:
        self._objects = objects
        self.version = version

    def get(self, namespace: str, name: str) -> Object | None:
        return next((one for one in self._objects if one.key == (namespace, name)), None)

    def all(self) -> Sequence[Object]:
        return self._objects

    def __len__(self) -> int:
        return len(self._objects)


class Silence:
    """Extenders that say what the test wrote down, or nothing."""

    def __init__(self, **answers: Any) -> None:
        self._answers = answers

    def __call__(self, _target: Target, path: str, _body: Mapping[str, Any], *, seconds: float) -> Any:
        assert seconds > 0
        if path.strip("/") not in self._answers:
            raise NotAnswered("nobody is there")
        return self._answers[path.strip("/")]


def hooked(**options: Any) -> KubeScheduler:
    """The hook, with whatever it asks asked at once; each pod is rated for itself unless something else is said."""
    services = _services(options)
    return KubeScheduler(
        KubeSchedulerOptions.model_validate({"priorities": [], "score_seconds": 0, **options}), services
    )


def profiled(**options: Any) -> Profiles:
    """The hook as a chain has it, with profiles."""
    services = _services(options)
    return Profiles(KubeSchedulerOptions.model_validate({"score_seconds": 0, **options}), services)


def _services(options: dict[str, Any]) -> HookServices:
    return HookServices(
        clock=options.pop("clock", VirtualClock()),
        post=options.pop("post", Silence()),
        threads=False,
        finest=options.pop("finest", unheard),
    )


def chained(around: Around, hook: KubeScheduler | Profiles, views: Mapping[Need, Objects] | None = None) -> Chain:
    """A chain of this hook alone."""
    made = Chain(
        [calls.Hook(name=hook.name, hook=hook, needs=hook.needs, honours=hook.honours, budget_seconds=60)],
        around.make(),
    )
    made.see({**dict.fromkeys(hook.needs, Objects()), **(views or {})})
    return made


def cluster(nodes: Sequence[Node], pods: Iterable[Pod] = ()) -> ClusterSnapshot:
    """A snapshot in which Slurm knows all nodes."""
    follows = scenes.keeper(nodes, pods)
    names = [one.metadata.name for one in nodes]
    follows.set_slurm(map(slurm_node, names), [partition("debug", *names, default=True)])
    return follows.snapshot()


def ask(*pods: Pod) -> Ask:
    """What a chain asks about these pods."""
    return asked(workload(*pods), translated())


def denied(chain: Chain, hook: KubeScheduler | Profiles, snapshot: ClusterSnapshot, *pods: Pod) -> Denied:
    """What the hook itself answers within a pass."""
    with chain.session(snapshot, now=0.0) as session:
        found = hook.filter(session, ask(*pods), snapshot.names)
    assert isinstance(found, Denied)
    return found


def scores(chain: Chain, hook: KubeScheduler | Profiles, snapshot: ClusterSnapshot, *pods: Pod) -> Scores:
    """Likewise for scores."""
    with chain.session(snapshot, now=0.0) as session:
        return hook.score(session, ask(*pods), snapshot.names)


TWO = [node("a", labels={ZONE: "1"}), node("b", labels={ZONE: "2"})]
