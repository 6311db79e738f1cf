"""What all extenders say of a pod: first which nodes they leave, one after the other, then how good those are.

It takes as long as they take, so it is not for passes; see `desk`.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.cluster.parties import Victims
from slurm_bridge.families.kube_scheduler.extenders import wire
from slurm_bridge.families.kube_scheduler.options import ExtenderOptions
from slurm_bridge.families.kube_scheduler.preemption import choice
from slurm_bridge.families.kube_scheduler.priority_chain import Extended
from slurm_bridge.hooks import services
from slurm_bridge.hooks.services import JsonClient, NotAnswered
from slurm_bridge.model.pod import Pod


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """All that extenders say of a pod and some nodes.

    `failure`: one whose word counts did not answer, and nothing else is known. `passed_over`: those whose silence does
    not matter, with what went wrong.
    """

    denied: Mapping[str, str] = dataclasses.field(default_factory=dict)
    rows: tuple[Extended, ...] = ()
    failure: str = ""
    passed_over: tuple[str, ...] = ()


def interested(extender: ExtenderOptions, pod: Pod) -> bool:
    """An extender that manages resources hears only of pods that use one of them."""
    managed = set(extender.managed_resources)
    every = (*pod.spec.containers, *pod.spec.init_containers)
    return not managed or any(managed & (one.resources.requests.keys() | one.resources.limits.keys()) for one in every)


def ask(extenders: Sequence[ExtenderOptions], post: JsonClient, pod: Pod, nodes: Sequence[NodeFacts]) -> Said:
    """Filters see what those before them left; a failing one ends it, unless it may be ignored."""
    caring = [extender for extender in extenders if interested(extender, pod)]
    left = list(nodes)
    denied: dict[str, str] = {}
    passed_over: list[str] = []
    for extender in caring:
        if not extender.filter_verb or not left:
            continue
        try:
            answer = call(extender, post, extender.filter_verb, wire.about_nodes(extender, pod, left))
            found = wire.filtered(extender, (facts.name for facts in left), answer)
        except NotAnswered as silent:
            if not extender.ignorable:
                return Said(failure=str(silent))
            passed_over.append(str(silent))
            continue
        denied.update(found.failed)
        stay = set(found.nodes)
        left = [facts for facts in left if facts.name in stay]
    rows, silent_ones = _rate(caring, post, pod, left)
    return Said(denied=denied, rows=tuple(rows), passed_over=(*passed_over, *silent_ones))


def preempting(extender: ExtenderOptions, post: JsonClient, pod: Pod) -> choice.Extender:
    """The same extender as preemption sees it."""

    def verb(candidates: Mapping[str, Victims]) -> Mapping[str, Victims]:
        body = wire.about_victims(extender, pod, candidates)
        return wire.victims(extender, candidates, call(extender, post, extender.preempt_verb, body))

    return choice.Extender(
        name=extender.url,
        ask=verb,
        interested=bool(extender.preempt_verb) and interested(extender, pod),
        ignorable=extender.ignorable,
    )


def call(extender: ExtenderOptions, post: JsonClient, verb: str, body: Mapping[str, Any]) -> Any:
    """One question; the verb is a path below the extender's address."""
    target = services.Target(url=extender.url.rstrip("/"), token_file=extender.token_file, ca_file=extender.ca_file)
    return post(target, f"/{verb.lstrip('/')}", body, seconds=extender.timeout_seconds)


def _rate(
    extenders: Sequence[ExtenderOptions], post: JsonClient, pod: Pod, nodes: Sequence[NodeFacts]
) -> tuple[list[Extended], list[str]]:
    """An extender that does not answer is left out: no score is worth a placement."""
    rows: list[Extended] = []
    silent_ones: list[str] = []
    for extender in extenders:
        if not extender.prioritize_verb or not nodes:
            continue
        try:
            answer = call(extender, post, extender.prioritize_verb, wire.about_nodes(extender, pod, nodes))
            found = wire.scores(extender, answer)
        except NotAnswered as silent:
            silent_ones.append(str(silent))
        else:
            rows.append(Extended(name=f"extender {extender.url}", weight=extender.weight, scores=found))
    return rows, silent_ones
