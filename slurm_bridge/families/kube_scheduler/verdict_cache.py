"""What rules say of a class of pods: some have to be asked each time, the others once while the nodes stay as they are.

As soon as a pod keeps others away, all pods that it might mean have a rule that moves. These are few rules, and what
all others say of every node is kept rule by rule.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from slurm_bridge.cluster.columns import NodeColumns
from slurm_bridge.cluster.columns.members import NodeRows
from slurm_bridge.cluster.memo import VersionCache
from slurm_bridge.families.kube_scheduler.predicates.base import Failures, PredicateRule
from slurm_bridge.families.kube_scheduler.scene import Scene

#: The class of a pod, itself where it was promised a node, and the versions of what is looked up for it.
Known = tuple[bytes, str, tuple[int, ...]]

#: Answers of so many classes are kept; at twenty thousand nodes each takes twenty kilobytes for each reason.
MOST_CLASSES = 64


@dataclasses.dataclass(frozen=True, slots=True)
class Restless:
    """The rules to ask about such a pod each time, and whether pods that were promised a node are in its way."""

    rules: frozenset[str]
    rivals: bool

    def __bool__(self) -> bool:
        return bool(self.rules) or self.rivals


class Barred:
    """The nodes that any of these answers is about."""

    def __init__(self, columns: NodeColumns, answers: Iterable[Failures]) -> None:
        self._columns = columns
        self._masks = [mask for answer in answers for mask, _ in answer]

    def __contains__(self, node: object) -> bool:
        row = self._columns.row(node) if isinstance(node, str) else None
        return row is not None and any(mask[row] for mask in self._masks)


class Resting:
    """Answers of the rules that are at rest."""

    def __init__(self, rules: Mapping[str, PredicateRule]) -> None:
        self._rules = rules
        self._restless: VersionCache[Known, Restless] = VersionCache()
        self._answers: VersionCache[tuple[Known, NodeRows], dict[str, Failures]] = VersionCache(MOST_CLASSES)

    def restless(self, version: int, known: Known, look: Callable[[], tuple[Scene, bool]]) -> Restless:
        """The rules to ask once in this `company_version`. `look` gives a pod of the class in its scene."""

        def asked() -> Restless:
            seen, rivals = look()
            return Restless(frozenset(name for name, rule in self._rules.items() if rule.moving(seen)), rivals)

        return self._restless.get(version, known, asked)

    def said(self, version: int, known: Known, seen: Scene, restless: Restless) -> Mapping[str, Failures]:
        """What all others say of the nodes of this `version`, by the rows of the scene."""
        answers = self._answers.get(version, (known, seen.columns.members), dict)
        resting = [name for name in self._rules if name not in restless.rules]
        for name in resting:
            if name not in answers:
                answers[name] = self._rules[name](seen)
        return {name: answers[name] for name in resting}
