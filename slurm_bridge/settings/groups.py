"""The groups of keys, one class each. Durations carry their unit in the name."""

import pathlib
import urllib.parse
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pydantic
from pydantic import AfterValidator, Field

from slurm_bridge import errors
from slurm_bridge.settings import kinds
from slurm_bridge.settings.kinds import (
    Count,
    File,
    JobNumber,
    Label,
    Name,
    Names,
    Quantity,
    Rate,
    Seconds,
    SettingsGroup,
    User,
)
from slurm_bridge.slurm import settings as adapter
from slurm_bridge.slurm import wire


def _address(url: str) -> str:
    """What the adapter says of it; its words never repeat the address, which may hold a password."""
    try:
        adapter.SlurmSettings(url=url, token_file=pathlib.Path("unread"))
    except errors.BadConfiguration as problem:
        raise ValueError(str(problem)) from None
    return url


def _version(name: str) -> str:
    if name not in wire.WIRES:
        raise ValueError(f"is none of {', '.join(wire.WIRES)}")
    return name


def _private(plain: bool, group: pydantic.ValidationInfo) -> bool:
    """The operator's token does not travel where others can read it unless the configuration says so."""
    url = urllib.parse.urlsplit(str(group.data.get("url", "")))
    if url.scheme == "http" and not plain and not kinds.loopback(url.hostname or ""):
        raise ValueError(
            "has to be true where slurm.url is http:// to another machine (the operator's token travels unencrypted;"
            " better is https:// in slurm.url, with the certificate authority in slurm.ca)"
        )
    return plain


class JobIds(SettingsGroup):
    """A range of job ids that belongs to this bridge alone."""

    first: JobNumber = 50_000_000
    """The lowest job id that the bridge chooses."""
    last: Annotated[JobNumber, kinds.above("first")] = 66_999_999
    """The highest one."""


class SlurmAccess(SettingsGroup):
    """How slurmrestd is reached."""

    url: Annotated[str, AfterValidator(_address)]
    """Where slurmrestd listens: `http://host:port`, `https://host:port` or `unix:///path/to/socket`."""
    plain_http: Annotated[bool, AfterValidator(_private)] = False
    """Whether the operator's token may be sent unencrypted to another machine. Only for a network that you trust as \
much as the token."""
    token_file: File
    """A file with an operator's token, plain or as `SLURM_JWT=…`. It is read again when it changes."""
    user_name: Name | None = None
    """The user name that is sent with the token. Left out, Slurm uses the name in the token."""
    api_versions: Annotated[tuple[Annotated[str, AfterValidator(_version)], ...], kinds.SOME, kinds.DIFFERENT] = tuple(
        wire.WIRES
    )
    """API versions in order of preference. The first one that slurmrestd serves is used."""
    ca: File | None = None
    """The certificate authority of slurmrestd's certificate, for an `https` URL."""
    cert: File | None = None
    """A client certificate."""
    key: Annotated[File | None, kinds.together_with("cert")] = None
    """The key of the certificate, if it is not in the same file."""
    connect_timeout_seconds: Seconds = 3.0
    """How long it may take to connect."""
    read_timeout_seconds: Seconds = 15.0
    """How long an answer may take; slurmctld itself gives up after 10 to 20 seconds."""
    recovery_timeout_seconds: Seconds = 60.0
    """How long the full list of all jobs may take. It is read once after a start, unless Slurm has more than 10 000."""
    max_answer_mib: Count = 1024
    """The longest answer that is read, in MiB. The list of all jobs is the longest: 5 KiB for each job of any user."""
    read_tries: Count = 2
    """How often a read is tried while slurmrestd does not answer. Requests that change something are never repeated."""
    read_first_pause_seconds: Seconds = 0.1
    """The longest pause before the second try. Pauses are random, so that several bridges do not retry at the same \
moment."""
    read_longest_pause_seconds: Annotated[Seconds, kinds.above("read_first_pause_seconds")] = 2.0
    """The longest pause before any try. The pause doubles with each try until then."""
    connections: Count = 8
    """How many connections are kept open at most."""
    job_ids: JobIds | None = JobIds()
    """The range from which job ids are chosen, so that slurmctld itself refuses a second placeholder of one workload. \
`null`: Slurm assigns job ids, and the bridge looks for an earlier placeholder before it submits again."""


class Kubernetes(SettingsGroup):
    """How the API server is reached."""

    kubeconfig: File | None = None
    """A kubeconfig file. `null`: the service account of the bridge's pod."""


