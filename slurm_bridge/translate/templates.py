"""Equal pods are translated once: the requests of two of them differ in whose they are, and in nothing else.

Two workloads of one pod are equal if all that is known of them is, except names, uids and times. The request of the
first one becomes the template for all others under the same rules. A gang, and a pod with claims, has a request of its
own.
"""

import dataclasses
from collections.abc import Iterator

import msgspec

from slurm_bridge.model.pod import PodStatus
from slurm_bridge.model.verdict import Reject
from slurm_bridge.model.workload import Workload
from slurm_bridge.runtime import frozen_records
from slurm_bridge.translate import claims, members, translator
from slurm_bridge.translate.claims import ClaimedValue
from slurm_bridge.translate.rules import Rules
from slurm_bridge.translate.translator import RequestTemplate, Translated, Value, show

#: Templates that are kept: beyond, all are forgotten.
MOST = 256
#: The fields that say whose the request is.
_WHOSE = frozenset({"name", "owner", "comment"})

_encode = msgspec.json.Encoder().encode


class TranslationCache:
    """Used from several threads without a lock: at worst something is translated twice."""

    def __init__(self) -> None:
        self._kept: tuple[Rules | None, dict[bytes, _Pattern | None]] = (None, {})

    def translate(self, workload: Workload, rules: Rules) -> Translated | Reject:
        """The same as by `translator.translate`, and the template that equal workloads share, where there is one."""
        alike = _alike(workload) if not rules.class_gres() else None
        if alike is None:
            return translator.translate(workload, rules)
        of, known = self._kept
        if of is not rules or len(known) >= MOST:
            known = {}
            self._kept = rules, known
        pattern = known.get(alike)
        if pattern is not None:
            return pattern.filled(workload, rules)
        translated = translator.translate(workload, rules)
        if alike in known or isinstance(translated, Reject):
            return translated
        pattern = known[alike] = _pattern(translated, workload, rules)
        return translated if pattern is None else dataclasses.replace(translated, template=pattern.template)


@dataclasses.dataclass(frozen=True, slots=True)
class _Pattern:
    """A translation, and of each of its values how that of another pod comes from it.

    `whose` are the fields that come from the pod's own name. The sources of the values in `named` end with `subject`.
    """

    translated: Translated
    template: RequestTemplate
    subject: str
    whose: frozenset[str]
    named: frozenset[str]

    def filled(self, workload: Workload, rules: Rules) -> Translated:
        """For an equal workload."""
        mine = {one.field: one for one in claims.identity(workload, rules) if one.field in self.whose}
        like, (pod,) = self.translated, workload.pods
        request = frozen_records.replaced(like.request, **{field: one.value for field, one in mine.items()})
        (shape,) = like.shapes
        return Translated(
            request=request,
            values=tuple(self._values(mine, members.subject(pod))),
            hints=like.hints,
            shapes=(frozen_records.replaced(shape, pods=workload.pods),),
            form=like.form,
            told=like.told,
            one_per_node=like.one_per_node,
            node_memory_mib=like.node_memory_mib,
            template=self.template,
        )

    def _values(self, mine: dict[str, ClaimedValue], subject: str) -> Iterator[Value]:
        for one in self.translated.values:
            field = one.field
            if field in mine:
                yield Value(field=field, value=show(mine[field].value), source=mine[field].source)
            elif field in self.named:
                source = one.source[: -len(self.subject)] + subject
                own = subject if one.subject == self.subject else one.subject
                yield Value(field=field, value=one.value, source=source, key=one.key, subject=own)
            else:
                yield one


def _alike(workload: Workload) -> bytes | None:
    """All that is known of a workload but names, uids and times; None for one that is translated by itself."""
    if workload.gang is not None or workload.parts or workload.suspended or len(workload.pods) != 1:
        return None
    (pod,) = workload.pods
    meta, spec = pod.metadata, pod.spec
    if pod.bound or pod.terminating or spec.resource_claims:
        return None
    owners = [(one.api_version, one.kind, one.controller) for one in meta.owner_references]
    said = [
        (one.kind, one.name if (one.kind, one.name) != ("Pod", meta.name) else "", one.annotations)
        for one in workload.sources
    ]
    made_by = workload.creator_of(pod)
    return _encode(
        (
            workload.root.kind,
            meta.namespace,
            meta.labels,
            meta.annotations,
            meta.finalizers,
            owners,
            spec,
            _without_words(pod.status),
            said,
            workload.deadline,
            workload.creators is None,
            made_by,
        )
    )


def _without_words(status: PodStatus) -> PodStatus:
    """The bridge tells each pod why it waits, and names its job: that makes no pod different."""
    others = tuple(one for one in status.conditions if one.type != "PodScheduled")
    return status if len(others) == len(status.conditions) else msgspec.structs.replace(status, conditions=others)


def _pattern(translated: Translated, workload: Workload, rules: Rules) -> _Pattern | None:
    """None where more follows from its name than a pattern knows."""
    (pod,) = workload.pods
    subject, own = members.subject(pod), {one.field: one for one in claims.identity(workload, rules)}
    whose, named = set[str](), set[str]()
    for one in translated.values:
        claim = own.get(one.field) if one.field in _WHOSE else None
        if claim is not None and not one.key and (one.value, one.source) == (show(claim.value), claim.source):
            whose.add(one.field)
        elif one.source.endswith(subject):
            named.add(one.field)
        elif subject in one.source or one.subject == subject:
            return None
    if translated.demands or translated.devices or translated.of_classes or len(translated.shapes) != 1:
        return None
    return _Pattern(translated, RequestTemplate(), subject, frozenset(whose), frozenset(named))
