"""How long one look at one workload holds the only thread that thinks, on a cluster of ten thousand nodes.

A look of ordinary pods comes first: what nodes that have just joined cost is paid once, and is no finding.
"""

import dataclasses
import random
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from slurm_bridge import errors
from slurm_bridge.kube import codec
from slurm_bridge.model import kinds, names
from slurm_bridge.model.pod import Pod
from tests.fuzz import generators, recorded_core, strangers
from tests.fuzz.generators import Json
from tests.fuzz.recorded_core import Mind
from tests.fuzz.runner import Watch

#: Looks at one case.
MOST_LOOKS = 60

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Pods that appear at once, and pods of other schedulers that run by then."""

    chain: str
    pods: Sequence[Json]
    others: Sequence[Json] = ()


class Looks:
    """The target; `size` is the number of nodes."""

    name = "looks"

    def __init__(self, size: int) -> None:
        self._size = size
        self._minds: dict[str, Mind] = {}

    def make(self, dice: random.Random) -> Case:
        """Ordinary ones that grew too large in one place, and any others."""
        chain = dice.choice(list(recorded_core.CHAINS))
        pods = list(strangers.pods(dice, dice.randrange(10**6)))
        if generators.chance(dice, 0.5):
            large = _large(dice)
            for pod in pods:
                pod["spec"] |= large.get("spec", {})
                pod["metadata"]["annotations"] |= large.get("annotations", {})
        others = list(_others(dice, self._size)) if generators.chance(dice, 0.3) else ()
        return Case(chain=chain, pods=pods, others=others)

    def check(self, case: Case, watch: Watch) -> Iterable[str]:
        """Warm up, then look."""
        shelf = strangers.Shelf()
        mind = self._minds.get(case.chain)
        if mind is None:
            mind = self._minds[case.chain] = Mind(shelf, chain=case.chain, size=self._size)
        mind.begin(shelf)
        mind.others(*_decodable([_other(0, self._size, _speaking("podAffinity", _PREFERRED, [_hostile(0, "zone")]))]))
        mind.pods(*_ordinary())
        while mind.look():
            pass
        mind.others(*_decodable(case.others))
        mind.pods(*_decodable(case.pods), *_ordinary(range(3, 4) if case.others else ()))
        for _ in range(MOST_LOOKS):
            with watch(f"look ({case.chain})"):
                if not mind.look():
                    break
        with watch(f"preempt ({case.chain})"):
            mind.core.preempt_step()
        yield from _caught()


def _caught() -> Iterator[str]:
    yield from (f"crash: {place}" for place in recorded_core.ERRORS.caught)


def _ordinary(numbers: Iterable[int] = range(3)) -> Iterator[Pod]:
    needs = {"requests": {"cpu": "1", "memory": "1Gi"}}
    for number in numbers:
        metadata = {"name": f"o{number}", "namespace": strangers.VICTIM, "uid": f"o{number}", "resourceVersion": "1"}
        spec = {"schedulerName": names.SCHEDULER_NAME, "containers": [{"name": "main", "resources": needs}]}
        yield codec.codec(kinds.PODS).one(msgspec.json.encode({"metadata": metadata, "spec": spec}))


def _decoded(manifest: Json) -> Pod | None:
    try:
        return codec.codec(kinds.PODS).one(msgspec.json.encode(manifest))
    except errors.BadAnswer:
        return None


def _decodable(manifests: Iterable[Json]) -> Iterator[Pod]:
    return (pod for manifest in manifests if (pod := _decoded(manifest)) is not None)


def _others(dice: random.Random, size: int) -> Iterator[Json]:
    """One that says very much of its neighbours, or many each of which says as much as one that we place may say."""
    count, each = dice.choice(((1, 100), (1, 3000), (1, 8000), (30, 100), (100, 5)))
    kind, when = dice.choice(("podAffinity", "podAntiAffinity")), dice.choice((_REQUIRED, _PREFERRED))
    keys = dice.choice((("kubernetes.io/hostname",), ("zone", "kubernetes.io/hostname"), ()))
    for place in range(count):
        numbers = range(place * each, (place + 1) * each)
        terms = [_hostile(number, dice.choice(keys) if keys else f"k{number}") for number in numbers]
        yield _other(place + 1, size, _speaking(kind, when, terms))


def _speaking(kind: str, when: str, terms: Sequence[Json]) -> Json:
    wishes = terms if when == _REQUIRED else [{"weight": 1, "podAffinityTerm": one} for one in terms]
    return {kind: {when: wishes}}


def _hostile(number: int, key: str) -> Json:
    """A term that means nearly every pod, and is like no other."""
    row = {"key": f"x{number}", "operator": "DoesNotExist"}
    return {"topologyKey": key, "namespaceSelector": {}, "labelSelector": {"matchExpressions": [row]}}


def _other(number: int, size: int, affinity: Json) -> Json:
    """A pod that runs, on a node of its own."""
    name, where = f"other-{number}", f"n{number % size + 1}"
    metadata = {"name": name, "namespace": strangers.HOSTILE, "uid": name, "resourceVersion": "1"}
    spec = {"nodeName": where, "schedulerName": "other", "containers": [{"name": "main"}], "affinity": affinity}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


def _large(dice: random.Random) -> Json:
    """One thing of which there is far too much, or as much as is still allowed."""
    count = dice.choice((50, 100, 101, 3000))
    terms = [generators.absent(number) for number in range(count)]
    wide = [{"matchExpressions": [{"key": f"k{n}", "operator": "NotIn", "values": ["x"]} for n in range(count)]}]
    values = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [f"v{n}" for n in range(20_000)]}]}]
    others = [generators.neighbour(dice) for _ in range(count)]
    return generators.one(
        dice,
        (2.0, lambda: {"spec": {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}}}}),
        (1.0, lambda: {"spec": {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": wide}}}}}),
        (1.0, lambda: {"spec": {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": values}}}}}),
        (1.0, lambda: {"spec": {"affinity": {"podAntiAffinity": {_REQUIRED: others}}}}),
        (1.0, lambda: {"spec": {"nodeSelector": {f"k{number}": "x" for number in range(count)}}}),
        (1.0, lambda: {"spec": {"tolerations": [{"key": f"k{n}", "operator": "Exists"} for n in range(count)]}}),
        (1.0, lambda: {"annotations": {f"{names.JOB_PREFIX}k{number}": "x" for number in range(count)}}),
        (1.0, lambda: {"annotations": {names.JOB_PREFIX + "gres": ",".join(f"g{n}:1" for n in range(count))}}),
        (1.0, lambda: {"annotations": {names.JOB_PREFIX + "partition": ",".join(f"p{n}" for n in range(count))}}),
        (
            1.0,
            lambda: {"annotations": {names.JOB_PREFIX + "constraints": "&".join("f" * 9 for _ in range(count))[:1024]}},
        ),
    )
