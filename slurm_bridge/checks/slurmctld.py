"""Checks on Slurm alone: nodes, partitions, configuration."""

from collections.abc import Iterator

from slurm_bridge.checks.facts import CheckFacts, Expectations
from slurm_bridge.checks.findings import Remark, advice, failure, info, named, ok, warning
from slurm_bridge.model import texts
from slurm_bridge.model.texts import counted

#: MaxJobCount includes pending, running and recently ended placeholders.
_ROOM = 2

#: A token should be renewed before this part of its time is left.
_LAST_PART = 0.1

_NOT_VISIBLE = "not visible in this API version"


def answers(facts: CheckFacts, wanted: Expectations) -> Iterator[Remark]:
    """slurmrestd is reachable, speaks a common version and accepts the token."""
    problems = sorted({facts.unread[part] for part in ("slurm_nodes", "partitions") if part in facts.unread})
    for problem in problems:
        yield failure(f"slurmrestd at {wanted.address}: {problem}")
    if not problems:
        yield ok(f"slurmrestd lists {counted(len(facts.slurm_nodes), 'node')}")


def token_lasts(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """A token that nearly ends has not been renewed."""
    if facts.token is None:
        yield info("the token does not say when it ends")
        return
    left = facts.token.expires - facts.read_at
    if left <= 0:
        yield failure(f"the token ended {texts.span(-left)} ago")
    elif left < facts.token.whole * _LAST_PART:
        yield warning(f"the token was made for {texts.span(facts.token.whole)}, and ends in {texts.span(left)}")
    else:
        yield ok(f"the token ends in {texts.span(left)}")


def kubernetes_answers(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """The API server is reachable and lists nodes."""
    if "nodes" in facts.unread:
        yield failure(facts.unread["nodes"])
    else:
        yield ok(f"the API server lists {counted(len(facts.nodes), 'node')}")


def node_modes(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """Which nodes only pods use, and which native jobs share with them."""
    told = [node.name for node in facts.slurm_nodes if node.external]
    shared = [node.name for node in facts.hybrid]
    if told or shared:
        words = f"; native jobs share {named(shared)} with pods" if shared else ""
        yield ok(f"{counted(len(told), 'external node')}{words}")
    else:
        yield warning(
            "no node says that it is external: none is, or the API version is older than v0.0.44 and does not tell"
        )


def not_poisoned(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """A node that cannot answer a signal gets no more jobs."""
    poisoned = [node.name for node in facts.slurm_nodes if node.poisoned]
    if poisoned:
        yield warning(f"external nodes that do not respond, so that Slurm starts no jobs there: {named(poisoned)}")
    else:
        yield ok("Slurm waits for no external node")


def unmixed_partitions(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """A placeholder may start on any node of its partition, and some may have no kubelet."""
    kubelets = {node.name for node in (*facts.external, *facts.hybrid)}
    mixed = [partition.name for partition in facts.our_partitions if not kubelets.issuperset(partition.nodes)]
    if mixed:
        yield warning(f"partitions with nodes that a kubelet runs and ordinary nodes: {', '.join(mixed)}")
    else:
        yield ok(f"{counted(len(facts.our_partitions), 'partition')} in which a kubelet runs every node")


def partitions_exist(facts: CheckFacts, wanted: Expectations) -> Iterator[Remark]:
    """Pods that name no partition go to the configured one."""
    there = {partition.name: partition for partition in facts.partitions}
    kubelets = facts.by_slurm_name.keys() | {node.name for node in facts.external}
    for name in wanted.partitions:
        if name not in there:
            yield failure(f"defaults.partition: Slurm has no {name}; there are {', '.join(sorted(there))}")
        elif kubelets.isdisjoint(there[name].nodes):
            yield failure(f"defaults.partition: {name} holds no node that a kubelet runs")
        else:
            yield ok(f"{name} is there")
    if not wanted.partitions:
        yield info("defaults.partition is not set: Slurm's own default partition is used")


def no_grace_time(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """On an external node, no process receives the signal that announces a preemption."""
    found = [
        f"{partition.name} ({partition.preempt_grace_seconds} s)"
        for partition in facts.our_partitions
        if partition.preempt_grace_seconds
    ]
    if found:
        yield failure(f"partitions with a GraceTime: {', '.join(found)}")
    else:
        yield ok("no partition of ours has a GraceTime")


def no_suspension(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """Suspension is a signal, too."""
    if facts.conf is None:
        yield info(f"PreemptMode is {_NOT_VISIBLE}")
    elif found := sorted(facts.conf.preempt_modes & {"SUSPEND", "GANG"}):
        yield failure(f"PreemptMode is {','.join(found)}")
    else:
        yield ok("nothing is suspended")


def consumable(facts: CheckFacts, _: Expectations) -> Iterator[Remark]:
    """Other plugins allocate whole nodes, or count no devices."""
    if facts.conf is None:
        yield info(f"SelectType is {_NOT_VISIBLE}")
    elif facts.conf.select_type != "select/cons_tres":
        yield failure(f"SelectType is {facts.conf.select_type or 'not set'}")
    elif not any("MEMORY" in word.upper() for word in facts.conf.select_parameters):
        yield warning(
            f"memory is not counted: SelectTypeParameters is {','.join(sorted(facts.conf.select_parameters))}"
        )
    else:
        yield ok(f"select/cons_tres, {','.join(sorted(facts.conf.select_parameters))}")


def room_for_jobs(facts: CheckFacts, wanted: Expectations) -> Iterator[Remark]:
    """A full slurmctld refuses all jobs."""
    most = facts.conf.max_job_count if facts.conf else None
    if most is None:
        yield info(f"MaxJobCount is {_NOT_VISIBLE}; scheduling.unstarted_window is {wanted.unstarted_window}")
    elif most < _ROOM * wanted.unstarted_window:
        yield warning(f"MaxJobCount is {most}, scheduling.unstarted_window is {wanted.unstarted_window}")
    else:
        yield ok(f"MaxJobCount {most} leaves room for {wanted.unstarted_window} waiting placeholders")


def ids_apart(facts: CheckFacts, wanted: Expectations) -> Iterator[Remark]:
    """Slurm's own counter would reach the range some day."""
    most = facts.conf.max_job_id if facts.conf else None
    if wanted.job_ids is None:
        yield info("slurm.job_ids is null: Slurm does not refuse a second placeholder; the bridge has to find it")
    elif most is None:
        yield info(f"MaxJobId is {_NOT_VISIBLE}")
    elif most >= wanted.job_ids[0]:
        yield advice(f"MaxJobId is {most}: Slurm's own job ids will reach the range {_range(wanted.job_ids)}")
    else:
        yield ok(f"the range {_range(wanted.job_ids)} is above MaxJobId {most}")


def _range(ids: tuple[int, int]) -> str:
    return f"{ids[0]}-{ids[1]}"
