"""One profile of the hook "kube-scheduler": predicates deny nodes, priorities rate the others, both look again."""

import dataclasses
import functools
import zlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from slurm_bridge.cluster.columns import Numbers, Reasons
from slurm_bridge.cluster.memo import VersionCache
from slurm_bridge.cluster.recent_answers import Recent
from slurm_bridge.cluster.rules.neighbours import NamespaceLabels
from slurm_bridge.families.kube_scheduler import (
    allocation_check,
    classes,
    filters,
    gangs,
    placements,
    priority_chain,
    selection,
    spread_defaults,
)
from slurm_bridge.families.kube_scheduler.allocation_check import PodStanding
from slurm_bridge.families.kube_scheduler.extenders.desk import ExtenderDesk
from slurm_bridge.families.kube_scheduler.lookup import Looking
from slurm_bridge.families.kube_scheduler.matrix import Prioritized
from slurm_bridge.families.kube_scheduler.options import Capacity, KubeSchedulerOptions
from slurm_bridge.families.kube_scheduler.placements import PlannedPods, Unplaced
from slurm_bridge.families.kube_scheduler.predicates import own, standard
from slurm_bridge.families.kube_scheduler.predicates.base import BadPredicate, Failures, PredicateRule
from slurm_bridge.families.kube_scheduler.scene import Scene, scene
from slurm_bridge.families.kube_scheduler.verdict_cache import Barred, Known, Resting, Restless
from slurm_bridge.hooks.base import GO, Admit, Ask, Denied, Deny, Mode, Nodes, NodeSet, Scores, Session, Subsets, Tiers
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.model import texts
from slurm_bridge.model.features import Feature
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.verdict import Wait
from slurm_bridge.model.workload import Workload
from slurm_bridge.runtime import packages

#: Of so many shapes the last scores are kept; at twenty thousand nodes each takes a megabyte.
MOST_LATEST = 16

#: A pod that waits for others that were placed beside it is looked at again after so many seconds.
NEIGHBOURS_LOOK = 1.0

#: By so many nodes the choice among equals moves on from attempt to attempt: a prime number.
TURN = 7919

NOT_RELEVANT = Subsets(relevant=False, everywhere=True)

_NONE = frozenset[str]()


