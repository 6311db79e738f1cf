"""What each judge says of facts that are, one by one, not as they should be."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from slurm_bridge.checks import findings, table
from slurm_bridge.checks.facts import CheckFacts, Expectations, Probe, Right
from slurm_bridge.checks.findings import Finding, Level
from slurm_bridge.model import names
from slurm_bridge.model.job import (
    Done,
    Gres,
    JobRequest,
    JobState,
    JobView,
    Memory,
    Refusal,
    Refused,
    Unknown,
)
from slurm_bridge.model.marks import Owner
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.names import JobId
from slurm_bridge.model.node import Node, NodeSpec, NodeStatus, Taint
from slurm_bridge.model.slurmconf import SlurmConf
from slurm_bridge.model.slurmnode import Partition, SlurmNode
from slurm_bridge.model.slurmtoken import TokenLife

OWNER = Owner(cluster="one", kind="Check", namespace="", name="check", uid="u")
REQUEST = JobRequest(name="slurm-bridge-check-u", owner=OWNER, job_id=JobId(50), memory=Memory(mib=1), hold=True)
VIEW = JobView(
    job_id=JobId(50),
    name=REQUEST.name,
    state=JobState(frozenset({"PENDING"})),
    owner=OWNER,
    user="bridge",
    submit_time=1000,
)
PROBE = Probe(
    request=REQUEST, asked_at=1001.5, outcome=Done(job_id=JobId(50)), view=VIEW, cancelled=Done(job_id=JobId(50))
)
CONF = SlurmConf(
    select_type="select/cons_tres",
    select_parameters=frozenset({"CR_CORE_MEMORY"}),
    gres_types=("gpu",),
    preempt_modes=frozenset({"DISABLED"}),
    scheduler_type="sched/backfill",
    scheduler_parameters=("bf_interval=30", "defer"),
    max_job_count=10_000,
    max_job_id=49,
)
WANTED = Expectations(
    address="http://slurm",
    cluster_id="one",
    partitions=("p",),
    user="bridge",
    job_ids=(50, 99),
    gres={"x.io/gpu": "gpu"},
    unstarted_window=4000,
)


#: No device plugin has a device.
NO_GPU = {"x.io/gpu": "0"}


def node(name: str, *, label: str = "", taint: str = "", **allocatable: str) -> Node:
    """A node of Kubernetes with 8 CPUs, 1000 MiB and two devices."""
    amounts: dict[str, str | int | float] = {"cpu": "8", "memory": "1000Mi", "x.io/gpu": "2", **allocatable}
    labels = {names.LABEL_SLURM_NODE_NAME: label} if label else {}
    taints = (Taint(key="k", effect=taint),) if taint else ()
    return Node(
        metadata=ObjectMeta(name=name, labels=labels),
        spec=NodeSpec(taints=taints),
        status=NodeStatus(allocatable=amounts),
    )


def machine(name: str, **changes: Any) -> SlurmNode:
    """The same as Slurm sees it."""
    usual: dict[str, Any] = {"states": frozenset({"IDLE", "EXTERNAL"}), "cpus": 8, "memory_mib": 1000}
    return SlurmNode(name=name, **{**usual, "gres": (Gres(name="gpu", count=2),), **changes})


def partition(name: str, *nodes: str, **changes: Any) -> Partition:
    """One that is up."""
    return Partition(name=name, states=frozenset({"UP"}), nodes=nodes, **changes)


def right(verb: str, resource: str, *, allowed: bool = True) -> Right:
    """One that was asked for."""
    return Right(verb=verb, resource=resource, allowed=allowed)


GOOD = CheckFacts(
    token=TokenLife(issued=3600.0, expires=9000.0),
    read_at=4000.0,
    slurm_nodes=(machine("a"), machine("b")),
    partitions=(partition("p", "a", "b"),),
    conf=CONF,
    heterogeneous=True,
    rights=(right("list", "jobs.batch"), right("watch", "jobs.batch"), right("patch", "podgroups/status.x")),
    nodes=(node("a"), node("kube-b", label="b")),
    probe=PROBE,
)


def but(**changes: Any) -> CheckFacts:
    """As it should be, but for this."""
    return dataclasses.replace(GOOD, **changes)


def probed(**changes: Any) -> CheckFacts:
    """The placeholder fared differently."""
    return but(probe=dataclasses.replace(PROBE, **changes))


def seen(**changes: Any) -> CheckFacts:
    """The placeholder looked different."""
    return probed(view=dataclasses.replace(VIEW, **changes))


def refused(why: Refusal, code: int) -> CheckFacts:
    """There was no placeholder."""
    return probed(outcome=Refused(why=why, code=code, message=f"no ({code})"), view=None, cancelled=None)


def configured(**changes: Any) -> CheckFacts:
    """Slurm is configured otherwise."""
    return but(conf=dataclasses.replace(CONF, **changes))


def of(check: str, facts: CheckFacts, wanted: Expectations = WANTED) -> list[Finding]:
    """What one check says."""
    return [finding for finding in table.findings(facts, wanted) if finding.check == check]


def test_where_all_is_well_every_check_says_so() -> None:
    """One line each, without a remedy."""
    found = table.findings(GOOD, WANTED)
    assert [(finding.check, finding.level, finding.fix) for finding in found] == [
        (check.name, Level.OK, "") for check in table.CHECKS
    ]
    assert findings.status(found) == 0


#: Native jobs and pods share it: Slurm leaves a CPU and 100 MiB to others, and the kubelet reserves as much.
SHARED = machine("a", states=frozenset({"IDLE"}), native=True, slurmd="26.05.5", cpus=7, memory_mib=900)
CONFINED = dataclasses.replace(CONF, task_plugins=("task/cgroup", "task/affinity"), proctrack_type="proctrack/cgroup")


def hybrid_kubelet(capacity: Mapping[str, str] | None = None, **allocatable: str) -> Node:
    """The kubelet of that node."""
    made = node("a", **{"cpu": "7", "memory": "900Mi", **allocatable})
    whole = {"cpu": "8", "memory": "1000Mi", **(capacity or {})}
    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, capacity=dict(whole)))


def shared(**changes: Any) -> CheckFacts:
    """The only node is such a one."""
    usual = {"slurm_nodes": (SHARED,), "nodes": (hybrid_kubelet(),), "conf": CONFINED}
    return but(**{**usual, "partitions": (partition("p", "a"),), **changes})


def of_machine(**changes: Any) -> tuple[SlurmNode, ...]:
    """That node, and Slurm says something else of it."""
    return (dataclasses.replace(SHARED, **changes),)


#: (check, facts, level, part of the message)
CASES = [
    ("node-modes", shared(), Level.OK, "0 external nodes; native jobs share a with pods"),
    ("unmixed-partitions", shared(), Level.OK, "1 partition in which a kubelet runs every node"),
    ("no-grace-time", shared(partitions=(partition("p", "a", preempt_grace_seconds=5),)), Level.FAILURE, "p (5 s)"),
    (
        "stray-slurmd",
        but(slurm_nodes=(machine("a", slurmd="26.05.5"), machine("b"))),
        Level.WARNING,
        "external nodes with a slurmd, which gets no jobs: a",
    ),
    ("stray-slurmd", shared(), Level.OK, "no external node has a slurmd"),
    ("same-resources", shared(), Level.OK, "no more than"),
    (
        "same-resources",
        shared(nodes=(hybrid_kubelet(cpu="6"),)),
        Level.WARNING,
        "more cpus than Kubernetes can give on a (a: 7 against 6)",
    ),
    ("same-resources", shared(nodes=(hybrid_kubelet(**NO_GPU),)), Level.OK, "no more than"),
    ("hybrid-reserved", shared(), Level.OK, "something is reserved on a"),
    ("hybrid-reserved", GOOD, Level.OK, "no node has a kubelet and a slurmd"),
    (
        "hybrid-reserved",
        shared(nodes=(hybrid_kubelet(capacity={"memory": "900Mi"}),)),
        Level.WARNING,
        "Slurm counts all memory (MiB) of a: none",
    ),
    (
        "hybrid-reserved",
        shared(nodes=(hybrid_kubelet(cpu="8"),)),
        Level.INFO,
        "on a Slurm counts fewer cpus than pods can get",
    ),
    ("hybrid-confined", shared(), Level.INFO, "a are confined as cgroup.conf says"),
    ("hybrid-confined", shared(conf=None), Level.INFO, "not visible"),
    (
        "hybrid-confined",
        shared(conf=CONF),
        Level.WARNING,
        "a are not confined to what Slurm gave them: TaskPlugin is not set, ProctrackType is not set",
    ),
    (
        "hybrid-confined",
        shared(conf=dataclasses.replace(CONFINED, proctrack_type="proctrack/linuxproc")),
        Level.WARNING,
        "TaskPlugin is task/cgroup,task/affinity, ProctrackType is proctrack/linuxproc",
    ),
    (
        "hybrid-scripts",
        shared(conf=dataclasses.replace(CONFINED, prolog=("/p",), epilog=("/e",))),
        Level.INFO,
        "Prolog and Epilog of native jobs run on a beside pods",
    ),
    ("hybrid-scripts", configured(prolog=("/p",)), Level.OK, "no Prolog or Epilog runs beside pods"),
    ("hybrid-scripts", configured(epilog_ctld=("/p",)), Level.INFO, "EpilogSlurmctld run for placeholders, too"),
    ("hybrid-scripts", but(conf=None), Level.INFO, "not visible"),
    (
        "hybrid-devices",
        shared(),
        Level.WARNING,
        "x.io/gpu of a: pods that request it get no node, no other has it (hybrid_devices: refuse)",
    ),
    (
        "hybrid-devices",
        shared(slurm_nodes=(SHARED, machine("b")), nodes=(hybrid_kubelet(), node("b"))),
        Level.INFO,
        "pods that request it go to other nodes",
    ),
    ("hybrid-devices", shared(nodes=(hybrid_kubelet(**NO_GPU),)), Level.OK, "no device plugin"),
    ("hybrid-devices", shared(slurm_nodes=of_machine(gres=())), Level.OK, "no device plugin"),
    ("mcs-labels", configured(mcs_plugin="mcs/label"), Level.INFO, "MCSParameters does not have select"),
    (
        "mcs-labels",
        configured(mcs_plugin="mcs/label", mcs_parameters=("enforced", "select")),
        Level.OK,
        "nodes are selected by mcs/label",
    ),
    ("mcs-labels", but(conf=None), Level.INFO, "not visible"),
    ("placeholder-accepted", refused(Refusal.INVALID, 2099), Level.FAILURE, "defaults.mcs_label: "),
    ("slurm-answers", but(unread={"slurm_nodes": "no route"}), Level.FAILURE, "slurmrestd at http://slurm: no route"),
    ("slurm-token-lasts", but(read_at=8100.0), Level.OK, "the token ends in 15m 00s"),
    ("slurm-token-lasts", but(read_at=8999.0), Level.WARNING, "was made for 1h 30m, and ends in 1s"),
    ("slurm-token-lasts", but(read_at=9060.0), Level.FAILURE, "the token ended 1m 00s ago"),
    ("slurm-token-lasts", but(token=None), Level.INFO, "does not say when it ends"),
    ("slurm-answers", but(unread={"partitions": "no token"}), Level.FAILURE, "no token"),
    ("kubernetes-answers", but(unread={"nodes": "forbidden"}), Level.FAILURE, "forbidden"),
    ("operator-token", refused(Refusal.FORBIDDEN, 2002), Level.FAILURE, "does not belong to an operator: no (2002)"),
    ("operator-token", refused(Refusal.NO_SUCH_JOB, 2017), Level.FAILURE, "does not belong to an operator: no (2017)"),
    ("operator-token", refused(Refusal.INVALID, 2000), Level.INFO, "no placeholder was created"),
    ("operator-token", seen(owner=None), Level.FAILURE, "did not arrive in admin_comment"),
    ("operator-token", seen(job_id=JobId(7)), Level.FAILURE, "the chosen job id 50 became 7"),
    ("placeholder-accepted", refused(Refusal.INVALID, 2000), Level.FAILURE, "defaults.partition: "),
    ("placeholder-accepted", refused(Refusal.INVALID, 2166), Level.FAILURE, "defaults.user: "),
    ("placeholder-accepted", refused(Refusal.INVALID, 9207), Level.FAILURE, "is refused: no (9207)"),
    ("placeholder-accepted", refused(Refusal.BUSY, 2007), Level.WARNING, "accepts no jobs now: no (2007)"),
    ("placeholder-accepted", refused(Refusal.FORBIDDEN, 2002), Level.INFO, "does not belong to an operator"),
    (
        "placeholder-accepted",
        probed(outcome=Unknown(message="reset")),
        Level.WARNING,
        "no clear answer to a submit: reset",
    ),
    ("placeholder-removed", refused(Refusal.INVALID, 2000), Level.OK, "nothing was left behind"),
    ("placeholder-removed", probed(cancelled=Refused(why=Refusal.OVER, code=2021, message="")), Level.OK, "is gone"),
    ("placeholder-removed", probed(cancelled=Unknown(message="reset")), Level.WARNING, "check-u (job 50) may still be"),
    ("placeholder-removed", probed(cancelled=None), Level.WARNING, "check-u (job 50) may still be"),
    ("plain-user", seen(user="root"), Level.FAILURE, "belong to root"),
    ("plain-user", seen(user="bridge", user_id=401), Level.FAILURE, "user bridge with the number 401"),
    ("plain-user", seen(user="bridge", user_id=1401), Level.OK, "belong to bridge"),
    ("plain-user", seen(user="alice"), Level.FAILURE, "belong to alice, not to bridge"),
    ("plain-user", probed(view=None), Level.INFO, "not tested"),
    ("clocks", seen(submit_time=1033), Level.WARNING, "32 s ahead of ours"),
    ("clocks", seen(submit_time=900), Level.WARNING, "102 s behind ours"),
    ("clocks", seen(submit_time=1030), Level.OK, "within 30 s"),
    ("clocks", probed(view=None), Level.INFO, "not tested"),
    (
        "node-modes",
        but(slurm_nodes=(machine("a", states=frozenset({"IDLE"})),)),
        Level.WARNING,
        "older than v0.0.44",
    ),
    (
        "same-nodes",
        but(nodes=()),
        Level.FAILURE,
        "no node is in both Kubernetes and Slurm: 0 nodes in Kubernetes, 2 nodes in Slurm",
    ),
    ("same-nodes", but(nodes=(node("a"),)), Level.WARNING, "without a node in Kubernetes: b"),
    ("same-nodes", but(nodes=(*GOOD.nodes, node("c"))), Level.WARNING, "that Slurm does not know: c"),
    ("same-nodes", but(nodes=(*GOOD.nodes, node("c", taint="NoSchedule"))), Level.OK, "2 nodes on both sides, 1 of"),
    (
        "names-once",
        but(nodes=(node("b"), node("kube-b", label="b"))),
        Level.FAILURE,
        "b and kube-b are both mapped to b",
    ),
    (
        "same-resources",
        but(slurm_nodes=(machine("a", cpus=9),)),
        Level.WARNING,
        "more cpus than Kubernetes can give on a (a: 9 against 8)",
    ),
    ("same-resources", but(slurm_nodes=(machine("a", memory_mib=1001),)), Level.WARNING, "more memory (MiB)"),
    ("same-resources", but(slurm_nodes=(machine("a", gres=(Gres(name="gpu", count=3),)),)), Level.WARNING, "more gpu"),
    ("same-resources", but(slurm_nodes=(machine("a", cpus=1),)), Level.OK, "no more than"),
    ("same-resources", but(nodes=(node("a", cpu="7900m"), node("b"))), Level.WARNING, "(a: 8 against 7.9)"),
    (
        "gres-types",
        but(slurm_nodes=(machine("a", gres=()),)),
        Level.WARNING,
        "x.io/gpu of a is no generic resource gpu",
    ),
    ("gres-types", but(slurm_nodes=(), conf=dataclasses.replace(CONF, gres_types=())), Level.INFO, "does not name gpu"),
    ("gres-types", but(slurm_nodes=(), conf=dataclasses.replace(CONF, gres_types=("GPU",))), Level.OK, "is counted"),
    (
        "typed-devices",
        but(slurm_nodes=(machine("a", gres=(Gres(name="gpu", count=2, type="v100"),)),)),
        Level.INFO,
        "a: typed devices (gpu:v100), which are asked for by node",
    ),
    (
        "groups-followed",
        but(rights=(*GOOD.rights, right("watch", "jobsets.x", allowed=False))),
        Level.FAILURE,
        "not allowed: watch jobsets.x",
    ),
    ("groups-followed", but(unread={"rights": "not served"}), Level.INFO, "not tested: no rights"),
    (
        "groups-told",
        but(rights=(right("patch", "podgroups/status.x", allowed=False),)),
        Level.WARNING,
        "not allowed: patch podgroups/status.x",
    ),
    ("groups-told", but(rights=()), Level.OK, "has no PodGroups"),
    ("heterogeneous-jobs", but(heterogeneous=False), Level.INFO, "not in this Slurm"),
    ("heterogeneous-jobs", but(unread={"heterogeneous": "no answer"}), Level.INFO, "not tested"),
    ("backfill", configured(scheduler_type="sched/builtin"), Level.WARNING, "sched/builtin: heterogeneous jobs never"),
    ("backfill", configured(scheduler_parameters=("bf_interval=300",)), Level.INFO, "every 300 s"),
    ("backfill", configured(scheduler_parameters=("bf_interval=5",)), Level.OK, "every 5 s"),
    ("backfill", configured(scheduler_parameters=()), Level.OK, "every 30 s"),
    ("backfill", but(conf=None), Level.INFO, "bf_interval are not visible"),
    (
        "backfill",
        dataclasses.replace(configured(scheduler_type="sched/builtin"), heterogeneous=False),
        Level.OK,
        "no heterogeneous jobs",
    ),
    (
        "not-poisoned",
        but(slurm_nodes=(machine("a", states=frozenset({"EXTERNAL", "NOT_RESPONDING"})),)),
        Level.WARNING,
        "a",
    ),
    ("unmixed-partitions", but(partitions=(partition("p", "a", "slurmd1"),)), Level.WARNING, "ordinary nodes: p"),
    ("partitions-exist", but(partitions=(partition("q", "a"),)), Level.FAILURE, "Slurm has no p; there are q"),
    (
        "partitions-exist",
        but(partitions=(partition("p", "slurmd1"),)),
        Level.FAILURE,
        "p holds no node that a kubelet runs",
    ),
    ("no-grace-time", but(partitions=(partition("p", "a", preempt_grace_seconds=5),)), Level.FAILURE, "p (5 s)"),
    (
        "no-grace-time",
        but(partitions=(partition("q", "slurmd1", preempt_grace_seconds=5),)),
        Level.OK,
        "no partition of ours",
    ),
    ("no-suspension", configured(preempt_modes=frozenset({"SUSPEND", "GANG"})), Level.FAILURE, "GANG,SUSPEND"),
    ("no-suspension", configured(preempt_modes=frozenset({"REQUEUE"})), Level.OK, "nothing is suspended"),
    ("no-suspension", but(conf=None), Level.INFO, "not visible"),
    ("cons-tres", configured(select_type="select/linear"), Level.FAILURE, "select/linear"),
    ("cons-tres", configured(select_parameters=frozenset({"CR_CORE"})), Level.WARNING, "memory is not counted"),
    ("cons-tres", but(conf=None), Level.INFO, "not visible"),
    ("cons-tres", but(unread={"conf": "no"}), Level.INFO, "not tested: no conf to look at"),
    ("room-for-jobs", configured(max_job_count=7999), Level.WARNING, "MaxJobCount is 7999"),
    ("room-for-jobs", but(conf=None), Level.INFO, "not visible"),
    ("job-ids-apart", configured(max_job_id=50), Level.INFO, "will reach the range 50-99"),
    ("job-ids-apart", but(conf=None), Level.INFO, "not visible"),
]


@pytest.mark.parametrize(("check", "facts", "level", "words"), CASES)
def test_what_is_wrong_is_told_under_its_check(check: str, facts: CheckFacts, level: Level, words: str) -> None:
    """With the remedy, unless nothing has to be done."""
    (finding,) = of(check, facts)
    assert (finding.level, words in finding.message) == (level, True), finding.message
    assert bool(finding.fix) or level in (Level.OK, Level.INFO)


#: (check, facts, settings) of infos that ask for something to be done.
TO_DO = [
    ("job-ids-apart", configured(max_job_id=67043328), WANTED),
    ("typed-devices", but(slurm_nodes=(machine("a", gres=(Gres(name="gpu", count=2, type="v100"),)),)), WANTED),
    ("gres-types", but(slurm_nodes=(), conf=dataclasses.replace(CONF, gres_types=())), WANTED),
    ("backfill", configured(scheduler_parameters=("bf_interval=300",)), WANTED),
    ("mcs-labels", configured(mcs_plugin="mcs/label"), WANTED),
    ("mcs-labels", GOOD, dataclasses.replace(WANTED, mcs_label="kubernetes")),
]


@pytest.mark.parametrize(("check", "facts", "wanted"), TO_DO)
def test_an_info_that_asks_for_something_to_be_done_shows_its_remedy(
    check: str, facts: CheckFacts, wanted: Expectations
) -> None:
    """Below its line, as a warning does."""
    found = of(check, facts, wanted)
    (fix,) = (one.fix for one in table.CHECKS if one.name == check)
    assert [finding.level for finding in found] == [Level.INFO]
    assert findings.render(found).splitlines()[1].strip() == f"→ {fix}"


@pytest.mark.parametrize(
    ("check", "facts"),
    [
        ("job-ids-apart", but(conf=None)),
        ("cons-tres", but(unread={"conf": "no"})),
        ("heterogeneous-jobs", but(heterogeneous=False)),
        ("hybrid-scripts", configured(epilog_ctld=("/p",))),
    ],
)
def test_an_info_that_is_only_a_note_shows_no_remedy(check: str, facts: CheckFacts) -> None:
    """Its line stands alone."""
    found = of(check, facts)
    assert [(finding.level, finding.fix) for finding in found] == [(Level.INFO, "")]
    assert "→" not in findings.render(found)


def test_both_sides_may_have_nodes_of_their_own() -> None:
    """Each direction has its line."""
    messages = [finding.message for finding in of("same-nodes", but(nodes=(node("a"), node("c"))))]
    assert [message.rpartition(": ")[2] for message in messages] == ["b", "c"]


def test_before_external_nodes_are_told_names_decide() -> None:
    """v0.0.43 shows no EXTERNAL; the nodes that Kubernetes has too are taken for ours."""
    plain = frozenset({"IDLE"})
    facts = but(slurm_nodes=(machine("a", states=plain), machine("slurmd1", states=plain)))
    assert [node_.name for node_ in facts.external] == ["a"]


def test_the_default_partition_may_hold_nodes_with_a_kubelet_and_a_slurmd() -> None:
    """They are no external nodes, and pods run there, also beside external nodes elsewhere."""
    both = machine("c", states=frozenset({"IDLE"}))
    facts = but(
        nodes=(*GOOD.nodes, node("c")), slurm_nodes=(*GOOD.slurm_nodes, both), partitions=(partition("p", "c"),)
    )
    assert [finding.level for finding in of("partitions-exist", facts, WANTED)] == [Level.OK]


def test_no_default_partition_and_no_job_ids_are_choices() -> None:
    """Worth a line, not a remedy's urgency."""
    wanted = Expectations(cluster_id="one")
    assert [of(check, GOOD, wanted)[0].level for check in ("partitions-exist", "job-ids-apart")] == [Level.INFO] * 2


