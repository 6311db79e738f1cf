"""Several workloads are asks of one application: they come and go one by one, and the application with the last one."""

import collections
import dataclasses

import hypothesis
import pytest
from hypothesis import strategies as st

from slurm_bridge.families.yunikorn import core_requests, setup
from slurm_bridge.families.yunikorn.demands import CoreDemand
from slurm_bridge.families.yunikorn.identities import ApplicationIdentity
from slurm_bridge.families.yunikorn.manager import Manager
from slurm_bridge.families.yunikorn.members import Stage
from slurm_bridge.families.yunikorn.options import YunikornOptions
from slurm_bridge.families.yunikorn.queues.records import Allocation, News
from slurm_bridge.families.yunikorn.restorer import RestoredWorkload
from slurm_bridge.hooks.services import HookServices
from slurm_bridge.runtime.clock import VirtualClock
from tests.component.families.yunikorn.yunikorn_scenes import document, queue
from tests.effort import Work


def demand(uid: str, application: str = "web", path: str = "root.a", cpus: int = 1, **more: object) -> CoreDemand:
    """A workload of an application."""
    fields: dict[str, object] = {"priority": 0, "created": 0.0, "user": "ann", **more}
    fields.setdefault("account", fields["user"])
    return CoreDemand(
        uid=uid,
        title=f"team/{uid}",
        total={"vcore": 1000 * cpus, "pods": 1},
        queue=path,
        groups=(),
        tags={},
        node_sort="",
        application=ApplicationIdentity(key=application, title=f"team/{application}"),
        **fields,
    )


