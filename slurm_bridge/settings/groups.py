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
    """Whether the operator's token may go unencrypted to another machine. Only in a network that you trust as you \
trust the token."""
    token_file: File
    """A file with an operator's token, plain or as `SLURM_JWT=…`. It is read again when it changes."""
    user_name: Name | None = None
    """The name sent beside the token; left out, Slurm takes the token's own."""
    api_versions: Annotated[tuple[Annotated[str, AfterValidator(_version)], ...], kinds.SOME, kinds.DIFFERENT] = tuple(
        wire.WIRES
    )
    """API versions in order of preference; one alone pins it."""
    ca: File | None = None
    """The certificate authority of an `https` address."""
    cert: File | None = None
    """A client certificate."""
    key: Annotated[File | None, kinds.together_with("cert")] = None
    """Its key, where it is not in the same file."""
    connect_timeout_seconds: Seconds = 3.0
    """How long a connection may take."""
    read_timeout_seconds: Seconds = 15.0
    """How long an answer may take; slurmctld itself gives up after 10 to 20 seconds."""
    recovery_timeout_seconds: Seconds = 60.0
    """How long a list of all jobs in full may take: it is read once after a start."""
    read_tries: Count = 2
    """How often one read is tried in all while slurmrestd does not answer. Orders are never repeated."""
    read_first_pause_seconds: Seconds = 0.1
    """The longest pause before the second try. Pauses are random, so that bridges do not come back in step."""
    read_longest_pause_seconds: Annotated[Seconds, kinds.above("read_first_pause_seconds")] = 2.0
    """The longest pause before any try; until then it doubles with each."""
    connections: Count = 8
    """How many connections are kept open at most."""
    job_ids: JobIds | None = JobIds()
    """The range from which job ids are chosen, so that slurmctld itself refuses a second placeholder of one workload. \
`null`: Slurm counts, and the bridge looks for an earlier placeholder instead."""


class Kubernetes(SettingsGroup):
    """How the API server is reached."""

    kubeconfig: File | None = None
    """A kubeconfig file; `null` is the service account of the pod that the bridge runs in."""


class DefaultsSettings(SettingsGroup):
    """What a pod gets that does not say. Its own requests and annotations win."""

    partition: Names | None = None
    """The partition, or several; left out, Slurm's own default."""
    account: Name | None = None
    """The account that is charged."""
    qos: Name | None = None
    """The quality of service."""
    gres: str | None = None
    """Generic resources, for example `gpu:1`, for pods that ask for none."""
    timelimit: Count | None = None
    """The time limit in minutes; left out, the partition's."""
    exclusive: bool = False
    """Whether every pod gets whole nodes. Pods share nodes otherwise."""
    mcs_label: str = ""
    """The MCS label of every placeholder."""
    cpus: Quantity = "1"
    """CPUs of a pod that requests none."""
    memory: Quantity = "512Mi"
    """Memory of a pod that requests none."""
    count: Literal["requests", "limits"] = "requests"
    """What of cpu and memory Slurm counts: the pod's requests, or its limits where it has some. Kubernetes itself \
always counts requests."""
    user: User | None = None
    """The Slurm user that owns the placeholders. Left out it is the token's own. Either must be no account of the \
system: jobs of users with a number below 1000 are withdrawn."""
    group: User | None = None
    """That user's group; left out, the primary one."""


class HookSettings(SettingsGroup):
    """One hook of the chain."""

    name: Name
    """A built-in hook, or one that an installed package offers under `slurm_bridge.hooks`."""
    options: Mapping[str, Any] = {}
    """What it is configured with; see the page of the hook."""
    on_error: Literal["skip", "hold", "reject"] = "hold"
    """When it fails: go on without it, let the workload wait, or refuse the workload."""
    budget_ms: Count = 200
    """How long one call of it may take."""


class Workloads(SettingsGroup):
    """What is one workload where the objects themselves do not say, and how groups are treated."""

    job: Literal["pod", "gang"] = "pod"
    """The pods of a Job: each by itself, or all of them as a gang. The annotation `gang` of a Job wins."""
    jobset: Literal["auto", "gang", "replicatedjob", "pod"] = "auto"
    """The pods of a JobSet: all as a gang (`gang`), a gang for each replicated job (`replicatedjob`), each by itself \
(`pod`), or whatever of these its startup order allows (`auto`). The annotation `gang` of a JobSet wins."""
    member_lost: Literal["auto", "keep", "restart-group"] = "auto"
    """When a member of a gang that runs is lost: the others run on (`keep`), all are ended and start anew \
(`restart-group`), or as the kind of the group has it (`auto`). The annotation `member-lost` wins."""
    heterogeneous: Literal["auto", "never"] = "auto"
    """Whether Slurm's heterogeneous jobs are used for gangs with members of different shapes, where Slurm can; \
`never`: every member is counted as the largest."""
    settle_seconds: Annotated[float, Field(ge=0)] = 1.0
    """How long the members of a gang have to have stopped coming before it is submitted, where their number is not \
given."""
    incomplete_seconds: Seconds = 30.0
    """How long a gang of which some members have left may keep its pending placeholder before that is taken back."""
    bind_seconds: Seconds = 300.0
    """How long the binding of a gang may stay half done before it is rolled back."""