class DefaultsSettings(SettingsGroup):
    """What a pod gets that does not say. Its own requests and annotations win."""

    partition: Names | None = None
    """The partition, or a comma list of partitions. Left out, Slurm's default partition."""
    account: Name | None = None
    """The account that is charged."""
    qos: Name | None = None
    """The quality of service."""
    gres: str | None = None
    """Generic resources, for example `gpu:1`, of a pod that requests none."""
    timelimit: Count | None = None
    """The time limit in minutes. Left out, the default of the partition."""
    exclusive: bool = False
    """Whether every pod gets whole nodes. Pods share nodes otherwise."""
    one_per_node: bool = False
    """Whether each pod of a gang gets a node of its own. Pods of a gang share nodes otherwise. The annotation \
`one-per-node` of the owner overrides it."""
    mcs_label: str = ""
    """The MCS label of every placeholder."""
    cpus: Quantity = "1"
    """CPUs of a pod that requests none."""
    memory: Quantity = "512Mi"
    """Memory of a pod that requests none."""
    count: Literal["requests", "limits"] = "requests"
    """Whether Slurm counts the requests of a pod for cpu and memory, or its limits where it has any. Kubernetes \
always counts requests."""
    user: User | None = None
    """The Slurm user that owns the placeholders. Left out, the owner of the token. It has to be an ordinary user: \
jobs of users with a user id below 1000 are withdrawn."""
    group: User | None = None
    """The group of the placeholders. Left out, the user's primary group."""
    environment: bool = False
    """Whether annotations of a bound pod tell Slurm's environment, from which containers get variables such as \
`SLURM_PROCID`. The annotation `environment` overrides it."""


class HookSettings(SettingsGroup):
    """One hook of the chain."""

    name: Name
    """A built-in hook, or one that an installed package offers under `slurm_bridge.hooks`."""
    options: Mapping[str, Any] = {}
    """The options of the hook; its page lists them."""
    on_error: Literal["skip", "hold", "reject"] = "hold"
    """What happens when the hook fails: the workload continues without it (`skip`), waits (`hold`), or is refused \
(`reject`)."""
    budget_ms: Count = 200
    """How long one call of the hook may take, in milliseconds."""


class Workloads(SettingsGroup):
    """What is one workload where the objects themselves do not say, and how groups are treated."""

    job: Literal["pod", "gang"] = "pod"
    """Whether each pod of a Job is a workload, or all of them are a gang. The annotation `gang` of a Job overrides \
it."""
    jobset: Literal["auto", "gang", "replicatedjob", "pod"] = "auto"
    """The pods of a JobSet: all as a gang (`gang`), a gang for each replicated job (`replicatedjob`), each pod a \
workload (`pod`), or the first of these that its startup order allows (`auto`). The annotation `gang` of a JobSet \
overrides it."""
    member_lost: Literal["auto", "keep", "restart-group"] = "auto"
    """What happens when a member of a running gang is lost: the others continue (`keep`), all are ended and start \
anew (`restart-group`), or the kind of the workload decides (`auto`). The annotation `member-lost` overrides it."""
    heterogeneous: Literal["auto", "never"] = "auto"
    """Whether a gang whose members differ is submitted as a heterogeneous job, if Slurm supports it (`auto`). \
`never`: every member is counted as the largest."""
    settle_seconds: Annotated[float, Field(ge=0)] = 1.0
    """A gang whose number of members is not known is submitted when no further member was created for this long."""
    incomplete_seconds: Seconds = 30.0
    """How long a gang that lacks members keeps its pending placeholder before it is cancelled."""
    bind_seconds: Seconds = 300.0
    """How long it may take to bind all members of a gang before its start is undone."""
    volume_seconds: Seconds = 300.0
    """How long it may take to bind the claims of pods that Slurm has allocated nodes to, or to give devices to their \
ResourceClaims, before the nodes are given back."""


class Attempts(SettingsGroup):
    """Which nodes are tried, how long, and what then, where a hook prefers some."""

    candidates: Annotated[int, Field(ge=1, le=10)] = 3
    """How many candidate sets are tried at most."""
    window_seconds: Seconds = 45.0
    """How long Slurm is offered one candidate set, counted from the moment at which Slurm first considered the job."""
    total: Count = 10
    """After how many attempts the last step follows."""
    then: Literal["widen", "stay"] = "widen"
    """The last step: every eligible node (`widen`), or the last candidate set without a time limit (`stay`)."""


