"""How long one look at one workload holds the only thread that thinks, on a cluster of ten thousand nodes.

A look of ordinary pods comes first: what nodes that have just joined cost is paid once, and by nobody's fault.
"""

import dataclasses
import random
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from slurm_bridge import errors
from slurm_bridge.kube import codec
from slurm_bridge.model import kinds, names
from slurm_bridge.model.pod import Pod
from tests.fuzz import brains, generators, strangers
from tests.fuzz.brains import Mind
from tests.fuzz.generators import Json
from tests.fuzz.runner import Watch

#: Looks at one case.
MOST_LOOKS = 60


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Pods that appear at once."""

    chain: str
    pods: Sequence[Json]


class Looks:
    """The target; `size` is the number of nodes."""

    name = "looks"

    def __init__(self, size: int) -> None:
        self._size = size
        self._minds: dict[str, Mind] = {}

    def make(self, dice: random.Random) -> Case:
        """Ordinary ones that grew too large in one place, and any others."""
        chain = dice.choice(list(brains.CHAINS))
        pods = list(strangers.pods(dice, dice.randrange(10**6)))
        if generators.chance(dice, 0.5):
            large = _large(dice)
            for pod in pods:
                pod["spec"] |= large.get("spec", {})
                pod["metadata"]["annotations"] |= large.get("annotations", {})
        return Case(chain=chain, pods=pods)

    def check(self, case: Case, watch: Watch) -> Iterable[str]:
        """Warm up, then look."""
        shelf = strangers.Shelf()
        mind = self._minds.get(case.chain)
        if mind is None:
            mind = self._minds[case.chain] = Mind(shelf, chain=case.chain, size=self._size)
        mind.begin(shelf)
        mind.pods(*_ordinary())
        while mind.look():
            pass
        mind.pods(*(pod for manifest in case.pods if (pod := _decoded(manifest)) is not None))
        for _ in range(MOST_LOOKS):
            with watch(f"look ({case.chain})"):
                if not mind.look():
                    break
        with watch(f"preempt ({case.chain})"):
            mind.core.preempt_step()
        yield from _caught()


def _caught() -> Iterator[str]:
    yield from (f"crash: {place}" for place in brains.ERRORS.caught)


def _ordinary() -> Iterator[Pod]:
    needs = {"requests": {"cpu": "1", "memory": "1Gi"}}
    for number in range(3):
        metadata = {"name": f"o{number}", "namespace": strangers.VICTIM, "uid": f"o{number}", "resourceVersion": "1"}
        spec = {"schedulerName": names.SCHEDULER_NAME, "containers": [{"name": "main", "resources": needs}]}
        yield codec.codec(kinds.PODS).one(msgspec.json.encode({"metadata": metadata, "spec": spec}))


def _decoded(manifest: Json) -> Pod | None:
    try:
        return codec.codec(kinds.PODS).one(msgspec.json.encode(manifest))
    except errors.BadAnswer:
        return None


def _large(dice: random.Random) -> Json:
    """One thing of which there is far too much, or as much as is still allowed."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    count = dice.choice((50, 100, 101, 3000))
    terms = [generators.absent(number) for number in range(count)]
    wide = [{"matchExpressions": [{"key": f"k{n}", "operator": "NotIn", "values": ["x"]} for n in range(count)]}]
    values = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [f"v{n}" for n in range(20_000)]}]}]
    others = [generators.neighbour(dice) for _ in range(count)]
    return generators.one(
        dice,
        (2.0, lambda: {"spec": {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": terms}}}}}),
        (1.0, lambda: {"spec": {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": wide}}}}}),
        (1.0, lambda: {"spec": {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": values}}}}}),
        (1.0, lambda: {"spec": {"affinity": {"podAntiAffinity": {required: others}}}}),
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
