"""Daemons with parts agree on namespaces by records: one has each, it is handed over, and a race has one winner."""

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from slurm_bridge import errors, ports
from slurm_bridge.controllers.leader import Election, Terms
from slurm_bridge.controllers.ownership import COMPARE, QUIET, NamespaceOwnership, OwnershipPorts, Standing
from slurm_bridge.model import kinds, names, parts
from slurm_bridge.model.lease import Lease, LeaseSpec
from slurm_bridge.model.parts import ClusterParts
from slurm_bridge.sim import faults
from tests.pocketkube import NAMESPACE, Scene

EVERY = ("a", "b")


class Racing:
    """The API server; something happens before the next write of a lease."""

    def __init__(self, cluster: ports.Cluster) -> None:
        self._cluster = cluster
        self.before: Callable[[], object] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def write_lease(self, lease: Lease) -> Lease:
        before, self.before = self.before, None
        if before is not None:
            before()
        return self._cluster.write_lease(lease)


class Daemon:
    """The lead and the namespaces of one process."""

    def __init__(self, scene: "Cut", part: str, name: str) -> None:
        self.scene, self.cluster = scene, Racing(scene.client())
        given = ClusterParts(own=part, every=EVERY, lease_namespace=NAMESPACE, lease_name="bridge")
        self.election = self._election(given.lease(part), name, parts=False)
        self.appointment = self._election("bridge", name, parts=True)
        self.needed: set[str] = set()
        reach = OwnershipPorts(
            cluster=self.cluster,  # type: ignore[arg-type]
            clock=scene.clock,
            labels=self._labels,
            needed=lambda namespace: namespace in self.needed,
            leading=lambda: self.election.leading,
            term=lambda: self.election.term + self.appointment.wholes,
            whole=lambda: self.appointment.beside_a_whole,
            lease_seconds=15,
        )
        self.owned = NamespaceOwnership(given, reach)

    def _election(self, lease: str, name: str, *, parts: bool) -> Election:
        terms = Terms(namespace=NAMESPACE, name=lease, identity=name, parts=parts)
        return Election(self.cluster, self.scene.clock, terms, dice=random.Random(1))  # type: ignore[arg-type]

    def _labels(self, namespace: str) -> dict[str, str] | None:
        found = self.cluster.get(kinds.NAMESPACES, "", namespace)
        return None if found is None else found.metadata.labels

    def lead(self) -> None:
        """Take the lead and begin."""
        self.appointment.step()
        self.election.step()
        self.begin()

    def begin(self) -> None:
        """As the scheduler's thread does."""
        self.owned.commence(*self.owned.begin())

    def step(self) -> None:
        """Everything that is to be done: renew, agree, take up, let go, agree."""
        self.election.step()
        self.owned.step()
        self.owned.serve(self.owned.standing(Standing.CLAIMED))
        self.owned.left(self.owned.standing(Standing.LEAVING))
        self.owned.step()

    def serves(self, namespace: str = "team") -> bool:
        """Whether it may act there."""
        return self.owned.current and self.owned.schedules(namespace)


class Cut(Scene):
    """A namespace of part a, and a daemon for each part."""

    def __init__(self) -> None:
        super().__init__()
        self.kube.create(kinds.NAMESPACES, {"metadata": {"name": "team", "labels": {names.LABEL_PART: "a"}}})
        self.a, self.b = Daemon(self, "a", "a1"), Daemon(self, "b", "b1")
        for daemon in (self.a, self.b):
            daemon.lead()
            daemon.owned.met("team")
        self.a.step()
        self.b.step()

    def move(self, part: str | None) -> None:
        """The label says another part from now on."""
        self.kube.merge(kinds.NAMESPACES, ("", "team"), {"metadata": {"labels": {names.LABEL_PART: part}}})

    def whole(self) -> Election:
        """A daemon without parts."""
        terms = Terms(namespace=NAMESPACE, name="bridge", identity="whole")
        return Election(self.client(), self.clock, terms, dice=random.Random(1))

    def holder(self, namespace: str = "team") -> str | None:
        """What the record says."""
        found = self.cluster.lease(NAMESPACE, f"bridge.namespace.{namespace}")
        return found.spec.holder_identity if found is not None else None

    def pass_time(self, seconds: float, *alive: Daemon) -> None:
        """These renew meanwhile."""
        for _ in range(int(seconds)):
            self.clock.advance(1.0)
            for daemon in alive:
                daemon.step()