class Scheduling(SettingsGroup):
    """How much is done at once."""

    workers: Annotated[int, Field(ge=1, le=64)] = 8
    """How many calls to Kubernetes and Slurm are made at the same time."""
    unstarted_window: Count = 4000
    """How many placeholders may wait in Slurm at once, shared between namespaces; further workloads wait in the \
daemon."""
    bind_tries: Count = 5
    """How often in a row nodes may refuse a pod before its next try waits for the longest pause."""
    avoid_seconds: Seconds = 300.0
    """How long a node that could not run a pod is excluded for that pod and for pods that replace it. A reason that \
can be seen of the node, such as a cordon or too little room, counts no longer than that. A node that fails more than \
three times in a row is excluded for longer, up to eight times as long."""
    backoff_first_seconds: Seconds = 1.0
    """The first pause after a failure."""
    backoff_most_seconds: Annotated[Seconds, kinds.above("backoff_first_seconds")] = 300.0
    """The longest pause."""


class MirrorSettings(SettingsGroup):
    """How Slurm is watched."""

    fastest_seconds: Seconds = 0.2
    """The shortest time between two reads of the states of the bridge's jobs."""
    slowest_seconds: Annotated[Seconds, kinds.above("fastest_seconds")] = 5.0
    """The longest time between two reads of the state of a job, and the time between two reads while no job runs and \
nothing changes."""
    cpu_share: Annotated[float, Field(gt=0, le=1)] = 0.03
    """How much of one processor slurmctld and the bridge together may use to read the states of running jobs while \
nothing changes. It determines how soon the end of a job is noticed: after half a second to `slowest_seconds`."""
    detail_reads_per_second: Rate = 1.0
    """How many waiting jobs are read in full per second. It determines how soon a hold, an edit or a new reason is \
noticed."""
    full_list_above: Count = 4000
    """If the bridge asks for the states of more jobs than this, and Slurm has at most 10 000 jobs, the states of all \
jobs are read."""
    vanished_minimum: Count = 10
    """The breaker opens, and no pod is deleted, when at least this many of the bridge's jobs have vanished from Slurm \
at once, and at least `vanished_fraction` of them."""
    vanished_fraction: Annotated[float, Field(gt=0, le=1)] = 0.5
    """The fraction of the bridge's jobs that has to vanish at once before the breaker opens."""
    sweep_seconds: Seconds = 60.0
    """The time between two searches for placeholders without pods."""


AfterTimeout = Literal["resubmit", "hold"]


def _with_default(rules: Mapping[str, AfterTimeout]) -> Mapping[str, AfterTimeout]:
    return {"default": "resubmit", **rules}


class EndsSettings(SettingsGroup):
    """What follows when a placeholder or a pod ends."""

    after_timeout: Annotated[Mapping[str, AfterTimeout], AfterValidator(_with_default)] = {"default": "resubmit"}
    """For each kind of owner (`Job`, `StatefulSet`, …, `default`): what happens to the pod that replaces one \
that reached its time limit: it is submitted (`resubmit`), or waits until the user changes something (`hold`)."""
    stuck_seconds: Seconds = 600.0
    """How long the placeholder of a deleted pod is kept if the pod does not end because its node does not answer."""


class StatusSettings(SettingsGroup):
    """How much is written on pods."""

    conditions_per_second: Rate = 20.0
    """How many conditions are written per second. Of several for one pod only the latest is written."""
    events_per_second: Rate = 20.0
    """How many events are written per second. Surplus events are dropped and counted."""
    patience_seconds: Annotated[float, Field(ge=0)] = 2.0
    """A pod that starts within this time gets no condition about its waiting."""


def _one_of_the_parts(own: str | None, group: pydantic.ValidationInfo) -> str | None:
    """Said of this key: which of the others is the mistake is not known."""
    every = group.data.get("names")
    if every is not None and own is None and every:
        raise ValueError(f"has to be the one of {', '.join(every)} that this daemon serves")
    if every is not None and own is not None and own not in every:
        raise ValueError(f"is not among names ({', '.join(every) or 'none'})")
    return own


class LeaderElection(SettingsGroup):
    """Of several replicas one acts."""

    enabled: bool = True
    """Set it to `false` only if there is never more than one replica."""
    namespace: Label = "slurm-bridge"
    """The namespace of the Lease."""
    name: Label = "slurm-bridge"
    """The name of the Lease."""
    lease_seconds: Seconds = 15.0
    """Another replica takes over if the leader has not renewed the Lease for this long."""
    renew_seconds: Annotated[Seconds, kinds.below("lease_seconds")] = 10.0
    """A leader that could not renew the Lease for this long stops writing."""
    retry_seconds: Annotated[Seconds, kinds.below("renew_seconds")] = 2.0
    """The time between two tries to renew or acquire the Lease."""


