"""The hook "device-claims", off unless it is configured: claims become GRES, and nodes without the devices are denied.

The claims themselves are written by the scheduler, between the allocation and the binding.
"""

import collections
import dataclasses
import itertools
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from typing import ClassVar, Final

from slurm_bridge import errors
from slurm_bridge.cluster.memo import VersionCache
from slurm_bridge.cluster.rules.devices import DeviceSight, NodeDevice
from slurm_bridge.families.device_claims import options as opts
from slurm_bridge.families.device_claims.judged import JudgedNode, JudgedWishes, forget_gone
from slurm_bridge.families.device_claims.published import PublishedDevices
from slurm_bridge.families.device_claims.resource_classes import ResourceClasses
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
from slurm_bridge.runtime import caches
from slurm_bridge.translate import class_resources, device_claims, gres
from slurm_bridge.translate.device_claims import AskedDevices, ClaimKey, Option, PodClaim, Unrequestable, Wish

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
#: Of so many requests it is remembered what nodes had for them last.
MOST_FORMS: Final = 256
#: So many different numbers of all devices of a node are told apart: those that most nodes have.
MOST_NUMBERS: Final = 4

_NONE: Final = Denied(nodes={})
_COMPARED: Final = "the devices of the nodes are compared with the conditions (CEL) of the ResourceClaims"


