"""What was said of a pod, and how two answers differ."""

import collections
import dataclasses
import re
from collections.abc import Iterator, Mapping

from scheduleroracle.draws import Json

#: Reasons that the hook tells in the words of earlier releases, and what kube-scheduler 1.36 says.
WORDS: Mapping[str, str] = {
    "node(s) had taints that the pod didn't tolerate": "node(s) had untolerated taint(s)",
    "node(s) didn't match node selector": "node(s) didn't match Pod's node affinity/selector",
}
#: The plugins of kube-scheduler whose names are not those of the hook's priorities.
PLUGINS: Mapping[str, str] = {
    "LeastAllocated": "NodeResourcesFit",
    "BalancedAllocation": "NodeResourcesBalancedAllocation",
}

#: What differs on purpose; docs/kube-scheduler.md has the reasons.
WHOLE_POD = "kube-scheduler refuses the pod before it looks at nodes"
NAMED_NODES = "kube-scheduler does not look at nodes that the pod's affinity does not name"
POD_LEVEL = "kube-scheduler leaves requests of the whole pod out of NodeResourcesFit"

_SOME = 2
_COUNTED = re.compile(r"nodes are available: \d+ ")
_COUNT = re.compile(r"\d+ ")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The nodes that fit, or the message why there is none; the scores where there is a choice.

    `parts`: the weighted scores of each plugin, by its name, of each node. `reasons`: why other nodes do not fit.
    """

    fit: frozenset[str]
    message: str = ""
    scores: Mapping[str, float] = dataclasses.field(default_factory=dict)
    parts: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    reasons: frozenset[str] = frozenset()

    @property
    def best(self) -> list[str]:
        """The nodes with the highest score."""
        return sorted(name for name, score in self.scores.items() if score == max(self.scores.values()))

    @property
    def behind(self) -> Mapping[str, float]:
        """How far each node is behind the best: what all nodes have alike decides nothing."""
        most = max(self.scores.values(), default=0.0)
        return {name: most - score for name, score in sorted(self.scores.items())}

    @property
    def deciding(self) -> Iterator[str]:
        """What decided: the reasons of nodes that do not fit, and the plugins that rate nodes differently."""
        yield from self.reasons
        yield from (name for name, scores in self.parts.items() if _apart(scores))

    def shown(self) -> dict[str, object]:
        """For people."""
        parts = {name: dict(sorted(scores.items())) for name, scores in sorted(self.parts.items())}
        scored = {"best": self.best, "behind": dict(self.behind), "parts": parts} if self.scores else {}
        return {"fit": sorted(self.fit), **({"message": self.message} if self.message else {}), **scored}


def differences(hook: Answer, reference: Answer) -> Iterator[str]:
    """Nothing where both say the same."""
    if hook.fit != reference.fit:
        more, fewer = sorted(hook.fit - reference.fit), sorted(reference.fit - hook.fit)
        yield f"nodes that fit: the hook has {more or 'no'} more and {fewer or 'no'} fewer"
    elif hook.message != reference.message:
        yield f"message: the hook says {hook.message!r}, kube-scheduler says {reference.message!r}"
    elif len(hook.fit) >= _SOME and hook.behind != reference.behind:
        by = ", ".join(differing(hook, reference))
        yield f"scores ({by}): the hook finds {hook.best} best, kube-scheduler {reference.best}"


def known(hook: Answer, reference: Answer, pod: Json) -> str:
    """Why they differ on purpose; empty where there is no such reason."""
    if hook.fit != reference.fit:
        return ""
    if reference.message and not _COUNTED.search(reference.message):
        return WHOLE_POD
    if "didn't satisfy plugin(s) [NodeAffinity]" in reference.message:
        return NAMED_NODES
    by_requests = all(one == PLUGINS["LeastAllocated"] for one in differing(hook, reference))
    return POD_LEVEL if by_requests and reference.scores and "resources" in pod["spec"] else ""


def differing(hook: Answer, reference: Answer) -> list[str]:
    """The plugins by which nodes are further apart in one answer than in the other."""
    names = {*hook.parts, *reference.parts}
    return sorted(one for one in names if _apart(hook.parts.get(one, {})) != _apart(reference.parts.get(one, {})))


def _apart(scores: Mapping[str, float]) -> Mapping[str, float]:
    """What differs between nodes; equal scores of all nodes, or none, are nothing."""
    most = max(scores.values(), default=0.0)
    return {name: most - score for name, score in scores.items() if score != most}


def renewed(message: str) -> str:
    """The hook's message in the words of kube-scheduler 1.36."""
    counted: collections.Counter[str] = collections.Counter()
    for one in _reasons(message):
        count, _, reason = one.partition(" ")
        counted[WORDS.get(reason, reason)] += int(count)
    said = sorted(f"{count} {reason}" for reason, count in counted.items())
    return f"{message.partition(': ')[0]}: {', '.join(said)}." if said else message


def _reasons(message: str) -> list[str]:
    """Each with its number of nodes."""
    reasons = message.removesuffix(".").partition(": ")[2].split(", ")
    return [one for one in reasons if _COUNT.match(one)]
