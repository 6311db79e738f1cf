"""Who may preempt, and what that would come to. Reads only."""

import dataclasses
import functools
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence

from loguru import logger

from slurm_bridge.cluster import imagining
from slurm_bridge.cluster.parties import priority_of
from slurm_bridge.cluster.rules.budgets import Budget
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kube_scheduler.preempting import choosing, proposing
from slurm_bridge.families.kube_scheduler.preempting import hook as hooks
from slurm_bridge.families.kube_scheduler.preempting.hook import Preemption
from slurm_bridge.hooks import chain
from slurm_bridge.hooks.background import NotAnswered
from slurm_bridge.hooks.base import Mode, Nodes, NodeSet, Phase
from slurm_bridge.hooks.evictions import Proposal
from slurm_bridge.hooks.layers import Stopped
from slurm_bridge.model import job
from slurm_bridge.model.job import JobRequest
from slurm_bridge.model.names import WorkloadKey
from slurm_bridge.model.placeholder import Certainty, Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Root, Workload
from slurm_bridge.scheduler import sites
from slurm_bridge.scheduler import wish as wishes
from slurm_bridge.scheduler.census import Census
from slurm_bridge.scheduler.members import PLACED, Standing
from slurm_bridge.scheduler.state import Wish
from slurm_bridge.scheduler.tools import Tools

