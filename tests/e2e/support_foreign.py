"""Jobs that are not ours: whatever a daemon does or suffers, they stay as they were."""

import contextlib
import dataclasses
import json
import uuid
from collections.abc import Iterator, Mapping

from tests import wait
from tests.e2e import support_servers

EXTERNAL = {
    "flags": ["EXTERNAL_JOB"],
    "environment": ["PATH=/bin"],
    "current_working_directory": "/tmp",  # noqa: S108 - nothing runs there
    "partition": "debug",
    "tasks": 1,
    "cpus_per_task": 1,
    "memory_per_node": {"set": True, "number": 64},
    "user_id": "slurm-bridge",
    "group_id": "slurm-bridge",
}

#: What another cluster's bridge writes: of our form in everything but the cluster.
_NEIGHBOUR = {"cluster": "somebody-else", "kind": "Pod", "namespace": "default", "name": "theirs", "uid": "u-1"}
_RECORD = f"slurm-bridge/1 {json.dumps(_NEIGHBOUR)}"
#: What one of an earlier version has written.
_FORMER = json.dumps({"mark": "slurm-bridge/1", "owner": _NEIGHBOUR})

_STATE_FILE = "/var/spool/slurmctld/job_state"
_NEXT_STATE_FILE = _STATE_FILE + ".new"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Foreign:
    """The jobs by what they are, and how they were."""

    slurm: support_servers.Slurm
    jobs: Mapping[str, int]

    def now(self) -> dict[str, tuple[object, ...]]:
        """State, nodes and owner record of each."""
        known = {one.job_id: one for one in self.slurm.jobs()}
        return {what: _facts(known.get(job_id)) for what, job_id in self.jobs.items()}

    def await_saved(self) -> None:
        """Until slurmctld has written them down: a kill -9 may lose every job that is younger.

        What is looked for is a word of ours in its file. The file's time cannot tell whether it was written before
        or after a job of the same second, and where nothing changes any more, no later file comes.
        """
        word = f"saved-{uuid.uuid4().hex}"
        self.slurm.command("scontrol", "update", f"job={self.jobs['native job']}", f"comment={word}")
        look = f"grep --text --only-matching {word} {_STATE_FILE} || true"  # slurmctld takes it away for a moment
        wait.until(lambda: word in self.slurm.command("sh", "-c", look), "saved state", every=0.5)

    @contextlib.contextmanager
    def nothing_else_saved(self) -> Iterator[None]:
        """From here on slurmctld cannot write its jobs down: a folder stands where its next file would.

        It saves within seconds of a change, so that without this a kill -9 may lose no job on a slow machine.
        """
        self.await_saved()
        self.slurm.command("mkdir", _NEXT_STATE_FILE)
        try:
            yield
        finally:
            self.slurm.command("rmdir", _NEXT_STATE_FILE)


def _facts(one: support_servers.SlurmJob | None) -> tuple[object, ...]:
    if one is None:
        return ("gone",)
    return (*sorted(one.states), one.nodes, one.text["admin_comment"], one.text["submit_time"]["number"])


@contextlib.contextmanager
def submitted(slurm: support_servers.Slurm) -> Iterator[Foreign]:
    """A native job, one whose record is empty, one without; a neighbour's placeholders."""
    native = slurm.command("sbatch", "--parsable", "--uid=alice", "--hold", "--chdir=/tmp", "--wrap=true")
    waits = {**EXTERNAL, "partition": "closed", "admin_comment": _RECORD}
    jobs = {
        "native job": int(native.split(";")[0]),
        "job with an empty record": slurm.submit({**EXTERNAL, "name": "empty", "admin_comment": "{}"}),
        "job without a record": slurm.submit({**EXTERNAL, "name": "bare"}),
        "neighbour's placeholder": slurm.submit({**EXTERNAL, "name": "theirs", "admin_comment": _RECORD}),
        "neighbour's placeholder of an earlier version": slurm.submit(
            {**EXTERNAL, "name": "theirs-before", "admin_comment": _FORMER}
        ),
        "neighbour's waiting placeholder": slurm.submit({**waits, "name": "theirs-too"}),
    }
    found = Foreign(slurm=slurm, jobs=jobs)
    try:
        wait.until(lambda: _settled(found), "foreign jobs as they will stay")
        yield found
    finally:
        slurm.cancel(*jobs.values())


def _settled(found: Foreign) -> bool:
    states = [facts[0] for facts in found.now().values()]
    return states == ["PENDING", "RUNNING", "RUNNING", "RUNNING", "RUNNING", "PENDING"]