def test_devices_of_drivers_are_not_compared_with_what_kubelets_have() -> None:
    """They are in ResourceSlices."""
    wanted = dataclasses.replace(WANTED, device_gres={"gpu.x.io": "GPU:a100"})
    assert [finding.level for finding in of("same-resources", but(nodes=(node("a", **NO_GPU),)), wanted)] == [Level.OK]


def test_devices_that_pods_claim_are_not_compared_with_what_kubelets_have() -> None:
    """The hook device-claims asks Slurm for them, and no kubelet of such a node has them as a resource."""
    wanted = dataclasses.replace(WANTED, claimed_gres=frozenset({"GPU:a100"}))
    facts = but(nodes=(node("a", **NO_GPU), node("b", **{"x.io/gpu": "1"})))
    (finding,) = of("same-resources", facts, wanted)
    assert finding.message == "Slurm has more gpu than Kubernetes can give on b (b: 2 against 1)"


@pytest.mark.parametrize(
    ("chosen", "level", "words"),
    [("whole-node", Level.INFO, "take whole nodes"), ("count", Level.WARNING, "may get devices that native jobs hold")],
)
def test_what_happens_to_devices_on_shared_nodes_is_a_choice(chosen: str, level: Level, words: str) -> None:
    """The check says what follows from it."""
    (finding,) = of("hybrid-devices", shared(), dataclasses.replace(WANTED, hybrid_devices=chosen))
    assert (finding.level, words in finding.message) == (level, True)


