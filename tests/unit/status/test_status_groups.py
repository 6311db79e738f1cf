"""What is said of many pods at once: on the object that groups them, and to each of them without the square of cost."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from slurm_bridge.model import kinds
from slurm_bridge.model.kinds import Kind
from slurm_bridge.model.meta import Object
from slurm_bridge.model.pod import Pod
from slurm_bridge.model.workload import Gang, Root, Workload
from slurm_bridge.sim import faults
from slurm_bridge.status.reporter import ReporterLimits, Sight, StatusReporter
from slurm_bridge.workloads import kind_table
from tests.pocketkube import NAMESPACE, Scene

BUILT_IN, COSCHEDULING = kinds.PODGROUPS, kinds.COSCHEDULING_PODGROUPS
SPECS: dict[str, dict[str, Any]] = {
    BUILT_IN.group: {"schedulingPolicy": {"gang": {"minCount": 2}}},
    COSCHEDULING.group: {"minMember": 2},
}
BOTH = pytest.mark.parametrize("kind", [BUILT_IN, COSCHEDULING], ids=["built-in", "coscheduling"])


class Store:
    """Implements Objects over what was put there."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.asked = 0

    def put(self, kind: Kind[Any], found: Object) -> None:
        """An informer heard of it."""
        self.objects[kind.group, *found.key] = found

    def find(self, kind: Kind[Any], namespace: str, name: str, /) -> Any:
        """As last heard."""
        self.asked += 1
        return self.objects.get((kind.group, namespace, name))


class Crew:
    """Members that change during the call."""

    def __init__(self, *pods: Pod) -> None:
        self.pods = list(pods)
        self.looks = 0

    def __len__(self) -> int:
        return len(self.pods)

    def all(self) -> Sequence[Pod]:
        """A copy."""
        self.looks += 1
        return tuple(self.pods)


class Office(Scene):
    """A reporter that knows groups, and what it counted."""

    def __init__(self, limits: ReporterLimits | None = None) -> None:
        super().__init__()
        self.counted: Counter[str] = Counter()
        self.store = Store()
        self.limits = limits or ReporterLimits(patience_seconds=2, conditions_per_second=10_000)
        self.reporter = self.restarted()

    def restarted(self) -> StatusReporter:
        """Another process, which remembers nothing."""
        self.reporter = StatusReporter(
            self.cluster,
            self.clock,
            dice=random.Random(1),
            limits=self.limits,
            sight=Sight(known=self.store, announcements=kind_table.ANNOUNCEMENTS),
            count=lambda what, outcome: self.counted.update([f"{what} {outcome}"]),
        )
        return self.reporter

    def group(self, kind: Kind[Any], name: str = "g") -> Object:
        """A PodGroup, heard of."""
        self.kube.create(kind, {"metadata": {"name": name}, "spec": SPECS[kind.group]})
        found: Object | None = self.cluster.get(kind, NAMESPACE, name)
        assert found is not None
        self.store.put(kind, found)
        return found

    def workload(self, found: Object, *pods: Pod, kind: str = "PodGroup") -> Workload:
        """The gang of this object."""
        root = Root(kind=kind, namespace=NAMESPACE, name=found.metadata.name, uid=found.uid)
        return Workload(root=root, pods=pods, sources=(), job_name="g", gang=Gang(minimum=2))

    def write_all(self) -> None:
        """Until nothing is to be done, however long that takes."""
        while (idle := self.reporter.idle_for()) is not None:
            self.clock.advance(idle)
            self.reporter.step()

    def patches(self, target: str = "podgroups") -> int:
        """How often something of this plural was written."""
        return self.line.faults.count(method="PATCH", target=target)

    def status(self, kind: Kind[Any], name: str = "g") -> dict[str, Any]:
        """As the API server shows it."""
        stored = self.kube.get(kind, NAMESPACE, name)
        assert stored is not None
        found: dict[str, Any] = stored.get("status", {})
        return found


@pytest.fixture
def office() -> Office:
    """One at work."""
    return Office()


def test_t30_a_built_in_group_says_once_that_it_is_scheduled(office: Office) -> None:
    """As kube-scheduler would, however often it is said."""
    workload = office.workload(office.group(BUILT_IN), office.pod("a"), office.pod("b"))
    for _ in range(3):
        office.reporter.scheduled(workload)
        office.write_all()
    (line,) = office.status(BUILT_IN)["conditions"]
    assert (line["type"], line["status"], line["reason"]) == ("PodGroupScheduled", "True", "Scheduled")
    assert line["message"] == "2 pods have their nodes"
    assert office.patches() == 1


def test_t30_a_coscheduling_group_says_once_that_it_is_scheduled(office: Office) -> None:
    """In its own words: placed, and not yet running."""
    workload = office.workload(office.group(COSCHEDULING))
    for _ in range(2):
        office.reporter.scheduled(workload)
        office.write_all()
    assert office.status(COSCHEDULING) == {"phase": "Scheduling"}
    assert office.patches() == 1


