"""What operators watch: the panels of the board, and the alerts. hack/board_files.py makes files of them.

The leader alone works. Gauges of the other replicas say nothing of the cluster, and are left out by `led`.
"""

import dataclasses
from typing import Final

PREFIX: Final = "slurm_bridge_"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """An expression, and the name of each of its series."""

    expr: str
    legend: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel: what it shows, and how it is to be read. `width` is a part of 24."""

    title: str
    meaning: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    stacked: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One rule: `value` has a number at all times, and the alert fires when `bound` has held `minutes` long."""

    name: str
    value: str
    bound: str
    minutes: int
    severity: str
    summary: str
    meaning: str
    action: str

    @property
    def expr(self) -> str:
        """What Prometheus evaluates."""
        return f"{self.value} {self.bound}"


def _in(metric: str, *matchers: str) -> str:
    """A metric of the chosen job."""
    matched = ", ".join(('job=~"$job"', *matchers))
    return f"{PREFIX}{metric}{{{matched}}}"


def _led(metric: str, *matchers: str, chosen: bool = True) -> str:
    """A gauge of the leader."""
    matched = f"{{{', '.join(matchers)}}}" if matchers else ""
    series = _in(metric, *matchers) if chosen else f"{PREFIX}{metric}{matched}"
    return f"({series} and on (job, instance) {PREFIX}leader == 1)"


def _rate(metric: str, by: str, *matchers: str) -> str:
    return f"sum by ({by}) (rate({_in(metric, *matchers)}[$__rate_interval]))"


def _quantile(share: str, metric: str, by: str = "", *matchers: str) -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, {_rate(f'{metric}_bucket', labels, *matchers)})"


def _quantiles(metric: str) -> tuple[Query, ...]:
    shares = (("0.5", "half"), ("0.95", "95 %"), ("0.99", "99 %"))
    return tuple(Query(expr=_quantile(share, metric), legend=legend) for share, legend in shares)


def _one(expr: str, legend: str) -> tuple[Query, ...]:
    return (Query(expr=expr, legend=legend),)


#: Outcomes of calls that say something of a server or of the way to it: errors have the names of classes.
_FAILED: Final = 'outcome=~"[A-Z].*|unknown|error"'
#: Of the API server, these are answers: the object is gone, or has changed.
_KUBE_FAILED: Final = (
    'outcome=~"Unavailable|Unanswered|BadAnswer|Unreadable|NotAuthenticated|NotAuthorized|Invalid|error"'
)

_PARKED: Final = 'status="parked"'
_RUNNING: Final = 'phase="running"'
_AWAITED: Final = 'state="awaited"'
_FOUND: Final = 'level=~"warning|failure"'
#: Workloads that wait for room in Slurm's queue, or in their namespace's share of it.
_OUTSIDE: Final = 'reason=~"SlurmQueueFull|SlurmShareUsed"'

