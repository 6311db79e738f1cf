"""The placeholder of a check, before pocket servers that answer and servers that do not."""

import dataclasses
import pathlib
import random
import threading

import pytest

from slurm_bridge.checks import collector, table
from slurm_bridge.checks.facts import PROBE_KIND, CheckFacts, Expectations
from slurm_bridge.checks.findings import Finding, Level
from slurm_bridge.kube.client import KubeClient
from slurm_bridge.model.job import Done, Refusal, Refused, Unknown
from slurm_bridge.model.slurmconf import SlurmConf
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.sim import faults
from slurm_bridge.sim.kube.world import PocketKube
from slurm_bridge.sim.slurm import pocket, state
from slurm_bridge.slurm.client import SlurmClient
from slurm_bridge.slurm.settings import SlurmSettings
from tests.direct_kube import DirectAccess
from tests.direct_line import Line
from tests.direct_pool import DirectPool

MACHINES = tuple(state.Node(name=name, cpus=8, memory_mib=1000) for name in ("n1", "n2"))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Two nodes on both sides, and the adapters in front of them."""

    kube: PocketKube
    slurm: pocket.PocketSlurm
    slurm_line: Line
    cluster: KubeClient
    jobs: SlurmClient
    clock: VirtualClock

    def findings(self, wanted: Expectations) -> dict[str, Finding]:
        """What is not well, by check."""
        found = table.findings(self.gather(wanted), wanted)
        return {finding.check: finding for finding in found if finding.level in (Level.WARNING, Level.FAILURE)}

    def left(self) -> list[state.SlurmJob]:
        """Jobs that have not ended."""
        return [job for job in self.slurm.world.jobs.values() if not job.over]

    def gather(self, wanted: Expectations, conf: SlurmConf | None = None) -> CheckFacts:
        """What a check sees."""
        return collector.gather(
            self.jobs,
            self.cluster,
            clock=self.clock,
            dice=random.Random(1),
            wanted=wanted,
            conf=lambda: conf,
            token=self.jobs.token_life,
        )


def world(folder: pathlib.Path, token: str = pocket.OPERATOR_TOKEN) -> World:
    """A world whose token belongs to a user."""
    clock = VirtualClock()
    partitions = (state.Partition(name="debug", nodes=("n1", "n2"), default=True),)
    kube = PocketKube(clock=clock)
    kube.add_nodes("n1", "n2", capacity={"cpu": "8", "memory": "1000Mi", "pods": "110"})
    slurm = pocket.PocketSlurm(clock=clock, nodes=MACHINES, partitions=partitions)
    (folder / "token").write_text(token)
    line = Line(slurm.handler, clock=clock)
    return World(
        kube=kube,
        slurm=slurm,
        slurm_line=line,
        cluster=KubeClient(
            DirectAccess(Line(kube.handler, clock=clock), token=kube.token), clock=clock, dice=random.Random(1)
        ),
        jobs=SlurmClient(
            SlurmSettings(url="http://pocket", token_file=folder / "token"),
            clock=clock,
            stop=threading.Event(),
            connect=lambda _: DirectPool(line),
        ),
        clock=clock,
    )


@pytest.fixture
def operators_world(tmp_path: pathlib.Path) -> World:
    """As it should be."""
    return world(tmp_path)


@pytest.fixture
def alices_world(tmp_path: pathlib.Path) -> World:
    """The token is a plain user's."""
    return world(tmp_path, pocket.ALICE_TOKEN)


WANTED = Expectations(
    cluster_id="one", partitions=("debug",), user="slurm-bridge", job_ids=(50_000_000, 50_000_999), unstarted_window=10
)


def test_a_good_world_has_nothing_to_say_and_nothing_left(operators_world: World) -> None:
    """The placeholder waits on hold, is read back, and is cancelled."""
    facts = operators_world.gather(WANTED)
    assert facts.probe is not None
    assert facts.probe.view is not None
    assert (facts.probe.view.held, facts.probe.view.user) == (True, "slurm-bridge")
    assert facts.probe.view.job_id in range(50_000_000, 50_001_000)
    assert isinstance(facts.probe.cancelled, Done)
    assert not operators_world.left()
    assert not operators_world.findings(WANTED)


