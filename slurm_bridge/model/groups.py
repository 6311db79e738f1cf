"""The objects that own pods or group them, as far as the bridge reads them."""

from slurm_bridge.model.meta import Condition, Object, Record


class PodTemplate(Record, frozen=True, kw_only=True):
    """Only the marks that a template puts on its pods."""

    metadata: dict[str, object] = {}


class JobSpec(Record, frozen=True, kw_only=True):
    """How many pods a Job runs, and whether it may."""

    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    suspend: bool = False
    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None


class JobStatus(Record, frozen=True, kw_only=True):
    """How far a Job has come."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: tuple[Condition, ...] = ()


class Job(Object, frozen=True, kw_only=True):
    """A batch Job."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplate(Record, frozen=True, kw_only=True):
    """The Job that a JobSet makes several of."""

    spec: JobSpec = JobSpec()


class ReplicatedJob(Record, frozen=True, kw_only=True):
    """One group of equal Jobs in a JobSet."""

    name: str
    replicas: int = 1
    template: JobTemplate = JobTemplate()
    depends_on: tuple[dict[str, str], ...] = ()


class JobSetSpec(Record, frozen=True, kw_only=True):
    """What a JobSet is made of."""

    replicated_jobs: tuple[ReplicatedJob, ...] = ()
    suspend: bool = False
    startup_policy: dict[str, object] | None = None
    failure_policy: dict[str, object] | None = None


class JobSet(Object, frozen=True, kw_only=True):
    """A JobSet."""

    spec: JobSetSpec = JobSetSpec()


class LeaderWorkerTemplate(Record, frozen=True, kw_only=True):
    """Size and restart behaviour of one group."""

    size: int | None = None
    restart_policy: str | None = None


class LeaderWorkerSetSpec(Record, frozen=True, kw_only=True):
    """How many groups, and of what."""

    replicas: int | None = None
    leader_worker_template: LeaderWorkerTemplate = LeaderWorkerTemplate()
    startup_policy: str | None = None


class LeaderWorkerSet(Object, frozen=True, kw_only=True):
    """A LeaderWorkerSet."""

    spec: LeaderWorkerSetSpec = LeaderWorkerSetSpec()


class GangPolicy(Record, frozen=True, kw_only=True):
    """All or nothing, from this many on."""

    min_count: int


class SchedulingPolicy(Record, frozen=True, kw_only=True):
    """How the members of a built-in PodGroup are to be scheduled."""

    gang: GangPolicy | None = None


class PodGroupSpec(Record, frozen=True, kw_only=True):
    """A built-in PodGroup's policy."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()


class PodGroup(Object, frozen=True, kw_only=True):
    """The PodGroup that Kubernetes itself serves."""

    spec: PodGroupSpec = PodGroupSpec()


class CoschedulingPodGroupSpec(Record, frozen=True, kw_only=True):
    """The coscheduling plugin's gang size."""

    min_member: int = 1


class CoschedulingPodGroup(Object, frozen=True, kw_only=True):
    """The PodGroup of the coscheduling plugin."""

    spec: CoschedulingPodGroupSpec = CoschedulingPodGroupSpec()
