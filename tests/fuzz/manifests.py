"""Manifests of users on their way to Slurm: decoded, claimed, gathered, translated, judged by policy, and encoded.

Watched from the outside, by the rules of this suite alone: what may be in the JSON of a submit, whose workload a pod
is, and what messages say.
"""

import dataclasses
import random
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from slurm_bridge import errors
from slurm_bridge.kube import codec
from slurm_bridge.model import kinds
from slurm_bridge.model.pod import Pod
from slurm_bridge.scheduler.workload_pods import PodState
from tests.fuzz import generators, recorded_core, rules, strangers
from tests.fuzz.generators import Json
from tests.fuzz.recorded_core import Mind
from tests.fuzz.runner import Watch

#: Looks at the pods of one case; more would mean that something spins.
MOST_LOOKS = 60
#: Questions to the API server for each pod of a case.
MOST_QUESTIONS = 12


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Pods that appear at once, beside Jobs that are not what they say."""

    chain: str
    jobs: Sequence[Json]
    pods: Sequence[Json]


class Manifests:
    """The target."""

    name = "manifests"

    def __init__(self) -> None:
        self._minds: dict[str, Mind] = {}

    def make(self, dice: random.Random) -> Case:
        """Mostly the shipped chain: what others look at beside it is seldom what a manifest trips over."""
        chain = "plain" if generators.chance(dice, 0.7) else dice.choice(list(recorded_core.CHAINS))
        return Case(
            chain=chain, jobs=strangers.forged_jobs(dice), pods=list(strangers.pods(dice, dice.randrange(10**6)))
        )

    def check(self, case: Case, watch: Watch) -> Iterable[str]:
        """From bytes to bytes; a mind that something was found with is not used again."""
        shelf = strangers.Shelf(case.jobs)
        mind = self._minds.pop(case.chain, None) or Mind(shelf, chain=case.chain)
        mind.begin(shelf)
        found = list(self._looked(case, mind, shelf, watch))
        if not found:
            self._minds[case.chain] = mind
        return found

    def _looked(self, case: Case, mind: Mind, shelf: strangers.Shelf, watch: Watch) -> Iterator[str]:
        pods = [pod for manifest in case.pods if (pod := _decoded(manifest, watch)) is not None]
        with watch("claim"):
            mind.pods(*pods)
        yield from _roots(mind, pods)
        looks = 0
        while looks < MOST_LOOKS:
            with watch("look"):
                if not mind.look():
                    break
            looks += 1
        else:
            yield "spins: it is looked at again and again"
        with watch("tell"):
            mind.core.tell_step()
        mind.clock.advance(5.0)
        while mind.reporter.step():
            pass
        yield from (f"crash: {place}" for place in recorded_core.ERRORS.caught)
        if shelf.asked > MOST_QUESTIONS * max(1, len(pods)):
            yield "costs: hundreds of questions to the API server for one look"
        for where, text in mind.cluster.said:
            yield from rules.message(where, text)
        for request, body in mind.slurm.sent:
            yield from rules.submitted(body, _namespaces(mind, request.owner.namespace, request.owner.name))


def _decoded(manifest: Json, watch: Watch) -> Pod | None:
    body = msgspec.json.encode(manifest)
    with watch("decode"):
        try:
            return codec.codec(kinds.PODS).one(body)
        except errors.BadAnswer:
            return None


def _roots(mind: Mind, pods: Sequence[Pod]) -> Iterator[str]:
    """The workload of each pod: never one of another namespace, and never two under one key."""
    crews = [crew for key in mind.core.pod_index.roots() if (crew := mind.core.pod_index.workload(key)) is not None]
    for crew in crews:
        root = crew.root
        if any(pod.metadata.namespace != root.namespace for pod in crew.pods(*PodState)):
            yield "acceptance: a workload has pods of two namespaces"
        for uid, namespace in strangers.OWNED.items():
            if uid in root.uid and namespace != root.namespace:
                yield f"acceptance: the root of a {root.kind} has the uid of another namespace's object"
    if sum(len(crew.pods(*PodState)) for crew in crews) != len(pods):
        yield "loss: a pod is in no workload"


def _namespaces(mind: Mind, namespace: str, name: str) -> set[str]:
    """Those of all pods of the workloads of this name."""
    crews = [crew for key in mind.core.pod_index.roots() if (crew := mind.core.pod_index.workload(key)) is not None]
    mine = [crew for crew in crews if (crew.root.namespace, crew.root.name) == (namespace, name)]
    return {pod.metadata.namespace for crew in mine for pod in crew.pods(*PodState)} | {namespace}