class Scene:
    """A manager without threads."""

    def __init__(self, *known: RestoredWorkload, queues: tuple[object, ...] = (), **options: object) -> None:
        self.woken: list[str] = []
        there = queues or (queue("a"), queue("b"))
        given = YunikornOptions.model_validate({"configuration": document(*there), "ahead": 0, **options})
        services = HookServices(clock=VirtualClock(), wake=self.woken.append, threads=False)
        self.manager = Manager(setup.make(given), services)
        self.manager.begin(known)

    def stage(self, uid: str) -> Stage:
        return self.manager.members[uid].stage

    def core(self) -> tuple[int, int, int]:
        """How many applications the core has, how many run, and the processors that they use."""
        found = self.manager.engine.committed(
            lambda known: (len(known.applications), known.root.running, known.root.allocated.get("vcore", 0) // 1000)
        )
        assert isinstance(found, tuple)
        return found


def runs(uid: str, **more: object) -> RestoredWorkload:
    """A workload that runs when the queues begin."""
    return RestoredWorkload(demand=demand(uid, **more))


def test_the_last_ask_takes_its_application_with_it() -> None:
    """What the others use is theirs until they go, too."""
    scene = Scene()
    for uid in ("one", "two", "three"):
        scene.manager.enter(demand(uid))
    assert scene.core() == (1, 1, 3)
    for left, uid in enumerate(("two", "one"), 1):
        scene.manager.leave(uid)
        assert scene.core() == (1, 1, 3 - left)
    scene.manager.leave("three")
    assert scene.core() == (0, 0, 0)


def test_a_waiting_ask_that_goes_is_not_served() -> None:
    """The one behind it is."""
    scene = Scene(queues=(queue("a", resources={"max": {"vcore": "1"}}),))
    for uid in ("one", "two", "three"):
        scene.manager.enter(demand(uid))
    scene.manager.leave("two")
    scene.manager.leave("one")
    assert scene.stage("three") is Stage.GIVEN
    assert scene.core() == (1, 1, 1)


def test_what_is_given_to_one_that_has_just_left_is_given_back() -> None:
    """The answer of the core was on its way when it left."""
    scene = Scene()
    scene.manager.enter(demand("one"))
    member = scene.manager.enter(demand("two"))
    late = Allocation(ask=core_requests.ask(member), nodes=("slurm",))
    member.stage = Stage.ASKED
    scene.manager.leave("two")
    assert scene.core() == (1, 1, 2)
    scene.manager.update(News(new=(late,)))
    assert scene.core() == (1, 1, 1)


def test_a_new_beginning_finds_each_application_again() -> None:
    """Those that name another queue, or are of another user, count where they say, by themselves."""
    scene = Scene(
        runs("one", created=2.0),
        runs("two", created=1.0),
        runs("moved", created=3.0, path="root.b"),
        runs("stranger", created=4.0, user="bob"),
        runs("other", application="db"),
    )
    assert scene.core() == (4, 4, 5)
    queues = {uid: member.queue for uid, member in scene.manager.members.items()}
    assert queues == {"one": "root.a", "two": "root.a", "moved": "root.b", "stranger": "root.a", "other": "root.a"}
    scene.manager.enter(demand("three"))
    assert scene.core() == (4, 4, 6)


def test_what_has_no_queue_any_more_takes_no_further_workloads() -> None:
    """No limit holds there: whoever comes now is placed like any other."""
    scene = Scene(runs("one", path="root.gone"))
    assert scene.manager.members["one"].queue == "root.@recovery@"
    scene.manager.enter(demand("two"))
    assert scene.manager.members["two"].queue == "root.a"
    scene.manager.enter(demand("three", path="root.gone"))
    assert scene.stage("three") is Stage.REFUSED


def test_an_application_that_no_queue_takes_is_asked_for_again_with_its_next_workload() -> None:
    """One bad pod does not spoil the others of its application."""
    scene = Scene()
    scene.manager.enter(demand("bad", path="root.nowhere"))
    scene.manager.enter(demand("good"))
    assert (scene.stage("bad"), scene.stage("good")) == (Stage.REFUSED, Stage.GIVEN)
    assert scene.core() == (1, 1, 1)


@pytest.mark.parametrize("different", [{"path": "root.b"}, {"user": "bob"}])
def test_whoever_was_kept_apart_tries_again_when_that_application_is_over(different: dict[str, str]) -> None:
    """And is forgotten when it goes itself."""
    scene = Scene()
    scene.manager.enter(demand("one"))
    for uid in ("two", "three"):
        scene.manager.enter(demand(uid, **different))
    scene.manager.leave("two")
    assert scene.stage("three") is Stage.REFUSED
    scene.manager.leave("one")
    assert scene.woken == ["three"]
    assert not scene.manager.members


def test_a_service_account_that_has_become_another_user_adds_to_its_application() -> None:
    """A change of the configuration holds up no Deployment that runs."""
    scene = Scene(runs("one", user="system:serviceaccount:team:sim", account="sim"))
    scene.manager.enter(demand("two", user="ann", account="sim"))
    assert scene.core() == (1, 1, 2)


def test_the_queue_that_is_asked_for_is_compared_as_it_is_read() -> None:
    """In any case of letters, with or without the root; where no rule reads it, it is not compared."""
    scene = Scene()
    for uid, path in {"one": "root.a", "two": "a", "three": "root.A", "four": ""}.items():
        scene.manager.enter(demand(uid, path=path))
    assert scene.core() == (1, 1, 4)
    fixed = document(queue("a"), rules=[{"name": "fixed", "value": "root.a"}])
    scene = Scene(configuration=fixed)
    for uid, path in {"one": "root.x", "two": "root.y"}.items():
        scene.manager.enter(demand(uid, path=path))
    assert scene.core() == (1, 1, 2)


def test_one_more_ask_of_many_costs_little() -> None:
    """The others of its application are not looked at again."""
    scene = Scene(queues=(queue("a", resources={"max": {"vcore": "1"}}),))
    for number in range(1_000):
        scene.manager.enter(demand(f"w{number}"))
    with Work() as work:
        scene.manager.enter(demand("more"))
    assert work.total < 1_500
    with Work() as work:
        scene.manager.leave("w500")
    assert work.total < 1_500


_STEP = st.tuples(
    st.sampled_from(["enter", "leave", "adopt", "started", "recount"]), st.integers(0, 9), st.integers(0, 2)
)


@hypothesis.given(st.lists(_STEP, max_size=40))
def test_the_core_has_what_the_members_have(steps: list[tuple[str, int, int]]) -> None:
    """Whatever comes and goes: each application once, and the sum of what was given."""
    scene = Scene(queues=(queue("a", maxapplications=2, resources={"max": {"vcore": "4"}}),))
    for what, number, application in steps:
        one = demand(f"w{number}", application=f"app{application}", created=float(number))
        match what:
            case "enter":
                scene.manager.enter(one)
            case "leave":
                scene.manager.leave(one.uid)
            case "adopt":
                scene.manager.adopt(one, started=True)
            case "started":
                scene.manager.started(one.uid)
            case "recount":
                scene.manager.recount(dataclasses.replace(one, total={"vcore": 2000, "pods": 1}))
        members = scene.manager.members.values()
        of = collections.defaultdict(list)
        for member in members:
            of[member.demand.identity.key].append(member)
        given = sum(one.demand.total["vcore"] for one in members if one.stage is Stage.GIVEN)
        applications, running, used = scene.core()
        assert applications == len(of)
        assert 1000 * used == given
        assert running >= len({key for key, ones in of.items() if any(one.stage is Stage.GIVEN for one in ones)})
        assert all(len(one.members) == len(of[one.first.identity.key]) for one in scene.manager.applications.all())