@pytest.fixture
def cut() -> Cut:
    """Both daemons have settled."""
    return Cut()


def test_a_namespace_is_served_by_the_daemon_of_its_part_alone(cut: Cut) -> None:
    """The record says so, too."""
    assert (cut.a.serves(), cut.b.serves()) == (True, False)
    assert cut.holder() == "a"


def test_a_namespace_without_a_label_belongs_to_some_part(cut: Cut) -> None:
    """Exactly one of the two claims it."""
    cut.kube.create(kinds.NAMESPACES, {"metadata": {"name": "plain"}})
    for daemon in (cut.a, cut.b):
        daemon.owned.met("plain")
        daemon.step()
    assert cut.a.serves("plain") is not cut.b.serves("plain")


def test_a_namespace_that_is_moved_is_let_go_before_the_other_daemon_takes_it_up(cut: Cut) -> None:
    """Work that is under way holds it up."""
    cut.move("b")
    cut.a.owned.step()
    assert not cut.a.serves()
    assert cut.a.owned.serves("team")
    cut.b.step()
    assert not cut.b.serves()
    assert cut.b.owned.awaited == {"team": "a"}
    cut.a.owned.left(["team"])
    cut.a.owned.step()
    assert cut.holder() == ""
    cut.b.step()
    assert cut.b.serves()
    assert not cut.a.owned.serves("team")


def test_a_namespace_that_is_moved_back_at_once_comes_back(cut: Cut) -> None:
    """What was begun is finished first."""
    cut.move("b")
    cut.a.owned.step()
    cut.move("a")
    cut.a.step()
    cut.a.step()
    assert cut.a.serves()


def test_a_part_whose_daemon_is_dead_keeps_its_namespaces(cut: Cut) -> None:
    """They wait for its next daemon: another part takes them only when the cut says so."""
    cut.pass_time(60, cut.b)
    assert not cut.b.serves()
    assert cut.holder() == "a"
    again = Daemon(cut, "a", "a2")
    again.election.step()
    cut.pass_time(20, cut.b)
    again.lead()
    assert again.serves()


def test_a_namespace_of_a_dead_daemon_is_taken_only_after_its_lease(cut: Cut) -> None:
    """Until then the daemon may only be slow."""
    cut.move("b")
    cut.pass_time(14, cut.b)
    assert not cut.b.serves()
    cut.pass_time(4, cut.b)
    assert cut.b.serves()


def test_a_daemon_that_slept_past_its_lease_has_lost_what_was_taken_meanwhile(cut: Cut) -> None:
    """Although it holds the lease of its part still, and notices nothing by itself."""
    cut.move("b")
    cut.pass_time(20, cut.b)
    assert cut.b.serves()
    cut.a.election.step()
    assert cut.a.election.leading
    assert not cut.a.owned.current
    cut.a.begin()
    assert not cut.a.owned.serves("team")


def test_of_a_part_that_comes_back_and_one_that_takes_over_one_wins(cut: Cut) -> None:
    """The former begins between the other's look at its lease and the write: that write is refused."""
    cut.move("b")
    cut.pass_time(15, cut.b)

    def come_back() -> None:
        cut.a.election.step()
        cut.a.begin()

    cut.clock.advance(1.0)
    cut.b.election.step()
    cut.b.cluster.before = come_back
    cut.b.owned.step()
    cut.b.owned.serve(cut.b.owned.standing(Standing.CLAIMED))
    assert (cut.a.serves(), cut.b.serves()) == (True, False)
    cut.a.step()
    cut.b.step()
    assert (cut.a.serves(), cut.b.serves()) == (False, True)


def test_a_record_that_was_taken_while_a_daemon_begins_is_not_its_own(cut: Cut) -> None:
    """The other order of the same race: the write of the other daemon was on its way."""
    cut.clock.advance(20)
    record = cut.cluster.lease(NAMESPACE, "bridge.namespace.team")
    assert record is not None
    taken = msgspec.structs.replace(record, spec=LeaseSpec(holder_identity="b"))
    cut.a.election.step()
    cut.a.cluster.before = lambda: cut.cluster.write_lease(taken)
    cut.a.begin()
    assert not cut.a.owned.serves("team")
    assert cut.holder() == "b"