@BOTH
def test_t30_after_a_restart_nothing_is_written_again(office: Office, kind: Kind[Any]) -> None:
    """The object says so already, even where what an informer heard is older than that."""
    workload = office.workload(office.group(kind))
    office.reporter.scheduled(workload)
    office.write_all()
    office.restarted()
    office.reporter.scheduled(workload)
    office.write_all()
    assert office.counted["group ok"] == 1
    assert office.counted["group same"] == 1


@BOTH
def test_t30_a_lost_answer_is_looked_after(office: Office, kind: Kind[Any]) -> None:
    """It was written, and the answer was lost: a read finds it, and nothing is written twice."""
    office.reporter.scheduled(office.workload(office.group(kind)))
    office.line.faults.plan(faults.Drop(), method="PATCH")
    office.write_all()
    assert office.patches() == 1
    assert office.counted == {"group failed": 1, "group same": 1}


def test_a_phase_that_somebody_set_is_left_alone(office: Office) -> None:
    """Its own controller is ahead of us."""
    found = office.group(COSCHEDULING)
    office.kube.merge(COSCHEDULING, found.key, {"status": {"phase": "Running"}}, "status")
    office.reporter.scheduled(office.workload(found))
    office.write_all()
    assert office.status(COSCHEDULING) == {"phase": "Running"}


def test_conditions_of_others_on_a_group_stay(office: Office) -> None:
    """One that came after our look is kept."""
    found = office.group(BUILT_IN)
    theirs = {"type": "DisruptionTarget", "status": "True", "reason": "X", "message": ""}
    office.kube.merge(BUILT_IN, found.key, {"status": {"conditions": [theirs]}}, "status")
    office.reporter.scheduled(office.workload(found))
    office.write_all()
    assert {line["type"] for line in office.status(BUILT_IN)["conditions"]} == {"DisruptionTarget", "PodGroupScheduled"}


@BOTH
def test_a_group_that_no_informer_has_is_looked_up(office: Office, kind: Kind[Any]) -> None:
    """Of two kinds of the same name the uid decides."""
    for one in (BUILT_IN, COSCHEDULING):
        office.group(one)
    found = office.store.objects[kind.group, NAMESPACE, "g"]
    office.store.objects.clear()
    office.reporter.scheduled(office.workload(found))
    office.write_all()
    assert office.patches() == office.patches(f"/apis/{kind.group}/") == 1


def test_another_group_of_the_same_name_is_not_told(office: Office) -> None:
    """Its members may have no nodes."""
    workload = office.workload(office.group(COSCHEDULING))
    office.kube.delete(COSCHEDULING, (NAMESPACE, "g"))
    office.group(COSCHEDULING)
    office.reporter.scheduled(workload)
    office.write_all()
    assert office.counted == {"group stale": 1}
    assert office.patches() == 0


def test_where_the_status_may_not_be_written_nobody_else_waits_for_it(office: Office) -> None:
    """A missing right is said once and not asked for again."""
    office.reporter.scheduled(office.workload(office.group(BUILT_IN)))
    office.line.faults.plan(faults.Answer(status=403), method="PATCH", times=9)
    office.write_all()
    assert office.patches() == 1
    assert office.counted == {"group failed": 1}


def test_a_server_in_trouble_is_asked_again(office: Office) -> None:
    """After a pause."""
    office.reporter.scheduled(office.workload(office.group(BUILT_IN)))
    office.line.faults.plan(faults.Answer(status=503), method="PATCH")
    office.write_all()
    assert office.counted == {"group failed": 1, "group ok": 1}


def test_other_workloads_have_no_group_to_tell(office: Office) -> None:
    """A Job says by itself how far it is."""
    office.reporter.scheduled(office.workload(office.group(BUILT_IN), kind="Job"))
    assert office.reporter.queued == (0, 0)


def test_news_of_a_gang_are_told_on_its_object_and_its_first_member(office: Office) -> None:
    """In the version that the cluster serves."""
    found = office.group(BUILT_IN)
    office.reporter.group(office.workload(found, office.pod("a"), office.pod("b")), "R", "words", warning=True)
    office.write_all()
    events = office.kube.list(kinds.EVENTS)
    told = {(event["regarding"]["kind"], event["regarding"]["name"], event["type"]) for event in events}
    assert told == {("PodGroup", "g", "Warning"), ("Pod", "a", "Warning")}
    versions = {event["regarding"]["apiVersion"] for event in events}
    assert versions == {"v1", "scheduling.k8s.io/v1alpha2"}


def test_what_was_told_of_a_gang_is_news_again_when_it_was_forgotten(office: Office) -> None:
    """A gang that ran and comes to the same trouble once more: its object tells, as its pods do."""
    workload = office.workload(office.group(BUILT_IN), office.pod("a"), office.pod("b"))
    for _ in range(2):
        office.reporter.group(workload, "R", "words", warning=True)
        office.write_all()
        for one in (workload.root.key, workload.lead.uid):
            office.reporter.forget(one)
    assert office.line.faults.count(method="POST", target="events") == 4