def test_components_are_known_and_rights_are_not_where_nobody_can_say(operators_world: World) -> None:
    """The pocket Kubernetes allows everything, and does not answer access reviews."""
    facts = operators_world.gather(WANTED)
    assert facts.heterogeneous
    assert list(facts.unread) == ["rights"]


def test_the_placeholder_never_starts(operators_world: World) -> None:
    """However long a check takes: other jobs need its nodes."""
    operators_world.slurm_line.faults.plan(faults.Answer(status=502), method="DELETE")
    operators_world.gather(WANTED)
    operators_world.slurm.tick()
    (job,) = operators_world.left()
    assert job.held
    assert not job.started


def test_a_leak_is_recognised_as_ours(operators_world: World) -> None:
    """The search for orphans finds the cluster's name and the kind of a check in its owner record."""
    operators_world.slurm_line.faults.plan(faults.Drop(), method="DELETE")
    operators_world.slurm_line.faults.plan(faults.Answer(status=502), method="GET", target="/job/", times=9)
    facts = operators_world.gather(WANTED)
    operators_world.slurm_line.faults.clear()
    (job,) = operators_world.jobs.jobs()
    assert job.owner is not None
    assert (job.owner.cluster, job.owner.kind) == ("one", PROBE_KIND)
    assert facts.probe is not None
    assert isinstance(facts.probe.cancelled, Unknown)


def test_a_plain_users_token_leaves_no_job(alices_world: World) -> None:
    """It may neither submit for others nor write admin_comment: one failure, said once."""
    assert list(alices_world.findings(WANTED)) == ["operator-token"]
    assert not alices_world.slurm.world.jobs


def test_a_lost_answer_to_the_submit_leaves_no_job(operators_world: World) -> None:
    """The job is looked for by its chosen id, and cancelled."""
    operators_world.slurm_line.faults.plan(faults.Drop(), method="POST", target="/job/submit")
    assert list(operators_world.findings(WANTED)) == ["placeholder-accepted"]
    assert len(operators_world.slurm.world.jobs) == 1
    assert not operators_world.left()


def test_a_lost_answer_without_chosen_ids_leaves_no_job(operators_world: World) -> None:
    """The job is looked for by its owner record."""
    operators_world.slurm_line.faults.plan(faults.Drop(), method="POST", target="/job/submit")
    facts = operators_world.gather(dataclasses.replace(WANTED, job_ids=None))
    assert facts.probe is not None
    assert isinstance(facts.probe.outcome, Unknown)
    assert isinstance(facts.probe.cancelled, Done)
    assert not operators_world.left()


def test_a_taken_id_is_not_mistaken_for_ours(operators_world: World) -> None:
    """Another id is tried, a few times; the job that has the id is left alone."""
    only = dataclasses.replace(WANTED, job_ids=(50_000_000, 50_000_000))
    operators_world.gather(WANTED)
    first = operators_world.gather(only)
    second = operators_world.gather(only)
    assert first.probe is not None
    assert isinstance(first.probe.outcome, Done)
    assert second.probe is not None
    assert isinstance(second.probe.outcome, Refused)
    assert second.probe.outcome.why is Refusal.EXISTS
    assert second.probe.cancelled is None


def test_where_slurm_cannot_be_read_nothing_is_ordered(operators_world: World) -> None:
    """And what could be read of Kubernetes is still judged."""
    operators_world.slurm_line.faults.plan(faults.Reset(), times=100)
    found = operators_world.findings(WANTED)
    assert list(found) == ["slurm-answers"]
    assert not operators_world.slurm_line.faults.count(method="POST")


def test_a_user_that_slurm_does_not_know_is_named(operators_world: World) -> None:
    """The key to correct stands first."""
    found = operators_world.findings(dataclasses.replace(WANTED, user="ghost"))
    assert found["placeholder-accepted"].message.startswith("defaults.user: ")


def test_s1_a_placeholder_of_root_is_a_failure(operators_world: World) -> None:
    """A root token without a configured user submits as root."""
    found = operators_world.findings(dataclasses.replace(WANTED, user=None))
    assert found["plain-user"].level is Level.FAILURE
