"""The hook "device-claims", off unless it is configured: claims become GRES, and nodes without the devices are denied.

The claims themselves are written by the scheduler, between the allocation and the binding.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import ClassVar, Final

from slurm_bridge import errors
from slurm_bridge.cluster.memo import VersionCache
from slurm_bridge.cluster.rules.devices import DeviceSight
from slurm_bridge.families.device_claims import options as opts
from slurm_bridge.families.device_claims.judged import JudgedWishes, Wish, forget_gone
from slurm_bridge.families.device_claims.published import PublishedDevices
from slurm_bridge.families.device_claims.selectors import Selectors, TooMuch
from slurm_bridge.hooks.base import GO, Admit, Ask, Denied, Nodes, Session
from slurm_bridge.hooks.needs import Need, View
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.model import texts
from slurm_bridge.model.devices import BY_DEVICE, Device, DeviceClass, DeviceId, ResourceClaim
from slurm_bridge.model.features import Feature
from slurm_bridge.model.job import Gres
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.translate import device_claims
from slurm_bridge.translate.device_claims import PodClaim, Unrequestable

#: The reason on pods whose claims others hold.
HELD: Final = "ResourceClaimInUse"
#: So many conditions are compiled or evaluated in one pass, and so many results looked up; the next pass goes on from
#: there. Time ends it, too (`selectors`).
MOST_EVALUATIONS: Final = 300
MOST_LOOK_UPS: Final = 8_000
#: After so many seconds at least.
GO_ON: Final = 0.1
#: So many answers about nodes are remembered.
MOST_ANSWERS: Final = 32

_NONE: Final = Denied(nodes={})
_COMPARED: Final = "the devices of the nodes are compared with the conditions (CEL) of the ResourceClaims"


class DeviceClaims:
    """`admit` refuses what Slurm cannot be asked for, `filter` denies nodes that lack the devices."""

    Options: ClassVar = opts.DeviceClaimsOptions
    services = True
    needs = frozenset({Need.RESOURCECLAIMS, Need.RESOURCESLICES, Need.DEVICECLASSES})
    honours = frozenset({Feature.RESOURCE_CLAIMS})

    def __init__(self, options: opts.DeviceClaimsOptions, services: HookServices) -> None:
        self._rows = options.rows
        self._selectors = Selectors(services.clock.now)
        self._denied: VersionCache[tuple[tuple[Wish, ...], Nodes], Denied] = VersionCache(MOST_ANSWERS)
        self._judged = JudgedWishes()
        self._published = PublishedDevices()

    def admit(self, session: Session, ask: Ask) -> Admit | Wait:
        pods, sight = ask.every_pod, self._sight(session.view)
        shared = device_claims.shared(pods) if ask.workload.gang is not None else ""
        if shared:
            return Wait(reason=device_claims.REASON, message=shared, warning=True)
        ours = frozenset(pod.uid for pod in pods)
        claiming = [pod for pod in pods if pod.spec.resource_claims and not pod.bound]
        namespace = claiming[0].metadata.namespace if claiming else ""
        try:
            with self._selectors.at_most(MOST_EVALUATIONS, MOST_LOOK_UPS, namespace):
                obstacles = (self._obstacle(pod, sight, ours) for pod in claiming)
                return next((one for one in obstacles if one is not None), GO)
        except TooMuch as stopped:
            return _comparing(stopped)

    def filter(self, session: Session, ask: Ask, nodes: Nodes) -> Denied | Wait:
        """Of pods with different claims it is enough when a node has the devices of one."""
        sight = self._sight(session.view)
        wishes = dict.fromkeys(self._wish(pod, sight) for pod in ask.workload.pods if not pod.bound)
        if not wishes or () in wishes:
            return _NONE
        version = session.view(Need.RESOURCESLICES).version + session.view(Need.DEVICECLASSES).version
        namespace = next(iter(ask.workload.pods)).metadata.namespace
        try:
            return self._denied.get(
                version, (tuple(wishes), nodes), lambda: self._work_out(namespace, wishes, nodes, session)
            )
        except TooMuch as stopped:
            return _comparing(stopped)

    def devices_of(self, workload: Workload, views: Mapping[Need, View]) -> Mapping[str, tuple[Gres, ...]]:
        """What Slurm is asked for, by the uid of each pod whose claims are all known."""
        found: dict[str, tuple[Gres, ...]] = {}
        for pod in workload.pods:
            if pod.spec.resource_claims:
                claims = device_claims.of(pod, _claim_of(views.get(Need.RESOURCECLAIMS)), self._rows)
                if not isinstance(claims, Unrequestable) and (asked := device_claims.gres_of(claims)):
                    found[pod.uid] = asked
        return found

    def devices(self, views: Mapping[Need, View]) -> DeviceSight:
        """For the scheduler, once Slurm has allocated."""
        return dataclasses.replace(self._sight(lambda need: views[need]), matches=self._in_time)

    def _in_time(self, text: str, driver: str, device: Device) -> bool:
        """Nearly always it is known from the search for nodes."""
        try:
            return self._selectors.matches(text, driver, device)
        except TooMuch as stopped:
            raise errors.TryLater(_COMPARED, retry_after=max(GO_ON, stopped.pause)) from stopped

    def _obstacle(self, pod: Pod, sight: DeviceSight, ours: frozenset[str]) -> Wait | None:
        claims = device_claims.of(pod, sight.claim, self._rows)
        if isinstance(claims, Unrequestable):
            reason = device_claims.MISSING if claims.missing else device_claims.REASON
            return Wait(reason=reason, message=claims.message, warning=not claims.missing)
        for one in claims:
            held = taken(one.claim, ours)
            if held:
                return Wait(reason=HELD, message=held)
            wrong = self._conditions(one, sight)
            if wrong:
                text = f"ResourceClaim {'/'.join(one.claim.key)}: {wrong}"
                return Wait(reason=device_claims.REASON, message=text, warning=True)
        return None

    def _conditions(self, claim: PodClaim, sight: DeviceSight) -> str:
        """What is wrong with the conditions on its devices."""
        for asked in claim.asked:
            conditions = sight.of(asked)
            if conditions is None:
                return f"request {asked.request}: DeviceClass {asked.row.device_class} does not exist"
            for text in conditions:
                if wrong := self._selectors.problem(text):
                    return f"request {asked.request}: selector {texts.bounded(text, 80)!r} {wrong}"
        return ""

    def _wish(self, pod: Pod, sight: DeviceSight) -> Wish:
        """What its claims ask for."""
        claims = device_claims.of(pod, sight.claim, self._rows) if pod.spec.resource_claims else ()
        return () if isinstance(claims, Unrequestable) else tuple(one for claim in claims for one in claim.asked)

    def _work_out(self, namespace: str, wishes: Collection[Wish], nodes: Nodes, session: Session) -> Denied:
        with self._selectors.at_most(MOST_EVALUATIONS, MOST_LOOK_UPS, namespace):
            lacks = [self._lacks(namespace, wish, nodes, session) for wish in wishes]
        said = {node: tuple(dict.fromkeys(one[node] for one in lacks)) for node in nodes}
        return Denied(nodes={node: reasons for node, reasons in said.items() if all(reasons)})

    def _lacks(self, namespace: str, wish: Wish, nodes: Nodes, session: Session) -> Mapping[str, str]:
        """What is judged of a node stays known while its devices are the same, whatever happens on other nodes."""
        sight, slices = self._sight(session.view), session.view(Need.RESOURCESLICES)
        judged = self._judged.of(namespace, wish, session.view(Need.DEVICECLASSES).version)
        forget_gone(judged, self._published.nodes(slices))
        found: dict[str, str] = {}
        for node in nodes:
            there, known = sight.on(node), judged.get(node)
            if known is None or known[0] is not there:
                self._selectors.rest()
                judged[node] = known = (tuple(there), sight.lacks(wish, node))
            found[node] = known[1]
        return found

    def _sight(self, view: Callable[[Need], View]) -> DeviceSight:
        claims, classes, slices = view(Need.RESOURCECLAIMS), view(Need.DEVICECLASSES), view(Need.RESOURCESLICES)

        def device_class(name: str) -> DeviceClass | None:
            found = classes.get("", name)
            return found if isinstance(found, DeviceClass) else None

        def holder(device: DeviceId) -> ResourceClaim | None:
            found = claims.where(BY_DEVICE, str(device))
            return next((one for one in found if isinstance(one, ResourceClaim)), None)

        return DeviceSight(
            rows=self._rows,
            claim=_claim_of(claims),
            holder=holder,
            device_class=device_class,
            on=lambda node: self._published.on(node, slices),
            matches=self._selectors.matches,
        )


def _comparing(stopped: TooMuch) -> Wait:
    return Wait(reason="ComparingDevices", message=_COMPARED, retry_after=max(GO_ON, stopped.pause))


def taken(claim: ResourceClaim, ours: frozenset[str]) -> str:
    """The other users of a claim that has devices; "" where it has none, or has them for these pods."""
    allocation, users = claim.status.allocation, claim.status.reserved_for
    others = [one for one in users if one.uid not in ours]
    if allocation is None or (users and not others):
        return ""
    called = f"ResourceClaim {'/'.join(claim.key)} has devices"
    if not others:
        return f"{called} that this bridge has not chosen; the pod waits until they are given back"
    return f"{called} for {texts.listed(f'{one.resource} {one.name}' for one in others)}; the pod waits until they end"


def _claim_of(claims: View | None) -> device_claims.Lookup:
    def find(namespace: str, name: str) -> ResourceClaim | None:
        found = claims.get(namespace, name) if claims is not None else None
        return found if isinstance(found, ResourceClaim) else None

    return find
