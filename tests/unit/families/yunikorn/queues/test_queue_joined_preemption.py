"""A guaranteed queue gets its share back from those that borrowed it, through all parts of the core."""

from slurm_bridge.families.yunikorn.queues.preemption import MOST_ATTEMPTS
from slurm_bridge.families.yunikorn.queues.preemptors.facts import AttemptAllocation
from slurm_bridge.families.yunikorn.queues.records import NodeMode
from slurm_bridge.families.yunikorn.queues.tree import Queue
from tests.unit.families.yunikorn.queues.support_configs import queue
from tests.unit.families.yunikorn.queues.support_core import ask_id
from tests.unit.families.yunikorn.queues.support_joined import PATIENCE, Site, two


def full(*queues: object, **options: object) -> Site:
    """Queue b has all twenty vcores, in allocations of two, each newer than the one before, and wants more."""
    site = Site(*queues, **options)  # type: ignore[arg-type]
    site.submit("b", "root.b")
    for number in range(10):
        site.later(1)
        site.more("b", 2_000, first=number)
    site.more("b", 2_000, 2_000, first=10)
    return site


def keys(name: str, *numbers: int) -> list[str]:
    """The keys of an application's asks."""
    return [f"{name}-{number}" for number in numbers]


class TestGuarantee:
    def test_nothing_happens_before_an_ask_has_waited_for_the_delay(self):
        """It might be served without that."""
        site = full()
        site.submit("a", "root.a", 2_000)
        site.later(29)
        assert site.evicted == []
        site.later(2)
        assert len(site.evicted) == 1

    def test_the_delay_is_that_of_the_queue(self):
        """Here five minutes."""
        late = queue("a", resources={"guaranteed": {"vcore": "10"}}, properties={"preemption.delay": "5m"})
        site = full(late, queue("b"))
        site.submit("a", "root.a", 2_000)
        site.later(290)
        assert site.evicted == []
        site.later(20)
        assert len(site.evicted) == 1

    def test_it_gets_its_whole_share_and_no_more(self):
        """Five of seven asks are within the guarantee; the others wait."""
        site = full()
        site.submit("a", "root.a", *[2_000] * 7)
        for _ in range(10):
            site.later()
            site.confirm()
        assert site.used("a") == 10_000 == site.used("b")
        assert len(site.evicted) == 5
        assert site.marked() == {}

    def test_every_eviction_names_its_asker_and_the_nodes_held_for_it(self):
        """Each of two asks has its own."""
        site = full()
        site.submit("a", "root.a", 2_000, 2_000)
        site.later()
        assert {one.asker for one in site.manager.evictions} == {ask_id("a", "a-0"), ask_id("a", "a-1")}
        nodes = {one.asker.key: one.nodes for one in site.manager.evictions if one.asker}
        held = site.world.scheduled().nodes
        assert all(any(holder.key == key for holder in held.get(on[0]).held) for key, on in nodes.items())

    def test_the_newest_that_make_room_go_first(self):
        """Two for one ask of four, on one node."""
        site = full()
        site.submit("a", "root.a", 4_000)
        site.later()
        assert len(site.evicted) == 2
        on = {key: nodes[0] for _, key, nodes in site.manager.new}
        there = [key for key in keys("b", *range(9, -1, -1)) if on[key] == on[site.evicted[0]]]
        assert site.evicted == there[:2]

    def test_of_equally_new_ones_the_cheapest_goes(self):
        """One of one vcore is enough for one."""
        site = Site(nodes=1)
        site.submit("b", "root.b", 6_000, 3_000, 1_000)
        site.submit("a", "root.a", 1_000)
        site.later()
        assert site.evicted == keys("b", 2)

    def test_what_is_marked_is_not_free_before_it_is_confirmed(self):
        """The asker waits for it."""
        site = full()
        site.submit("a", "root.a", 2_000)
        site.later()
        assert site.marked() == {"vcore": 2_000}
        assert site.used("a") == 0
        site.confirm()
        assert site.running.count("a-0") == 1
        assert site.marked() == {}

    def test_nobody_else_takes_the_room_of_the_victims(self):
        """Asks of the other queue are older and of higher priority."""
        site = full()
        site.more("b", 2_000, 2_000, first=20, priority=10)
        site.submit("a", "root.a", 2_000)
        site.later()
        site.confirm()
        assert "a-0" in site.running
        assert site.used("b") == 18_000

    def test_while_victims_end_nothing_more_is_preempted_for_the_same_asker(self):
        """However long they take."""
        site = full()
        site.submit("a", "root.a", 2_000)
        for _ in range(5):
            site.later()
        assert len(site.evicted) == 1

    def test_asking_again_for_the_same_changes_nothing(self):
        """What goes for it still does, and its node is still held."""
        site = full()
        site.submit("a", "root.a", 2_000)
        created = site.world.clock.wall()
        site.later()
        held = dict(site.world.scheduled().holders[ask_id("a", "a-0", "rm_default")].on)
        site.more("a", 2_000, created=created)
        site.later()
        assert len(site.evicted) == 1
        assert site.world.scheduled().holders[ask_id("a", "a-0", "rm_default")].on == held

    def test_a_node_that_a_borrower_has_reserved_does_for_the_guaranteed(self):
        """Both nodes are held for asks of the other queue, which find room there only when something ends."""
        site = Site()
        site.submit("b", "root.b", *[3_000] * 6)
        site.more("b", 2_000, 2_000, first=6)
        site.later(3)
        assert all(on.held for on in site.world.scheduled().nodes)
        site.submit("a", "root.a", 4_000)
        site.later()
        site.confirm()
        assert "a-0" in site.running
        assert len(site.evicted) == 1

    def test_whoever_has_gained_is_not_preempted_back_in_the_next_cycles(self):
        """The queue that lost has asks that wait, and a guarantee that it keeps."""
        guaranteed = {"resources": {"guaranteed": {"vcore": "10"}}}
        site = full(queue("a", **guaranteed), queue("b", **guaranteed))
        site.submit("a", "root.a", *[2_000] * 6)
        for _ in range(12):
            site.later()
            site.confirm()
        assert site.used("a") == 10_000 == site.used("b")
        assert {key.split("-")[0] for key in site.evicted} == {"b"}
        assert len(site.evicted) == 5

    def test_only_borrowers_lose(self):
        """A third queue within its guarantee is left alone."""
        site = Site(*two(), queue("c", resources={"guaranteed": {"vcore": "8"}}))
        site.submit("c", "root.c", *[2_000] * 4)
        site.submit("b", "root.b", *[2_000] * 6)
        site.submit("a", "root.a", *[2_000] * 5)
        for _ in range(8):
            site.later()
            site.confirm()
        assert site.used("c") == 8_000
        assert site.used("a") == 10_000
        assert all(key.startswith("b") for key in site.evicted)

    def test_a_fence_keeps_an_ask_from_what_is_outside(self):
        """Nobody inside has anything to give."""
        inner = queue("a", resources={"guaranteed": {"vcore": "10"}})
        site = full(queue("f", inner, properties={"preemption.policy": "fence"}), queue("b"))
        site.submit("a", "root.f.a", 2_000)
        site.later()
        assert site.evicted == []

    def test_a_disabled_queue_loses_nothing(self):
        """Its property says so."""
        site = full(*two(properties={"preemption.policy": "disabled"}))
        site.submit("a", "root.a", 2_000)
        site.later()
        assert site.evicted == []

    def test_a_partition_without_preemption_preempts_nothing(self):
        """Its option says so."""
        site = full(fields={"preemption": {"enabled": False}})
        site.submit("a", "root.a", 2_000)
        site.later()
        assert site.evicted == []

    def test_a_gang_gets_the_room_of_all_its_members_or_none(self):
        """Its nodes are held until the last of them has its place."""
        site = full()
        site.submit("a", "root.a", 4_000, members=2)
        site.later()
        assert len(site.evicted) == 4
        site.end(site.manager.evictions[0].victim)
        assert site.used("a") == 0
        site.end(*(one.victim for one in site.manager.evictions[1:]))
        assert site.used("a") == 8_000

    def test_an_ask_for_one_node_takes_what_runs_there_from_any_queue(self):
        """Here of its own."""
        site = Site(queue("b"), nodes=1)
        site.submit("b", "root.b", 6_000, 4_000)
        site.submit("d", "root.b", 3_000, required_node="n1", priority=1)
        site.later()
        site.confirm()
        assert "d-0" in site.running
        assert len(site.evicted) == 1


