"""Questions to an extender and its answers, as kube-scheduler and Go's JSON write them; only translation.

Names are sent with capital letters, and read however they are written: Go does not tell them apart, so extenders write
both. An answer that cannot be what was asked for is a NotAnswered that names the extender.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.cluster.parties import Party, Victims
from slurm_bridge.families.kube_scheduler.options import ExtenderOptions
from slurm_bridge.hooks.services import NotAnswered
from slurm_bridge.model.pod import Pod

Body = dict[str, Any]

#: Scores are weighed and added in 64 bits; what extenders give is meant to be from 0 to 10.
MOST_SCORE = 2**31

#: So much of an extender's own words is repeated to people.
MOST_WORDS = 200

#: What is said of a node that an extender leaves out without a word.
UNSAID = "node(s) were left out by an extender"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """The nodes that an extender leaves, and why it does not leave the others."""

    nodes: tuple[str, ...]
    failed: Mapping[str, str]


def about_nodes(extender: ExtenderOptions, pod: Pod, nodes: Sequence[NodeFacts]) -> Body:
    """The question of filter and prioritize. An extender with a node cache gets names; the others get whole nodes."""
    if extender.node_cache_capable:
        return {"Pod": msgspec.to_builtins(pod), "NodeNames": [facts.name for facts in nodes]}
    items = [msgspec.to_builtins(facts.node) for facts in nodes]
    return {"Pod": msgspec.to_builtins(pod), "Nodes": {"metadata": {}, "items": items}}


def filtered(extender: ExtenderOptions, asked: Iterable[str], answer: Any) -> Filtered:
    """The answer of filter."""
    said, known = _record(extender, answer), tuple(asked)
    if error := said.get("error"):
        raise _unusable(extender, f"reports an error: {_short(error)}")
    left = _left(extender, said)
    strange = left - set(known)
    if strange:
        raise _unusable(extender, f"answers with node {min(strange)!r}, which it was not asked about")
    failed = {**_texts(extender, said, "failednodes"), **_texts(extender, said, "failedandunresolvablenodes")}
    return Filtered(
        nodes=tuple(name for name in known if name in left),
        failed={name: failed.get(name) or UNSAID for name in known if name not in left},
    )


def scores(extender: ExtenderOptions, answer: Any) -> dict[str, int]:
    """The answer of prioritize; a node that it does not name has nothing."""
    found: dict[str, int] = {}
    for row in _rows(extender, answer if answer is not None else []):
        one = _lower(row) if isinstance(row, Mapping) else {}
        host, score = one.get("host"), one.get("score")
        if not isinstance(host, str) or isinstance(score, bool) or not isinstance(score, int):
            raise _unusable(extender, f"answers {_short(row)} among its priorities, not a host and a whole number")
        if abs(score) > MOST_SCORE:
            raise _unusable(extender, f"gives node {host!r} the score {score}, which is beyond {MOST_SCORE}")
        found[host] = score
    return found


def about_victims(extender: ExtenderOptions, pod: Pod, candidates: Mapping[str, Victims]) -> Body:
    """The question of preempt: whose leaving would make room on which node."""
    body: Body = {"Pod": msgspec.to_builtins(pod)}
    meta = extender.node_cache_capable
    body["NodeNameToMetaVictims" if meta else "NodeNameToVictims"] = {
        node: {
            "Pods": [{"UID": one.uid} if meta else msgspec.to_builtins(one) for one in victims.pods],
            "NumPDBViolations": victims.violations,
        }
        for node, victims in candidates.items()
    }
    return body


def victims(extender: ExtenderOptions, candidates: Mapping[str, Victims], answer: Any) -> dict[str, Victims]:
    """The answer of preempt: fewer nodes, and on each perhaps other victims among those that were proposed."""
    said = _record(extender, answer).get("nodenametometavictims") or {}
    if not isinstance(said, Mapping):
        raise _unusable(extender, "answers with no map of nodes to victims")
    return {node: _chosen(extender, node, candidates, _record(extender, one)) for node, one in said.items()}


def _chosen(extender: ExtenderOptions, node: str, candidates: Mapping[str, Victims], said: Body) -> Victims:
    """A party is evicted as a whole: an extender that names one of its pods means all of them."""
    if node not in candidates:
        raise _unusable(extender, f"answers with node {node!r}, which it was not asked about")
    rows = _rows(extender, said.get("pods") or [])
    named = {str(_lower(row).get("uid")) for row in rows if isinstance(row, Mapping)}
    chosen = tuple(party for party in candidates[node].parties if _uids(party) & named)
    strange = named - {uid for party in candidates[node].parties for uid in _uids(party)}
    if strange:
        raise _unusable(extender, f"names the victim {min(strange)!r}, which is none of node {node!r}")
    violations = said.get("numpdbviolations", 0)
    return Victims(parties=chosen, violations=violations if isinstance(violations, int) else 0)


def _uids(party: Party) -> set[str]:
    return {pod.uid for pod in party.pods}


def _left(extender: ExtenderOptions, said: Body) -> set[str]:
    """Names where they are given, else whole nodes, of which only the name matters; neither means none."""
    if (names := said.get("nodenames")) is not None:
        return {str(name) for name in _rows(extender, names)}
    nodes = said.get("nodes")
    items = _rows(extender, _record(extender, nodes).get("items") or []) if nodes is not None else []
    try:
        return {str(item["metadata"]["name"]) for item in items}
    except (TypeError, KeyError) as error:
        raise _unusable(extender, "answers with a node without metadata.name") from error


def _texts(extender: ExtenderOptions, said: Body, key: str) -> dict[str, str]:
    written = said.get(key) or {}
    if not isinstance(written, Mapping):
        raise _unusable(extender, f"answers with {key} that are no map of nodes to reasons")
    return {str(node): _short(reason) for node, reason in written.items()}


def _record(extender: ExtenderOptions, answer: Any) -> Body:
    if not isinstance(answer, Mapping):
        raise _unusable(extender, f"answers with {type(answer).__name__}, not an object")
    return _lower(answer)


def _rows(extender: ExtenderOptions, answer: Any) -> Sequence[Any]:
    if not isinstance(answer, list | tuple):
        raise _unusable(extender, f"answers with {type(answer).__name__} where a list belongs")
    return answer


def _short(words: object) -> str:
    return str(words)[:MOST_WORDS]


def _lower(record: Mapping[Any, Any]) -> Body:
    return {str(key).lower(): value for key, value in record.items()}


def _unusable(extender: ExtenderOptions, what: str) -> NotAnswered:
    return NotAnswered(f"extender {extender.url} {what}")
