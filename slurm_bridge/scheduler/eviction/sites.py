"""What nodes have for pods of this bridge: as Kubernetes counts, and as Slurm does.

What the bridge cannot evict (pods of others, jobs of others, and what it cannot explain) is taken off first: what Slurm
says is in use, less what running jobs of the bridge have there, belongs to others.
"""

import functools
import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

from slurm_bridge.cluster.parties import Party, priority_of
from slurm_bridge.cluster.snapshot import NOTHING, Amounts, ClusterSnapshot, NodeFacts
from slurm_bridge.hooks.evictions import Site
from slurm_bridge.mirror.table import Table
from slurm_bridge.model.job import Gres, JobRequest, MemoryPer, Phase
from slurm_bridge.model.placeholder import Placeholder
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.slurmnode import SlurmNode
from slurm_bridge.scheduler.pod_index import PodIndex
from slurm_bridge.scheduler.workload_pods import PLACED, PodState, job_id_of, standing
from slurm_bridge.translate import resources
from slurm_bridge.translate.rules import Rules

_MIB = 2**20
#: Slurm's own amounts, beside those of Kubernetes.
_CPUS, _MEMORY, _GRES = "slurm:cpus", "slurm:memory", "slurm:gres/"
#: On a node of any of these states no job starts, whatever leaves it.
_CLOSED = frozenset(
    {"DOWN", "DRAIN", "FAIL", "FAILING", "FUTURE", "MAINTENANCE", "NOT_RESPONDING", "RESERVED", "UNKNOWN"}
)


def closed(slurm: SlurmNode, *, reserved: bool = False) -> bool:
    """No job starts there; `reserved`: the caller's own reservation does not count."""
    return bool(slurm.states & (_CLOSED - {"RESERVED"} if reserved else _CLOSED))