class TestRefusal:
    def test_a_spared_victim_is_no_longer_taken_back(self):
        """The mark is gone at once."""
        site = full()
        site.submit("a", "root.a", 2_000)
        site.later()
        site.refuse()
        assert site.marked() == {}

    def test_another_one_is_asked_in_its_place(self):
        """Not before the next attempt."""
        site = full()
        site.submit("a", "root.a", 2_000)
        site.later()
        site.refuse()
        assert len(site.evicted) == 1
        site.later(16)
        assert len(set(site.evicted)) == 2
        site.confirm()
        assert "a-0" in site.running

    def test_an_asker_that_no_longer_waits_leaves_the_others_alone(self):
        """It went while the cache had not heard of the evictions."""
        site = full()
        site.submit("a", "root.a", 2_000)
        site.world.clock.advance(PATIENCE)
        for lane in site.world.core.lanes():
            lane.run()
        site.world.update(withdrawn=(ask_id("a", "a-0"),))
        site.world.settle()
        assert site.marked() == {}
        assert site.evicted == []


class TestPredicates:
    def test_the_manager_is_asked_whether_the_ask_may_run_there_without_the_victims(self):
        """With its own names, and only about nodes that are to be held."""
        site = full(predicates=True)
        site.submit("a", "root.a", 2_000)
        site.manager.asked.clear()
        site.later()
        asked = [question for question in site.manager.asked if question.preempting]
        assert [question.without for question in asked] == [(site.manager.evictions[0].victim,)]
        assert all(question.reserving and question.ask.key == "a-0" for question in asked)
        assert asked[0].without[0].partition == "default"

    def test_a_node_that_it_refuses_is_left_alone(self):
        """The victims are on the other one."""
        site = full(predicates=True)
        site.manager.refuses = {"n1": "not there"}
        site.submit("a", "root.a", 2_000)
        site.later()
        assert [one.nodes for one in site.manager.evictions] == [("n2",)]