class PartsSettings(SettingsGroup):
    """Several active daemons share one cluster, each with a part of its namespaces: see `docs/scaling.md`."""

    names: Annotated[tuple[Label, ...], kinds.DIFFERENT] = ()
    """The names of all parts, the same in the settings of every daemon. A namespace belongs to the part in its label \
`scheduler.slinky.slurm.net/part`; without this label, to one of these by its name."""
    own: Annotated[Label | None, AfterValidator(_one_of_the_parts)] = None
    """The part of this daemon. Nothing: there are no parts, and this daemon serves all namespaces."""


def elected(given: PartsSettings, settings: pydantic.ValidationInfo) -> PartsSettings:
    """The leases are all by which daemons agree."""
    election = settings.data.get("leader_election")
    if given.own is not None and election is not None and not election.enabled:
        raise ValueError("needs leader_election.enabled, because daemons agree on their parts by leases")
    return given


class NodesSettings(SettingsGroup):
    """The node controller, which keeps the nodes of Kubernetes and of Slurm in step."""

    enabled: bool = False
    """Enables the node controller. It needs rights of its own in Kubernetes: see `docs/nodes.md`."""
    managed: Literal["labelled", "all"] = "labelled"
    """Which Kubernetes nodes it looks after: those with the label `scheduler.slinky.slurm.net/external-node` or \
`slinky.slurm.net/slurm-nodename` (`labelled`), or every node whose name Slurm knows (`all`)."""
    drain: bool = True
    """Whether a node that is cordoned in Kubernetes is drained in Slurm, until it is uncordoned."""
    register_external: bool = True
    """Whether nodes with the label `scheduler.slinky.slurm.net/external-node` are added to Slurm, and deleted from \
Slurm when they lose the label or are deleted."""
    poll_seconds: Seconds = 5.0
    """The time between two reads of Slurm's nodes while nothing changes in Kubernetes."""
    settle_seconds: Annotated[float, Field(ge=0)] = 30.0
    """How long other resources of a registered node have to last before it is drained, to be added again with them. \
Devices vanish for a while when their plugin restarts."""
    threads_per_core: Annotated[int, Field(ge=1, le=8)] = 1
    """How many of a node's CPUs are threads of one core. Kubernetes does not tell it."""
    reserved_cpus: kinds.Reserve = "0"
    """CPUs of every registered node that Slurm does not get, beside those that Kubernetes itself reserves."""
    reserved_memory: kinds.Reserve = "0"
    """Memory of every registered node that Slurm does not get, likewise; for example for DaemonSets."""
    device_gres: Mapping[str, Name] = {}
    """DRA drivers, and the generic resource (`name` or `name:type`) in Slurm that their devices are: of every \
registered node the devices in its ResourceSlices are counted. Empty: no ResourceSlice is read."""
    feature_labels: Annotated[tuple[Name, ...], kinds.DIFFERENT] = ()
    """Labels of Kubernetes nodes whose values become features of the registered nodes in Slurm."""
    show_state: bool = True
    """Whether nodes of Kubernetes show that Slurm gives them no jobs (DRAIN, DOWN, FAIL, maintenance): labels, the \
condition `SlurmUnavailable` and events."""
    state_taint: Literal["none", "PreferNoSchedule", "NoSchedule", "NoExecute"] = "none"
    """The effect of a taint `slinky.slurm.net/unavailable` that such a node gets. `NoExecute` evicts its pods."""
    state_cordon: bool = False
    """Whether such a node is cordoned, until Slurm gives it jobs again or an administrator uncordons it."""
    hold_scale_down: bool = False
    """Whether Cluster Autoscaler and Karpenter are asked, by annotations, to keep nodes on which jobs of Slurm run."""
    managed_taint: kinds.TaintText | None = None
    """A taint for every node that the controller looks after, as `key=value:effect`, for example \
`slinky.slurm.net/managed-node=slurm-bridge-scheduler:NoExecute`. Pods need a toleration of it."""


class OwnerKind(SettingsGroup):
    """A kind of object that may own pods."""

    api_version: Name
    """Group and version, for example `apps/v1`."""
    kind: Name
    """The kind, for example `StatefulSet`."""
    plural: Name
    """The plural in its API path, for example `statefulsets`."""


class LogSettings(SettingsGroup):
    """What is logged to standard error."""

    verbosity: Annotated[int, Field(ge=0, le=10)] = 0
    """0: information; 4: also debugging; 7 and 10: more."""
    as_json: Annotated[bool, Field(alias="json")] = False
    """One JSON object for each line."""
