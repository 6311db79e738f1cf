"""What a hook's needs let predicates and priorities look up, put in order once for as long as it stays the same."""

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from slurm_bridge.cluster.memo import VersionCache
from slurm_bridge.cluster.rules import volumes
from slurm_bridge.cluster.rules.spread import SpreadConstraint
from slurm_bridge.families.kube_scheduler import spread_defaults
from slurm_bridge.families.kube_scheduler.options import AffinityOptions, KubeSchedulerOptions
from slurm_bridge.families.kube_scheduler.scene import AddedAffinity, Labels, Lookup
from slurm_bridge.hooks import needs
from slurm_bridge.hooks.base import Session
from slurm_bridge.hooks.needs import Need
from slurm_bridge.model import selectors
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.selectors import Requirement
from slurm_bridge.model.services import Controller, Service
from slurm_bridge.model.storage import CsiNode

T = TypeVar("T", bound=Object)
V = TypeVar("V")

#: What decides about pods with claims only.
STORAGE = (Need.PVCS, Need.PVS, Need.STORAGECLASSES, Need.CSINODES)

_Limits = Mapping[str, Mapping[str, int]]


class Looking:
    """What is not among the needs is as if there were none of it."""

    def __init__(self, wanted: frozenset[Need], options: KubeSchedulerOptions) -> None:
        self._needs = wanted
        self._defaults = spread_defaults.configured(options)
        self._added = _added(options.added_affinity)
        #: What is looked up for pods without claims, and for those with.
        self._plain = tuple(need for need in Need if need in wanted - {Need.PODS, *STORAGE})
        self._claiming = tuple(need for need in Need if need in wanted - {Need.PODS})
        self._services: VersionCache[Need, Mapping[str, Sequence[Labels]]] = VersionCache()
        self._controllers: VersionCache[Need, Mapping[str, Sequence[tuple[Requirement, ...]]]] = VersionCache()
        self._limits: VersionCache[Need, _Limits] = VersionCache()

    def at(self, session: Session) -> Lookup:
        """For one pass; objects are read at the first use."""
        return Lookup(
            storage=needs.storage(lambda need: session.view(need) if need in self._needs else None),
            volume_limits=lambda driver: self._limits_now(session).get(driver, {}),
            namespace_labels=lambda name: self._namespace(session, name),
            service_selectors=lambda namespace: self._services_now(session).get(namespace, ()),
            controller_selectors=lambda namespace: self._controllers_now(session).get(namespace, ()),
            default_spread=lambda pod: self._default_spread(session, pod),
            added_affinity=self._added,
        )

    def versions(self, session: Session, pod: Pod) -> tuple[int, ...]:
        """Moves when something changes that can be looked up for this pod."""
        seen = self._claiming if volumes.claimed(pod) else self._plain
        return tuple(session.view(need).version for need in seen)

    def _namespace(self, session: Session, name: str) -> Labels | None:
        if Need.NAMESPACES not in self._needs:
            return None
        found = session.view(Need.NAMESPACES).get("", name)
        return found.metadata.labels if found is not None else None

    def _default_spread(self, session: Session, pod: Pod) -> tuple[SpreadConstraint, ...]:
        if not self._defaults:
            return ()
        services = self._services_now(session).get(pod.metadata.namespace, ())
        return spread_defaults.of(pod, self._defaults, services, session)

    def _services_now(self, session: Session) -> Mapping[str, Sequence[Labels]]:
        every = _all(session, self._needs, Need.SERVICES, Service)
        version = _version(session, self._needs, (Need.SERVICES,))
        selected = ((one.metadata.namespace, one.spec.selector) for one in every if one.spec.selector)
        return self._services.get(version, Need.SERVICES, lambda: _grouped(selected))

    def _controllers_now(self, session: Session) -> Mapping[str, Sequence[tuple[Requirement, ...]]]:
        kinds = (Need.REPLICASETS, Need.STATEFULSETS)
        every = (one for need in kinds for one in _all(session, self._needs, need, Controller))
        version = _version(session, self._needs, kinds)
        read = ((one.metadata.namespace, selectors.read(one.spec.selector)) for one in every)
        selecting = ((namespace, selector) for namespace, selector in read if selector)
        return self._controllers.get(version, kinds[0], lambda: _grouped(selecting))

    def _limits_now(self, session: Session) -> _Limits:
        every = _all(session, self._needs, Need.CSINODES, CsiNode)
        version = _version(session, self._needs, (Need.CSINODES,))
        return self._limits.get(version, Need.CSINODES, lambda: _limits(every))


def _added(given: AffinityOptions) -> AddedAffinity:
    terms = [one.model_dump(by_alias=True) for one in given.required]
    return AddedAffinity(
        required={"nodeSelectorTerms": terms} if terms else None,
        preferred=tuple(one.model_dump(by_alias=True) for one in given.preferred),
    )


def _all(session: Session, wanted: frozenset[Need], need: Need, kind: type[T]) -> Iterator[T]:
    """Read only when they are gone through."""
    if need in wanted:
        yield from (one for one in session.view(need).all() if isinstance(one, kind))


def _version(session: Session, wanted: frozenset[Need], kinds: Iterable[Need]) -> int:
    """Each version only grows, so their sum moves when one of them does."""
    return sum(session.view(need).version for need in kinds if need in wanted)


def _grouped(pairs: Iterable[tuple[str, V]]) -> Mapping[str, Sequence[V]]:
    found: dict[str, list[V]] = collections.defaultdict(list)
    for namespace, value in pairs:
        found[namespace].append(value)
    return dict(found)


def _limits(every: Iterable[CsiNode]) -> _Limits:
    found: dict[str, dict[str, int]] = collections.defaultdict(dict)
    for node in every:
        for driver in node.spec.drivers or ():
            if driver.allocatable.count is not None:
                found[driver.name][node.metadata.name] = driver.allocatable.count
    return dict(found)