class TestSeveralSchedulers:
    def test_all_of_them_know_what_the_others_were_promised(self):
        """Together they take what the guarantee gives, and no more."""
        site = Site(schedulers=3)
        site.submit("b", "root.b", *[2_000] * 10)
        for number in range(8):
            site.submit(f"a{number}", "root.a", 2_000)
        for _ in range(12):
            site.later()
            site.confirm()
        assert site.used("a") == 10_000
        assert len(site.evicted) == 5

    def test_what_one_of_them_was_promised_nobody_is_promised_again(self):
        """While those that go for it have not gone."""
        site = Site(schedulers=3, nodes=10)
        site.submit("b", "root.b", *[2_000] * 50)
        for number in range(5):
            site.submit(f"a{number}", "root.a", 2_000)
            site.later()
        assert len(site.evicted) == 5
        for number in range(5, 10):
            site.submit(f"a{number}", "root.a", 2_000)
            site.later()
        assert len(site.evicted) == 5


class TestBehindAnotherScheduler:
    """Mode ALLOCATABLE: only queues hold anybody."""

    def test_a_full_parent_gives_the_guaranteed_child_its_share(self):
        """Nothing of a node is held: others queue there as before."""
        parent = queue(
            "p",
            queue("a", resources={"guaranteed": {"vcore": "4"}}),
            queue("b"),
            resources={"max": {"vcore": "8"}},
        )
        site = Site(parent, nodes=1, mode=NodeMode.ALLOCATABLE)
        site.submit("b", "root.p.b", *[2_000] * 6, priority=5)
        assert site.used("p.b") == 8_000
        site.submit("a", "root.p.a", 2_000, 2_000, 2_000, priority=5)
        for _ in range(6):
            site.later()
            site.confirm()
        assert site.used("p.a") == 4_000 == site.used("p.b")
        assert len(site.evicted) == 2
        assert all(one.nodes == () for one in site.manager.evictions)

    def test_nobody_is_preempted_where_there_is_room_in_the_queues(self):
        """The node is full many times over, and that is another scheduler's business."""
        site = Site(*two(), nodes=1, mode=NodeMode.ALLOCATABLE)
        site.submit("b", "root.b", *[9_000] * 6)
        site.submit("a", "root.a", 9_000)
        site.later()
        assert site.evicted == []
        assert site.used("a") == 9_000


class TestCost:
    def test_many_that_wait_in_vain_are_tried_once_in_a_while(self):
        """Asks that are alike share an attempt: whoever might be a victim is looked through once in fifteen seconds."""
        site = Site()
        site.submit("b", "root.b", *[2_000] * 10, priority=10)
        looked: list[str] = []
        standing = site.world.scheduled().standing
        inner = standing.of

        def counted(leaf: Queue, now: float) -> list[AttemptAllocation]:
            looked.append(leaf.path)
            return inner(leaf, now)

        standing.of = counted
        site.submit("a", "root.a", *[2_000] * 200)
        for _ in range(PATIENCE + 13):
            site.later(1)
        assert looked == ["root.b"]
        site.later(2)
        assert looked == ["root.b"] * 2

    def test_a_look_makes_a_few_attempts_at_most(self):
        """Gangs are not alike: each has its own turn."""
        site = Site()
        site.submit("b", "root.b", *[2_000] * 10, priority=10)
        site.submit("a", "root.a")
        for number in range(20):
            site.more("a", 1_000, first=number, members=2)
        standing = site.world.scheduled().standing
        inner, looked = standing.of, list[float]()

        def counted(leaf: Queue, now: float) -> list[AttemptAllocation]:
            looked.append(now)
            return inner(leaf, now)

        standing.of = counted
        site.later()
        assert len(looked) == MOST_ATTEMPTS
        site.later(1)
        assert len(looked) == 2 * MOST_ATTEMPTS