@pytest.mark.parametrize("acted", [False, True])
def test_a_claim_without_an_answer_is_given_back_first(cut: Cut, *, acted: bool) -> None:
    """It may have been written, and the namespace may belong to another part by then."""
    cut.kube.create(kinds.NAMESPACES, {"metadata": {"name": "new", "labels": {names.LABEL_PART: "a"}}})
    cut.a.owned.met("new")
    cut.line.faults.plan(faults.Reset(acted=acted), method="POST", target="leases")
    cut.a.owned.step()
    assert not cut.a.owned.serves("new")
    cut.kube.merge(kinds.NAMESPACES, ("", "new"), {"metadata": {"labels": {names.LABEL_PART: "b"}}})
    cut.a.step()
    cut.b.owned.met("new")
    cut.b.step()
    assert cut.b.serves("new")
    assert not cut.a.serves("new")


def test_a_namespace_that_is_gone_stays_until_nothing_of_it_is_left(cut: Cut) -> None:
    """Its jobs have to be cancelled; then its record is deleted."""
    cut.a.needed.add("team")
    cut.kube.delete(kinds.NAMESPACES, ("", "team"))
    cut.kube.settle()
    cut.a.step()
    cut.b.step()
    assert (cut.a.serves(), cut.b.serves()) == (True, False)
    cut.a.needed.clear()
    cut.a.step()
    cut.a.step()
    assert cut.holder() is None
    assert not cut.a.owned.serves("team")


def test_jobs_of_a_namespace_that_is_gone_belong_to_the_part_that_had_it(cut: Cut) -> None:
    """Its label is gone, and a daemon starts anew; the other asks for it now and then only."""
    cut.kube.delete(kinds.NAMESPACES, ("", "team"))
    cut.kube.settle()
    cut.b.step()
    before = cut.line.faults.count(method="GET", target="namespace.team")
    cut.b.owned.met("team")
    cut.b.step()
    assert cut.line.faults.count(method="GET", target="namespace.team") == before
    cut.pass_time(QUIET + 1, cut.b)
    cut.b.owned.met("team")
    cut.b.step()
    assert cut.line.faults.count(method="GET", target="namespace.team") == before + 1
    assert not cut.b.serves()
    again = Daemon(cut, "a", "a2")
    again.election.step()
    cut.clock.advance(20)
    again.lead()
    assert again.serves()


def test_a_daemon_without_parts_and_one_with_parts_never_act_beside_each_other(cut: Cut) -> None:
    """The lease of the former is marked from the first daemon with parts on; before that none of these begins."""
    cut.pass_time(60)
    whole = cut.whole()
    for _ in range(30):
        whole.step()
        cut.clock.advance(1.0)
    assert not whole.leading
    cut.kube.delete(kinds.LEASES, (NAMESPACE, "bridge"))
    whole.step()
    assert whole.leading
    cut.a.appointment.step()
    cut.a.election.step()
    with pytest.raises(errors.TryLater, match="a daemon without parts may lead"):
        cut.a.begin()


def test_a_namespace_that_cannot_be_read_holds_up_no_other(cut: Cut) -> None:
    """A hostile record, or an answer that is odd."""
    cut.kube.create(kinds.NAMESPACES, {"metadata": {"name": "other", "labels": {names.LABEL_PART: "a"}}})
    cut.kube.create(kinds.NAMESPACES, {"metadata": {"name": "odd", "labels": {names.LABEL_PART: "a"}}})
    cut.line.faults.plan(faults.Answer(500), target="namespace.odd", times=100)
    for name in ("odd", "other", "../x", "UPPER", ""):
        cut.a.owned.met(name)
    cut.a.step()
    assert cut.a.serves("other")
    assert not cut.a.serves("odd")


def test_jobs_of_no_namespace_are_the_first_parts(cut: Cut) -> None:
    """What `slurm-bridge check` left behind when it was killed."""
    assert (cut.a.owned.serves(""), cut.b.owned.serves("")) == (True, False)