BOARD: Final[tuple[BoardRow, ...]] = (
    BoardRow(
        title="At a glance",
        panels=(
            Panel(
                title="Leaders",
                meaning="1 in a healthy installation. With 0 no pod is placed; more than 1 lasts for seconds at most.",
                queries=_one(f"sum({_in('leader')})", "leaders"),
                kind="stat",
                width=3,
            ),
            Panel(
                title="Slurm's last good answer",
                meaning="How long ago Slurm answered a request for jobs. A few seconds are usual; while it grows, pods "
                "wait and no pod is ended.",
                queries=_one(f"max({_led('slurm_last_good_read_age_seconds')})", "age"),
                unit="s",
                kind="stat",
                width=3,
            ),
            Panel(
                title="Breaker",
                meaning="1 while no pod is ended because too many jobs vanished at once.",
                queries=_one(f"max({_led('breaker_open')})", "open"),
                kind="stat",
                width=3,
            ),
            Panel(
                title="Workloads without nodes",
                meaning="All workloads that have a pod without a node, whatever they wait for.",
                queries=_one(f"sum({_led('pending_workloads')})", "pending"),
                kind="stat",
                width=3,
            ),
            Panel(
                title="Parked",
                meaning="Of these, the ones that wait for their user or for an administrator.",
                queries=_one(f"sum({_led('pending_workloads', _PARKED)})", "parked"),
                kind="stat",
                width=3,
            ),
            Panel(
                title="Running jobs",
                meaning="Placeholders that hold nodes.",
                queries=_one(f"sum({_led('placeholder_jobs', _RUNNING)})", "running"),
                kind="stat",
                width=3,
            ),
            Panel(
                title="Pods bound",
                meaning="Pods that got their node, per second.",
                queries=_one(
                    f"sum(rate({_in('pod_scheduling_sli_duration_seconds_count')}[$__rate_interval]))", "pods"
                ),
                unit="reqps",
                kind="stat",
                width=3,
            ),
            Panel(
                title="Versions",
                meaning="Replicas by the version that they run: two versions at the same time are an upgrade under "
                "way.",
                queries=_one(f"count by (version) ({_in('build_info')})", "{{version}}"),
                kind="stat",
                width=3,
            ),
        ),
    ),
    BoardRow(
        title="Throughput and latency",
        panels=(
            Panel(
                title="Throughput",
                meaning="Pods that were bound, and workloads whose waiting pods were all bound, per second.",
                queries=(
                    Query(
                        expr=f"sum(rate({_in('pod_scheduling_sli_duration_seconds_count')}[$__rate_interval]))",
                        legend="pods",
                    ),
                    Query(expr=f"sum(rate({_in('admitted_workloads_total')}[$__rate_interval]))", legend="workloads"),
                ),
                unit="reqps",
            ),
            Panel(
                title="From creation to binding",
                meaning="The whole way of a pod to its node. It contains Slurm's queue: compare it with the next panel "
                "before you look for a delay in the bridge.",
                queries=_quantiles("pod_scheduling_sli_duration_seconds"),
                unit="s",
            ),
            Panel(
                title="Where the time goes, on average",
                meaning="The same way in its parts: `submit` (pods of a gang gather, hooks choose nodes, the "
                "bridge's own queue), `queue` (Slurm's queue), `bind` (from the allocation to the binding).",
                queries=_one(
                    " / ".join(_rate(f"stage_duration_seconds_{part}", "stage") for part in ("sum", "count")),
                    "{{stage}}",
                ),
                unit="s",
                stacked=True,
            ),
            Panel(
                title="The slowest 5 % of each stage",
                meaning="The 95th percentile of each part. A long `submit` with a short `queue`: look at the hooks, at "
                "`scheduling.unstarted_window` and at the reasons below.",
                queries=_one(_quantile("0.95", "stage_duration_seconds", "stage"), "{{stage}}"),
                unit="s",
            ),
            Panel(
                title="From the allocation to the binding",
                meaning="How long nodes that Slurm has allocated stay without their pod. Claims, volumes and pods that "
                "have to leave first make it longer.",
                queries=_quantiles("allocation_to_bound_duration_seconds"),
                unit="s",
            ),
            Panel(
                title="From the submission to the binding",
                meaning="The time that a placeholder exists before its pods run: Slurm's queue and the binding.",
                queries=_quantiles("admission_wait_time_seconds"),
                unit="s",
            ),
            Panel(
                title="Looks at workloads, by result",
                meaning="What the scheduler decided, per second: submitted, scheduled (bound), unschedulable, "
                "rejected, "
                "parked, and errors of the servers.",
                queries=_one(_rate("schedule_attempts_total", "result"), "{{result}}"),
                unit="reqps",
                width=12,
                stacked=True,
            ),
            Panel(
                title="Evicted pods, by reason",
                meaning="Pods that were ended because their job ended, by Slurm's word for its end: `node_fail`, "
                "`preempted`, `timeout`, and so on; `gone` is a job that Slurm has forgotten.",
                queries=_one(_rate("evicted_workloads_total", "reason"), "{{reason}}"),
                unit="reqps",
                width=12,
                stacked=True,
            ),
        ),
    ),
    BoardRow(
        title="Queue",
        panels=(
            Panel(
                title="Workloads without nodes, by status",
                meaning="`waiting` for Slurm or another event, `active` and `inflight` in the bridge, `backoff` after "
                "something went wrong, `parked` until a user acts.",
                queries=_one(f"sum by (status) ({_led('pending_workloads')})", "{{status}}"),
                stacked=True,
            ),
            Panel(
                title="Workloads without nodes, by reason",
                meaning="The reason that their pods show. `SlurmJobPending`: it is Slurm's turn. `Queued`: not told "
                "yet.",
                queries=_one(f"sum by (reason) ({_led('waiting_workloads')})", "{{reason}}"),
                stacked=True,
            ),
            Panel(
                title="Workloads without nodes, by namespace",
                meaning="The 20 namespaces with the most workloads that wait; all others are one series without a "
                "name.",
                queries=_one(f"sum by (namespace) ({_led('waiting_workloads')})", "{{namespace}}"),
                stacked=True,
            ),
            Panel(
                title="Which namespace waits for what",
                meaning="The same numbers, by namespace and reason.",
                queries=_one(f"sum by (namespace, reason) ({_led('waiting_workloads')}) > 0", ""),
                kind="table",
                width=12,
            ),
            Panel(
                title="Our jobs in Slurm, by phase",
                meaning="`pending` and `running` jobs; `unknown` are submits whose answer was lost and that are being "
                "looked up.",
                queries=_one(f"sum by (phase) ({_led('placeholder_jobs')})", "{{phase}}"),
                width=12,
                stacked=True,
            ),
            Panel(
                title="Slurm's reasons",
                meaning="Why our jobs have not started, in Slurm's words. They are read in turn, and may be some "
                "seconds "
                "old; `None`: Slurm has not said.",
                queries=_one(f"sum by (reason) ({_led('unstarted_jobs')})", "{{reason}}"),
                stacked=True,
            ),
            Panel(
                title="Namespaces in Slurm's queue",
                meaning="Jobs that have not started, by namespace: with the window (`scheduling.unstarted_window`) "
                "full, "
                "namespaces share it.",
                queries=_one(f"sum by (namespace) ({_led('namespace_unstarted_jobs')})", "{{namespace}}"),
                stacked=True,
            ),
            Panel(
                title="Namespaces in the bridge's queue",
                meaning="Workloads that want to be submitted and have not been, by namespace. Empty while there is "
                "room in "
                "the window.",
                queries=_one(f"sum by (namespace) ({_led('namespace_waiting_workloads')})", "{{namespace}}"),
                stacked=True,
            ),
        ),
    ),
    BoardRow(
        title="Slurm and Kubernetes",
        panels=(
            Panel(
                title="Calls to Slurm",
                meaning="Requests to slurmrestd, per second. An idle bridge makes a small number that does not depend "
                "on "
                "how many workloads wait.",
                queries=_one(_rate("slurm_request_duration_seconds_count", "operation"), "{{operation}}"),
                unit="reqps",
                stacked=True,
            ),
            Panel(
                title="Slurm's answers",
                meaning="By outcome: `ok`, a refusal in one word, `unknown` (it may have been carried out), or an "
                "error.",
                queries=_one(_rate("slurm_request_duration_seconds_count", "outcome"), "{{outcome}}"),
                unit="reqps",
                stacked=True,
            ),
            Panel(
                title="How long Slurm takes",
                meaning="The 95th percentile by operation. slurmctld answers one request for jobs after the other.",
                queries=_one(_quantile("0.95", "slurm_request_duration_seconds", "operation"), "{{operation}}"),
                unit="s",
            ),
            Panel(
                title="Calls to Kubernetes",
                meaning="Requests to the API server, per second; watches do not count.",
                queries=_one(_rate("kubernetes_request_duration_seconds_count", "operation"), "{{operation}}"),
                unit="reqps",
                stacked=True,
            ),
            Panel(
                title="Kubernetes' answers",
                meaning="By outcome. `NotFound` and `Conflict` are usual: objects change while the bridge works.",
                queries=_one(_rate("kubernetes_request_duration_seconds_count", "outcome"), "{{outcome}}"),
                unit="reqps",
                stacked=True,
            ),
            Panel(
                title="How long Kubernetes takes",
                meaning="The 95th percentile by operation.",
                queries=_one(_quantile("0.95", "kubernetes_request_duration_seconds", "operation"), "{{operation}}"),
                unit="s",
            ),
            Panel(
                title="Conditions and events",
                meaning="What is written on pods. `same` costs no call; `dropped` means that users do not see some of "
                "it.",
                queries=_one(_rate("status_writes_total", "what, outcome"), "{{what}} {{outcome}}"),
                unit="reqps",
                stacked=True,
            ),
            Panel(
                title="Objects in the caches",
                meaning="Objects that the leader follows, by kind.",
                queries=_one(f"max by (kind) ({_in('informer_objects')})", "{{kind}}"),
            ),
            Panel(
                title="Lists, watches and failures",
                meaning="Full lists and failures of watches, per second: both are near 0 unless the API server "
                "restarts.",
                queries=(
                    Query(expr=_rate("informer_lists_total", "kind"), legend="list {{kind}}"),
                    Query(expr=_rate("informer_failures_total", "kind"), legend="failure {{kind}}"),
                ),
                unit="reqps",
            ),
        ),
    ),
    BoardRow(
        title="Hooks",
        panels=(
            Panel(
                title="Time in hooks",
                meaning="Seconds of work per second, by hook. At 1 the scheduler does nothing else.",
                queries=_one(_rate("hook_duration_seconds_sum", "hook"), "{{hook}}"),
                unit="s",
                stacked=True,
            ),
            Panel(
                title="The slowest 5 % of calls",
                meaning="The 95th percentile of a call, by hook and phase.",
                queries=_one(_quantile("0.95", "hook_duration_seconds", "hook, phase"), "{{hook}} {{phase}}"),
                unit="s",
            ),
            Panel(
                title="Errors of hooks",
                meaning="Calls that raised, timed out or returned something invalid. The workload waits with "
                "`HookFailed`.",
                queries=_one(_rate("hook_errors_total", "hook, phase"), "{{hook}} {{phase}}"),
                unit="reqps",
            ),
            Panel(
                title="Background work of hooks",
                meaning="Evictions for queues and priorities, samples of agents, and so on, in the words of each hook: "
                "[vela](vela.md#metrics), [preemption](preemption.md#what-users-see), "
                "[yunikorn](yunikorn.md#the-queues-at-a-glance).",
                queries=_one(_rate("hook_events_total", "hook, what"), "{{hook}} {{what}}"),
                unit="reqps",
                width=12,
            ),
            Panel(
                title="Time of one look",
                meaning="How long the scheduler takes to decide what to do with one workload, hooks included.",
                queries=_quantiles("scheduling_attempt_duration_seconds"),
                unit="s",
                width=12,
            ),
        ),
    ),
    BoardRow(
        title="Queues of the hook yunikorn",
        panels=(
            Panel(
                title="Used",
                meaning="Resources of a queue's admitted workloads: vcore in thousandths, memory in bytes.",
                queries=_one(f"sum by (queue, resource) ({_led('queue_used')})", "{{queue}} {{resource}}"),
                width=6,
            ),
            Panel(
                title="Waiting for",
                meaning="Resources that a queue's waiting workloads request.",
                queries=_one(f"sum by (queue, resource) ({_led('queue_pending')})", "{{queue}} {{resource}}"),
                width=6,
            ),
            Panel(
                title="Share of the guarantee",
                meaning="What a queue uses of what is guaranteed to it: above 1 it borrows.",
                queries=_one(
                    f"sum by (queue, resource) ({_led('queue_used')}) "
                    f"/ (sum by (queue, resource) ({_led('queue_guaranteed')}) > 0)",
                    "{{queue}} {{resource}}",
                ),
                unit="percentunit",
                width=6,
            ),
            Panel(
                title="Applications",
                meaning="Running and waiting applications of each queue.",
                queries=(
                    Query(expr=f"sum by (queue) ({_led('queue_running')})", legend="{{queue}} running"),
                    Query(expr=f"sum by (queue) ({_led('queue_waiting')})", legend="{{queue}} waiting"),
                ),
                width=6,
            ),
        ),
    ),
    BoardRow(
        title="Node controller, webhook and APIs",
        panels=(
            Panel(
                title="Nodes of Slurm that were changed",
                meaning="What the [node controller](nodes.md) did, by action and outcome.",
                queries=_one(_rate("node_actions_total", "action, outcome"), "{{action}} {{outcome}}"),
                unit="reqps",
            ),
            Panel(
                title="Reviews of the webhook",
                meaning="Objects that the [webhook](admission.md) has seen, by outcome. `failed` is a defect.",
                queries=_one(
                    _rate("admission_review_duration_seconds_count", "webhook, outcome"), "{{webhook}} {{outcome}}"
                ),
                unit="reqps",
            ),
            Panel(
                title="Requests to the APIs",
                meaning="To the [submission API](submission.md) and the admin API of the queues, by HTTP status.",
                queries=(
                    Query(expr=_rate("submissions_total", "status"), legend="submission {{status}}"),
                    Query(expr=_rate("queue_requests_total", "what, status"), legend="{{what}} {{status}}"),
                ),
                unit="reqps",
            ),
        ),
    ),
    BoardRow(
        title="The process",
        panels=(
            Panel(
                title="Leader",
                meaning="Which replica leads. A change each hour or more often has a reason: look at the log.",
                queries=_one(_in("leader"), "{{instance}}"),
                width=6,
            ),
            Panel(
                title="CPU",
                meaning="Seconds of CPU per second.",
                queries=_one(
                    f"rate(process_cpu_seconds_total[$__rate_interval]) and on (job, instance) {_in('leader')}",
                    "{{instance}}",
                ),
                unit="s",
                width=6,
            ),
            Panel(
                title="Memory",
                meaning="Resident memory. It grows with the number of pods and nodes, and not with time.",
                queries=_one(f"process_resident_memory_bytes and on (job, instance) {_in('leader')}", "{{instance}}"),
                unit="bytes",
                width=6,
            ),
            Panel(
                title="Things that should not happen",
                meaning="Defects (`surprises`), objects that cannot be read, placeholders without pods, pods of "
                "another "
                "bridge, and failures found by the checks. Each has an alert below.",
                queries=(
                    Query(expr=_rate("surprises_total", "loop"), legend="surprise {{loop}}"),
                    Query(expr=_rate("unreadable_total", "server, kind"), legend="unreadable {{kind}} of {{server}}"),
                    Query(expr=f"sum(rate({_in('orphans_cancelled_total')}[$__rate_interval]))", legend="orphans"),
                    Query(expr=f"sum({_led('foreign_pods')})", legend="foreign pods"),
                    Query(expr=f"sum({_led('resized_pods')})", legend="resized pods"),
                    Query(
                        expr=f"sum by (level) ({_led('check_findings', _FOUND)})",
                        legend="check {{level}}",
                    ),
                    Query(expr=_rate("configuration_reloads_total", "result"), legend="reload {{result}}"),
                ),
                width=6,
            ),
        ),
    ),
)