#: Why a job waits that some free nodes would help. Any other reason (a limit, a dependency) they would not.
LACKING = frozenset({"Resources", "Priority"})
#: What Slurm says is in use may be so old when somebody is sent away by it.
FRESH_SECONDS = 5.0
#: Of so many workloads it is remembered when they may try again.
REMEMBERED = 10_000
#: A workload that finds nobody who could make room tries again later and later: this many times twice as late.
DOUBLINGS = 5


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A workload that waits for nodes since then: in Slurm, or `held` before because the hooks leave it none."""

    wish: Wish
    since: float
    held: bool = False

    @property
    def workload(self) -> Workload:
        """What it is."""
        return self.wish.workload

    @property
    def root(self) -> Root:
        """Whose it is."""
        return self.wish.workload.root

    @property
    def priority(self) -> int:
        """Whoever has less may have to go."""
        return self.wish.workload.priority


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Answers:
    """What the hooks say of a workload in some state of the cluster; one of `sets` has to be enough for it."""

    request: JobRequest
    nodes: Nodes
    sets: tuple[Nodes, ...]
    budgets: tuple[Budget, ...]


class Candidates:
    """Finds them, and remembers who has tried in vain."""

    def __init__(self, tools: Tools, census: Census) -> None:
        self._tools, self._census = tools, census
        self._tried: OrderedDict[WorkloadKey, tuple[int, float]] = OrderedDict()

    def pause(self, uid: WorkloadKey, hook: Preemption) -> None:
        """It has had its try; each further one is later."""
        tries, _ = self._tried.pop(uid, (0, 0.0))
        seconds = hook.options.after_seconds * (1 << min(tries, DOUBLINGS))
        self._tried[uid] = (tries + 1, self._tools.clock.now() + seconds)
        while len(self._tried) > REMEMBERED:
            self._tried.popitem(last=False)

    def forget(self, uid: WorkloadKey) -> None:
        """It wants no further try: its next need, should it have one, is another one."""
        self._tried.pop(uid, None)

    def otherwise(self, uid: WorkloadKey, intent: str) -> bool:
        """It may have no job now, or wants another one than this was."""
        wish = self._tools.states.desired(uid)
        if wish is None:
            return False
        return not _wanted(wish) or intent not in ("", wish.intent)

    def waiting(self, hook: Preemption, but: Collection[WorkloadKey]) -> Iterator[Candidate]:
        """Those that wait for long enough, the most important first, and of equal ones who came first."""
        guard = self._tools.guard
        looks = ((uid, functools.partial(self._candidate, uid, hook)) for uid in self._tools.states.waiting())
        found = [
            one for uid, look in looks if uid not in but and (one := guard.one("candidates", uid, look)) is not None
        ]
        lowest = sites.lowest(self._census) if found else None
        if lowest is not None:
            above = (one for one in found if one.priority > lowest)
            yield from sorted(above, key=lambda one: (-one.priority, one.since, one.root.uid))

    def _candidate(self, uid: WorkloadKey, hook: Preemption) -> Candidate | None:
        """As it was translated last; whom that does not cover is looked at when it has been translated anew."""
        now = self._tools.clock.now()
        wish, crew = self._tools.states.desired(uid), self._census.crew(uid)
        if crew is None or crew.count(*PLACED) or wish is None or not _supported(wish, hook):
            return None
        if now < self._tried.get(uid, (0, now))[1]:
            return None
        jobs = [one for one in self._tools.table.of(uid) if one.alive]
        if not jobs and self._tools.table.unstarted >= self._tools.limits.window:
            # It could not be submitted to what is cleared.
            return None
        since = jobs[0].since if jobs else crew.joined
        if now - since < hook.options.after_seconds or not all(map(_lacking, jobs)):
            return None
        if {pod.uid for pod in wish.workload.pods} != {pod.uid for pod in crew.pods(Standing.WANTING)}:
            return None
        return Candidate(wish=wish, since=since, held=not jobs)

    def proposal(self, hook: Preemption, one: Candidate) -> Proposal | None:
        """Where it would go and who would leave; None when there is nothing to gain, or not yet."""
        if self._tools.clock.now() - self._tools.facts_at > FRESH_SECONDS:
            self._tools.refresh_facts()
            return None
        self.pause(one.root.key, hook)
        pods = one.workload.pods
        if not all(
            choosing.eligible(priority_of(pod), pod.status.nominated_node_name, self._census.on_node) for pod in pods
        ):
            return None
        snapshot = self._tools.keeper.snapshot()
        now = self._ask(one, snapshot)
        if now is None or (one.held and now.nodes):
            # A hook is against it altogether, or it waits for something else than nodes.
            return None
        return self._checked(one, snapshot, self._propose(hook, one, snapshot, now))

    def _propose(self, hook: Preemption, one: Candidate, snapshot: ClusterSnapshot, now: _Answers) -> Proposal | None:
        """Of nodes that could be cleared those whose pods are least important, and of those that have room already."""
        most = hook.options.most_nodes
        away = {*self._tools.avoid(one.workload), *self._tools.promised.nodes}
        below = sites.below(self._tools, self._census, one.priority)
        ranked = sorted((name for name in below if name not in away), key=lambda name: _rank(name, below, now.nodes))
        cleared = self._ask(one, imagining.without(snapshot, (pod for name in ranked[:most] for pod in below[name])))
        if cleared is None:
            return None
        roomy = (sites.roomy(snapshot, one.workload.lead) & now.nodes).difference(away)
        known = sites.Sites(self._tools, self._census, snapshot, now.request)
        pods = one.workload.pods
        for within in cleared.sets:
            names = [name for name in ranked[:most] if name in cleared.nodes & within]
            free = sorted((roomy & within).difference(names))
            places = known.of((*names, *free[:most]))
            try:
                found = proposing.propose(pods, one.priority, places, now.budgets, known.needs_of, hook.extenders)
            except NotAnswered as silent:
                logger.bind(workload=str(one.root)).warning("preemption: not now: {}", silent)
                return None
            if found is not None:
                return found
        return None

    def _checked(self, one: Candidate, snapshot: ClusterSnapshot, found: Proposal | None) -> Proposal | None:
        """Without victims there is room, and what keeps Slurm from using it is nothing that anybody could leave for.

        With them the hooks have the last word: they know more rules than were looked at when victims were chosen.
        """
        if found is None or not found.victims:
            return None
        answers = self._ask(one, imagining.without(snapshot, found.victims))
        if answers is None or not found.nodes <= answers.nodes:
            return None
        return found if any(found.nodes <= within for within in answers.sets) else None

    def _ask(self, one: Candidate, snapshot: ClusterSnapshot) -> _Answers | None:
        """None when a hook is against it altogether."""
        ask, wall = chain.asked(one.workload, one.wish.translated), self._tools.clock.wall()
        with self._tools.config.chain.session(snapshot, now=wall, mode=Mode.SIMULATED) as session:
            try:
                if one.held:
                    session.pass_gate(Phase.ADMIT, ask)
                    session.pass_demands(ask)
                    session.pass_gate(Phase.CAPACITY, ask)
                nodes = session.filter_nodes(ask, snapshot.names)
                sets = session.subset_nodes(ask, one.workload.pods, nodes)
                request = session.express(ask).request
            except Stopped:
                return None
            budgets = hooks.known_budgets(session)
        return _Answers(request=request, nodes=nodes, sets=_bounds(sets, nodes), budgets=budgets)


def _bounds(sets: Sequence[NodeSet], nodes: Nodes) -> tuple[Nodes, ...]:
    """Who has to stay in one of several sets is given room in one of them; what is only preferred moves nobody."""
    return tuple(one.nodes for one in sets) if not sets or any(one.required for one in sets) else (nodes,)


def _rank(name: str, below: Mapping[str, Sequence[Pod]], fitting: Nodes) -> tuple[bool, int, int, str]:
    """Nodes first on which only room is lacking, then those whose pods are least important, and few."""
    pods = below[name]
    return name not in fitting, max(map(priority_of, pods)), len(pods), name


def _lacking(placeholder: Placeholder) -> bool:
    """It waits in Slurm, and for nodes."""
    view = placeholder.view
    pending = placeholder.phase is job.Phase.PENDING and placeholder.certainty is Certainty.SEEN
    return pending and view is not None and view.reason in LACKING and not view.held


def _supported(wish: Wish, hook: Preemption) -> bool:
    """Equal pods, of a request of which a node's amounts tell whether it fits there."""
    request, pods = wish.translated.request, wish.workload.pods
    beyond = request.constraints or request.reservation or request.licenses or request.components
    alike = len(wish.translated.shapes) <= 1 and len(pods) <= hook.options.most_members
    return alike and _wanted(wish) and not beyond and hooks.may(pods)


def _wanted(wish: Wish) -> bool:
    """It is to have a job."""
    return not wish.workload.suspended and not wishes.parked(wish)