def test_a_label_without_a_plugin_has_no_effect() -> None:
    """Slurm takes it, and keeps nobody apart."""
    (finding,) = of("mcs-labels", GOOD, dataclasses.replace(WANTED, mcs_label="kubernetes"))
    assert finding.message == "defaults.mcs_label is kubernetes, which has no effect: MCSPlugin is not set"


def test_nodes_that_only_slurm_has_are_no_shared_ones() -> None:
    """Native jobs alone are there; nothing is said of them."""
    facts = but(slurm_nodes=(*GOOD.slurm_nodes, dataclasses.replace(SHARED, name="batch1")))
    assert facts.hybrid == ()
    assert [of(check, facts)[0].level for check in ("hybrid-reserved", "hybrid-confined")] == [Level.OK] * 2


def test_a_site_may_do_without_components() -> None:
    """Then it does not matter how they would start."""
    wanted = dataclasses.replace(WANTED, heterogeneous=False)
    (components,), (backfill,) = of("heterogeneous-jobs", GOOD, wanted), of("backfill", GOOD, wanted)
    assert (components.level, backfill.level) == (Level.INFO, Level.OK)
    assert "workloads.heterogeneous" in components.message


@pytest.mark.parametrize("check", table.CHECKS, ids=lambda check: check.name)
def test_every_check_knows_why_and_what_to_do(check: table.Check) -> None:
    """The page for operators is made from it."""
    assert check.why.endswith(".")
    assert len(check.fix) > 10


