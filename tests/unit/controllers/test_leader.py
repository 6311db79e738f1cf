"""One replica leads; another takes over when it falls silent, at once when it says goodbye, and never beside it."""

import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from loguru import logger

from slurm_bridge import errors, ports
from slurm_bridge.controllers.leader import Election, Terms
from slurm_bridge.model import kinds
from slurm_bridge.model.lease import Lease
from slurm_bridge.runtime.clock import VirtualClock
from slurm_bridge.sim import faults
from tests.pocketkube import NAMESPACE, Scene


class SkewedClock:
    """The same time on another machine: its wall shows something else, its monotonic clock began elsewhere."""

    def __init__(self, time: VirtualClock, *, started: float, wall: float) -> None:
        self._time, self._started, self.off = time, started, wall

    def now(self) -> float:
        return self._time.now() + self._started

    def wall(self) -> float:
        return self._time.wall() + self.off

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        return self._time.wait(stop, seconds)


class Race(Scene):
    """Two replicas of one daemon."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.a = self.replica("a")
        self.other = SkewedClock(self.clock, started=5000.0, wall=-600.0)
        self.b = self.replica("b", self.other)

    def replica(self, identity: str, clock: ports.Clock | None = None) -> Election:
        """One more."""
        return Election(
            self.client(),
            clock or self.clock,
            Terms(namespace=NAMESPACE, name="bridge", identity=identity),
            dice=random.Random(1),
        )

    @property
    def lease(self) -> Lease:
        """As it stands."""
        found = self.cluster.lease(NAMESPACE, "bridge")
        assert found is not None
        return found

    def writes(self) -> int:
        """How often it was written."""
        return sum(self.line.faults.count(method=method, target="leases") for method in ("PUT", "POST"))


@pytest.fixture
def race() -> Iterator[Race]:
    """Two replicas, neither of which has done anything; `told` is what they log of the lead."""
    made = Race()

    def hear(line: Any) -> None:
        if "lead" in line.record["message"]:
            made.told.append(line.record["message"])

    sink = logger.add(hear, level="INFO")
    yield made
    logger.remove(sink)


def test_nobody_leads_before_the_first_step(race: Race) -> None:
    """A claim is nothing before the server knows it."""
    assert not race.a.leading


def test_the_first_one_leads(race: Race) -> None:
    """The lease is made, and the other one sees whose it is."""
    race.a.step()
    race.b.step()
    assert (race.a.leading, race.b.leading) == (True, False)
    assert race.b.holder == "a"
    assert race.told == ["a leads now"]
    spec = race.lease.spec
    assert (spec.holder_identity, spec.lease_duration_seconds, spec.lease_transitions) == ("a", 15, 0)


def test_renewing_is_one_call(race: Race) -> None:
    """Every two seconds, for ever: it should cost little."""
    race.a.step()
    before = len(race.line.faults.journal)
    race.clock.advance(2)
    race.a.step()
    assert len(race.line.faults.journal) == before + 1
    assert race.lease.spec.acquire_time != race.lease.spec.renew_time


def test_t67_the_lead_ends_by_itself_before_another_may_take_it(race: Race) -> None:
    """A replica that is paused or cut off knows at once, on waking, that it leads no more."""
    race.a.step()
    race.b.step()
    race.clock.advance(9.9)
    assert race.a.leading
    race.clock.advance(0.2)
    assert not race.a.leading
    race.b.step()
    assert not race.b.leading
    race.clock.advance(5)
    race.b.step()
    assert race.b.leading
    race.a.step()
    assert not race.a.leading
    assert race.told == ["a leads now", "b leads now", "a does not lead any more"]


def test_expiry_counts_from_when_a_change_was_last_seen(race: Race) -> None:
    """The other's wall clock is ten minutes off, which does not matter."""
    for _ in range(20):
        race.a.step()
        race.b.step()
        race.clock.advance(2)
    assert race.a.leading
    assert not race.b.leading


@pytest.mark.parametrize("jump", [-600.0, 600.0])
def test_a_wall_clock_that_jumps_changes_nothing(race: Race, jump: float) -> None:
    """Neither the leader's nor the follower's."""
    race.a.step()
    race.b.step()
    race.other.off += jump
    race.clock.advance(2)
    race.a.step()
    race.b.step()
    assert (race.a.leading, race.b.leading) == (True, False)


def test_a_slow_renewal_counts_from_when_it_was_sent(race: Race) -> None:
    """The server may have acted on it at once, and the others count from then."""
    race.a.step()
    race.clock.advance(1)
    race.line.faults.plan(faults.Delay(8), method="PUT")
    race.a.step()
    race.clock.advance(1.9)
    assert race.a.leading
    race.clock.advance(0.2)
    assert not race.a.leading


def test_a_renewal_that_nobody_answers_does_not_prolong(race: Race) -> None:
    """It may have been lost; if it was not, the next one finds out and goes on."""
    race.a.step()
    race.clock.advance(8)
    race.line.faults.plan(faults.Drop(), method="PUT")
    race.a.step()
    assert race.a.leading
    race.clock.advance(2.1)
    assert not race.a.leading
    race.a.step()
    assert race.a.leading
    assert race.lease.spec.lease_transitions == 0


