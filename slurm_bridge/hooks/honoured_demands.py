"""Which demands of pods no hook of a chain honours, and the messages that say so."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from slurm_bridge.cluster.rules import volumes
from slurm_bridge.hooks import needs
from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.model.devices import DeviceClass
from slurm_bridge.model.features import Feature, FeatureDemand
from slurm_bridge.model.storage import SOLE
from slurm_bridge.model.verdict import Wait

#: The reason on a pod that waits because no hook honours one of its demands.
REASON: Final = "NotHonoured"

#: The most fields that a message names.
MOST_NAMED: Final = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Advice:
    """Which shipped hook honours a feature, and what the owner of the pod can do without it."""

    hook: str
    otherwise: str


ADVICE: Final[Mapping[Feature, Advice]] = {
    Feature.TOPOLOGY_SPREAD: Advice(
        "kube-scheduler (predicate EvenPodsSpread)", "the pod says whenUnsatisfiable: ScheduleAnyway"
    ),
    Feature.POD_AFFINITY: Advice(
        "kube-scheduler (predicate MatchInterPodAffinity)", "the pod only prefers to be near others"
    ),
    Feature.POD_ANTI_AFFINITY: Advice(
        "kube-scheduler (predicate MatchInterPodAffinity)", "the pod only prefers to be away from others"
    ),
    Feature.HOST_PORTS: Advice(
        "kube-scheduler (predicate GeneralPredicates or PodFitsHostPorts)", "the pod leaves the host port out"
    ),
    Feature.SOLE_CLAIMS: Advice(
        "kube-scheduler (predicate NoDiskConflict)", "use a claim with the access mode ReadWriteOnce"
    ),
    Feature.WAITING_CLAIMS: Advice(
        "kube-scheduler (predicate CheckVolumeBinding)", "use a class that binds immediately, or bind the claim"
    ),
    Feature.RESOURCE_CLAIMS: Advice(
        "device-claims", "ask for the devices by an extended resource that nodes have, or name another scheduler"
    ),
    Feature.CLASS_RESOURCES: Advice(
        "device-claims", "ask for the devices by an extended resource that nodes have, or name another scheduler"
    ),
}

#: Never ignored, because no kubelet starts a pod whose claim is not allocated, or not bound.
NEVER_IGNORED: Final = frozenset({Feature.RESOURCE_CLAIMS, Feature.CLASS_RESOURCES, Feature.WAITING_CLAIMS})


def missing(
    demands: Iterable[FeatureDemand],
    honoured: Collection[Feature],
    views: Mapping[Need, View],
    given: Callable[[str], bool] = lambda _resource: True,
) -> tuple[FeatureDemand, ...]:
    """The demands that no hook honours; `given` says whether some node has any of an extended resource."""
    return tuple(one for one in demands if one.feature not in honoured and _holds(one, views, given))


def obstacle(lacking: Sequence[FeatureDemand], *, strict: bool) -> Wait | None:
    """Why they wait; None where what is lacking may be ignored."""
    held = [one for one in lacking if strict or one.feature in NEVER_IGNORED]
    if not held:
        return None
    message = "; ".join(sentence(one) for one in held[:MOST_NAMED]) + _more(held)
    return Wait(reason=REASON, message=message, warning=True)


def ignored(lacking: Sequence[FeatureDemand]) -> str:
    """For the owner of a pod that goes on all the same; "" where nothing is ignored."""
    if not lacking:
        return ""
    fields = ", ".join(one.field for one in lacking[:MOST_NAMED])
    return f"{lacking[0].subject}: {fields}{_more(lacking)} is ignored (unhonoured: ignore), because no hook honours it"


def sentence(one: FeatureDemand) -> str:
    """`Pod a/b: FIELD needs hook X, which is not part of this cluster's chain; …`."""
    advice = ADVICE[one.feature]
    where = f"needs hook {advice.hook}, which is not part of this cluster's chain"
    return f"{one.subject}: {one.field} {where}; operators add it to `hooks`, or {advice.otherwise}"


def _more(lacking: Sequence[FeatureDemand]) -> str:
    return f"; and {len(lacking) - MOST_NAMED} more" if len(lacking) > MOST_NAMED else ""


def _holds(one: FeatureDemand, views: Mapping[Need, View], given: Callable[[str], bool]) -> bool:
    """The demand counts. What is wrong with an unknown claim, or a resource that no node has, eligibility says."""
    if one.claim is not None:
        storage = needs.storage(views.get)
        claim = storage.claim(*one.claim)
        if one.feature is Feature.WAITING_CLAIMS:
            return claim is not None and volumes.waits(claim, storage)
        return claim is not None and SOLE in claim.spec.access_modes
    if one.resource:
        # Where a device plugin offers the resource as well, nodes count it, and Slurm gives one of these nodes.
        known = views.get(Need.DEVICECLASSES)
        classes = [each for each in known.all() if isinstance(each, DeviceClass)] if known is not None else []
        return any(each.spec.extended_resource_name == one.resource for each in classes) and not given(one.resource)
    return True