class NodeSites:
    """The nodes of a snapshot, for one request."""

    def __init__(
        self, table: Table, pod_index: PodIndex, rules: Rules, snapshot: ClusterSnapshot, request: JobRequest
    ) -> None:
        self._table, self._pod_index, self._rules = table, pod_index, rules
        self._snapshot, self._request = snapshot, request
        self._needs = functools.lru_cache(maxsize=None)(self._needs_by_uid)
        self._pods: dict[str, Pod] = {}
        #: What a job of one node really has there, for each of its pods alike: more than they ask for, where Slurm
        #: gives whole cores or nodes.
        self._whole: dict[str, Fraction] = {}

    def of(self, nodes: Iterable[str]) -> tuple[Site, ...]:
        """Those of these nodes on which the job could start, in their order."""
        # Those that the job can start in; none: it is not known.
        if self._request.partition:
            partitions = frozenset(self._request.partition.split(","))
        else:
            partitions = frozenset(one.name for one in self._snapshot.partitions if one.default)
        return tuple(site for name in nodes if (site := self._site(name, partitions)) is not None)

    def _needs_of(self, node: str, pod: Pod) -> Amounts:
        self._pods[pod.uid] = pod
        return self._needs(node, pod.uid)

    def _site(self, name: str, partitions: frozenset[str]) -> Site | None:
        facts = self._snapshot.nodes.get(name)
        slurm = facts.slurm if facts is not None else None
        if facts is None or slurm is None or closed(slurm):
            return None
        if partitions and partitions.isdisjoint(slurm.partitions):
            return None
        ours = tuple(pod for pod in self._pod_index.on_node(name) if self._movable(pod))
        return Site(
            node=name,
            has={**_kubernetes(facts, ours), **self._slurm(slurm, name, ours)},
            parties=self._parties(name, ours),
            needs_of=functools.partial(self._needs_of, name),
        )

    def _movable(self, pod: Pod) -> bool:
        """A pod whose running job is the bridge's, too. One that is leaving already makes room anyway."""
        placeholder = _job_of(self._table, self._pod_index, pod)
        if placeholder is None:
            return False
        view = placeholder.view
        if view is not None and view.cpus and view.nodes is not None and len(view.nodes) == 1:
            workload_pods = self._pod_index.workload(placeholder.owner.key)
            self._whole[pod.uid] = Fraction(
                view.cpus, max(1, workload_pods.on(placeholder.job_id) if workload_pods is not None else 1)
            )
        return True

    def _parties(self, node: str, ours: Iterable[Pod]) -> tuple[Party, ...]:
        """One for each workload; the most important first, so that equal costs are told apart the same way always."""
        roots = dict.fromkeys(self._pod_index.root_of(pod.uid) for pod in ours if standing(pod) is PodState.BOUND)
        parties = []
        for root in roots:
            workload_pods = self._pod_index.workload(root) if root is not None else None
            members = workload_pods.pods(PodState.BOUND) if workload_pods is not None else ()
            here = tuple(pod for pod in members if pod.spec.node_name == node)
            elsewhere = tuple(pod for pod in members if pod.spec.node_name != node)
            if here:
                parties.append(Party(here=here, elsewhere=elsewhere))
        return tuple(sorted(parties, key=lambda party: (-party.priority, party.here[0].key)))

    def _slurm(self, slurm: SlurmNode, node: str, ours: Iterable[Pod]) -> dict[str, Fraction]:
        """What the evictable pods and the workload may have of it together."""
        used: dict[str, Fraction] = {_CPUS: Fraction(slurm.used_cpus), _MEMORY: Fraction(slurm.used_memory_mib)}
        has: dict[str, Fraction] = {_CPUS: Fraction(slurm.cpus), _MEMORY: Fraction(slurm.memory_mib)}
        for name in {one.name for one in self._request.gres}:
            has[_GRES + name], used[_GRES + name] = _count(slurm.gres, name), _count(slurm.used_gres, name)
        for pod in ours:
            for name, amount in self._needs_of(node, pod).items():
                if name in used:
                    used[name] -= amount
        return {name: amount - max(NOTHING, used[name]) for name, amount in has.items()}

    def _needs_by_uid(self, node: str, uid: str) -> Amounts:
        pod = self._pods[uid]
        slurm = self._snapshot.nodes[node].slurm
        asked = resources.requests_of(pod)
        needs = {**asked, **self._of_pod(asked)} if pod.bound else {**asked, **self._of_request(asked, slurm)}
        threads = slurm.threads_per_core if slurm is not None else 1
        cpus = self._whole.get(uid) if pod.bound else None
        needs[_CPUS] = Fraction(cpus if cpus is not None else math.ceil(needs[_CPUS] / threads) * threads)
        return needs

    def _of_pod(self, asked: Amounts) -> dict[str, Fraction]:
        rules = self._rules
        needs = {
            _CPUS: Fraction(max(1, math.ceil(asked.get("cpu", 0) or rules.cpus))),
            _MEMORY: Fraction(math.ceil(asked.get("memory", 0) / _MIB) or rules.memory_mib),
        }
        for resource, device in rules.gres_names.items():
            if asked.get(resource):
                key = _GRES + device.partition(":")[0]
                needs[key] = needs.get(key, NOTHING) + asked[resource]
        return needs

    def _of_request(self, asked: Amounts, slurm: SlurmNode | None) -> dict[str, Fraction]:
        """As its job asks for it, annotations included."""
        request, needs = self._request, self._of_pod(asked)
        needs[_CPUS] = max(needs[_CPUS], Fraction(request.cpus_per_task))
        if request.tasks == 1 and request.memory.per is MemoryPer.NODE:
            needs[_MEMORY] = max(needs[_MEMORY], Fraction(request.memory.mib))
        if request.exclusive and slurm is not None:
            needs[_CPUS] = Fraction(slurm.cpus)
        for one in request.gres:
            key = _GRES + one.name
            needs[key] = max(needs.get(key, NOTHING), Fraction(one.count))
        return needs


def evictable(table: Table, pod_index: PodIndex, priority: int) -> Mapping[str, list[Pod]]:
    """By node, all pods of running jobs that may be evicted for this priority, those on their way out among them."""
    found: dict[str, list[Pod]] = {}
    pods = (pod_index.get(uid) for uid in pod_index.uids())
    lower = (pod for pod in pods if pod is not None and pod.bound and priority_of(pod) < priority)
    for pod in lower:
        if standing(pod) in PLACED and _job_of(table, pod_index, pod) is not None:
            found.setdefault(pod.spec.node_name, []).append(pod)
    return found


def _job_of(table: Table, pod_index: PodIndex, pod: Pod) -> Placeholder | None:
    """The running job of its own workload that gave it its node."""
    job_id = job_id_of(pod)
    found = table.get(job_id) if job_id is not None else None
    return found if found is not None and found.phase is Phase.RUNNING and pod_index.is_of(pod, found.owner) else None


def lowest(pod_index: PodIndex) -> int | None:
    """The priority of the least important pod that has a node; None when there is none."""
    bound = (pod_index.get(uid) for uid in pod_index.uids())
    return min((priority_of(pod) for pod in bound if pod is not None and standing(pod) is PodState.BOUND), default=None)


def _kubernetes(facts: NodeFacts, ours: Iterable[Pod]) -> Mapping[str, Fraction]:
    has = {name: amount - facts.used.get(name, NOTHING) for name, amount in facts.allocatable.items()}
    for pod in ours:
        for name, amount in resources.requests_of(pod).items():
            if name in has:
                has[name] += amount
    return has


def _count(all_of: Iterable[Gres], name: str) -> Fraction:
    return Fraction(sum(one.count for one in all_of if one.name == name))
