"""All checks, in the order in which an administrator would repair them."""

from slurm_bridge.checks import gangs, hybrid, placeholder, rights, sides, slurmctld
from slurm_bridge.checks.facts import CheckFacts, Expectations
from slurm_bridge.checks.findings import Check, Finding

_SLURM = ("slurm_nodes", "partitions")
_BOTH = ("slurm_nodes", "nodes")
_CONF = ("conf",)
_PROBE = ("probe",)
_RIGHTS = ("rights",)
_REVIEWS = ("reviews",)
_NODE_RIGHTS = ("node_rights",)
_LEAD_RIGHTS = ("lead_rights",)
_ALL = ("slurm_nodes", "nodes", "conf")

CHECKS: tuple[Check, ...] = (
    Check(
        name="slurm-answers",
        why="Without slurmrestd nothing is scheduled; bound pods go on running.",
        fix="Compare slurm.url, slurm.api_versions and slurm.token_file with the options of slurmrestd. Upgrade Slurm "
        "where it is older than 25.05.",
        judge=slurmctld.answers,
    ),
    Check(
        name="slurm-token-lasts",
        why="When the token ends, Slurm refuses every request: no pod gets a node, and bound pods go on.",
        fix="Have the file at slurm.token_file renewed in time; the daemon reads it again by itself. See "
        "`slurm_bridge_slurm_token_expires_timestamp_seconds`.",
        judge=slurmctld.token_lasts,
    ),
    Check(
        name="kubernetes-answers",
        why="Pods are found and bound through the API server.",
        fix="Compare kubernetes.kubeconfig, or the service account and its role, with deploy/rbac.yaml.",
        judge=slurmctld.kubernetes_answers,
    ),
    Check(
        name="groups-followed",
        why="A pod of a group must not be taken for a single pod: a replica is not ready until it may list every kind "
        "of group that the cluster serves.",
        fix="Apply deploy/rbac.yaml.",
        judge=gangs.followed,
        needs=_RIGHTS,
    ),
    Check(
        name="groups-told",
        why="The status of a PodGroup shows when all of its pods have nodes; other controllers wait for that.",
        fix="Apply deploy/rbac.yaml.",
        judge=gangs.told,
        needs=_RIGHTS,
    ),
    Check(
        name="tokens-reviewed",
        why="Clients of the submission API and the admin API are identified by a token, which the API server reviews; "
        "without that right every caller is refused.",
        fix="Apply deploy/submission, or switch web.submission.enabled and web.administration.enabled off.",
        judge=rights.reviewed,
        needs=_REVIEWS,
    ),
    Check(
        name="leader-elected",
        why="Replicas, and daemons with parts, agree by Leases on which of them acts.",
        fix="Apply deploy/rbac.yaml, and deploy/parts where the configuration has parts.own, with the namespace and "
        "the name of leader_election.",
        judge=rights.led,
        needs=_LEAD_RIGHTS,
    ),
    Check(
        name="nodes-changed",
        why="The node controller makes sure at the API server that a node is gone before it is deleted from Slurm, and "
        "writes taints and conditions on nodes.",
        fix="Apply deploy/nodes, or switch nodes.enabled off.",
        judge=rights.nodes_written,
        needs=_NODE_RIGHTS,
    ),
    Check(
        name="operator-token",
        why="The owner record is in admin_comment, which only an operator can write, and chosen job ids make "
        "slurmctld refuse a second placeholder.",
        fix="Make the token for SlurmUser or root: scontrol token username=slurm lifespan=…",
        judge=placeholder.operator,
        needs=_PROBE,
    ),
    Check(
        name="placeholder-accepted",
        why="Every pod, or gang of pods, becomes an external job with the configured defaults. Slurm has them "
        "since 25.05 (v0.0.43).",
        fix="Correct the named key; else check job submit plugins and limits of the account and QOS.",
        judge=placeholder.accepted,
        needs=_PROBE,
    ),
    Check(
        name="placeholder-removed",
        why="A check leaves nothing behind.",
        fix="scancel it by its name; the daemon's search for orphans cancels it, too.",
        judge=placeholder.removed,
        needs=_PROBE,
    ),
    Check(
        name="plain-user",
        why="Jobs of root pass every limit and may enter every reservation.",
        fix="Set defaults.user to an ordinary user of slurmctld's host, with a user id of 1000 or higher.",
        judge=placeholder.plain_user,
        needs=_PROBE,
    ),
    Check(
        name="node-modes",
        why="On external nodes Slurm only counts. Nodes with a kubelet and a slurmd also run native jobs.",
        fix="Set State=EXTERNAL for the nodes in slurm.conf, and restart slurmctld.",
        judge=slurmctld.node_modes,
        needs=_BOTH,
    ),
    Check(
        name="stray-slurmd",
        why="No native job starts on an external node, with a slurmd or without.",
        fix="Stop slurmd there. If native jobs are to share the node with pods, remove State=EXTERNAL in slurm.conf "
        "and restart slurmctld.",
        judge=hybrid.no_stray_slurmd,
        needs=_SLURM,
    ),
    Check(
        name="same-nodes",
        why="A pod is bound to the node that Slurm allocates: both servers need the same nodes.",
        fix=f"Add the node on the other side, or label it {sides.LABEL} with its name in Slurm. Nodes on one side "
        "only are left out.",
        judge=sides.same_nodes,
        needs=_BOTH,
    ),
    Check(
        name="names-once",
        why="Two Kubernetes nodes with one name in Slurm would share its capacity.",
        fix=f"Correct the label {sides.LABEL}.",
        judge=sides.names_once,
        needs=("nodes",),
    ),
    Check(
        name="same-resources",
        why="If Slurm counts more than the kubelet can give, the kubelet refuses a pod that Slurm placed there.",
        fix="Lower CPUs, RealMemory or Gres in slurm.conf to the node's allocatable, which is less than its capacity; "
        "where a slurmd runs, set CoreSpecCount and MemSpecLimit instead.",
        judge=sides.same_resources,
        needs=_BOTH,
    ),
    Check(
        name="hybrid-reserved",
        why="On nodes with a kubelet and a slurmd, native jobs may use all that Slurm counts; kubelet, slurmd and "
        "DaemonSets need the rest.",
        fix="Set CoreSpecCount and MemSpecLimit of these nodes in slurm.conf, and systemReserved and kubeReserved of "
        "their kubelets to the same amounts.",
        judge=hybrid.reserved,
        needs=_BOTH,
    ),
    Check(
        name="hybrid-confined",
        why="A native job that no control group holds may use the CPUs, memory and devices of pods.",
        fix="TaskPlugin=task/affinity,task/cgroup and ProctrackType=proctrack/cgroup in slurm.conf; ConstrainCores, "
        "ConstrainRAMSpace and ConstrainDevices in cgroup.conf.",
        judge=hybrid.confined,
        needs=_ALL,
    ),
    Check(
        name="hybrid-scripts",
        why="Prolog and Epilog of a native job run while pods are on the node.",
        fix="Nothing has to be done if they touch only what is of their job.",
        judge=hybrid.scripts,
        needs=_ALL,
    ),
    Check(
        name="hybrid-devices",
        why="A device plugin does not know which devices Slurm has given to native jobs.",
        fix="Use a DRA driver and the hook device-claims, or hybrid_devices: whole-node; or give the devices to nodes "
        "without native jobs.",
        judge=hybrid.devices,
        needs=_BOTH,
    ),
    Check(
        name="mcs-labels",
        why="Jobs of different MCS labels share no node only where Slurm selects nodes by label.",
        fix="MCSPlugin=mcs/label and MCSParameters=enforced,select in slurm.conf.",
        judge=hybrid.labels,
        needs=_CONF,
    ),
    Check(
        name="gres-types",
        why="Slurm places a pod that requests devices by its own count of these devices.",
        fix="Name it in GresTypes and at the nodes in slurm.conf and gres.conf, or correct the table gres here.",
        judge=sides.resources_known,
        needs=_BOTH,
    ),
    Check(
        name="typed-devices",
        why="On nodes with typed devices in slurm.conf, a job that requests them per task never gives them back. The "
        "bridge requests them per node. Jobs of other users may not.",
        fix="Let no other users submit jobs to external nodes; or leave the type out and use features.",
        judge=sides.typed_devices,
        needs=_SLURM,
    ),
    Check(
        name="not-poisoned",
        why="Slurm waits for a response that no external node can give, and starts no jobs there until then.",
        fix="Run scontrol reconfigure; then find what signalled or shrank a job there: suspend, GraceTime, scancel -s.",
        judge=slurmctld.not_poisoned,
        needs=_SLURM,
    ),
    Check(
        name="unmixed-partitions",
        why="A placeholder may start on any node of its partition; one without a kubelet cannot run the pod.",
        fix="Give the nodes with a kubelet partitions of their own. Until then the other nodes are excluded from each "
        "job.",
        judge=slurmctld.unmixed_partitions,
        needs=_SLURM,
    ),
    Check(
        name="partitions-exist",
        why="Pods that name no partition go to the one in defaults.partition.",
        fix="Correct defaults.partition.",
        judge=slurmctld.partitions_exist,
        needs=_SLURM,
    ),
    Check(
        name="no-grace-time",
        why="Preemption with a GraceTime signals the job first; its external nodes then take no more jobs.",
        fix="Set GraceTime=0 at these partitions (and at the QOS that are preempted, which cannot be seen from here).",
        judge=slurmctld.no_grace_time,
        needs=_SLURM,
    ),
    Check(
        name="no-suspension",
        why="A suspended placeholder does not stop its pods. Its external nodes then take no more jobs; nodes with a "
        "slurmd are given to other jobs beside these pods.",
        fix="Use PreemptMode=CANCEL or REQUEUE: scontrol show config shows it.",
        judge=slurmctld.no_suspension,
        needs=_CONF,
    ),
    Check(
        name="cons-tres",
        why="Pods share nodes by CPUs, memory and devices; only select/cons_tres counts them all.",
        fix="SelectType=select/cons_tres and SelectTypeParameters=CR_Core_Memory; scontrol show config shows both.",
        judge=slurmctld.consumable,
        needs=_CONF,
    ),
    Check(
        name="heterogeneous-jobs",
        why="Members that differ, and that no node has room for together, become components of one job: each kind gets "
        "what it asks for. External jobs can have components since Slurm 26.05.3.",
        fix="Nothing has to be done: without components each member requests as much as the largest; an event says so.",
        judge=gangs.components,
        needs=("heterogeneous",),
    ),
    Check(
        name="backfill",
        why="Jobs of several components are started by backfill only: they wait for its next cycle, however empty the "
        "cluster is.",
        fix="SchedulerType=sched/backfill, and a bf_interval in SchedulerParameters that users can wait for.",
        judge=gangs.backfill,
        needs=("conf", "heterogeneous"),
    ),
    Check(
        name="room-for-jobs",
        why="MaxJobCount counts waiting, running and recently ended jobs of all users; beyond it every job is refused.",
        fix="Raise MaxJobCount in slurm.conf, or lower scheduling.unstarted_window.",
        judge=slurmctld.room_for_jobs,
        needs=_CONF,
    ),
    Check(
        name="job-ids-apart",
        why="A job id that Slurm has given to another job cannot be used for a placeholder.",
        fix="Set MaxJobId in slurm.conf below slurm.job_ids.first; Slurm accepts chosen ids above it.",
        judge=slurmctld.ids_apart,
        needs=_CONF,
    ),
    Check(
        name="clocks",
        why="Estimated starts and submit times are in Slurm's time, and users compare them with their own clock.",
        fix="Synchronize both hosts with the same time server.",
        judge=placeholder.clocks,
        needs=_PROBE,
    ),
)


def findings(facts: CheckFacts, wanted: Expectations) -> tuple[Finding, ...]:
    """The findings of all checks."""
    return tuple(finding for check in CHECKS for finding in check.run(facts, wanted))
