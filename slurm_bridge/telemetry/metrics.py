"""The metrics of the daemon.

Names follow kube-scheduler's and Kueue's for the same meaning, with our prefix, so that dashboards need one word
changed. There is no global state: each daemon, and each test, has its own `Metrics`.
"""

import math
from typing import Final

from slurm_bridge.telemetry.instruments import Instruments

_CALLS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_ATTEMPTS: Final = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 4.096, 16.384)
_WAITS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
_HOOKS: Final = (0.00001, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)


class Metrics(Instruments):
    """The metrics of one daemon."""

    def __init__(self, *, version: str = "") -> None:
        super().__init__()
        self._scheduling()
        self._placeholders()
        self._requests()
        self.hook_duration = self._durations(
            "hook_duration_seconds", "Duration of one hook in one phase.", _HOOKS, "hook", "phase"
        )
        self.hook_errors = self._counter(
            "hook_errors_total", "Calls of hooks that raised, timed out or returned an invalid result.", "hook", "phase"
        )
        self.hook_events = self._counter(
            "hook_events_total", "Background work of hooks, by the name that the hook gives it.", "hook", "what"
        )
        self.configuration_reloads = self._counter(
            "configuration_reloads_total",
            "Reloads of the configuration: ok, or refused (the last good one stays).",
            "result",
        )
        self._queues()
        self.submissions = self._counter(
            "submissions_total",
            "Requests to the submission API, by HTTP status.",
            "status",
        )
        self.submissions_pending = self._gauge(
            "submissions_pending",
            "Pods that the submission API accepts or has accepted, and that the scheduler has not seen yet.",
        )
        self._live_view()
        self._admission()
        self.check_findings = self._gauge(
            "check_findings",
            "Findings of the checks when this replica became leader, by level (ok, info, warning, failure).",
            "level",
        )
        self.leader = self._gauge("leader", "1 on the leader.")
        self.part = self._gauge("part_info", "1, with the part of this daemon; none without parts.", "part")
        self.part_namespaces = self._gauge(
            "part_namespaces",
            "Namespaces of this part, by state: served, claimed (their jobs are being read), leaving and left (another "
            "part gets them), awaited (another part still has them).",
            "state",
        )
        self._build(version)

    def request_to_slurm(self, operation: str, outcome: str, seconds: float) -> None:
        """Observe one call of the Slurm port."""
        self.slurm_requests.labels(operation, outcome).observe(seconds)

    def request_to_kubernetes(self, operation: str, outcome: str, seconds: float) -> None:
        """Observe one call of the Cluster port."""
        self.kubernetes_requests.labels(operation, outcome).observe(seconds)

    def status_write(self, what: str, outcome: str) -> None:
        """Count a condition or an event that was written, found unnecessary, or dropped."""
        self.status_writes.labels(what, outcome).inc()

    def node_action(self, action: str, outcome: str, nodes: int) -> None:
        """Count nodes of Slurm that the node controller changed, added or deleted, or could not."""
        self.node_actions.labels(action, outcome).inc(nodes)

    def _scheduling(self) -> None:
        self.schedule_attempts = self._counter("schedule_attempts_total", "Scheduling attempts, by result.", "result")
        self.surprises = self._counter(
            "surprises_total",
            "Unexpected errors in loops over workloads and objects: defects that the log shows; the others go on.",
            "loop",
        )
        self.scheduling_attempt_duration = self._durations(
            "scheduling_attempt_duration_seconds",
            "Duration of one look at a workload, until it is decided what to do; hooks are a part of it.",
            _ATTEMPTS,
        )
        self.pod_scheduling_sli_duration = self._histogram(
            "pod_scheduling_sli_duration_seconds", "From a pod's creation to its binding.", _WAITS
        )
        self.allocation_to_bound = self._histogram(
            "allocation_to_bound_duration_seconds",
            "From the time the mirror saw the allocation to the binding.",
            _CALLS,
        )
        self.stage_duration = self._durations(
            "stage_duration_seconds",
            "A pod's way to its node, in three parts: `submit` (from its creation to the submission of its job), "
            "`queue` (in Slurm's queue), `bind` (from the allocation to the binding).",
            _WAITS,
            "stage",
        )
        self.pending_workloads = self._gauge(
            "pending_workloads",
            "Workloads with a pod without a node: active (to be looked at, or to be submitted), inflight, backoff (for "
            "a time), waiting (for Slurm or another event), parked (until a user or an administrator acts).",
            "status",
        )
        self.waiting_workloads = self._gauge(
            "waiting_workloads",
            "The same by namespace and the reason on their pods, for the 20 largest namespaces and the 20 most "
            'frequent reasons; `namespace=""`, `reason=""`: all others.',
            "namespace",
            "reason",
        )
        self.namespace_waiting_workloads = self._gauge(
            "namespace_waiting_workloads",
            'Workloads that wait for submission, for the 20 largest namespaces; `namespace=""`: all others.',
            "namespace",
        )
        self.namespace_unstarted_jobs = self._gauge(
            "namespace_unstarted_jobs",
            'Jobs that have not started, for the 20 largest namespaces; `namespace=""`: all others.',
            "namespace",
        )
        self.unstarted_jobs = self._gauge(
            "unstarted_jobs",
            'Jobs that have not started, by Slurm\'s reason, for the 20 most frequent; `reason=""`: all others.',
            "reason",
        )
        self.admitted_workloads = self._counter(
            "admitted_workloads_total", "Times that all pods of a workload that waited were bound."
        )
        self.admission_wait_time = self._histogram(
            "admission_wait_time_seconds", "From the submission of a placeholder to the binding.", _WAITS
        )
        self.evicted_workloads = self._counter(
            "evicted_workloads_total", "Pods ended because their placeholder ended, by Slurm's reason.", "reason"
        )

        self.pod_resizes = self._counter(
            "pod_resizes_total",
            "Resizes of bound pods, which Slurm does not see.",
        )
        self.resized_pods = self._gauge(
            "resized_pods", "Bound pods whose requests differ from what Slurm counts for them."
        )

    def _placeholders(self) -> None:
        self.placeholder_jobs = self._gauge("placeholder_jobs", "Our jobs in the mirror.", "phase")
        self.orphans_cancelled = self._counter(
            "orphans_cancelled_total", "Placeholders cancelled because their pods are gone."
        )
        self.foreign_pods = self._gauge(
            "foreign_pods", "Bound pods with our schedulerName whose Slurm job is not ours; they are left alone."
        )
        self.breaker_open = self._gauge(
            "breaker_open", "1 while no pod is ended because too many jobs vanished at once."
        )
        self.slurm_read_timestamp = self._gauge(
            "slurm_last_good_read_timestamp_seconds", "Unix time of Slurm's last good answer about jobs."
        )
        self.slurm_read_age = self._gauge(
            "slurm_last_good_read_age_seconds",
            "Seconds since Slurm's last good answer about jobs; -1 before the first.",
        )
        self.slurm_read_age.set(-1)
        self.token_expires = self._gauge(
            "slurm_token_expires_timestamp_seconds", "Unix time at which the token for Slurm ends; +Inf without an end."
        )
        self.token_lifetime = self._gauge(
            "slurm_token_lifetime_seconds", "From the making of the token for Slurm to its end; 0 without an end."
        )
        self.token_expires.set(math.inf)

    def _requests(self) -> None:
        self.slurm_requests = self._durations(
            "slurm_request_duration_seconds", "Calls to Slurm.", _CALLS, "operation", "outcome"
        )
        self.kubernetes_requests = self._durations(
            "kubernetes_request_duration_seconds", "Calls to the API server.", _CALLS, "operation", "outcome"
        )
        self.unreadable = self._counter(
            "unreadable_total",
            "Objects and rows of a server that cannot be read: left out, all others count; equal rows count once.",
            "server",
            "kind",
        )
        self.node_actions = self._counter(
            "node_actions_total",
            "Nodes of Slurm that the node controller changed: adopt, drain, undrain, clear, update, delete, create.",
            "action",
            "outcome",
        )
        self.status_writes = self._counter(
            "status_writes_total",
            "Conditions, groups' status, events: ok, same (unchanged), stale (the pod no longer waits), failed, "
            "dropped.",
            "what",
            "outcome",
        )

    def _queues(self) -> None:
        self.queue_used = self._gauge(
            "queue_used", "Resources that a queue's admitted workloads request.", "queue", "resource"
        )
        self.queue_pending = self._gauge(
            "queue_pending", "Resources that a queue's waiting workloads request.", "queue", "resource"
        )
        self.queue_max = self._gauge("queue_max", "Maximum of a queue.", "queue", "resource")
        self.queue_guaranteed = self._gauge("queue_guaranteed", "Guarantee of a queue.", "queue", "resource")
        self.queue_running = self._gauge("queue_running", "Running applications of a queue.", "queue")
        self.queue_waiting = self._gauge("queue_waiting", "Waiting workloads of a queue.", "queue")
        self.queue_requests = self._counter(
            "queue_requests_total",
            "Requests to the admin API of the queues (config, validate, reload), by HTTP status.",
            "what",
            "status",
        )

    def _live_view(self) -> None:
        self.live_viewers = self._gauge("live_viewers", "Viewers of the live view that are connected.")
        self.live_view_bytes = self._counter("live_view_bytes_total", "Bytes sent to viewers of the live view.")
        self.live_view_requests = self._counter(
            "live_view_requests_total",
            "Requests to the live view (stream, snapshot, workload, node, explain), by HTTP status.",
            "what",
            "status",
        )
        self.live_view_ended = self._counter(
            "live_view_streams_ended_total",
            "Streams of the live view that have ended: left (by the viewer, or too slow to be sent to), slow (missed "
            "updates), time, size, token, rights, leader.",
            "reason",
        )