def test_an_unreachable_server_leaves_things_as_they_are(race: Race) -> None:
    """Neither the leader nor the follower falls over; time decides."""
    race.a.step()
    race.line.faults.plan(faults.Answer(status=503), times=2)
    race.a.step()
    race.b.step()
    assert race.a.leading
    assert not race.b.leading


def test_a_goodbye_lets_another_take_over_at_once(race: Race) -> None:
    """No pod waits fifteen seconds for a rolling update."""
    race.a.step()
    race.b.step()
    race.a.release()
    assert not race.a.leading
    assert race.lease.spec.holder_identity == ""
    race.b.step()
    assert race.b.leading
    assert race.lease.spec.lease_transitions == 1
    assert race.told == ["a leads now", "a does not lead any more", "b leads now"]


def test_there_is_no_way_back_from_a_goodbye(race: Race) -> None:
    """A thread that is late does not take the lease again on its way out."""
    race.a.step()
    race.a.release()
    race.a.step()
    assert not race.a.leading
    assert race.lease.spec.holder_identity == ""


def test_a_follower_gives_nothing_away(race: Race) -> None:
    """Its goodbye leaves the leader's lease alone."""
    race.a.step()
    race.b.step()
    race.b.release()
    race.a.step()
    assert race.a.leading


def test_a_goodbye_that_fails_is_no_failure(race: Race) -> None:
    """The lease runs out by itself."""
    race.a.step()
    race.line.faults.plan(faults.Answer(status=503), method="PUT")
    race.a.release()
    assert not race.a.leading


def test_of_two_who_take_it_one_gets_it(race: Race) -> None:
    """The resource version that was read decides."""
    race.a.step()
    race.a.release()
    c = race.replica("c")
    race.line.faults.plan(faults.Meanwhile(c.step), method="PUT")
    race.b.step()
    assert (race.b.leading, c.leading) == (False, True)


def test_a_stranger_who_writes_the_lease_does_not_end_the_lead(race: Race) -> None:
    """A label from kubectl costs one look."""
    race.a.step()
    race.cluster.patch(kinds.LEASES, race.lease, {"metadata": {"labels": {"seen": "yes"}}})
    race.a.step()
    assert race.a.leading
    assert race.told == ["a leads now"]


def test_a_lease_that_was_taken_away_ends_the_lead_at_once(race: Race) -> None:
    """Its deletion lets another replica lead."""
    race.a.step()
    race.cluster.delete(kinds.LEASES, race.lease)
    race.b.step()
    race.a.step()
    assert (race.a.leading, race.b.leading) == (False, True)


def test_a_deleted_lease_is_made_anew(race: Race) -> None:
    """By its last holder, unless another was faster."""
    race.a.step()
    race.cluster.delete(kinds.LEASES, race.lease)
    race.a.step()
    assert race.a.leading


def test_a_longer_lease_of_another_release_is_respected(race: Race) -> None:
    """Its holder counts on the time that it wrote down."""
    race.a.step()
    race.cluster.patch(kinds.LEASES, race.lease, {"spec": {"leaseDurationSeconds": 60}})
    race.b.step()
    race.clock.advance(59)
    race.b.step()
    assert not race.b.leading
    race.clock.advance(1)
    race.b.step()
    assert race.b.leading


def test_it_takes_part_until_it_is_stopped(race: Race) -> None:
    """The lease is kept then, so that the work can be finished under it."""
    stop = threading.Event()
    race.line.faults.plan(faults.Meanwhile(stop.set), method="PUT", nth=3)
    race.a.run(stop)
    assert race.a.leading
    assert race.writes() == 4
    assert race.lease.spec.holder_identity == "a"


def test_only_a_replica_that_stands_for_election_takes_part(race: Race) -> None:
    """Its lead lapses when it does not stand any more."""
    stop, standing = threading.Event(), iter([False, True, False])

    def stands() -> bool:
        answer = next(standing, None)
        if answer is None:
            stop.set()
        return bool(answer)

    race.a.run(stop, stands)
    assert race.writes() == 1
    race.clock.advance(10)
    assert not race.a.leading


def test_terms_that_cannot_work_are_refused() -> None:
    """A lease that is renewed too late is two leaders."""
    with pytest.raises(errors.BadConfiguration, match=r"10 > 10\.0 > 2\.0"):
        Terms(namespace="n", name="l", identity="i", lease_seconds=10)


def test_a_follower_knows_the_host_of_the_leader(race: Race) -> None:
    """In a cluster it is the name of the pod; the leader itself asks no other, and without a lease none is known."""
    leader, follower = race.replica("bridge-7f-x2-4711-0a1b2c3d"), race.replica("bridge-7f-q9-4712-9f8e7d6c")
    assert follower.host == ""
    leader.step()
    follower.step()
    assert (leader.host, follower.host) == ("", "bridge-7f-x2")
