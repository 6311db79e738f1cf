"""The objects that own pods or group them, as far as the bridge reads them."""

from slurm_bridge.model.meta import Condition, Object, ObjectMeta, Record


class JobSpec(Record, frozen=True, kw_only=True):
    """How many pods a Job runs, and whether it may."""

    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    suspend: bool = False
    active_deadline_seconds: int | None = None

    @property
    def pods(self) -> int:
        """How many pods of the Job exist at the same time while none has ended."""
        at_once = 1 if self.parallelism is None else self.parallelism
        return at_once if self.completions is None else min(at_once, self.completions)


class JobStatus(Record, frozen=True, kw_only=True):
    """How far a Job has come."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    failed_indexes: str | None = None
    conditions: tuple[Condition, ...] = ()

    @property
    def given_up(self) -> int:
        """How many indexes will not be tried again, of a Job that counts failures by index: `1,3-5` are four."""
        runs = [run.split("-") for run in (self.failed_indexes or "").split(",") if run]
        return sum(int(run[-1]) - int(run[0]) + 1 for run in runs)


class Job(Object, frozen=True, kw_only=True):
    """A batch Job."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @property
    def pods_to_come(self) -> int:
        """How many pods it runs at the same time from now on.

        Where the Job does not name how many are to succeed, no pod is made any more after the first success.
        """
        if self.spec.completions is None:
            return min(self.spec.pods, 1) if self.status.succeeded else self.spec.pods
        left = self.spec.completions - self.status.succeeded - self.status.given_up
        return max(0, min(self.spec.pods, left))


class JobTemplate(Record, frozen=True, kw_only=True):
    """The Job that a JobSet makes several of."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class ReplicatedJob(Record, frozen=True, kw_only=True):
    """One group of equal Jobs in a JobSet."""

    name: str
    replicas: int = 1
    template: JobTemplate = JobTemplate()
    depends_on: tuple[dict[str, str], ...] = ()

    @property
    def pods(self) -> int:
        """How many pods all its Jobs have at the same time."""
        return self.replicas * self.template.spec.pods


class StartupPolicy(Record, frozen=True, kw_only=True):
    """In which order a JobSet starts its parts: `AnyOrder` or `InOrder`."""

    startup_policy_order: str = "AnyOrder"


class JobSetSpec(Record, frozen=True, kw_only=True):
    """What a JobSet is made of."""

    replicated_jobs: tuple[ReplicatedJob, ...] = ()
    suspend: bool = False
    startup_policy: StartupPolicy | None = None

    @property
    def in_steps(self) -> bool:
        """Its parts start one after the other, so that their pods never wait at the same time."""
        in_order = self.startup_policy is not None and self.startup_policy.startup_policy_order == "InOrder"
        several = len(self.replicated_jobs) > 1
        return several and (in_order or any(part.depends_on for part in self.replicated_jobs))


class JobSet(Object, frozen=True, kw_only=True):
    """A JobSet."""

    spec: JobSetSpec = JobSetSpec()


class LeaderWorkerTemplate(Record, frozen=True, kw_only=True):
    """Size and restart behaviour of one group."""

    size: int = 1
    restart_policy: str = "RecreateGroupOnPodRestart"


class LeaderWorkerSetSpec(Record, frozen=True, kw_only=True):
    """How many groups, and of what."""

    replicas: int | None = None
    leader_worker_template: LeaderWorkerTemplate = LeaderWorkerTemplate()
    startup_policy: str = "LeaderCreated"


class LeaderWorkerSet(Object, frozen=True, kw_only=True):
    """A LeaderWorkerSet."""

    spec: LeaderWorkerSetSpec = LeaderWorkerSetSpec()


class GangPolicy(Record, frozen=True, kw_only=True):
    """All or nothing, from this many on."""

    min_count: int


class SchedulingPolicy(Record, frozen=True, kw_only=True):
    """How the members of a built-in PodGroup are to be scheduled."""

    gang: GangPolicy | None = None


class WorkloadTemplate(Record, frozen=True, kw_only=True):
    """The template in a Workload that a PodGroup was made from."""

    workload_name: str = ""


class TemplateReference(Record, frozen=True, kw_only=True):
    """Whatever a PodGroup was made from; today that is a Workload."""

    workload: WorkloadTemplate | None = None


class PodGroupSpec(Record, frozen=True, kw_only=True):
    """A built-in PodGroup's policy, and where it comes from."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    pod_group_template_ref: TemplateReference | None = None

    @property
    def workload_name(self) -> str:
        """The Workload that speaks for it, "" when there is none."""
        template = self.pod_group_template_ref
        return template.workload.workload_name if template is not None and template.workload is not None else ""


class PodGroupStatus(Record, frozen=True, kw_only=True):
    """What a built-in PodGroup says of itself."""

    conditions: tuple[Condition, ...] = ()


class PodGroup(Object, frozen=True, kw_only=True):
    """The PodGroup that Kubernetes itself serves."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class CoschedulingPodGroupSpec(Record, frozen=True, kw_only=True):
    """The coscheduling plugin's gang size."""

    min_member: int = 1


class CoschedulingPodGroupStatus(Record, frozen=True, kw_only=True):
    """How far the coscheduling plugin's group has come."""

    phase: str = ""


class CoschedulingPodGroup(Object, frozen=True, kw_only=True):
    """The PodGroup of the coscheduling plugin."""

    spec: CoschedulingPodGroupSpec = CoschedulingPodGroupSpec()
    status: CoschedulingPodGroupStatus = CoschedulingPodGroupStatus()