class DeviceClaims:
    """`admit` refuses what Slurm cannot be asked for, `filter` denies nodes that lack the devices."""

    Options: ClassVar = opts.DeviceClaimsOptions
    services = True
    needs = frozenset({Need.RESOURCECLAIMS, Need.RESOURCESLICES, Need.DEVICECLASSES})
    honours = frozenset({Feature.RESOURCE_CLAIMS, Feature.CLASS_RESOURCES})

    def __init__(self, options: opts.DeviceClaimsOptions, services: HookServices) -> None:
        self._rows, self._snapshot = options.rows, services.snapshot
        self._resources: VersionCache[tuple[()], ResourceClasses] = VersionCache(1)
        self._selectors = Selectors(services.clock.now)
        self._denied: VersionCache[tuple[tuple[Wish, ...], Nodes], Denied] = VersionCache(MOST_ANSWERS)
        self._chosen: VersionCache[tuple[tuple[Wish, ...], Nodes, int], Wish] = VersionCache(MOST_ANSWERS)
        self._forms: VersionCache[tuple[str, AskedDevices], Sequence[AskedDevices]] = VersionCache(MOST_ANSWERS)
        self._last_forms: MutableMapping[tuple[str, AskedDevices], Sequence[AskedDevices]] = caches.bounded(
            most=MOST_FORMS
        )
        self._lock = threading.Lock()
        self._judged = JudgedWishes()
        self._published = PublishedDevices()

    def admit(self, session: Session, ask: Ask) -> Admit | Wait:
        pods, sight = ask.every_pod, self._sight(session.view)
        shared = device_claims.shared(pods) if ask.workload.gang is not None else {}
        ours = frozenset(pod.uid for pod in pods)
        claiming = [pod for pod in pods if not pod.bound and sight.asks(pod)]
        namespace = claiming[0].metadata.namespace if claiming else ""
        try:
            with self._selectors.at_most(MOST_EVALUATIONS, MOST_LOOK_UPS, namespace):
                wrong = next(_unshareable(shared, lambda pod: self._options(pod, sight, session.view)), "")
                if wrong:
                    return Wait(reason=device_claims.REASON, message=wrong, warning=True)
                obstacles = (self._obstacle(pod, session.view, ours, ask.devices.get(pod.uid)) for pod in claiming)
                return next((one for one in obstacles if one is not None), GO)
        except TooMuch as stopped:
            return _comparing(stopped)

    def filter(self, session: Session, ask: Ask, nodes: Nodes) -> Denied | Wait:
        """Of pods with different claims it is enough when a node has the devices of one."""
        waiting = [pod for pod in ask.workload.pods if not pod.bound]
        version, devices = _version(session.view), ask.devices
        namespace = next(iter(ask.workload.pods)).metadata.namespace
        try:
            with self._selectors.at_most(MOST_EVALUATIONS, MOST_LOOK_UPS, namespace):
                each = (self._wishes(pod, session.view, devices.get(pod.uid)) for pod in waiting)
                wishes = dict.fromkeys(itertools.chain.from_iterable(each))
            if not wishes or () in wishes:
                return _NONE
            return self._denied.get(
                version, (tuple(wishes), nodes), lambda: self._work_out(namespace, wishes, nodes, session.view)
            )
        except TooMuch as stopped:
            return _comparing(stopped)

    def devices_of(
        self, workload: Workload, views: Mapping[Need, View], eligible: Callable[[Pod], Nodes]
    ) -> Mapping[str, tuple[Gres, ...]]:
        """What Slurm is asked for, by the uid of each pod whose claims are all known.

        Of alternatives it is the first one for which the eligible nodes have devices.
        """
        asked: dict[str, tuple[Gres, ...]] = {}
        for wishes, pods in self._alike(workload, views).items():
            several = len(set(map(device_claims.gres_of, wishes))) > 1
            wanted = device_claims.gres_of(self._choice(wishes, pods, views, eligible) if several else wishes[0])
            if wanted:
                asked.update((pod.uid, wanted) for pod, _ in pods)
        return asked

    def _alike(
        self, workload: Workload, views: Mapping[Need, View]
    ) -> Mapping[tuple[Wish, ...], Sequence[tuple[Pod, Sequence[Option]]]]:
        """Its pods by what their claims may ask for, as far as these are known."""
        found: dict[tuple[Wish, ...], list[tuple[Pod, Sequence[Option]]]] = {}
        claiming = [pod for pod in workload.pods if pod.spec.resource_claims and Need.RESOURCECLAIMS in views]
        if not claiming:
            return found
        shared = device_claims.shared(workload.pods)
        try:
            with self._selectors.at_most(MOST_EVALUATIONS, MOST_LOOK_UPS, claiming[0].metadata.namespace):
                # What is behind extended resources is asked for apart.
                sight = dataclasses.replace(self._sight(views.__getitem__), class_of=class_resources.no_class)
                for pod in claiming:
                    options = self._options(pod, sight, views.__getitem__)
                    if not isinstance(options, Unrequestable):
                        options = tuple(_counted_once(one, pod, shared) for one in options)
                        found.setdefault(tuple(map(device_claims.wish, options)), []).append((pod, options))
        except TooMuch as stopped:
            raise errors.TryLater(_COMPARED, retry_after=max(GO_ON, stopped.pause)) from stopped
        return found

    def _choice(
        self,
        wishes: tuple[Wish, ...],
        pods: Sequence[tuple[Pod, Sequence[Option]]],
        views: Mapping[Need, View],
        eligible: Callable[[Pod], Nodes],
    ) -> Wish:
        """For equal pods; where some have devices already, all ask for the same."""
        for pod, found in pods:
            given = next((one for one in found if pod.bound and all(each.served for each in one)), None)
            if given is not None:
                return device_claims.wish(given)
        first, count = pods[0][0], sum(not pod.bound for pod, _ in pods)
        nodes, view = eligible(first), views.__getitem__
        try:
            return self._chosen.get(
                _version(view),
                (wishes, nodes, count),
                lambda: self._first_there(first.metadata.namespace, wishes, nodes, count, view),
            )
        except TooMuch as stopped:
            raise errors.TryLater(_COMPARED, retry_after=max(GO_ON, stopped.pause)) from stopped

    def _first_there(
        self, namespace: str, wishes: tuple[Wish, ...], nodes: Nodes, count: int, view: Callable[[Need], View]
    ) -> Wish:
        """The first wish that can come true for all pods, else for one, else the first of all."""
        for_one: Wish | None = None
        with self._selectors.at_most(MOST_EVALUATIONS, MOST_LOOK_UPS, namespace):
            for wish in wishes:
                there = sum(one.pods for one in self._judge(namespace, wish, nodes, view).values())
                if there >= count:
                    return wish
                for_one = for_one or (wish if there else None)
        return for_one or wishes[0]

    def class_gres(self, views: Mapping[Need, View]) -> Mapping[str, str]:
        """Extended resources behind which classes of the table are, and the GRES of each."""
        found = self._classes(views.__getitem__).rows(self._rows)
        return {resource: gres.spell(row.gres) for resource, row in found.items()}

    def offers(self, views: Mapping[Need, View]) -> Mapping[str, Mapping[str, int]]:
        """How many devices of their drivers each node has."""
        slices, rows = views[Need.RESOURCESLICES], self._classes(views.__getitem__).rows(self._rows)
        found: dict[str, Mapping[str, int]] = {}
        for node in self._published.nodes(slices):
            there = (one for one in self._published.on(node, slices) if not one.device.consumes_counters)
            drivers = collections.Counter(one.id.driver for one in there)
            found[node] = {name: drivers[row.driver] for name, row in rows.items() if drivers[row.driver]}
        return found

    def _classes(self, view: Callable[[Need], View]) -> ResourceClasses:
        classes, snapshot = view(Need.DEVICECLASSES), self._snapshot()
        version = classes.version + snapshot.version
        return self._resources.get(version, (), lambda: ResourceClasses.of(classes.all(), snapshot))

    def devices(self, views: Mapping[Need, View], namespace: str) -> DeviceSight:
        """For the scheduler, once Slurm has allocated."""

        def in_time(text: str, driver: str, device: Device) -> bool:
            """Nearly always it is known from the search for nodes."""
            try:
                with self._selectors.paid_by(namespace):
                    return self._selectors.matches(text, driver, device)
            except TooMuch as stopped:
                raise errors.TryLater(_COMPARED, retry_after=max(GO_ON, stopped.pause)) from stopped

        return dataclasses.replace(self._sight(lambda need: views[need]), matches=in_time)

    def _obstacle(
        self, pod: Pod, view: Callable[[Need], View], ours: frozenset[str], asked: tuple[Gres, ...] | None
    ) -> Wait | None:
        found = self._options(pod, self._sight(view), view)
        if isinstance(found, Unrequestable):
            reason = device_claims.MISSING if found.missing else device_claims.REASON
            return Wait(reason=reason, message=found.message, warning=not found.missing)
        for one in device_claims.meant(found, asked)[0]:
            held = taken(one.claim, ours)
            if held:
                return Wait(reason=HELD, message=held)
            wrong = self._conditions(one, self._sight(view))
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

    def _wishes(self, pod: Pod, view: Callable[[Need], View], asked: tuple[Gres, ...] | None) -> Sequence[Wish]:
        """What its claims ask for: of alternatives that are the same to Slurm, each node may have another one."""
        found = self._options(pod, self._sight(view), view)
        return (
            ((),) if isinstance(found, Unrequestable) else [*map(device_claims.wish, device_claims.meant(found, asked))]
        )

    def _options(
        self, pod: Pod, sight: DeviceSight, view: Callable[[Need], View]
    ) -> tuple[Option, ...] | Unrequestable:
        """What its claims may ask for. Raises TooMuch."""

        def forms(asked: AskedDevices, claim: ResourceClaim) -> Sequence[AskedDevices]:
            held = _held(asked, claim, sight.on(pod.spec.node_name)) if pod.bound else None
            key = (pod.metadata.namespace, asked)
            return (
                (held,)
                if held is not None
                else self._forms.get(_version(view), key, lambda: self._forms_of(*key, view))
            )

        return sight.options(pod, forms)

    def _forms_of(self, namespace: str, asked: AskedDevices, view: Callable[[Need], View]) -> Sequence[AskedDevices]:
        """What it may be for on any node; while no node has such devices, what it was last."""
        nodes = self._published.nodes(view(Need.RESOURCESLICES))
        with self._selectors.at_most(MOST_EVALUATIONS, MOST_LOOK_UPS, namespace):
            judged = self._judge(namespace, (asked,), nodes, view)
        found = _ordered(collections.Counter(form for one in judged.values() for form in one.forms))
        with self._lock:
            # A driver that is started anew publishes its devices again: until then no job is asked for otherwise.
            if found:
                self._last_forms[namespace, asked] = found
            return self._last_forms.get((namespace, asked), ())

    def _work_out(self, namespace: str, wishes: Collection[Wish], nodes: Nodes, view: Callable[[Need], View]) -> Denied:
        with self._selectors.at_most(MOST_EVALUATIONS, MOST_LOOK_UPS, namespace):
            judged = [self._judge(namespace, wish, nodes, view) for wish in wishes]
        said = {node: tuple(dict.fromkeys(one[node].lacks for one in judged)) for node in nodes}
        return Denied(nodes={node: reasons for node, reasons in said.items() if all(reasons)})

    def _judge(
        self, namespace: str, wish: Wish, nodes: Collection[str], view: Callable[[Need], View]
    ) -> Mapping[str, JudgedNode]:
        """What is judged of a node stays known while its devices are the same, whatever happens on other nodes."""
        sight, slices = self._sight(view), view(Need.RESOURCESLICES)
        judged = self._judged.of(namespace, wish, view(Need.DEVICECLASSES).version)
        forget_gone(judged, self._published.nodes(slices))
        found: dict[str, JudgedNode] = {}
        for node in nodes:
            there, known = sight.on(node), judged.get(node)
            if known is None or known.devices is not there:
                with self._selectors.judging():
                    forms = tuple(form for one in wish if one.open for form in sight.forms(one, node))
                    judged[node] = known = JudgedNode(tuple(there), *sight.judged(wish, node), forms)
            found[node] = known
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
            kept_back=lambda node: self._published.kept_back(node, slices),
            matches=self._selectors.matches,
            class_of=self._classes(view).behind,
        )