def test_a_label_that_names_no_part_moves_nothing(cut: Cut) -> None:
    """Any user that may label a namespace could take its pods out of the hands of all daemons."""
    heir = parts.by_name("team", EVERY)
    owner, other = (cut.a, cut.b) if heir == "a" else (cut.b, cut.a)
    cut.move(heir)
    cut.pass_time(3, cut.a, cut.b)
    assert owner.serves()
    cut.move("zzz")
    cut.pass_time(3, cut.a, cut.b)
    assert (owner.serves(), other.serves()) == (True, False)


def test_a_namespace_that_is_gone_and_another_parts_is_forgotten(cut: Cut) -> None:
    """Namespaces come and go for years: neither memory nor calls grow with those that were there."""
    for number in range(20):
        cut.kube.create(kinds.NAMESPACES, {"metadata": {"name": f"ci-{number}", "labels": {names.LABEL_PART: "a"}}})
        for daemon in (cut.a, cut.b):
            daemon.owned.met(f"ci-{number}", by_job=False)
    for daemon in (cut.a, cut.b):
        daemon.step()
    for number in range(20):
        cut.kube.delete(kinds.NAMESPACES, ("", f"ci-{number}"))
    cut.kube.settle()
    cut.pass_time(QUIET + 2, cut.a, cut.b)
    calls = cut.line.faults.count(target="ci-")
    cut.pass_time(3 * QUIET, cut.a, cut.b)
    assert cut.line.faults.count(target="ci-") == calls
    assert [set(one.owned._met) for one in (cut.a, cut.b)] == [{"team"}, {"team"}]
    assert cut.b.owned._quiet == {}


def test_a_daemon_with_parts_stops_when_one_without_has_taken_the_lease(cut: Cut) -> None:
    """Somebody deleted the marked one. When the other daemon has gone, all is read anew."""
    whole = cut.whole()
    cut.kube.delete(kinds.LEASES, (NAMESPACE, "bridge"))
    whole.step()
    cut.a.appointment.step()
    assert whole.leading
    assert not cut.a.serves()
    cut.a.step()
    whole.release()
    cut.clock.advance(2)
    cut.a.appointment.step()
    cut.a.step()
    assert not cut.a.owned.current
    cut.a.begin()
    assert cut.a.serves()


def test_a_slow_answer_is_no_silence(cut: Cut) -> None:
    """The leader renews its lease while the answer is on its way: it has led all the time."""
    cut.a.owned.met("new")
    cut.kube.create(kinds.NAMESPACES, {"metadata": {"name": "new", "labels": {names.LABEL_PART: "a"}}})
    cut.a.step()
    cut.kube.merge(kinds.NAMESPACES, ("", "new"), {"metadata": {"labels": {names.LABEL_PART: "b"}}})
    cut.b.owned.met("new")
    cut.b.owned.step()
    for _ in range(6):
        cut.clock.advance(1.0)
        cut.b.election.step()
    read = cut.b.cluster._cluster.lease

    def slow(namespace: str, name: str) -> Lease | None:
        found = read(namespace, name)
        for _ in range(9 if name == "bridge.part.a" else 0):
            cut.clock.advance(1.0)
            cut.a.election.step()
            cut.b.election.step()
        return found

    cut.b.cluster.lease = slow  # type: ignore[attr-defined]
    cut.b.owned.step()
    assert cut.a.election.leading
    assert cut.holder("new") == "a"


def test_the_lease_of_a_part_that_was_deleted_is_no_free_one_yet(cut: Cut) -> None:
    """Its leader leads on until it notices, and makes it anew."""
    cut.move("b")
    cut.kube.delete(kinds.LEASES, (NAMESPACE, "bridge.part.a"))
    cut.b.step()
    assert not cut.b.serves()
    cut.pass_time(16, cut.b)
    assert cut.b.serves()


def test_a_record_that_was_deleted_is_written_again(cut: Cut) -> None:
    """By the part that has the namespace; without it another daemon would take what is served."""
    cut.kube.delete(kinds.LEASES, (NAMESPACE, "bridge.namespace.team"))
    cut.pass_time(COMPARE + 1, cut.a, cut.b)
    assert cut.a.serves()
    assert cut.holder() == "a"