#: The labels of one installation: of its replicas together.
_BY: Final = "job"


def _all(metric: str, window: str, *matchers: str, by: str = "") -> str:
    """How often something was counted. A series that is new has come from 0, which `increase` does not see."""
    series = f"{PREFIX}{metric}{{{', '.join(matchers)}}}" if matchers else PREFIX + metric
    labels = ", ".join((_BY, by) if by else (_BY,))
    return f"sum by ({labels}) (({series} unless {series} offset {window}) or increase({series}[{window}]))"


def _share(metric: str, failed: str, window: str, by: str = "") -> str:
    """Which part of the calls failed; 0 while none did."""
    labels = ", ".join((_BY, by) if by else (_BY,))
    every = f"sum by ({labels}) (rate({PREFIX}{metric}[{window}]))"
    bad = f"sum by ({labels}) (rate({PREFIX}{metric}{{{failed}}}[{window}]))"
    return f"({bad} or {every} * 0) / {every}"


def _sum(metric: str, *matchers: str, by: str = "") -> str:
    labels = ", ".join((_BY, by) if by else (_BY,))
    return f"sum by ({labels}) ({_led(metric, *matchers, chosen=False)})"


#: Of each part; of the installation where there are none.
_LEADERS: Final = (
    f"sum by ({_BY}, part) ((slurm_bridge_leader * on (job, instance) group_left (part) slurm_bridge_part_info) "
    "or on (job, instance) slurm_bridge_leader)"
)

