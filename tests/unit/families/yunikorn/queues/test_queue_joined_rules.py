"""What a configuration says holds through all parts of the core: maxima, drains, users, limits, fair shares."""

import dataclasses
from typing import Any

import pytest

from slurm_bridge.families.yunikorn.queues.records import Allocation, Thing, Update
from tests.unit.families.yunikorn.queues.support_configs import queue
from tests.unit.families.yunikorn.queues.support_core import application, ask, documented, named, node
from tests.unit.families.yunikorn.queues.support_joined import Site

QUOTA: dict[str, Any] = {"fields": {"preemption": {"quotapreemptionenabled": True}}}


def capped(vcores: int, delay: str = "60s", guaranteed: int = 0) -> Any:
    """Queue a with so many vcores at most."""
    resources = {"max": {"vcore": str(vcores)}} | ({"guaranteed": {"vcore": str(guaranteed)}} if guaranteed else {})
    return queue("a", resources=resources, properties={"quota.preemption.delay": delay})


def follow(site: Site, *queues: Any, quota: bool = True) -> None:
    """The configuration is another one from now on."""
    fields = QUOTA["fields"] if quota else {}
    site.world.update(configuration=documented(*queues, **fields))
    site.world.settle()


class TestLoweredMaximum:
    def lowered(self, delay: str = "60s", *, quota: bool = True, guaranteed: int = 0) -> Site:
        """It has ten of ten vcores, and may have six from now on."""
        site = Site(capped(10, delay), queue("b"), **QUOTA)
        site.submit("a", "root.a", *[2_000] * 5)
        follow(site, capped(6, delay, guaranteed), queue("b"), quota=quota)
        return site

    def test_after_the_delay_what_is_too_much_goes(self):
        """And nothing for whom anybody asks."""
        site = self.lowered()
        site.later(59)
        assert site.evicted == []
        site.later(2)
        assert len(site.evicted) == 2
        assert {one.asker for one in site.manager.evictions} == {None}
        site.confirm()
        assert site.used("a") == 6_000
        site.later(600)
        assert len(site.evicted) == 2

    def test_a_delay_of_zero_leaves_everybody_alone(self):
        """The queue takes nothing new until enough has ended by itself."""
        site = self.lowered("0s")
        site.later(10_000)
        assert site.evicted == []
        site.more("a", 1_000, first=7)
        assert site.used("a") == 10_000

    def test_so_does_a_partition_without_quota_preemption(self):
        """Which is the default."""
        site = self.lowered(quota=False)
        site.later(10_000)
        assert site.evicted == []

    def test_raised_in_time_nobody_goes(self):
        """It is within its maximum again."""
        site = self.lowered()
        site.later(30)
        follow(site, capped(10), queue("b"))
        site.later(600)
        assert site.evicted == []

    def test_lowered_again_the_time_begins_again(self):
        """With what is too much then."""
        site = self.lowered()
        site.later(30)
        follow(site, capped(4), queue("b"))
        site.later(40)
        assert site.evicted == []
        site.later(21)
        assert len(site.evicted) == 3

    def test_what_is_guaranteed_stays(self):
        """The maximum of six is below what the queue above is guaranteed: eight."""
        above = {"resources": {"guaranteed": {"vcore": "8"}}}
        site = Site(queue("p", capped(10), **above), queue("b"), **QUOTA)
        site.submit("a", "root.p.a", *[2_000] * 5)
        follow(site, queue("p", capped(6), **above), queue("b"))
        site.later(600)
        site.confirm()
        assert site.used("p") == 8_000

    def test_after_a_restart_the_time_begins_when_it_is_noticed(self):
        """What stands is more than the queue may have."""
        site = Site(capped(6), queue("b"), **QUOTA)
        standing = tuple(Allocation(ask=ask("a", f"a-{number}", 2_000), nodes=("n1",)) for number in range(5))
        site.world.update(applications=(application("a", forced=True),), standing=standing)
        site.later(59)
        assert site.evicted == []
        site.later(2)
        assert len(site.evicted) == 2

    def test_who_could_not_go_is_not_asked_at_once_again(self):
        """Another one is, with the next look."""
        site = self.lowered()
        site.later(61)
        site.refuse()
        assert site.marked() == {}
        site.later(16)
        assert len(site.evicted) == len(set(site.evicted)) == 4


class TestRemovedQueue:
    def test_it_serves_what_is_there_takes_nothing_new_and_goes_with_its_last_application(self):
        """It drains."""
        site = Site(queue("a"), queue("b"))
        site.submit("old", "root.a", 2_000)
        follow(site, queue("b"))
        assert site.used("a") == 2_000
        site.more("old", 1_000, first=1)
        assert site.used("a") == 3_000
        site.submit("new", "root.a", 1_000)
        assert any("root.a" in reason for reason in site.manager.reasons(Thing.APPLICATION))
        site.world.update(removed_applications=(named("old"),))
        site.world.settle()
        assert "a" not in site.world.committed().root.children
        assert "a" not in site.world.scheduled().root.children

    def test_a_queue_that_comes_back_is_active_again(self):
        """Nothing was lost."""
        site = Site(queue("a"), queue("b"))
        site.submit("old", "root.a", 2_000)
        follow(site, queue("b"))
        follow(site, queue("a"), queue("b"))
        site.submit("new", "root.a", 1_000)
        assert site.used("a") == 3_000