def _version(view: Callable[[Need], View]) -> int:
    return view(Need.RESOURCESLICES).version + view(Need.DEVICECLASSES).version


def _held(asked: AskedDevices, claim: ResourceClaim, there: Sequence[NodeDevice]) -> AskedDevices | None:
    """What the claim of a pod with a node was asked for; None where that is not known."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    held = {result.id for result in results if result.request == asked.request}
    types = {one.type(asked.row) if asked.row.open else asked.row.gres.type for one in there if one.id in held}
    if len(types) != 1 or (asked.row.open and "" in types):
        return None
    return asked.as_of(types.pop(), len(held) if asked.every else asked.count)


def _ordered(found: Mapping[AskedDevices, int]) -> Sequence[AskedDevices]:
    """By type; of all devices first the number that most nodes have."""

    def place(one: AskedDevices) -> tuple[int, str, int]:
        return -found[one] if one.every else 0, one.row.gres.type, one.count

    forms = sorted(found, key=place)
    return forms[:MOST_NUMBERS] if any(one.every for one in forms) else forms


def _counted_once(option: Option, pod: Pod, shared: Mapping[ClaimKey, Sequence[Pod]]) -> Option:
    """Slurm is asked for a claim that several pods use with the first of them."""
    return tuple(one for one in option if shared.get(one.claim.key, (pod,))[0].uid == pod.uid)


def _unshareable(
    shared: Mapping[ClaimKey, Sequence[Pod]], options: Callable[[Pod], tuple[Option, ...] | Unrequestable]
) -> Iterator[str]:
    """Why pods of one gang cannot use the same claims. Each pod is looked at once, however many claims it shares."""
    several: dict[str, bool] = {}
    for pod in {pod.uid: pod for users in shared.values() for pod in users[: device_claims.MOST_USERS]}.values():
        found = options(pod)
        several[pod.uid] = not isinstance(found, Unrequestable) and len(found) > 1
    for key, users in sorted(shared.items()):
        called = f"ResourceClaim {'/'.join(key)} is used by pods {users[0].metadata.name} and {users[1].metadata.name}"
        if len(users) > device_claims.MOST_USERS:
            yield f"{called} and {len(users) - 2} more of the gang; at most {device_claims.MOST_USERS} pods are allowed"
        elif any(several[pod.uid] for pod in users):
            yield f"{called} of the gang, whose claims have alternatives: use exactly, or a claim for each pod"


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