def test_a_report_counts_and_remedies() -> None:
    """A reader of the last line knows whether to read the others."""
    found = table.findings(but(nodes=(), conf=None), WANTED)
    text = findings.render(found)
    assert "failure same-nodes" in text
    assert "→ Add the node on the other side" in text
    assert text.endswith(", 1 failure")
    assert findings.status(found) == 1


def test_a_thousand_nodes_do_not_make_a_thousand_words() -> None:
    """Names are compressed, and cut."""
    many = tuple(machine(f"x{number}y{number}") for number in range(1000))
    (finding, *_) = of("same-nodes", but(slurm_nodes=(*GOOD.slurm_nodes, *many)))
    assert finding.message.endswith("… (1000 nodes)")
    assert len(finding.message) < 250


@pytest.mark.parametrize(
    ("reviews", "level", "words"),
    [
        (True, Level.OK, "may review callers' tokens"),
        (False, Level.FAILURE, "create tokenreviews.authentication.k8s.io"),
    ],
)
@pytest.mark.parametrize("service", ["submissions", "administration"])
def test_who_takes_tokens_has_to_know_their_callers(service: str, reviews: bool, level: Level, words: str) -> None:
    """Otherwise the API server is not asked."""
    wanted = dataclasses.replace(WANTED, **{service: True})
    (found,) = of("tokens-reviewed", but(reviews=reviews), wanted)
    assert (found.level, words in found.message) == (level, True)
    (off,) = of("tokens-reviewed", but(reviews=None))
    assert (off.level, "are off" in off.message) == (Level.OK, True)
