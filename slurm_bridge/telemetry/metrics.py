"""Every number that the daemon shows, by name.

Names follow kube-scheduler's and Kueue's where they mean the same, with our prefix, so that dashboards need one word
changed. There is no global state: each daemon (and each test) has its own `Metrics`, and passes it around.
"""

from typing import Final

from slurm_bridge.telemetry.instruments import Instruments

_CALLS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_ATTEMPTS: Final = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 4.096, 16.384)
_WAITS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
_HOOKS: Final = (0.00001, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)


class Metrics(Instruments):
    """The instruments of one daemon. Whoever counts calls them by name; whoever serves asks for `page`."""

    def __init__(self, *, version: str = "") -> None:
        super().__init__()
        self._scheduling()
        self._placeholders()
        self._requests()
        self._hooks()
        self._queues()
        self._submissions()
        self._process(version)

    def request_to_slurm(self, operation: str, outcome: str, seconds: float) -> None:
        """One call of the Slurm port has ended."""
        self.slurm_requests.labels(operation, outcome).observe(seconds)

    def request_to_kubernetes(self, operation: str, outcome: str, seconds: float) -> None:
        """One call of the Cluster port has ended."""
        self.kubernetes_requests.labels(operation, outcome).observe(seconds)

    def status_write(self, what: str, outcome: str) -> None:
        """A condition or an event was written, found needless, or lost."""
        self.status_writes.labels(what, outcome).inc()

    def _scheduling(self) -> None:
        self.schedule_attempts = self._counter(
            "schedule_attempts_total", "Looks at a workload, by what came of them.", "result"
        )
        self.surprises = self._counter(
            "surprises_total",
            "Unexpected errors in loops over workloads and objects: defects that the log shows; the others go on.",
            "loop",
        )
        self.scheduling_attempt_duration = self._histogram(
            "scheduling_attempt_duration_seconds", "How long one look at a workload takes.", _ATTEMPTS, "result"
        )
        self.pod_scheduling_sli_duration = self._histogram(
            "pod_scheduling_sli_duration_seconds", "From a pod's creation to its binding.", _WAITS
        )
        self.allocation_to_bound = self._histogram(
            "allocation_to_bound_duration_seconds", "From the look that saw the allocation to the binding.", _CALLS
        )
        self.pending_workloads = self._gauge(
            "pending_workloads",
            "Workloads without a node: active, backoff, waiting (for Slurm), inflight, parked (for the user).",
            "status",
        )
        self.namespace_waiting_workloads = self._gauge(
            "namespace_waiting_workloads",
            'Workloads that want to be submitted, of the 20 namespaces with most of them; `namespace=""`: all others.',
            "namespace",
        )
        self.namespace_unstarted_jobs = self._gauge(
            "namespace_unstarted_jobs",
            'Jobs in the window (not started), of the 20 namespaces with most of them; `namespace=""`: all others.',
            "namespace",
        )
        self.admitted_workloads = self._counter("admitted_workloads_total", "Workloads whose pods were all bound.")
        self.admission_wait_time = self._histogram(
            "admission_wait_time_seconds", "From the submission of a placeholder to the binding.", _WAITS
        )
        self.evicted_workloads = self._counter(
            "evicted_workloads_total", "Workloads ended because their placeholder ended, by Slurm's word.", "reason"
        )

        self.pod_resizes = self._counter(
            "pod_resizes_total",
            "Changes of what a bound pod asks for, of which Slurm's count of its job knows nothing.",
        )
        self.resized_pods = self._gauge(
            "resized_pods", "Bound pods that ask for something else than what Slurm counts for them."
        )

    def _placeholders(self) -> None:
        self.placeholder_jobs = self._gauge("placeholder_jobs", "Our jobs as the mirror sees them.", "phase")
        self.orphans_cancelled = self._counter("orphans_cancelled_total", "Placeholders cancelled for want of pods.")
        self.foreign_pods = self._gauge(
            "foreign_pods", "Bound pods with our schedulerName whose Slurm job is not ours; they are left alone."
        )
        self.breaker_open = self._gauge(
            "breaker_open", "1 while too many jobs vanished at once, and therefore no pod is ended."
        )
        self.slurm_read_timestamp = self._gauge(
            "slurm_last_good_read_timestamp_seconds", "Unix time of the last good answer of Slurm to a look at jobs."
        )
        self.slurm_read_age = self._gauge(
            "slurm_last_good_read_age_seconds", "Seconds since the last good answer of Slurm; -1 before the first."
        )
        self.slurm_read_age.set(-1)

    def _requests(self) -> None:
        self.slurm_requests = self._histogram(
            "slurm_request_duration_seconds", "Calls to Slurm.", _CALLS, "operation", "outcome"
        )
        self.kubernetes_requests = self._histogram(
            "kubernetes_request_duration_seconds", "Calls to the API server.", _CALLS, "operation", "outcome"
        )
        self.unreadable = self._counter(
            "unreadable_total",
            "Objects and rows of a server that cannot be read: left out, all others count; equal rows count once.",
            "server",
            "kind",
        )
        self.status_writes = self._counter(
            "status_writes_total",
            "Conditions, groups' status, events: ok, same (needless), stale (the pod waits no more), failed, dropped.",
            "what",
            "outcome",
        )

    def _hooks(self) -> None:
        self.hook_duration = self._histogram(
            "hook_duration_seconds", "One hook's part of one pass.", _HOOKS, "hook", "phase"
        )
        self.hook_errors = self._counter(
            "hook_errors_total", "Hooks that raised, hung or answered nonsense.", "hook", "phase"
        )
        self.hook_events = self._counter(
            "hook_events_total", "What hooks do beside the passes, by a word of their own.", "hook", "what"
        )
        self.configuration_reloads = self._counter(
            "configuration_reloads_total",
            "Configurations read anew: ok, or refused (the last good one stays).",
            "result",
        )

    def _queues(self) -> None:
        self.queue_used = self._gauge("queue_used", "What workloads let in by a queue ask for.", "queue", "resource")
        self.queue_pending = self._gauge("queue_pending", "What waits in a queue asks for.", "queue", "resource")
        self.queue_max = self._gauge("queue_max", "The most that a queue may use.", "queue", "resource")
        self.queue_guaranteed = self._gauge("queue_guaranteed", "What a queue is guaranteed.", "queue", "resource")
        self.queue_running = self._gauge("queue_running", "Workloads that a queue has let in.", "queue")
        self.queue_waiting = self._gauge("queue_waiting", "Workloads that wait in a queue.", "queue")
        self.queue_requests = self._counter(
            "queue_requests_total",
            "Requests to the admin service of the queues (config, validate, reload), by the status of the answer.",
            "what",
            "status",
        )

    def _submissions(self) -> None:
        self.submissions = self._counter(
            "submissions_total",
            "Pods that somebody wanted to hand in over HTTP, by the status of the answer.",
            "status",
        )
        self.submissions_pending = self._gauge(
            "submissions_pending", "Pods that are being handed in, or were, and that the scheduler has not seen yet."
        )

    def _process(self, version: str) -> None:
        self.check_findings = self._gauge(
            "check_findings",
            "What the checks at the start of the lead found, by level (ok, info, warning, failure).",
            "level",
        )
        self.leader = self._gauge("leader", "1 on the replica that leads.")
        self._build(version)