#: When a tenth of the time of the token is left; thousands of years from now for a token without an end.
_LASTS: Final = (
    f"clamp_max({PREFIX}slurm_token_expires_timestamp_seconds - 0.1 * {PREFIX}slurm_token_lifetime_seconds, 1e11) "
    f"and on (job, instance) {PREFIX}leader == 1"
)

ALERTS: Final[tuple[Alert, ...]] = (
    Alert(
        name="SlurmBridgeDown",
        value="(count(slurm_bridge_leader) or vector(0))",
        bound="== 0",
        minutes=5,
        severity="critical",
        summary="Prometheus scrapes no replica of slurm-bridge",
        meaning="No replica has been scraped for five minutes. Running pods go on; no pod gets a node, and pods whose "
        "job "
        "ends are not ended.",
        action="`kubectl --namespace slurm-bridge-system get pods` shows whether they run, and their log why not. If "
        "they "
        "run, the scrape fails: compare the namespace of Prometheus with `networkpolicy.yaml`.",
    ),
    Alert(
        name="SlurmBridgeNoLeader",
        value=_LEADERS,
        bound="== 0",
        minutes=3,
        severity="critical",
        summary="no replica of {{ $labels.job }} leads{{ with $labels.part }} part {{ . }}{{ end }}",
        meaning="Replicas run and none is the leader, so no pod gets a node; with parts, no pod of the part.",
        action="The leader holds the Lease `slurm-bridge`, or `slurm-bridge.part.PART` with parts: `kubectl "
        "--namespace slurm-bridge-system get lease slurm-bridge --output yaml` shows its holder. Without a holder, "
        "replicas cannot write the Lease: see `/readyz` and the log, and compare the account's rights with "
        "`rbac.yaml`.",
    ),
    Alert(
        name="SlurmBridgeSeveralLeaders",
        value=_LEADERS,
        bound="> 1",
        minutes=3,
        severity="critical",
        summary="{{ $value }} replicas of {{ $labels.job }} lead{{ with $labels.part }} part {{ . }}{{ end }}",
        meaning="Several replicas believe that they lead for minutes. The Lease excludes that for replicas that share "
        "it, "
        "so they have different Leases, or leader election is off.",
        action="Compare `leader_election` of the replicas. More than one replica needs it. Two installations need "
        "different values of `cluster_id` and `scheduler_names`, and scrape jobs of their own.",
    ),
    Alert(
        name="SlurmBridgeNamespacesAwaited",
        value=f"({_sum('part_namespaces', _AWAITED)} or sum by ({_BY}) (slurm_bridge_leader) * 0)",
        bound="> 0",
        minutes=15,
        severity="warning",
        summary="{{ $value }} namespaces of {{ $labels.job }} belong to a part whose daemon has not got them",
        meaning="The daemon of another part still has these namespaces: it cannot finish what is under way, is dead "
        "while its lease is held, or has settings with other parts.",
        action="The Lease `slurm-bridge.namespace.NAMESPACE` names that part, and the log of its daemon says what it "
        "waits for. Compare `parts.names` of all daemons: [scaling.md](scaling.md).",
    ),
    Alert(
        name="SlurmBridgeSlurmSilent",
        value=f"time() - min by ({_BY}) ({_led('slurm_last_good_read_timestamp_seconds', chosen=False)})",
        bound="> 120",
        minutes=1,
        severity="critical",
        summary="Slurm has not answered {{ $labels.job }} for {{ $value | humanizeDuration }}",
        meaning="Slurm gives no good answer to requests for jobs. Pods wait with `SlurmUnavailable`, bound pods go "
        "on, and "
        "no pod is ended because of it.",
        action="`slurm-bridge check` in the daemon's pod names the problem: slurmrestd or slurmctld is down, the "
        "token has "
        "expired or was replaced, or the address is wrong. Nothing has to be repaired afterwards.",
    ),
    Alert(
        name="SlurmBridgeTokenEnds",
        value=f"min by ({_BY}) ({_LASTS}) - time()",
        bound="< 0",
        minutes=0,
        severity="critical",
        summary="the token of {{ $labels.job }} for Slurm ends soon, or has ended",
        meaning="Less than a tenth of the token's time is left. Once it has ended, Slurm refuses every request: pods "
        "wait with `SlurmRefusesBridge`, and bound pods go on.",
        action="Write a new token into the file at `slurm.token_file`, or find out why what renews it does not; the "
        "daemon reads the file again by itself. `slurm-bridge check` says when the token ends.",
    ),
    Alert(
        name="SlurmBridgeBreakerOpen",
        value=f"max by ({_BY}) ({_led('breaker_open', chosen=False)})",
        bound="== 1",
        minutes=1,
        severity="critical",
        summary="too many jobs of {{ $labels.job }} vanished from Slurm at once",
        meaning="So many jobs that held nodes are unknown to Slurm that slurmctld has probably lost its state. No pod "
        "is "
        "ended because of vanished jobs while this lasts.",
        action="Check Slurm before anything else: `scontrol ping`, the StateSaveLocation, the log of slurmctld. When "
        "jobs "
        "come back, the breaker closes by itself. Otherwise see [operating.md](operating.md#when-something-fails).",
    ),
    Alert(
        name="SlurmBridgeSurprises",
        value=_all("surprises_total", "15m", by="loop"),
        bound="> 0",
        minutes=0,
        severity="warning",
        summary="a defect of slurm-bridge in {{ $labels.loop }}",
        meaning="An unexpected error stopped work on one workload or object. The others are not affected; this one is "
        "tried again later and later.",
        action="The log has the stack trace and names the object. Please report it with both.",
    ),
    Alert(
        name="SlurmBridgeUnreadable",
        value=_all("unreadable_total", "1h", by="server, kind"),
        bound="> 0",
        minutes=0,
        severity="warning",
        summary="{{ $labels.kind }} of {{ $labels.server }} cannot be read",
        meaning="An object, or a row of Slurm's answer, has an impossible form, and is left out. What depends on it "
        "counts "
        "as unknown.",
        action="The log names it. A user may have written it to do harm; otherwise a server is newer than the bridge.",
    ),
    Alert(
        name="SlurmBridgeCallsToSlurmFail",
        value=_share("slurm_request_duration_seconds_count", _FAILED, "10m"),
        bound="> 0.1",
        minutes=10,
        severity="warning",
        summary="{{ $value | humanizePercentage }} of the calls of {{ $labels.job }} to Slurm fail",
        meaning="Refusals of single jobs do not count: these are timeouts, broken connections, errors of the server, "
        "and "
        "answers that cannot be read.",
        action="The panel *Slurm's answers* says which. `Unavailable` and `unknown`: the load of slurmctld, and the "
        "way to "
        "it. `NotAuthenticated`, `NotAuthorized`: the token. Users wait longer, and nothing is lost.",
    ),
    Alert(
        name="SlurmBridgeAnswersLost",
        value=_share("slurm_request_duration_seconds_count", 'outcome="unknown"', "10m"),
        bound="> 0.01",
        minutes=10,
        severity="warning",
        summary="answers get lost between {{ $labels.job }} and Slurm",
        meaning="Requests may have been carried out, and their answers are missing. Each is looked up before anything "
        "else "
        "is done, so no job is submitted twice.",
        action="Look for a proxy or a network that cuts connections, for restarts of slurmrestd, and for a slurmctld "
        "that "
        "takes longer than `slurm.timeout_seconds`.",
    ),
    Alert(
        name="SlurmBridgeCallsToKubernetesFail",
        value=_share("kubernetes_request_duration_seconds_count", _KUBE_FAILED, "10m"),
        bound="> 0.1",
        minutes=10,
        severity="warning",
        summary="{{ $value | humanizePercentage }} of the calls of {{ $labels.job }} to Kubernetes fail",
        meaning="The API server is not reached, refuses the account, or throttles it. `NotFound` and `Conflict` do not "
        "count.",
        action="`NotAuthorized`: apply `rbac.yaml` and the components of the hooks that you use; the log names the "
        "right. "
        "`Unavailable`: the API server is overloaded or restarts.",
    ),
    Alert(
        name="SlurmBridgeBindingSlow",
        value=f"histogram_quantile(0.9, sum by (le, {_BY}) "
        "(rate(slurm_bridge_allocation_to_bound_duration_seconds_bucket[15m])))",
        bound="> 10",
        minutes=15,
        severity="warning",
        summary="allocated nodes of {{ $labels.job }} wait {{ $value | humanizeDuration }} for their pods",
        meaning="One allocation in ten holds nodes for more than ten seconds before its pod is bound: these nodes are "
        "idle.",
        action="Pods that wait for others to leave (`NodeFull`), for volumes or for devices say so. If none does, "
        "look at "
        "*How long Kubernetes takes* and at the daemon's CPU.",
    ),
    Alert(
        name="SlurmBridgeHookErrors",
        value=f"sum by ({_BY}, hook, phase) (rate(slurm_bridge_hook_errors_total[10m]))",
        bound="> 0",
        minutes=5,
        severity="warning",
        summary="the hook {{ $labels.hook }} fails in {{ $labels.phase }}",
        meaning="The hook raises, hangs or returns invalid results. Workloads that need its answer wait with "
        "`HookFailed`.",
        action="The log has the error. Correct the hook, or remove it from `hooks`: the configuration is reloaded.",
    ),
    Alert(
        name="SlurmBridgeHooksSlow",
        value=f"sum by ({_BY}) (rate(slurm_bridge_hook_duration_seconds_sum[10m]))",
        bound="> 0.8",
        minutes=10,
        severity="warning",
        summary="hooks of {{ $labels.job }} take {{ $value | humanizePercentage }} of the scheduler's time",
        meaning="The scheduler decides in one thread. While hooks use nearly all of its time, every workload waits "
        "for them.",
        action="*Time in hooks* says which. [performance.md](performance.md) has the costs of the included ones.",
    ),
    Alert(
        name="SlurmBridgeHookBackground",
        value=_all("hook_events_total", "15m", 'what=~"error|failed|agents-unavailable"', by="hook, what"),
        bound="> 0",
        minutes=5,
        severity="warning",
        summary="the hook {{ $labels.hook }} reports {{ $labels.what }}",
        meaning="Work of a hook beside the scheduler fails. `vela`, `agents-unavailable`: no agent answers, and "
        "nothing is "
        "sampled. `preemption`, `failed`: nominations cannot be written. `yunikorn`, `error`: the queue core has "
        "failed.",
        action="The log says at what. For `vela` see [agents.md](agents.md); for `preemption` apply "
        "`deploy/preemption`.",
    ),
    Alert(
        name="SlurmBridgeParked",
        value=_sum("pending_workloads", _PARKED),
        bound="> 0",
        minutes=60,
        severity="info",
        summary="{{ $value }} workloads of {{ $labels.job }} wait for their users",
        meaning="These workloads cannot go on as they are: a wrong annotation, a request that Slurm refuses, a job "
        "that an "
        "administrator cancelled.",
        action="Their pods say what to do; *Which namespace waits for what* says whose they are. Many of them at once "
        "point to the configuration, for example to a default that Slurm does not accept any more.",
    ),
    Alert(
        name="SlurmBridgeWindowFull",
        value=f"({_sum('waiting_workloads', _OUTSIDE)} or sum by ({_BY}) (slurm_bridge_leader) * 0)",
        bound="> 0",
        minutes=60,
        severity="info",
        summary="{{ $value }} workloads of {{ $labels.job }} wait outside Slurm's queue",
        meaning="`scheduling.unstarted_window` jobs wait in Slurm, and more workloads want to be submitted. Slurm "
        "orders only "
        "the jobs that it has.",
        action="This is the purpose of the window in a cluster with many waiting jobs. If Slurm's priorities should "
        "order "
        "more of them, raise the window, and keep it well below MaxJobCount.",
    ),
    Alert(
        name="SlurmBridgePodsLost",
        value=_all("evicted_workloads_total", "15m", 'reason=~"node_fail|boot_fail|gone|shrunk"', by="reason"),
        bound="> 0",
        minutes=0,
        severity="warning",
        summary="{{ $value }} pods of {{ $labels.job }} ended with {{ $labels.reason }}",
        meaning="Pods ended because Slurm took their node back: a node failed, or (`gone`) Slurm has forgotten their "
        "jobs.",
        action="`sinfo --list-reasons` shows failed nodes. With `gone`, slurmctld lost jobs: look at its log. "
        "Controllers "
        "create the pods again; bare pods are lost.",
    ),
    Alert(
        name="SlurmBridgeOrphans",
        value=_all("orphans_cancelled_total", "1h"),
        bound="> 0",
        minutes=0,
        severity="warning",
        summary="{{ $labels.job }} cancelled {{ $value }} placeholders without pods",
        meaning="Pods were deleted while no daemon ran, slurmctld brought back old jobs, or two bridges share a "
        "`cluster_id`.",
        action="After an interruption this is expected once. If it continues, look for a second bridge with the same "
        "`cluster_id`: each cancels the jobs of the other.",
    ),
    Alert(
        name="SlurmBridgeForeignPods",
        value=f"max by ({_BY}) ({_led('foreign_pods', chosen=False)})",
        bound="> 0",
        minutes=60,
        severity="info",
        summary="{{ $value }} pods with the scheduler name of {{ $labels.job }} were bound by others",
        meaning="Pods with our scheduler name run on nodes, and no job of this bridge stands for them. They are left "
        "alone.",
        action="This is normal while [another bridge](operating.md#beside-another-bridge) works. Otherwise a user has "
        "written "
        "`nodeName`: see [admission.md](admission.md).",
    ),
    Alert(
        name="SlurmBridgeStatusDropped",
        value=_all("status_writes_total", "15m", 'outcome="dropped"'),
        bound="> 0",
        minutes=15,
        severity="info",
        summary="{{ $labels.job }} drops conditions or events",
        meaning="There is more to say about pods than `status.conditions_per_second` and `status.events_per_second` "
        "allow, so "
        "some users do not see why their pods wait.",
        action="Raise the rates if the API server has room, and look for a namespace that creates and deletes many "
        "pods.",
    ),
    Alert(
        name="SlurmBridgeReloadRefused",
        value=_all("configuration_reloads_total", "1h", 'result="refused"'),
        bound="> 0",
        minutes=0,
        severity="warning",
        summary="{{ $labels.job }} refuses its new configuration",
        meaning="The file has changed, and the new content cannot work. The last good configuration stays in force "
        "until the "
        "process restarts; then it does not start.",
        action="`slurm-bridge check-config` prints the lines; so do the log and the events of the Lease.",
    ),
    Alert(
        name="SlurmBridgeCheckFailed",
        value=_sum("check_findings", 'level="failure"'),
        bound="> 0",
        minutes=5,
        severity="warning",
        summary="{{ $value }} checks of {{ $labels.job }} failed",
        meaning="Something that the bridge relies on is not so, for example a setting of slurm.conf. It was found "
        "when this "
        "replica became leader.",
        action="`slurm-bridge check` prints each finding with its remedy: [operating.md](operating.md). The number is "
        "taken again when a replica becomes leader.",
    ),
    Alert(
        name="SlurmBridgeCacheIncomplete",
        value=f"min by ({_BY}, instance, kind) (slurm_bridge_informer_synced)",
        bound="== 0",
        minutes=10,
        severity="warning",
        summary="{{ $labels.instance }} has not listed {{ $labels.kind }}",
        meaning="The replica cannot list a kind that it needs, and is not ready.",
        action="Mostly a right is missing: the log names it. Kinds that hooks read need the components of these hooks.",
    ),
    Alert(
        name="SlurmBridgeWatchesFail",
        value=f"sum by ({_BY}, kind) (rate(slurm_bridge_informer_failures_total[15m]))",
        bound="> 0.05",
        minutes=15,
        severity="warning",
        summary="watches of {{ $labels.kind }} fail again and again",
        meaning="Changes arrive late: each failure is followed by a pause and often by a full list.",
        action="Look at the API server, and at a proxy that closes connections earlier than after five minutes.",
    ),
    Alert(
        name="SlurmBridgeLeaderChanges",
        value=f"sum by ({_BY}) (changes(slurm_bridge_leader[1h]))",
        bound="> 8",
        minutes=0,
        severity="warning",
        summary="the leader of {{ $labels.job }} changes again and again",
        meaning="Replicas lose the Lease. Each new leader reads both sides anew before it acts.",
        action="The log says why: the API server answers too slowly for `leader_election.renew_seconds`, or the "
        "process has "
        "too little CPU.",
    ),
    Alert(
        name="SlurmBridgeRestarts",
        value=f"max by ({_BY}, instance) "
        "(changes(process_start_time_seconds[1h]) and on (job, instance) slurm_bridge_leader)",
        bound="> 2",
        minutes=0,
        severity="warning",
        summary="{{ $labels.instance }} restarts again and again",
        meaning="The process has ended more than twice within an hour: killed for its memory, by its liveness probe, "
        "or "
        "because a thread died.",
        action="`kubectl --namespace slurm-bridge-system describe pod` shows the reason, and `kubectl logs "
        "--previous` the "
        "last words.",
    ),
    Alert(
        name="SlurmBridgeNodeActionsFail",
        value=_share("node_actions_total", 'outcome!="ok"', "30m", by="action"),
        bound="> 0.5",
        minutes=30,
        severity="warning",
        summary="{{ $labels.action }} of nodes fails",
        meaning="Slurm refuses what the [node controller](nodes.md) asks for, so nodes of Kubernetes and Slurm differ.",
        action="The log has Slurm's words. `slurm-bridge check` says whether the token and slurm.conf allow it.",
    ),
    Alert(
        name="SlurmBridgeWebhookFails",
        value=_share("admission_review_duration_seconds_count", 'outcome="failed"', "10m", by="webhook"),
        bound="> 0",
        minutes=5,
        severity="critical",
        summary="the webhook {{ $labels.webhook }} fails",
        meaning="Reviews end with an error of the webhook. With `admission.on_error: deny` users cannot create pods "
        "of the "
        "bridge meanwhile.",
        action="The log has the stack trace. `admission.on_error: allow` lets objects in without a review until it is "
        "solved.",
    ),
)