class KubeScheduler:
    """`filter` denies with kube-scheduler's words, `score` rates as it does, `verify` asks again at the end."""

    name = "kube-scheduler"

    def __init__(
        self, options: KubeSchedulerOptions, services: HookServices, beside: "KubeScheduler | None" = None
    ) -> None:
        """`beside`: another profile, with which it shares the extenders and what pods were placed."""
        self._options, self._services = options, services
        self._rules = rules(options)
        self._prioritizer = priority_chain.of(options, services.finest)
        self.needs = self._prioritizer.needs.union(
            *(rule.needs for rule in self._rules.values()), spread_defaults.needs(options)
        )
        #: What predicates as configured see to.
        self.honours = frozenset[Feature]().union(*(rule.honours for rule in self._rules.values()))
        #: Of these, what says of a pod's node how others have to stand.
        self._neighbourly = self.honours - {Feature.SOLE_CLAIMS, Feature.WAITING_CLAIMS}
        self._ranks = bool(self._prioritizer.configs or options.extenders)
        #: Also pods that say nothing have to lie evenly.
        self._spreads = any(one.hard for one in spread_defaults.configured(options))
        self._own = any(rule.own for rule in self._rules.values())
        #: A site's code is part of it, which may hang: it is called as a foreign hook is.
        self.foreign = self._prioritizer.foreign or self._own
        self._looking = Looking(self.needs, options)
        self.extenders: ExtenderDesk = beside.extenders if beside else ExtenderDesk(options.extenders, services)
        self._tiers = Tiers(count=options.tiers, first=options.first_tier, widen_after=options.widen_after_seconds)
        self._latest: Recent[bytes, tuple[int, Nodes, float, Prioritized]] = Recent(MOST_LATEST)
        self._resting = Resting(self._rules)
        self._still: VersionCache[tuple[Known, frozenset[str]], Denied] = VersionCache()
        self._moving: VersionCache[tuple[Known, frozenset[str]], Denied] = VersionCache()
        self.planned: PlannedPods = beside.planned if beside else PlannedPods()

    def filter(self, session: Session, ask: Ask, nodes: Nodes) -> Denied | Wait:
        """Predicates, and then what extenders say of the nodes that these leave."""
        denied = self._by_predicates(session, ask)
        if not self._options.extenders:
            return denied
        uid, pod = ask.workload.root.key, _first(ask)
        said = self.extenders.said(uid, classes.key(pod), pod, denied.left(nodes), session.columns)
        if isinstance(said, Wait) or not said.denied:
            return said if isinstance(said, Wait) else denied
        by_extenders = {name: (reason,) for name, reason in said.denied.items()}
        return dataclasses.replace(denied, nodes={**by_extenders, **denied.nodes})

    def score(self, session: Session, ask: Ask, nodes: Nodes) -> Scores:
        """As for the pods of the largest shape; without priorities every node is as good as another."""
        if not self._ranks:
            return Scores(nodes={})
        pod = _first(ask)
        key = classes.key(pod) + repr(self._looking.versions(session, pod)).encode()
        found = self._lately(session, key, nodes)
        if found is None:
            seen = self._scene(session, pod, self._options.capacity)
            said = self.extenders.known(ask.workload.root.key, classes.key(pod)).rows
            found = self._prioritizer.run(seen, session, self._rated(seen, nodes), key=key, extended=said)
            self._latest.put(key, (session.snapshot.version, nodes, self._services.clock.now(), found))
        else:
            self._services.finest(functools.partial(found.lines, pod))
        return Scores(nodes=found.by_name, tiers=self._tiers, matrix=found.shown)

    def _lately(self, session: Session, key: bytes, nodes: Nodes) -> Prioritized | None:
        """What was said of an equal pod a moment ago: in a burst the scores of one stand for the next few of them.

        They are a preference; which of the nodes have room is looked at for each.
        """
        known = None if self.foreign or self._options.extenders else self._latest.get(key)
        if known is None:
            return None
        version, before, since, found = known
        fresh = self._services.clock.now() - since < self._options.score_seconds
        # Identity first: a set is compared even with itself name by name.
        same = version == session.snapshot.version and (before is nodes or before == nodes)
        return found if fresh and same else None

    def subset(self, session: Session, ask: Ask, tasks: Sequence[Pod], nodes: Nodes) -> Subsets:
        """The nodes on which its pods come to lie as they ask, where they ask for anything of their neighbours."""
        key = ask.workload.root.key
        if not self._asking(ask):
            return NOT_RELEVANT
        if ask.workload.gang is not None and not gangs.places(ask):
            return self._near_each_other(session, ask, nodes)
        before, columns, attempt = self.planned.of(key), session.columns, session.attempt
        if before is not None and not nodes >= before.coming.keys():
            # It was placed in another set of nodes than this one.
            before = None
        placer = placements.Placer(
            seen=functools.partial(self._scene, session, capacity=self._options.capacity),
            rules=functools.partial(self._asked, session),
            request=ask.request,
            nodes=columns.mask(nodes),
            scores=self._values(session, ask, nodes),
            turn=zlib.crc32(ask.workload.root.uid.encode()) + attempt * TURN,
        )
        # Slurm may know more of the nodes that it has not given: another attempt is made with others.
        kept = before if before is not None and before.attempt == attempt else None
        found = placer.place(tasks, self._beside(session, key), kept)
        if isinstance(found, Unplaced):
            self.planned.drop(key)
            return Subsets(sets=(), wanted=(_unplaced(found, len(tasks)),), moving=True)
        gang = ask.workload.gang is not None
        same = before is not None and session.placed and before.nodes.keys() == found.nodes.keys()
        if before is not None and same and len(found.coming) != len(before.coming):
            # Slurm changes the number of nodes of no job: it would be another one, at the end of the queue. Where that
            # one could start, and this one could not, it is worth it.
            better = found.roomy and not placer.has_room(before, tasks[0])
            stays = columns.mask(before.coming).sum() == len(before.coming) and not better
            found = before if stays else found
        if session.mode is Mode.REAL and (gang or attempt == 0):
            self.planned.put(key, dataclasses.replace(found, attempt=attempt), session.now)
        else:
            self.planned.drop(key)
        chosen = NodeSet(
            nodes=columns.nodes(columns.mask(found.coming)),
            name="placed pod by pod",
            required=gang,
            each=found.most,
            seconds=self._options.widen_after_seconds,
        )
        # On other nodes than these a gang would not stand as it asks: it has several attempts at such nodes.
        others = [
            dataclasses.replace(chosen, name=f"{chosen.name} ({more})", again=more - 1) for more in (2, 3) if gang
        ]
        return Subsets(sets=(chosen, *others), moving=True)

    def _near_each_other(self, session: Session, ask: Ask, nodes: Nodes) -> Subsets:
        """The domains of a gang of which Slurm chooses the nodes, where its pods ask for any."""
        keys = gangs.keys(ask, self._namespace_labels(session))
        if not keys:
            return NOT_RELEVANT
        near = gangs.domains(ask, session.columns, nodes, keys)
        if near:
            together = f"its pods have to be near each other, on nodes with the same {texts.listed(keys)}"
            return Subsets(sets=tuple(near), wanted=(together,), moving=True)
        missing = f"its pods near each other: no node that they can have is labelled with {texts.listed(keys)}"
        return Subsets(sets=(), wanted=(missing,), moving=True)

    def _asking(self, ask: Ask) -> bool:
        """Some pod asks for something of its neighbours, and that is for the rules of this hook alone to say."""
        return not self._own and (self._spreads or any(one.feature in self._neighbourly for one in ask.demands))

    def _namespace_labels(self, session: Session) -> NamespaceLabels:
        return self._looking.at(session).namespace_labels

    def forget(self, workload: WorkloadKey) -> None:
        """Its pods have their nodes, or are gone."""
        self.planned.drop(workload)

    def verify(self, session: Session, workload: Workload, nodes: Mapping[str, str]) -> Admit | Deny | Wait:
        """By what is free now: all pods there count, except the pod itself.

        Pods that were placed beside this one and are not there yet may be what makes it right.
        """
        facts = session.snapshot.nodes
        free = functools.partial(self._scene, session, workload.pods[0], "free")
        if allocation_check.stands(free, facts, workload.pods, nodes, lambda pod: self._standing(session, pod)):
            return GO
        seen = free()
        wrong = allocation_check.wrong(seen, facts, workload.pods, nodes, self._rules)
        if not wrong:
            return GO
        told = "; ".join(f"{name}: {', '.join(reasons)}" for name, reasons in sorted(wrong.items()))
        beside = self._beside(session, workload.root.key)
        if beside and not allocation_check.wrong(seen, facts, workload.pods, nodes, self._rules, beside):
            message = f"waits for the pods that were placed beside it, which have no nodes yet; until then {told}"
            return Wait(reason="NeighboursPending", message=message, retry_after=NEIGHBOURS_LOOK, moving=True)
        return Deny(nodes=frozenset(wrong), message=f"nodes that Slurm allocated cannot take the pods: {told}")

    def _beside(self, session: Session, key: WorkloadKey) -> placements.Coming:
        """Pods of other workloads that were placed and do not run yet."""
        facts = session.snapshot.nodes

        def runs(node: str, pod: Pod) -> bool:
            there = facts.get(node)
            return there is not None and any(one.uid == pod.uid for one in there.pods)

        return self.planned.beside(key, session.now, runs)

    def _asked(self, session: Session, pod: Pod) -> Mapping[str, PredicateRule]:
        """The rules about such a pod in which what runs has a say."""
        restless = self._restless(session, pod, self._known(session, pod))
        return {name: rule for name, rule in self._rules.items() if name in restless.rules}

    def _values(self, session: Session, ask: Ask, nodes: Nodes) -> NDArray[np.float64]:
        """The scores of the pods of the largest shape, by row; none where every node is as good."""
        columns = session.columns
        if not self._ranks:
            return np.zeros(len(columns))
        found = self.score(session, ask, nodes).nodes
        if isinstance(found, Numbers):
            return found.values_of(columns)
        return np.fromiter((found.get(name, 0.0) for name in columns.names.tolist()), np.float64, len(columns))

    def close(self) -> None:
        """End the threads that ask extenders."""
        self.extenders.close()

    def _by_predicates(self, session: Session, ask: Ask) -> Denied:
        """Of several shapes it is enough when a node can take one."""
        alike = [shape.pods for shape in ask.shapes] or [ask.workload.pods]
        later: frozenset[str] = _NONE
        seen: Callable[[Pod], Pod] = _as_it_is
        if ask.workload.gang is not None and self._asking(ask):
            if gangs.places(ask):
                later = frozenset(self._rules)
            else:
                seen = gangs.among_strangers(ask, self._namespace_labels(session))
        first, *others = (self._denied(session, pods, later, seen) for pods in alike)
        if not others:
            return first
        by_all = frozenset(first.nodes).intersection(*(other.nodes for other in others))
        moving = any(one.moving for one in (first, *others))
        return Denied(nodes={name: first.nodes[name] for name in by_all}, moving=moving)

    def _denied(
        self, session: Session, alike: Sequence[Pod], later: frozenset[str], seen: Callable[[Pod], Pod]
    ) -> Denied:
        """Pods of one shape can differ in their volumes: each node has to be right for all of them."""
        different = {classes.key(pod): pod for pod in alike}
        first, *others = (self._of(session, seen(pod), later) for pod in different.values())
        if not others:
            return first
        merged: dict[str, tuple[str, ...]] = {}
        for one in reversed((first, *others)):
            merged.update(one.nodes)
        return Denied(nodes=merged, moving=any(one.moving for one in (first, *others)))

    def _of(self, session: Session, pod: Pod, later: frozenset[str]) -> Denied:
        """Equal pods get the same record until the nodes change, or the running pods, where these count.

        A site's own predicates may look at anything, the pod's name or the time: they are asked each time. The rules
        that are asked `later` do not count here where what runs has a say in them.
        """
        if self._own:
            return Denied(nodes=self._evaluate(session, pod, self._rules), moving=True)
        known = self._known(session, pod)
        restless = self._restless(session, pod, known)
        if not restless:
            return self._settled(session, pod, known)
        left_out = restless.rules & later
        moving = restless.rivals or restless.rules > left_out
        rules = {name: rule for name, rule in self._rules.items() if name not in left_out}

        def asked() -> Denied:
            said = self._said(session, pod, known, restless)
            return Denied(nodes=self._evaluate(session, pod, rules, said), moving=moving)

        if moving:
            return self._moving.get(session.snapshot.use_version, (known, left_out), asked)
        return self._still.get(session.snapshot.version, (known, left_out), asked)

    def _standing(self, session: Session, pod: Pod) -> PodStanding | None:
        """The nodes that such a pod is denied whatever runs, and the rules to ask again; None where all are asked."""
        if self._own or self._options.capacity == "free":
            return None
        known = self._known(session, pod)
        restless = self._restless(session, pod, known)
        if restless.rivals:
            return None
        if not restless:
            return PodStanding(self._settled(session, pod, known).nodes, {})
        said = self._said(session, pod, known, restless)
        asked = {name: rule for name, rule in self._rules.items() if name in restless.rules}
        return PodStanding(Barred(session.columns, said.values()), asked)

    def _known(self, session: Session, pod: Pod) -> Known:
        return (
            classes.key(pod),
            filters.promised(pod, session.snapshot.nominated),
            self._looking.versions(session, pod),
        )

    def _restless(self, session: Session, pod: Pod, known: Known) -> Restless:
        """What runs, or is about to, has a say in it."""

        def look() -> tuple[Scene, bool]:
            seen = self._scene(session, pod, self._options.capacity)
            return seen, bool(filters.rivals(seen, session.snapshot.nominated))

        return self._resting.restless(session.snapshot.company_version, known, look)

    def _settled(self, session: Session, pod: Pod, known: Known) -> Denied:
        def asked() -> Denied:
            return Denied(nodes=self._evaluate(session, pod, self._rules), moving=False)

        return self._still.get(session.snapshot.version, (known, _NONE), asked)

    def _said(self, session: Session, pod: Pod, known: Known, restless: Restless) -> Mapping[str, Failures]:
        seen = self._scene(session, pod, self._options.capacity)
        return self._resting.said(session.snapshot.version, known, seen, restless)

    def _evaluate(
        self,
        session: Session,
        pod: Pod,
        rules: Mapping[str, PredicateRule],
        said: Mapping[str, Failures] | None = None,
    ) -> Reasons:
        seen, nominated = self._scene(session, pod, self._options.capacity), session.snapshot.nominated
        check_all = self._options.always_check_all
        return filters.evaluate(seen, rules, always_check_all=check_all, nominated=nominated, said=said or {})

    def _scene(self, session: Session, pod: Pod, capacity: Capacity) -> Scene:
        return scene(session.snapshot, pod, capacity=capacity, lookup=self._looking.at(session))

    def _rated(self, seen: Scene, nodes: Nodes) -> Nodes:
        """All, or as many as are enough, others each time. What is enough follows from how many nodes there are.

        Which of them fit is known of all: columns are filtered as a whole, and to stop early would save nothing.
        """
        columns = seen.columns
        enough = selection.num_feasible_nodes(self._options.percentage_of_nodes, int(columns.present.sum()))
        if enough >= len(nodes):
            return nodes
        start = self._services.dice.randrange(len(columns))
        return columns.nodes(selection.some(columns.mask(nodes), enough, start))


def _as_it_is(pod: Pod) -> Pod:
    return pod


def _unplaced(found: Unplaced, pods: int) -> str:
    """`no node for pod a/b (3 of 8): 2 node(s) didn't match pod topology spread constraints`."""
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(found.reasons.items()))
    said = f": {reasons}" if reasons else " has room"
    return f"no node for pod {'/'.join(found.pod.key)} ({found.number} of {pods}){said}"


def _first(ask: Ask) -> Pod:
    """The first pod of the largest shape stands for all."""
    return max((shape.pods for shape in ask.shapes), key=len, default=ask.workload.pods)[0]


def rules(options: KubeSchedulerOptions) -> Mapping[str, PredicateRule]:
    """The predicates as configured; raises BadPredicate with all that is wrong."""
    offered, found, problems = packages.offered(own.GROUP), dict[str, PredicateRule](), list[str]()
    for one in options.predicates:
        try:
            found[one.name] = standard.build(one.name, one.args, offered)
        except BadPredicate as bad:
            problems.append(str(bad))
    names = [one.name for one in options.predicates]
    problems += [f"predicate {name}: is configured twice" for name in sorted(set(names)) if names.count(name) > 1]
    if problems:
        raise BadPredicate("\n".join(problems))
    return found