class TestRefusals:
    def test_whom_the_list_does_not_name_is_refused_naming_the_queue_and_the_user(self):
        """Bob may, ann may not."""
        closed = documented(queue("a", submitacl="bob"))
        root = closed.partitions[0].root
        site = Site(queue("a"))
        strict = type(closed)(partitions=(_closed(closed.partitions[0], root),))
        site.world.update(configuration=strict)
        site.submit("hers", "root.a", 1_000)
        site.world.update(applications=(application("his", user="bob"),))
        reasons = site.manager.reasons(Thing.APPLICATION)
        assert len(reasons) == 1
        assert all(word in reasons[0] for word in ("hers", "root.a", "ann"))
        assert "his" in site.world.committed().applications

    def test_a_limit_of_a_user_holds_her_back_and_says_so(self):
        """Two vcores for ann; bob goes on."""
        limit = {"limit": "small", "users": ["ann"], "maxresources": {"vcore": "2"}}
        site = Site(queue("a", limits=[limit]))
        site.submit("hers", "root.a", 1_000, 1_000, 1_000)
        site.world.update(applications=(application("his", user="bob"),))
        site.more("his", 1_000, 1_000, 1_000)
        assert len([key for key in site.running if key.startswith("hers")]) == 2
        assert len([key for key in site.running if key.startswith("his")]) == 3
        refusal = site.world.scheduled().limits.refusal("hers", {"vcore": 1_000})
        assert refusal is not None
        assert "ann" in refusal.words
        assert "root.a" in refusal.words

    def test_nothing_is_preempted_for_whom_a_limit_holds_back(self):
        """Room would not help her."""
        limit = {"limit": "small", "users": ["ann"], "maxresources": {"vcore": "2"}}
        site = Site(queue("a", limits=[limit], resources={"guaranteed": {"vcore": "10"}}), queue("b"))
        site.submit("hers", "root.a", 2_000)
        site.world.update(applications=(application("other", "root.b", user="bob"),))
        site.more("other", *[2_000] * 9)
        site.more("hers", 2_000, first=1)
        site.later()
        assert site.evicted == []

    def test_a_queue_below_a_leaf_is_a_rejection(self):
        """A placement rule names one that cannot be made."""
        rules = [{"name": "provided", "create": True}]
        site = Site(queue("a"), fields={"placementrules": rules})
        site.submit("wrong", "root.a.x")
        site.submit("right", "root.New")
        reasons = site.manager.reasons(Thing.APPLICATION)
        assert len(reasons) == 1
        assert "root.a" in reasons[0]
        assert "wrong" in reasons[0]
        assert site.world.failed == []
        assert site.world.scheduled().applications["right"].queue.path == "root.new"


def _closed(partition: Any, root: Any) -> Any:
    """The partition, where the root is open to nobody."""
    return dataclasses.replace(partition, root=dataclasses.replace(root, submit_acl=""))


class TestFairShares:
    @pytest.mark.thorough
    def test_two_queues_share_evenly_over_five_hundred_applications(self):
        """Within ten per cent, though one of them came first with all of its applications."""
        site = Site(queue("a"), queue("b"), nodes=4)
        for name, where in (("a", "root.a"), ("b", "root.b")):
            numbers = range(250)
            site.world.update(
                applications=tuple(application(f"{name}{number}", where, submitted=number) for number in numbers),
                asks=tuple(ask(f"{name}{number}", f"{name}{number}") for number in numbers),
            )
        site.world.settle()
        served = {"a": 0, "b": 0}
        for _ in range(200):
            one = next(iter(sorted(site.running, key=_turn)), None)
            if one is None:
                break
            served[one[0]] += 1
            site.world.core.update(Update(rm="rm", removed_applications=(named(one),)))
            site.world.settle()
            assert abs(site.used("a") - site.used("b")) <= 4_000
        assert sum(served.values()) == 200
        assert abs(served["a"] - served["b"]) <= 20

    def test_a_guaranteed_queue_is_served_by_its_guarantee(self):
        """Three quarters for one, one quarter for the other."""
        shares = [queue(name, resources={"guaranteed": {"vcore": much}}) for name, much in (("a", "30"), ("b", "10"))]
        site = Site(*shares, nodes=0)
        for name in "ab":
            site.submit(name, f"root.{name}", *[500] * 250)
        site.world.update(nodes=tuple(node(f"n{number}") for number in range(1, 5)))
        site.world.settle()
        assert abs(site.used("a") - 30_000) <= 3_000
        assert abs(site.used("b") - 10_000) <= 1_000


def _turn(key: str) -> tuple[int, str]:
    return int(key[1:]), key
