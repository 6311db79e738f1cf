"""What each pod of a workload asks for. Most pods of a gang are equal, and each kind of pod is computed once."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType

import msgspec

from slurm_bridge.model import quantity
from slurm_bridge.model.job import Gres
from slurm_bridge.model.pod import Pod
from slurm_bridge.translate import apart, forms, gres, resources
from slurm_bridge.translate.shapes import Needs, Shape

Amounts = Mapping[str, Fraction]

#: Resources of which a limit may be higher than the request.
_LIMITED = ("cpu", "memory")

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

_encode = msgspec.json.Encoder(order="deterministic").encode


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EqualPods:
    """Pods that ask Kubernetes for the same and have the same eligible nodes; `ranks` are those among all pods.

    `amounts` is what Kubernetes counts for each, `asked` what Slurm is asked for; `devices` are beside that those of
    its ResourceClaims, and of its cpus at least `cpus` are for these.
    """

    pods: tuple[Pod, ...]
    ranks: tuple[int, ...]
    amounts: Amounts
    asked: Amounts
    where: bytes
    apart: bool
    devices: tuple[Gres, ...] = ()
    cpus: int = 0

    @property
    def subject(self) -> str:
        """The name of the first one, for messages."""
        return subject(self.pods[0])


def subject(pod: Pod) -> str:
    """`Pod team/web-0`."""
    return f"Pod {pod.metadata.namespace}/{pod.metadata.name}"


def groups(
    pods: Sequence[Pod], *, limits: bool = False, devices: Mapping[str, tuple[Gres, ...]] = MappingProxyType({})
) -> tuple[tuple[EqualPods, ...], tuple[str, ...]]:
    """The groups in the order of their first pods, and what is wrong with the amounts of some.

    `limits`: Slurm is asked for the limits of cpu and memory instead of the requests. `devices` are those of the
    ResourceClaims of pods, by uid.
    """
    found, problems = [], []
    for ranks in _alike(pods, devices):
        first = pods[ranks[0]]
        amounts, asked, wrong = _measure(first, limits=limits)
        claimed = devices.get(first.uid, ())
        group = EqualPods(
            pods=tuple(pods[rank] for rank in ranks),
            ranks=tuple(ranks),
            amounts=amounts,
            asked=asked,
            where=_encode(_where(first)) if len(pods) > 1 else b"",
            apart=apart.from_its_like(first),
            devices=tuple(one for one in claimed if one.name != gres.CPU),
            cpus=sum(one.count for one in claimed if one.name == gres.CPU),
        )
        found.append(group)
        if wrong:
            others = f" (and {len(ranks) - 1} more pods)" if len(ranks) > 1 else ""
            problems.append(f"{group.subject}{others}: {wrong}")
    return tuple(found), tuple(problems)


#: Pods with the same value are equal for every hook that looks at one of them only.
_Same = tuple[Needs, bytes, tuple[tuple[str, Fraction], ...], str]


def shapes(
    found: Iterable[EqualPods], needs_of: Callable[[EqualPods], Needs], parts: Mapping[str, str]
) -> tuple[Shape, ...]:
    """The shapes of the pods, the largest first, so that a pod that comes or goes does not change their order.

    The amounts of Kubernetes count, too, because hooks filter nodes for a shape by one of its pods. Pods of different
    `parts` (by uid) are of different shapes.
    """
    merged: dict[_Same, list[tuple[int, Pod]]] = {}
    for group in found:
        needs, amounts = needs_of(group), tuple(sorted(group.amounts.items()))
        for ranked in zip(group.ranks, group.pods, strict=True):
            same = (needs, group.where, amounts, parts.get(ranked[1].uid, ""))
            merged.setdefault(same, []).append(ranked)
    largest_first: list[tuple[tuple[object, ...], Shape]] = []
    for (needs, where, amounts, part), equal in merged.items():
        devices = tuple(sorted((one.name, one.type, one.count) for one in needs.gres))
        size = (-sum(one.count for one in needs.gres), -needs.cpus, -needs.memory_mib, devices, where, amounts, part)
        pods = tuple(pod for _, pod in sorted(equal, key=lambda pair: pair[0]))
        shape = Shape(pods=pods, cpus=needs.cpus, memory_mib=needs.memory_mib, gres=needs.gres, part=part)
        largest_first.append((size, shape))
    return tuple(shape for _, shape in sorted(largest_first, key=lambda pair: pair[0]))


def deadline(pods: Iterable[Pod]) -> tuple[int, Pod] | None:
    """The longest deadline in seconds, and its pod: a gang ends as a whole, and no member may end early."""
    limits = [(pod.spec.active_deadline_seconds or 0, pod) for pod in pods]
    if not limits or any(seconds <= 0 for seconds, _ in limits):
        return None
    return max(limits, key=lambda limit: limit[0])


def _alike(pods: Sequence[Pod], devices: Mapping[str, tuple[Gres, ...]]) -> Iterable[Sequence[int]]:
    """The ranks of pods with equal specs."""
    if len(pods) == 1:
        return ((0,),)
    ranks: dict[bytes, list[int]] = {}
    for rank, pod in enumerate(pods):
        spec = pod.spec
        containers = [
            (one.name, one.resources, one.restart_policy) for one in (*spec.containers, *spec.init_containers)
        ]
        anti = (spec.affinity or {}).get("podAntiAffinity")
        labels = pod.metadata.labels if anti else None
        # All fields that are read here, as they are written.
        read = (
            len(spec.containers),
            containers,
            spec.resources,
            spec.overhead,
            _where(pod),
            anti,
            labels,
            # Also which condition those with claims have, by what the pods name.
            (devices.get(pod.uid), spec.resource_claims) if spec.resource_claims else None,
        )
        ranks.setdefault(_encode(read), []).append(rank)
    return ranks.values()


def _measure(pod: Pod, *, limits: bool) -> tuple[Amounts, Amounts, str]:
    try:
        amounts = asked = resources.requests_of(pod)
        if limits:
            most = resources.limits_of(pod)
            asked = {**amounts, **{name: most[name] for name in _LIMITED if name in most}}
    except ValueError as error:
        return {}, {}, str(error)
    cpus = quantity.whole(asked.get("cpu", Fraction(0)))
    if cpus > forms.MOST_SHORT:
        return amounts, asked, f"requests {cpus} cpus; at most {forms.MOST_SHORT} are allowed"
    return amounts, asked, ""


def _where(pod: Pod) -> object:
    """The fields of the pod that select its nodes."""
    node_affinity = (pod.spec.affinity or {}).get("nodeAffinity")
    required = node_affinity.get(_REQUIRED) if isinstance(node_affinity, Mapping) else None
    return (pod.spec.node_selector, pod.spec.tolerations, required)