def test_a_record_that_others_have_changed_is_believed(cut: Cut) -> None:
    """An administrator has restored an old state of the cluster: the namespace is let go, and claimed again later."""
    cut.kube.merge(kinds.LEASES, (NAMESPACE, "bridge.namespace.team"), {"spec": {"holderIdentity": "b"}})
    cut.clock.advance(1.0)
    seen = [cut.a.serves()]
    for _ in range(int(COMPARE) + 30):
        cut.clock.advance(1.0)
        cut.a.step()
        seen.append(cut.a.serves())
    assert False in seen
    assert (seen[-1], cut.holder()) == (True, "a")


@pytest.mark.parametrize("part", EVERY)
def test_a_namespace_that_is_made_anew_is_served_at_once(cut: Cut, part: str) -> None:
    """By the part that its new label says, though both daemons have just seen that it was gone."""
    cut.kube.delete(kinds.NAMESPACES, ("", "team"))
    cut.kube.settle()
    for daemon in (cut.a, cut.b):
        daemon.owned.told("team", there=False)
    cut.pass_time(3, cut.a, cut.b)
    for daemon in (cut.a, cut.b):
        daemon.owned.met("team", by_job=False)
        daemon.step()
    cut.kube.create(kinds.NAMESPACES, {"metadata": {"name": "team", "labels": {names.LABEL_PART: part}}})
    for daemon in (cut.a, cut.b):
        daemon.owned.told("team", there=True)
        daemon.owned.met("team", by_job=False)
    cut.pass_time(3, cut.a, cut.b)
    assert [one.serves() for one in (cut.a, cut.b)] == [one == part for one in EVERY]


def test_a_replica_that_stands_by_forgets_namespaces_that_are_gone(cut: Cut) -> None:
    """Nor does it ask for them when it takes the lead."""
    standby = Daemon(cut, "a", "a2")
    standby.election.step()
    for number in range(20):
        standby.owned.met(f"ci-{number}", by_job=False)
        standby.owned.told(f"ci-{number}", there=False)
    cut.pass_time(20)
    standby.lead()
    before = cut.line.faults.count(target="ci-")
    standby.step()
    assert cut.line.faults.count(target="ci-") == before
    assert standby.serves()


def test_a_record_that_others_have_given_to_a_living_part_is_given_back(cut: Cut) -> None:
    """That part does not want the namespace, and learns of the record when it reads all of them."""
    cut.kube.merge(kinds.LEASES, (NAMESPACE, "bridge.namespace.team"), {"spec": {"holderIdentity": "b"}})
    cut.pass_time(2 * COMPARE + 10, cut.a, cut.b)
    assert (cut.a.serves(), cut.b.serves(), cut.holder()) == (True, False, "a")


def test_a_record_that_cannot_be_written_holds_up_no_other(cut: Cut) -> None:
    """They were deleted, and one of them is refused."""
    every = ("n1", "n2", "n3")
    for name in every:
        cut.kube.create(kinds.NAMESPACES, {"metadata": {"name": name, "labels": {names.LABEL_PART: "a"}}})
        cut.a.owned.met(name)
    cut.a.step()
    for name in every:
        cut.kube.delete(kinds.LEASES, (NAMESPACE, f"bridge.namespace.{name}"))
    cut.line.faults.plan(faults.Answer(409), method="POST", target="leases", times=1)
    cut.pass_time(COMPARE + 1, cut.a, cut.b)
    assert [cut.holder(one) for one in every] == [None, "a", "a"]


def test_a_daemon_without_parts_that_has_come_and_gone_makes_all_be_read_anew(cut: Cut) -> None:
    """Although nothing here was done meanwhile, and although a write of the lease was refused in between."""
    whole = cut.whole()
    cut.kube.delete(kinds.LEASES, (NAMESPACE, "bridge"))
    whole.step()
    cut.a.appointment.step()
    for _ in range(15):
        cut.clock.advance(1.0)
        cut.a.election.step()
    cut.a.cluster.before = whole.step
    cut.a.appointment.step()
    assert whole.leading
    assert not cut.a.serves()
    whole.release()
    cut.clock.advance(2.0)
    cut.a.appointment.step()
    assert not cut.a.owned.current
    cut.a.begin()
    assert cut.a.serves()