class Attempts(SettingsGroup):
    """Which nodes are tried, how long, and what then, where a hook prefers some."""

    candidates: Annotated[int, Field(ge=1, le=10)] = 3
    """How many candidate sets are tried at most."""
    window_seconds: Seconds = 45.0
    """How long each may wait, counted from the moment at which Slurm first looked at the job."""
    total: Count = 10
    """After how many attempts in all the last step follows."""
    then: Literal["widen", "stay"] = "widen"
    """The last step: any eligible node, or the last candidate set for good."""


class Scheduling(SettingsGroup):
    """How much is done at once."""

    workers: Annotated[int, Field(ge=1, le=64)] = 8
    """How many calls are under way at the same time."""
    unstarted_window: Count = 4000
    """How many placeholders may wait in Slurm at once, shared between namespaces; further workloads wait here."""
    bind_tries: Count = 5
    """How often nodes may refuse a pod in a row before its next try waits for the longest pause."""
    avoid_seconds: Seconds = 300.0
    """How long a node that refused a pod is kept from that pod and from those that replace it."""
    backoff_first_seconds: Seconds = 1.0
    """The first pause after a failure."""
    backoff_most_seconds: Annotated[Seconds, kinds.above("backoff_first_seconds")] = 300.0
    """The longest pause."""


class MirrorSettings(SettingsGroup):
    """How Slurm is watched."""

    fastest_seconds: Seconds = 0.2
    """The time between two looks at our jobs while they move."""
    slowest_seconds: Annotated[Seconds, kinds.above("fastest_seconds")] = 5.0
    """The time between two looks while nothing happens."""
    detail_reads_per_second: Rate = 1.0
    """How many waiting jobs are read in full: how soon a hold, an edit or a new reason is seen depends on it."""
    full_list_above: Count = 4000
    """From how many jobs on the states of all jobs are read instead of those of ours."""
    vanished_minimum: Count = 10
    """Jobs that may vanish at once without further evidence."""
    vanished_fraction: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Beyond that number: the part of our jobs that may. When more vanish, no pod is deleted before Slurm has \
been looked at again."""
    sweep_seconds: Seconds = 60.0
    """The time between two searches for placeholders without pods."""


AfterTimeout = Literal["resubmit", "hold"]


def _with_default(rules: Mapping[str, AfterTimeout]) -> Mapping[str, AfterTimeout]:
    return {"default": "resubmit", **rules}


class EndsSettings(SettingsGroup):
    """What follows when a placeholder or a pod ends."""

    after_timeout: Annotated[Mapping[str, AfterTimeout], AfterValidator(_with_default)] = {"default": "resubmit"}
    """For each kind of owner (`Job`, `StatefulSet`, …, `default`): whether the pod that replaces one that ran into \
its time limit is submitted again, or held until the user changes something."""
    stuck_seconds: Seconds = 600.0
    """How long a deleted pod may take to end on a node that does not answer before its placeholder is cancelled."""


class StatusSettings(SettingsGroup):
    """How much is written on pods."""

    conditions_per_second: Rate = 20.0
    """Conditions; of several for one pod only the latest is written."""
    events_per_second: Rate = 20.0
    """Events; those that do not fit are dropped and counted."""
    patience_seconds: Annotated[float, Field(ge=0)] = 2.0
    """A pod that starts within this time gets no word about its waiting."""


class LeaderElection(SettingsGroup):
    """Of several replicas one acts."""

    enabled: bool = True
    """Off only where there is never more than one."""
    namespace: Label = "slurm-bridge"
    """Where the Lease is."""
    name: Label = "slurm-bridge"
    """What it is called."""
    lease_seconds: Seconds = 15.0
    """After this time without a word from the leader another one takes over."""
    renew_seconds: Annotated[Seconds, kinds.below("lease_seconds")] = 10.0
    """A leader that could not renew for this long stops to write."""
    retry_seconds: Annotated[Seconds, kinds.below("renew_seconds")] = 2.0
    """The time between two tries."""


class OwnerKind(SettingsGroup):
    """A kind of object that may own pods."""

    api_version: Name
    """Group and version, for example `apps/v1`."""
    kind: Name
    """The kind, for example `StatefulSet`."""
    plural: Name
    """The word in its address, for example `statefulsets`."""


class LogSettings(SettingsGroup):
    """What is logged to standard error."""

    verbosity: Annotated[int, Field(ge=0, le=10)] = 0
    """0 is information, 4 adds debugging, 7 and 10 more."""
    as_json: Annotated[bool, Field(alias="json")] = False
    """One JSON object for each line."""
