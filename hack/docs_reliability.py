"""The tables of docs/reliability.md: each failure and each trap with the tests that show what the daemon does."""

import dataclasses
import pathlib
import re
from collections.abc import Mapping, Sequence

PROJECT = pathlib.Path(__file__).resolve().parents[1]
#: Tests that name their trap: `def test_t41_jobs_that_are_not_ours_are_never_touched(`.
_NAME = re.compile(r"^ *def (test_([tsc]\d+[a-z]?)_\w+)\(", re.MULTILINE)
#: So many tests stand in one cell; the others are found by their names.
_MOST = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What fails, what the daemon does then, and where that is shown, as FILE::TEST below tests/."""

    what: str
    then: str
    tests: Sequence[str]


FAILURES: Sequence[Failure] = (
    Failure(
        what="kube-apiserver is down, restarts, is slow, or answers 429 or 500",
        then="Reads and writes are repeated with growing pauses, or after the pause that the server asks for. "
        "No job is submitted twice. The caches are rebuilt from a list.",
        tests=(
            "chaos/test_killed_servers.py::test_a_server_goes_and_comes_back",
            "unit/informers/test_reflector.py::test_retry_after",
            "unit/status/test_reporter_failures.py::test_the_servers_wish_for_a_pause_is_kept",
        ),
    ),
    Failure(
        what="a watch ends, hangs, is too old (410), or has a line that cannot be read",
        then="The informer lists again. A deletion that no watch reported is found.",
        tests=(
            "unit/informers/test_reflector.py::test_expired",
            "unit/kube/test_client.py::test_silent_watch",
            "unit/kube/test_codec.py::test_malformed_lines",
            "component/scheduler/test_traps_lifecycle.py::test_t40_lost_watch_events_are_made_up_for",
        ),
    ),
    Failure(
        what="slurmctld is down or hangs",
        then="Submissions pause, and pods say why. Readiness fails, liveness does not. Other work goes on.",
        tests=(
            "component/scheduler/test_traps_submission.py::test_s2_a_hung_slurmctld_freezes_nothing",
            "component/daemon/test_daemon_process.py::test_it_is_alive_and_not_ready_while_slurm_does_not_answer",
            "contract/slurm/test_port_outages.py::test_orders_to_a_frozen_slurmctld_are_unknown",
        ),
    ),
    Failure(
        what="slurmctld crashes, loses a job that it had confirmed, and gives the id to another job",
        then="The owner record is compared before anything is done with a job. The other job is not touched; "
        "the workload is submitted again.",
        tests=(
            "unit/mirror/test_jobs.py::test_an_id_that_is_now_somebody_elses_is_gone_and_is_left_alone",
            "chaos/test_killed_gangs.py::test_groups_that_run_keep_their_nodes_when_slurmctld_forgets_them",
            "contract/slurm/test_port_faults_reads.py::test_a_reissued_id_is_another_job",
        ),
    ),
    Failure(
        what="a job is submitted and the answer is lost",
        then="The daemon looks for the job before it submits again, and adopts it: there is exactly one.",
        tests=(
            "component/scheduler/test_traps_submission.py::test_t12_a_submit_whose_answer_was_lost_is_found_and_not_repeated",
            "contract/slurm/test_port_faults_orders.py::test_a_lost_answer_is_unknown_and_the_job_exists",
        ),
    ),
    Failure(
        what="an answer of slurmrestd is misleading: 500 with a job id, 200 without one, 200 with warnings",
        then="The outcome is read from the whole answer: made, refused, or unknown.",
        tests=(
            "unit/slurm/test_outcomes.py::test_recorded_submits",
            "unit/slurm/test_outcomes.py::test_a_job_with_errors_exists_and_is_not_trusted",
            "contract/slurm/test_port_faults_orders.py::test_nothing_made_and_only_warnings_is_refused",
        ),
    ),
    Failure(
        what="a token is refused, rotated, empty for a moment, or its file is replaced by a link",
        then="The file is read again and the call repeated once. There is no tight loop.",
        tests=(
            "contract/slurm/test_port_faults_reads.py::test_a_refused_token_is_read_again_once",
            "unit/slurm/test_token.py::test_a_swapped_symbolic_link_is_seen",
            "unit/slurm/test_token.py::test_a_moment_of_emptiness_keeps_the_old_token",
        ),
    ),
    Failure(
        what="the daemon is killed after any call",
        then="The next daemon ends in the same state: no job left over, no pod lost, nothing done twice.",
        tests=(
            "simulation/test_reference.py::test_killed_after_every_call",
            "chaos/test_killed_on_the_way.py::test_killed_at_any_order_it_is_done_once_and_to_its_end",
            "chaos/test_killed_daemon.py::test_killed_at_any_moment_nothing_is_doubled_lost_or_left",
        ),
    ),
    Failure(
        what="any call in the life of a ResourceClaim is the daemon's last, is lost or refused, or loses its answer; "
        "another client writes to the claim meanwhile",
        then="The next look finds on the claim what was written. No device is in two claims, no pod starts without the "
        "devices that Slurm gave to its job, and no claim keeps devices without a pod. A claim that is deleted before "
        "its pod has a node gives its devices back. Claims of others are not touched.",
        tests=(
            "simulation/test_device_claims.py::test_whatever_becomes_of_a_call",
            "simulation/test_chaos_of_claims.py::test_random_run",
            "e2e/test_real_devices.py::test_a_daemon_that_is_killed_gives_no_device_twice",
            "component/scheduler/test_device_claims_killed.py::test_a_deleted_claim_of_a_pod_without_a_node_gives_its_devices_back",
        ),
    ),
    Failure(
        what="on hybrid nodes the kubelet, containerd, the DRA driver, the daemon, slurmctld, slurmrestd, "
        "kube-apiserver or etcd is killed while pods and native jobs run",
        then="All of them run on, with the same processes and devices. A pod that ends meanwhile ends its job; "
        "one that comes meanwhile runs.",
        tests=(
            "e2e/test_real_failures.py::test_what_runs_runs_on",
            "e2e/test_real_nodes.py::test_a_process_that_ends_while_its_kubelet_is_dead",
        ),
    ),
    Failure(
        what="slurmd of a hybrid node is killed, or the node loses its power",
        then="With slurmd the native jobs of the node end, and its pods run on if slurmd is back within "
        "SlurmdTimeout. With the power its pods end, too, and so do their jobs. What runs on other nodes runs on.",
        tests=(
            "e2e/test_real_failures.py::test_what_runs_runs_on",
            "e2e/test_real_nodes.py::test_a_slurmd_that_stays_away_costs_the_pods_of_its_node",
            "e2e/test_real_nodes.py::test_a_node_is_rebooted",
        ),
    ),
    Failure(
        what="a node is deleted in Slurm, and slurmctld reads its configuration or starts anew",
        then="No job on another node ends: jobs of the bridge require no nodes by name.",
        tests=("e2e/test_real_failures.py::test_a_node_that_leaves_slurm_ends_no_job_elsewhere",),
    ),
    Failure(
        what="a kubelet starts and deletes what the DRA drivers of its node have published",
        then="A pod whose job starts now keeps its nodes and waits (`WaitsForDevices`). Other pods wait without a job. "
        "Both go on when the driver publishes again.",
        tests=(
            "e2e/test_real_failures.py::test_a_kubelet_that_starts_costs_no_allocation",
            "component/scheduler/test_device_claims.py::test_a_driver_that_starts_anew_is_waited_for",
        ),
    ),
    Failure(
        what="of several daemons with parts one dies, sleeps past its lease, or sees labels or settings later",
        then="Its namespaces wait for it, and the others go on. A namespace that another part gets is let go first, or "
        "taken when the lease has expired; a daemon acts only where the record names its part.",
        tests=(
            "simulation/test_chaos_of_parts.py::test_random_run",
            "unit/controllers/test_ownership.py::test_of_a_part_that_comes_back_and_one_that_takes_over_one_wins",
            "e2e/test_parts.py::test_three_daemons_share_one_cluster_by_namespaces",
        ),
    ),
    Failure(
        what="two daemons run at once, because a leader was paused beyond its lease",
        then="Chosen job ids and preconditions refuse the second write. The former leader writes nothing more.",
        tests=(
            "simulation/test_chaos_of_rivals.py::test_killed_after_every_call",
            "unit/overlays/test_overlays.py::test_a_fence_closes_at_once",
            "unit/status/test_reporter_failures.py::test_a_replica_that_lost_the_lead_drops_its_events",
        ),
    ),
    Failure(
        what="a clock is wrong or jumps",
        then="The daemon measures with monotonic clocks, and compares Slurm's times only with Slurm's.",
        tests=(
            "unit/controllers/test_leader.py::test_a_wall_clock_that_jumps_changes_nothing",
            "component/daemon/test_counters.py::test_clocks_that_disagree_measure_nothing_negative",
        ),
    ),
    Failure(
        what="a pod is deleted while its job waits, before or during its binding, or comes again under the same name",
        then="Its job ends. A pod of the same name is not bound in its place.",
        tests=(
            "component/scheduler/test_bindings.py::test_a_pod_that_is_deleted_while_it_is_bound_frees_its_job",
            "component/scheduler/test_bindings.py::test_a_pod_of_the_same_name_is_not_bound_in_its_place",
            "e2e/test_recreated.py::test_t42_a_pod_of_the_same_name_gets_a_job_of_its_own",
        ),
    ),
    Failure(
        what="a node is deleted, cordoned or not ready between allocation and binding, or Kubernetes does not know it",
        then="The nodes are given back, with an event. The next job excludes the node while the reason lasts.",
        tests=(
            "component/scheduler/test_bindings.py::test_a_node_that_became_unusable_since_the_submit_is_given_back",
            "component/scheduler/test_bindings.py::test_a_full_node_is_given_back_and_avoided",
            "e2e/test_placed_pods.py::test_a_cordon_that_ends_keeps_no_pod_away",
        ),
    ),
    Failure(
        what="a part of a gang is bound, and the rest cannot be",
        then="Bindings are repeated until a deadline. Then all pods are deleted and the job is cancelled.",
        tests=(
            "component/scheduler/test_gangs.py::test_a_start_that_is_interrupted_goes_on_where_it_was",
            "e2e/test_gang_faults.py::test_a_start_that_cannot_be_finished_is_undone_and_tried_again_as_a_whole",
        ),
    ),
    Failure(
        what="an administrator or Slurm ends, holds, suspends or shrinks a job, or changes its limit",
        then="Pods are evicted with the reason, or wait. An administrator's decision is not reversed.",
        tests=(
            "component/scheduler/test_traps_submission.py::test_t22_a_job_that_an_administrator_holds_stays_held",
            "component/scheduler/test_traps_lifecycle.py::test_t31_scancel_of_a_running_job_ends_its_pod_whatever_its_state",
            "e2e/test_gang_faults.py::test_t43b_a_group_out_of_time_ends_as_a_whole_and_is_held_where_the_site_says_so",
        ),
    ),
    Failure(
        what="a job ends while no daemon runs, and Slurm forgets it before the next one starts",
        then="Bound pods are evicted. Pending pods are submitted again, unless they say that they are parked.",
        tests=(
            "e2e/test_endings.py::test_a_daemon_that_comes_back_finds_what_happened_meanwhile",
            "component/scheduler/test_traps_lifecycle.py::test_t35_a_job_that_ended_and_was_purged_during_an_outage_is_not_brought_back",
        ),
    ),
    Failure(
        what="slurmctld is busy or full, a partition is down",
        then="The workload waits with growing pauses and an event.",
        tests=(
            "component/scheduler/test_submissions.py::test_a_busy_controller_is_asked_later_and_later",
            "contract/slurm/test_port_faults_orders.py::test_a_full_controller_is_busy",
            "unit/translate/test_limits.py::test_a_partition_that_is_down_is_fine",
        ),
    ),
    Failure(
        what="an external node does not respond",
        then="`slurm-bridge check` and the log name the node and the command that repairs it.",
        tests=("contract/slurm/test_facts_poison.py::test_what_is_sent_to_external_nodes_poisons_them",),
    ),
    Failure(
        what="a node is created under a name that exists, or a node with jobs is deleted",
        then="The daemon reads before it creates, and repeats no lost order blindly.",
        tests=("contract/slurm/test_facts_nodes.py::test_an_existing_node_is_not_added_again",),
    ),
    Failure(
        what="an answer has unknown words, missing fields, or null; it is huge, cut off, or not JSON",
        then="Memory is bounded. One odd row hides no other; an answer that cannot be read is an error, not "
        "an empty list.",
        tests=(
            "unit/slurm/test_answers.py::test_unknown_words_do_not_crash",
            "contract/slurm/test_port_faults_reads.py::test_an_answer_has_a_limit",
            "fuzz/test_slurmrestd.py::test_slurmrestd",
        ),
    ),
    Failure(
        what="an API version disappears when Slurm or Kubernetes is upgraded",
        then="The daemon negotiates again, without a restart.",
        tests=(
            "contract/slurm/test_port_faults_reads.py::test_a_version_that_disappears_is_negotiated_anew",
            "unit/kube/test_client.py::test_a_version_that_disappears",
        ),
    ),
    Failure(
        what="thousands of pods come at once, one namespace floods, one pod makes each attempt fail",
        then="Namespaces take turns. A failing workload is tried less and less often and delays no other.",
        tests=(
            "component/scheduler/test_core.py::test_a_poison_pod_hurts_nobody_else",
            "component/scheduler/test_shares.py::test_shares_are_max_min_fair",
            "e2e/test_hostile_namespace.py::test_a_hostile_namespace_does_not_slow_another_one",
        ),
    ),
    Failure(
        what="the daemon is stopped (SIGTERM) in a burst",
        then="It finishes what it has begun within the grace period and releases its lease.",
        tests=(
            "unit/runtime/test_threads.py::test_a_stop_ends_the_workers_then_drains_then_ends_the_carriers",
            "unit/controllers/test_leader.py::test_a_goodbye_lets_another_take_over_at_once",
        ),
    ),
)

#: Behaviours that other bridges between Kubernetes and Slurm have got wrong, and what this one does.
TRAPS: Mapping[str, str] = {
    "t01": "Pods of a gang differ in cpu or memory: the request covers each of them.",
    "t02": "`nvidia.com/gpu` and `amd.com/gpu` become GRES; two kinds in one pod are both requested.",
    "t03": "Without cpu or memory the configured default counts. Memory is rounded up and never becomes 0.",
    "t04": "`activeDeadlineSeconds` becomes a time limit in whole minutes; an annotation wins.",
    "t05": "Annotations of several objects combine in a fixed order.",
    "t06": "An invalid annotation is shown once on the pod, and does not cause a loop of attempts.",
    "t08": "Owners that are forbidden, missing, circular or very deep hide no group.",
    "t09": "Overhead, init containers, sidecars and pod-level resources count.",
    "t10": "Groups of one name in two namespaces are two groups.",
    "t11": "Pods that have ended or are terminating do not count for the size of a gang.",
    "t12": "A group has one job, whatever happens at once and whenever the daemon stops.",
    "t12a": "Members of a gang share nodes.",
    "t13": "A node with a taint that the pod does not tolerate is never offered.",
    "t14": "A pod is not submitted before its volumes allow it.",
    "t15": "A request that no node can meet is not submitted, and the pod says so.",
    "t16": "Placeholders survive the removal of a node from Slurm.",
    "t17": "A pending job is updated only if its description changed. A refused update leaves it as it was.",
    "t18": "An update that meets the start of the job does no harm.",
    "t20": "Waiting pods do not delay others.",
    "t21": "A refused submission has a visible reason and stops nothing else.",
    "t22": "A job that an administrator holds stays held.",
    "t23": "A workload is in Slurm's queue also while Kubernetes is full.",
    "t24": "A Slurm node without a Kubernetes node is not used.",
    "t25": "A node may have different names in Slurm and Kubernetes.",
    "t26": "The assignment of pods to nodes is stable, and a bound pod does not move.",
    "t27": "An allocation that is smaller than the gang starts nothing.",
    "t28": "Each state of a job has a defined effect on pods in each state.",
    "t29": "A node that is powering up gets no pod.",
    "t30": "`PodGroupScheduled=True` is written once.",
    "t31": "`scancel` of a running job ends its pods, whatever their state.",
    "t32": "A queued pod is never deleted because its job ended.",
    "t33": "A terminating pod keeps its job until it has ended.",
    "t34": "Nothing is deleted or cancelled repeatedly.",
    "t35": "A job that Slurm has forgotten counts as ended.",
    "t36": "A Slurm that does not answer has lost no job.",
    "t37": "Many vanished jobs at once are doubted before pods are deleted.",
    "t38": "A pod that hangs on a dead node gives its job back after a time.",
    "t39": "The job of an unscheduled pod ends when the pod is deleted.",
    "t40": "A change that no watch reported is found.",
    "t41": "A job ends with its pods. Jobs of others are never touched.",
    "t42": "A pod that comes again under the same name gets its own job.",
    "t43": "A member that is lost or replaced before the start changes the request; after it, the policy decides.",
    "t43a": "`scancel` of a pending job is respected.",
    "t43b": "A pod that ran out of time is not recreated endlessly, if the user wants that.",
    "t45": "A labelled Kubernetes node becomes an external node of Slurm with sockets, cores and threads.",
    "t46": "A node whose cpus, memory or devices changed is drained, removed and added exactly once.",
    "t47": "A node that is not external is never deleted.",
    "t48": "A node with jobs is not deleted until it is idle.",
    "t49": "Features are updated without a reconfiguration of Slurm; an invalid partition is an event.",
    "t50": "The topology of a node is set, changed and cleared.",
    "t51": "A cordon drains; its end undrains only what the bridge has drained. A removal is not undone.",
    "t52": "The deletion of a Node removes the node from Slurm. Nodes that Slurm does not know cost no call.",
    "t52a": "Kubernetes nodes without a label of the bridge never drain or delete a Slurm node.",
    "t53": "The taint of managed nodes is optional, and nothing is written if nothing changes.",
    "t60": "A pod that names the scheduler outside managed namespaces is scheduled. Other schedulers are untouched.",
    "t61": "Admission clears `nodeName` on creation only, refuses a resize, and protects the marks of the bridge.",
    "t62": "The webhook is ready only when it serves, and does not stop the cluster when it is dead.",
    "t63": "A changed configuration takes effect.",
    "t66": "A rotated token is used; a missing or empty one is named.",
    "t67": "A change of leader submits nothing twice.",
    "s1": "Keys that act for another user need a rule of the policy.",
    "s2": "Each call has a time limit: a Slurm that hangs stops nothing.",
    "s3": "Slurm's reason for waiting reaches the pod.",
    "c1": "An attempt does not list all jobs or nodes.",
    "c2": "Members of a gang are not written again with each attempt.",
    "c3": "A waiting pod does not send its job again.",
    "c4": "Bindings run in parallel.",
    "c5": "Nothing is written if nothing changed.",
    "c6": "Pods share nodes.",
    "c7": "No finalizer keeps a pod while the daemon is down.",
}


def failures() -> str:
    """One row for each failure. Raises ValueError where a test is not there."""
    rows = ["| failure | what the daemon does | shown by |", "|---|---|---|"]
    for failure in FAILURES:
        for test in failure.tests:
            file, name = test.split("::")
            if not re.search(rf"^ *def {name}\(", (PROJECT / "tests" / file).read_text(), re.MULTILINE):
                raise ValueError(f"docs_reliability.FAILURES: there is no test {test}")
        shown = ", ".join(_link(*test.split("::")) for test in failure.tests)
        rows.append(f"| {failure.what} | {failure.then} | {shown} |")
    return "\n".join(rows) + "\n"


def traps() -> str:
    """One row for each trap, with tests that name it. Raises ValueError where none does."""
    found = _named()
    if missing := sorted(TRAPS.keys() - found.keys()):
        raise ValueError(f"docs_reliability.TRAPS: no test names {', '.join(missing)}")
    rows = ["| trap | what this bridge does | shown by |", "|---|---|---|"]
    for trap, text in TRAPS.items():
        tests = found[trap]
        more = f" and {len(tests) - _MOST} more" if len(tests) > _MOST else ""
        rows.append(f"| {trap.upper()} | {text} | {', '.join(_link(*test) for test in tests[:_MOST])}{more} |")
    return "\n".join(rows) + "\n"


def _link(file: str, name: str) -> str:
    return f"[{name.removeprefix('test_')}](../tests/{file})"


def _named() -> Mapping[str, Sequence[tuple[str, str]]]:
    """Tests by the trap in their names: those on real servers first, then those of the whole core."""
    found: dict[str, list[tuple[str, str]]] = {}
    for folder in ("e2e", "chaos", "component", "simulation", "contract", "unit"):
        for file in sorted((PROJECT / "tests" / folder).rglob("test_*.py")):
            for match in _NAME.finditer(file.read_text()):
                found.setdefault(match.group(2), []).append((str(file.relative_to(PROJECT / "tests")), match.group(1)))
    return found
