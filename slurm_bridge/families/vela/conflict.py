"""The conflict check: whether each pod still fits on the node that Slurm gave, and it is the one that was sampled."""

from collections.abc import Collection, Iterable, Mapping

from slurm_bridge.cluster import room
from slurm_bridge.cluster.columns.coded import units_left
from slurm_bridge.cluster.facts import NOTHING, NodeFacts
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.vela.commit import Committed, NodeLedger
from slurm_bridge.model.pod import Pod


def conflicts(
    pods: Iterable[Pod],
    nodes: Mapping[str, str],
    seen: ClusterSnapshot,
    uids: Mapping[str, str],
    ignored: Collection[str] = (),
) -> dict[str, str]:
    """What is wrong, by node. `nodes` has the node of each pod by uid, `uids` those of the nodes that were sampled.

    Requests are committed in order, as the kubelet will count them. A pod that counts on its node already is not in
    its own way; `ignored` resources are no matter.
    """
    placed: list[tuple[Pod, str, Mapping[str, int]]] = []
    for pod in pods:
        if (name := nodes.get(pod.uid)) is not None:
            needs = room.requested(pod)
            placed.append((pod, name, {one: needs[one] for one in needs if one not in ignored} if ignored else needs))
    needed = frozenset().union(*(needs for _, _, needs in placed))
    ledgers: dict[str, NodeLedger | None] = {}
    wrong: dict[str, str] = {}
    for pod, name, needs in placed:
        facts = seen.nodes.get(name)
        if name not in ledgers:
            ledgers[name] = None
            if facts is not None:
                there, used = facts.allocatable, facts.used
                left = {one: units_left(one, there[one], used.get(one, NOTHING)) for one in needed if one in there}
                ledgers[name] = NodeLedger(left)
        if problem := _problem(pod, needs, facts, ledgers[name], uids.get(name, "")):
            wrong.setdefault(name, problem)
    return wrong


def _problem(
    pod: Pod, needs: Mapping[str, int], facts: NodeFacts | None, ledger: NodeLedger | None, uid: str
) -> str | None:
    if facts is None or ledger is None:
        return "its state cannot be read: it is gone from Kubernetes"
    if uid and uid != facts.node.metadata.uid:
        return "it is another node than the one of this name that was sampled"
    if any(there.uid == pod.uid for there in facts.pods):
        return None
    lacking = ledger.lacking(needs)
    if ledger.commit(needs) is Committed.COMMITTED:
        return None
    return f"too little {', '.join(lacking)} is left for Pod {pod.metadata.namespace}/{pod.metadata.name}"
