"""What is true of a group of pods that is placed: one job, on Slurm's nodes, and nowhere more than Slurm gave there."""

from collections.abc import Callable, Sequence

from tests import wait
from tests.e2e import support_daemon, support_kinds, support_servers, support_slots, support_world
from tests.e2e.support_servers import Json, SlurmJob
from tests.e2e.support_world import World

#: From created to bound on a machine that does other things too.
SECONDS = 30.0

#: slurmctld starts heterogeneous jobs in its backfill cycle alone.
HET_SECONDS = 45.0


def awaited(
    world: World, prefix: str, count: int, holds: Callable[[Json], object], what: str, seconds: float = SECONDS
) -> list[Json]:
    """So many living members of one object, all of which are like this; otherwise why not, in the daemon's words."""
    said = f"{count} {what} pods {prefix}*"
    return _until(world, lambda: support_kinds.members(world, prefix), count, holds, said, seconds)


def placed(world: World, prefix: str, count: int, seconds: float = SECONDS) -> list[Json]:
    """The living members of one object, once all of them have a node."""
    what = f"{count} bound pods {prefix}*"
    return _until(world, lambda: support_kinds.members(world, prefix), count, support_world.is_bound, what, seconds)


def renewed(world: World, prefix: str, old: Sequence[Json], seconds: float = SECONDS) -> list[Json]:
    """As many other members as these, once all have a node and none of these lives."""
    gone = support_kinds.uids(old)

    def new() -> list[Json]:
        found = support_kinds.members(world, prefix)
        return [] if gone & support_kinds.uids(found) else found

    return _until(world, new, len(old), support_world.is_bound, f"{len(old)} new bound pods {prefix}*", seconds)


def _until(
    world: World,
    look: Callable[[], list[Json]],
    count: int,
    holds: Callable[[Json], object],
    what: str,
    seconds: float = SECONDS,
) -> list[Json]:
    seen: list[list[Json]] = [[]]

    def there() -> bool:
        seen[0] = look()
        return len(seen[0]) == count and all(map(holds, seen[0]))

    try:
        wait.until(there, what, seconds, every=0.2)
    except AssertionError as error:
        lines = [str(error), *map(support_world.told, world.pods()), world.daemon.last_words(15)]
        raise AssertionError("\n".join(lines)) from error
    return seen[0]


def together(world: World, pods: Sequence[Json]) -> SlurmJob:
    """The one living job that bound all of them, to nodes that it has, nowhere more than it has there."""
    jobs = _sound(world, pods)
    ids = {support_world.job_id(one) for one in pods}
    assert len(ids) == 1, f"{len(ids)} jobs {ids} for one group: {[support_world.told(one) for one in pods]}"
    job = jobs[ids.pop()]
    assert {support_slots.where(one) for one in pods} <= set(_nodes(job, jobs))
    return job


def by_job(world: World, pods: Sequence[Json]) -> dict[int, list[Json]]:
    """Job -> the pods that it bound; all of these pods are bound by living jobs."""
    _sound(world, pods)
    return support_slots.bound_by(pods)


def apart(world: World, pods: Sequence[Json]) -> list[SlurmJob]:
    """Each of them is bound by a living job of its own."""
    jobs = _sound(world, pods)
    found = {one["metadata"]["uid"]: jobs[support_world.job_id(one)] for one in pods}
    assert {uid: job.owner["uid"] for uid, job in found.items()} == {uid: uid for uid in found}
    return list(found.values())


def _sound(world: World, pods: Sequence[Json]) -> dict[int, SlurmJob]:
    jobs = {one.job_id: one for one in world.slurm.parts_of(world.daemon.cluster_id)}
    names = _kube_names(world)
    for one in pods:
        job = jobs[support_world.job_id(one)]
        assert "RUNNING" in job.states, (support_world.told(one), job.job_id, job.states)
        assert names[one["spec"]["nodeName"]] == support_slots.where(one)
    assert [*support_slots.misplaced(pods, jobs), *support_slots.overfull(pods, jobs)] == []
    return jobs


def _kube_names(world: World) -> dict[str, str]:
    """Kubernetes node -> what Slurm calls it."""
    label = "slinky.slurm.net/slurm-nodename"
    found = [one["metadata"] for one in world.kube.items("/api/v1/nodes")]
    return {one["name"]: one["labels"].get(label, one["name"]) for one in found}


def _nodes(job: SlurmJob, jobs: dict[int, SlurmJob]) -> list[str]:
    """What squeue shows of all its components."""
    return [name for one in support_slots.parts(job.job_id, jobs) for name in one.node_names]


def on_nodes(pods: Sequence[Json]) -> dict[str, list[str]]:
    """Slurm's node -> the names of the pods there."""
    found: dict[str, list[str]] = {}
    for one in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
        found.setdefault(support_slots.where(one), []).append(one["metadata"]["name"])
    return found


def jobs_for(world: World, kind: str, name: str) -> list[SlurmJob]:
    """Every job that was ever asked for incarnations of one object and that Slurm still knows, the oldest first.

    Slurm's times are whole seconds, and chosen ids say nothing of age.
    """
    mine = world.slurm.jobs_of(world.daemon.cluster_id)
    chosen = [one for one in mine if (one.owner["kind"], one.owner["name"]) == (kind, name)]
    return sorted(chosen, key=lambda one: (one.text["submit_time"]["number"], int(one.owner.get("attempt", 0))))


def living_of(world: World, kind: str, name: str) -> list[SlurmJob]:
    """Those of one object that are not over."""
    return [one for one in jobs_for(world, kind, name) if one.alive]


def living(world: World) -> list[SlurmJob]:
    """The placeholders that are not over."""
    return [one for one in world.slurm.jobs_of(world.daemon.cluster_id) if one.alive]


def await_only(world: World, *job_ids: int, seconds: float = SECONDS) -> None:
    """Until these are the only placeholders that live: none is leaked, none is doubled."""
    wanted = sorted(job_ids)
    seen: list[list[SlurmJob]] = [[]]

    def they_are() -> bool:
        seen[0] = living(world)
        return sorted(one.job_id for one in seen[0]) == wanted

    try:
        wait.until(they_are, f"jobs {wanted} alone", seconds, every=0.5)
    except AssertionError as error:
        lines = [f"{one.job_id} {sorted(one.states)} {dict(one.owner)}" for one in seen[0]]
        raise AssertionError("\n".join([str(error), *lines, world.daemon.last_words(15)])) from error


def fresh(prefix: str) -> str:
    """The name of a pod that there was never before."""
    return support_daemon.fresh_name(prefix)


def message(one: Json) -> str:
    """Why a pod is not scheduled."""
    return str(support_servers.condition(one, "PodScheduled").get("message", ""))
