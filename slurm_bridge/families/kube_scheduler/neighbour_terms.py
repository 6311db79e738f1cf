"""The terms of running pods about their neighbours, within bounds: any user writes them, and every look pays for them.

each pod    so many terms of a list (`rules.neighbours`), and so many bytes of them
all pods    so many bytes of distinct words: an equal share for each namespace, in which short words come first
each look   so many topology keys, out of those that some node has
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from slurm_bridge.cluster.columns import Coded, NodeColumns
from slurm_bridge.cluster.recent_answers import Recent
from slurm_bridge.cluster.rules import neighbours
from slurm_bridge.cluster.rules.neighbours import NamespaceLabels, Term
from slurm_bridge.families.kube_scheduler.scene import Scene
from slurm_bridge.model.pod import Pod

#: Bytes of one pod's words, as JSON; a term of one label takes about 100 of them.
MOST_TEXT: Final = 64 << 10

#: Topology keys that are looked at for one pod. Each is a pass over all nodes.
MOST_KEYS: Final = 32

#: For so many kinds of pods it is remembered which of the words mean them.
MOST_KINDS: Final = 512

#: Bytes that each term counts beside its own.
TERM: Final = 64

#: Words of so many pods that have been made sense of are kept: more than fit in what is listened to.
MOST_READ: Final = 8192

#: A kind of list, and its strength.
List = tuple[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Said:
    """What pods of a namespace write in some lists: JSON, a list of rows for each. It is not parsed yet."""

    namespace: str
    text: bytes
    rows: int

    @property
    def size(self) -> int:
        """What it costs to listen to it."""
        return len(self.text) + TERM * self.rows


@dataclasses.dataclass(frozen=True, slots=True)
class Word:
    """A term, and how much it counts."""

    term: Term
    weight: int = 1


#: What each of some pods says.
Found = Coded[Said | None]

#: By topology key and the code of the terms: how much they count.
About = Mapping[str, Mapping[int, int]]

NOTHING: Found = Coded(np.empty(0, np.int32), ())


def said(pod: Pod, lists: Iterable[List]) -> Said | None:
    """What a pod writes in these lists, None where that is nothing."""
    if not pod.spec.affinity:
        return None
    written = [neighbours.rows(pod, *one) for one in lists]
    if not any(written):
        return None
    try:
        return Said(pod.metadata.namespace, _text(written), sum(map(len, written)))
    except (OverflowError, RecursionError, TypeError, ValueError):
        # No API server has such numbers or texts.
        return None


def speaks(pods: Sequence[Pod], lists: Sequence[List]) -> bool:
    """Whether any of these pods writes something in these lists."""
    return any(pod.spec.affinity and any(neighbours.rows(pod, *one) for one in lists) for pod in pods)


def rows(one: Said) -> Sequence[Sequence[Mapping[str, Any]]]:
    """The rows of each list."""
    found: Sequence[Sequence[Mapping[str, Any]]] = msgspec.json.decode(one.text)
    return found


class Listener:
    """Listens to one kind of words; used from any thread. `read` makes sense of them, `most` are the bytes of all."""

    def __init__(self, read: Callable[[Said], Iterable[Word]], most: int) -> None:
        self._read = read
        self._most = most
        self._heard = _Heard((), ())
        self._known: Recent[tuple[Any, ...], tuple[tuple[Said | None, ...], About]] = Recent(MOST_KINDS)

    def about(self, scene: Scene, columns: NodeColumns, found: Found) -> About:
        """The terms that mean the pod of the scene, by topology key. `found` are those of the pods of these columns.

        As a rule the same few say it of the same pods, so it is kept until the terms change.
        """
        labels_of, meta, values = scene.lookup.namespace_labels, scene.pod.metadata, found.values
        if columns is not scene.parts[0][0]:
            # What differs from the cluster is a few nodes, for a moment: it must not take the place of all others.
            return self._listened(values).about(scene.pod, labels_of)
        asked = (meta.namespace, *sorted(meta.labels.items()))
        known = self._known.get(asked)
        if known is not None and known[0] is values:
            return known[1]
        if self._heard.values is not values:
            self._heard = self._listened(values)
        heard = self._heard if self._heard.values is values else self._listened(values)
        about = heard.about(scene.pod, labels_of)
        # Labels of namespaces may change without any pod saying anything else.
        if not any(word.term.among for _, word in heard.words):
            self._known.put(asked, (values, about))
        return about

    def _listened(self, values: tuple[Said | None, ...]) -> "_Heard":
        words = ((code, word) for code, one in _chosen(values, self._most) for word in self._read(one))
        return _Heard(values, tuple(words))


def of_interest(scene: Scene, said: Sequence[tuple[Found, About]]) -> Sequence[str]:
    """The topology keys that some node has; of very many those first of which the pod's own namespace speaks.

    Nothing follows from a key that no node has, and a user can name thousands of them.
    """
    there = frozenset[str]().union(*(columns.label_keys for columns, _ in scene.parts))
    keys = list(dict.fromkeys(key for _, about in said for key in about if key in there))
    if len(keys) <= MOST_KEYS:
        return keys
    own, whose = scene.pod.metadata.namespace, dict[str, frozenset[str]]()
    for key in keys:
        speaking = (found.values[code] for found, about in said for code in about.get(key, ()))
        whose[key] = frozenset(one.namespace for one in speaking if one is not None)
    return sorted(keys, key=lambda key: (own not in whose[key], -len(whose[key]), key))[:MOST_KEYS]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Heard:
    """The terms that count, each with its code."""

    values: tuple[Said | None, ...]
    words: tuple[tuple[int, Word], ...]

    def about(self, pod: Pod, labels_of: NamespaceLabels) -> About:
        """Those that mean this pod."""
        found: dict[str, dict[int, int]] = {}
        for code, word in self.words:
            if word.term.selects(pod, labels_of):
                weights = found.setdefault(word.term.topology_key, {})
                weights[code] = weights.get(code, 0) + word.weight
        return found


def _chosen(values: Iterable[Said | None], most: int) -> Iterator[tuple[int, Said]]:
    """The terms that count: while there is room, the next ones are of the namespace that has the fewest so far."""
    speaking = [(code, one) for code, one in enumerate(values) if one is not None]
    if sum(one.size for _, one in speaking) <= most:
        return iter(speaking)
    shares: dict[str, int] = {}
    ranked: list[tuple[int, int, Said]] = []
    for code, one in sorted(speaking, key=lambda pair: pair[1].size):
        shares[one.namespace] = shares.get(one.namespace, 0) + one.size
        ranked.append((shares[one.namespace], code, one))
    ranked.sort(key=lambda row: row[0])
    sums = itertools.accumulate(one.size for _, _, one in ranked)
    return ((code, one) for (_, code, one), total in zip(ranked, sums, strict=True) if total <= most)


def _text(written: Sequence[Sequence[Mapping[str, Any]]]) -> bytes:
    """Where it is too long, the rows that fit, list by list."""
    text = msgspec.json.encode(written)
    if len(text) <= MOST_TEXT:
        return text
    left, fitting = MOST_TEXT, list[list[Mapping[str, Any]]]()
    for some in written:
        fitting.append([])
        for row in some:
            left -= len(msgspec.json.encode(row)) + 1
            if left < 0:
                break
            fitting[-1].append(row)
    return msgspec.json.encode(fitting)