def test_news_of_a_workload_whose_object_is_unknown_are_told_on_the_pod(office: Office) -> None:
    """Also where another object has its name now."""
    found = office.group(COSCHEDULING)
    office.kube.delete(COSCHEDULING, (NAMESPACE, "g"))
    office.group(COSCHEDULING)
    office.reporter.group(office.workload(found, office.pod("a")), "R", "words")
    office.write_all()
    assert [event["regarding"]["kind"] for event in office.kube.list(kinds.EVENTS)] == ["Pod"]


def together(office: Office, crew: Crew, message: str, reason: str = "GangIncomplete") -> None:
    """All of them wait."""
    root = Root(kind="JobSet", namespace=NAMESPACE, name="set", uid="u")
    office.reporter.waiting_together(root, crew, reason, message)


def shown(office: Office, name: str) -> tuple[str | None, str | None]:
    """Reason and message of a member."""
    lines = office.seen(name).status.conditions
    return next(((line.reason, line.message) for line in lines if line.type == "PodScheduled"), (None, None))


def test_c2_a_burst_of_members_is_told_once_and_looked_through_once(office: Office) -> None:
    """Every one that comes changes the words; each member is written once, with the last of them."""
    crew = Crew()
    for number in range(40):
        crew.pods.append(office.pod(f"p-{number}"))
        together(office, crew, f"{number + 1} of 50 pods are there")
        office.clock.advance(0.1)
        while office.reporter.step():
            pass
    office.write_all()
    assert (crew.looks, office.patches("/pods/")) == (1, 40)
    assert {shown(office, f"p-{number}")[1] for number in (0, 39)} == {"40 of 50 pods are there"}


def test_a_member_that_comes_late_is_told_and_nobody_else_again(office: Office) -> None:
    """One write for each member and reason."""
    crew = Crew(office.pod("a"))
    together(office, crew, "1 of 3")
    office.write_all()
    crew.pods.append(office.pod("b"))
    together(office, crew, "2 of 3")
    office.write_all()
    assert [shown(office, name)[1] for name in "ab"] == ["1 of 3", "2 of 3"]
    assert office.patches("/pods/") == 2


def test_another_reason_is_told_to_all(office: Office) -> None:
    """They are complete, and wait for Slurm."""
    crew = Crew(office.pod("a"), office.pod("b"))
    together(office, crew, "2 of 2")
    office.write_all()
    crew.pods = [office.seen("a"), office.seen("b")]
    together(office, crew, "job 5 waits", "SlurmJobPending")
    office.write_all()
    assert {shown(office, name) for name in "ab"} == {("SlurmJobPending", "job 5 waits")}
    assert office.patches("/pods/") == 4


def test_the_same_words_to_the_same_number_cost_nothing(office: Office) -> None:
    """A pass that finds what the last one found looks at no member."""
    crew = Crew(office.pod("a"))
    for _ in range(5):
        together(office, crew, "1 of 2")
        office.write_all()
    assert crew.looks == 1


def test_a_member_that_took_another_ones_place_is_found_within_a_minute(office: Office) -> None:
    """As many as before, but not the same."""
    crew = Crew(office.pod("a"))
    together(office, crew, "1 of 2")
    office.write_all()
    crew.pods = [office.pod("b")]
    office.clock.advance(61)
    together(office, crew, "1 of 2")
    office.write_all()
    assert shown(office, "b")[1] == "1 of 2"


def test_a_group_that_never_stops_changing_is_told_nevertheless(office: Office) -> None:
    """After ten times the patience."""
    crew = Crew(office.pod("a"))
    for number in range(25):
        together(office, crew, f"{number} of 99")
        office.clock.advance(1)
        while office.reporter.step():
            pass
    assert shown(office, "a")[1] == "19 of 99"


def test_a_workload_that_waits_no_more_is_not_told(office: Office) -> None:
    """It was bound before its condition was due."""
    crew = Crew(office.pod("a"))
    together(office, crew, "1 of 2")
    office.reporter.forget(Root(kind="JobSet", namespace=NAMESPACE, name="set", uid="u").key)
    office.write_all()
    assert (crew.looks, office.patches("/pods/")) == (0, 0)


def test_what_is_remembered_of_groups_is_bounded() -> None:
    """At worst the members are looked through again, and nothing is written for it."""
    office = Office(ReporterLimits(patience_seconds=0, remembered=2))
    crews = [Crew(office.pod(f"p-{number}")) for number in range(4)]
    for _ in range(2):
        for number, crew in enumerate(crews):
            root = Root(kind="Job", namespace=NAMESPACE, name="j", uid=str(number))
            office.reporter.waiting_together(root, crew, "R", "words")
            office.write_all()
    assert [crew.looks for crew in crews] == [2, 2, 2, 2]
    assert office.patches("/pods/") == 4


def test_a_version_that_cannot_be_asked_for_now_does_not_keep_news_back(office: Office) -> None:
    """The one that we would prefer stands for it."""
    found, pod = office.group(BUILT_IN), office.pod("a")
    reporter = StatusReporter(
        office.client(),
        office.clock,
        dice=random.Random(1),
        sight=Sight(known=office.store, announcements=kind_table.ANNOUNCEMENTS),
    )
    office.line.faults.plan(faults.Answer(status=503), method="GET", times=9)
    reporter.group(office.workload(found, pod), "R", "words")
    assert reporter.queued == (0, 2)
