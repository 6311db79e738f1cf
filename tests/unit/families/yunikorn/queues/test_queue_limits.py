"""Limits of users and groups: who is measured by which, what is left, and what a refusal says."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.families.yunikorn.queues import amounts
from slurm_bridge.families.yunikorn.queues.config.documents import Limit, QueueDocument
from slurm_bridge.families.yunikorn.queues.limits import LimitRefusal, MeasuredLimits


def _user(name: str, applications: int = 0, **resources: int) -> Limit:
    return Limit(users=(name,), max_applications=applications, max_resources=resources or None)


def _group(name: str, applications: int = 0, **resources: int) -> Limit:
    return Limit(groups=(name,), max_applications=applications, max_resources=resources or None)


def _config(root: tuple[Limit, ...] = (), a: tuple[Limit, ...] = (), b: tuple[Limit, ...] = ()) -> QueueDocument:
    """root ─ a ─ b, each with these limits."""
    return QueueDocument(
        name="root",
        limits=root,
        queues=(QueueDocument(name="A", limits=a, queues=(QueueDocument(name="b", limits=b),)),),
    )


def _with(config: QueueDocument, *applications: str, user: str = "ann", groups: tuple[str, ...] = ()) -> MeasuredLimits:
    limits = MeasuredLimits(config)
    for name in applications:
        limits.enter(name, "root.a.b", user, groups)
    return limits


# -- resources -------------------------------------------------------------------------------------------------------


def test_without_a_limit_there_is_no_bound() -> None:
    """Neither of resources nor of applications."""
    limits = _with(_config(), "one")
    limits.allocate("one", {"x": 100})
    assert (limits.room("one"), limits.refusal("one", {"x": 100}), limits.may_start("one")) == (None, None, None)


def test_the_room_is_the_least_of_all_levels_by_type() -> None:
    """Of the types that some limit defines."""
    limits = _with(_config(root=(_user("ann", x=9, y=5),), a=(_user("ann", x=7),)), "one")
    limits.allocate("one", {"x": 2, "z": 50})
    assert limits.room("one") == {"x": 5, "y": 5}


def test_a_limit_counts_all_applications_of_the_user_below_its_queue() -> None:
    """In whichever leaf they are."""
    limits = _with(_config(root=(_user("ann", x=9),)), "one")
    limits.enter("two", "root.c", "ann")
    limits.allocate("two", {"x": 4})
    assert limits.room("one") == {"x": 5}


def test_another_user_has_another_room() -> None:
    """A limit for * is one for each user that it does not name."""
    limits = _with(_config(a=(_user("ann", x=9), _user("*", x=3))), "one")
    for name in ("bob", "cid"):
        limits.enter(name, "root.a.b", name)
    limits.allocate("bob", {"x": 2})
    assert [limits.room(name) for name in ("one", "bob", "cid")] == [{"x": 9}, {"x": 1}, {"x": 3}]


def test_a_named_limit_takes_the_place_of_the_one_for_all_in_its_queue_only() -> None:
    """Above it the one for all holds."""
    limits = _with(_config(root=(_user("*", x=5),), a=(_user("ann", x=9), _user("*", x=3))), "one")
    assert limits.room("one") == {"x": 5}


def test_a_lowered_limit_leaves_negative_room() -> None:
    """Nothing is taken back, but nothing is added either."""
    limits = _with(_config(a=(_user("ann", x=9),)), "one")
    limits.allocate("one", {"x": 8})
    limits.configure(_config(a=(_user("ann", x=5),)))
    assert limits.room("one") == {"x": -3}


def test_a_refusal_names_the_limit_and_the_queue() -> None:
    """The one nearest to the application."""
    limits = _with(_config(root=(_user("*", x=5),), a=(_user("ann", x=5),)), "one")
    limits.allocate("one", {"x": 4})
    assert limits.refusal("one", {"x": 1}) is None
    assert limits.refusal("one", {"x": 2}) == LimitRefusal(
        queue="root.a",
        subject="user ann",
        words="user ann has 4 of 5 that queue root.a allows: 2 more of x are too much",
    )


def test_a_refusal_by_the_limit_for_all_says_so() -> None:
    """Processors in thousandths."""
    limits = _with(_config(root=(_user("*", vcore=1500),)), "one")
    refused = limits.refusal("one", {"vcore": 2000})
    assert refused is not None
    assert refused.words == (
        "user ann (by the limit of *) has 0m of 1500m that queue root allows: 2000m more of vcore are too much"
    )


# -- applications ----------------------------------------------------------------------------------------------------


def test_so_many_applications_of_a_user_run_and_no_more() -> None:
    """One that ends makes room for the next."""
    limits = _with(_config(a=(_user("ann", 1),)), "one", "two")
    limits.start("one")
    refused = limits.may_start("two")
    assert refused is not None
    assert refused.words == "user ann runs 1 of 1 applications, all that queue root.a allows"
    limits.finish("one")
    assert limits.may_start("two") is None


def test_an_application_that_runs_may_run() -> None:
    """Asking again does not count it twice."""
    limits = _with(_config(a=(_user("ann", 1),)), "one")
    limits.start("one")
    limits.start("one")
    assert limits.may_start("one") is None


def test_a_limit_of_resources_alone_allows_any_number() -> None:
    """0 applications are unlimited."""
    limits = _with(_config(a=(_user("ann", x=1),)), "one", "two")
    limits.start("one")
    assert limits.may_start("two") is None


# -- groups ----------------------------------------------------------------------------------------------------------


def _group_of(config: QueueDocument, *groups: str) -> str | None:
    """The group for which an application of a user in these counts."""
    limits = _with(config, "one", groups=groups)
    return next((used.subject for used in limits.used() if used.subject.startswith("group")), None)


@pytest.mark.parametrize(
    ("groups", "counted"),
    [
        (("ops", "dev"), "group dev"),
        (("ops",), "group ops"),
        (("top",), "group top"),
        (("top", "ops"), "group ops"),
        (("hr",), None),
        ((), None),
    ],
)
def test_an_application_counts_for_the_first_group_on_the_way_up(groups: tuple[str, ...], counted: str | None) -> None:
    """In the order of the limits, not of the user's groups."""
    config = _config(root=(_group("top", 1),), a=(_group("dev", 1), _group("ops", 1)))
    assert _group_of(config, *groups) == counted


def test_who_is_in_no_named_group_counts_for_all_others_together() -> None:
    """One room for all of them."""
    limits = MeasuredLimits(_config(a=(_group("dev", x=9), _group("*", x=3))))
    limits.enter("one", "root.a.b", "ann", ("hr",))
    limits.enter("two", "root.a.b", "bob", ())
    limits.allocate("one", {"x": 2})
    assert limits.room("two") == {"x": 1}


def test_users_of_a_group_share_its_limit() -> None:
    """Each of them below their own."""
    limits = MeasuredLimits(_config(a=(Limit(users=("ann",), groups=("dev",), max_resources={"x": 5}),)))
    limits.enter("one", "root.a.b", "ann", ("dev",))
    limits.enter("two", "root.a.b", "bob", ("dev",))
    limits.allocate("two", {"x": 4})
    refused = limits.refusal("one", {"x": 2})
    assert refused is not None
    assert refused.subject == "group dev"


# -- coming and going ------------------------------------------------------------------------------------------------


def test_nothing_stays_of_an_application_that_leaves() -> None:
    """Neither its usage nor its place among those that run."""
    limits = _with(_config(a=(_user("ann", 1, x=5),)), "one", "two")
    limits.start("one")
    limits.allocate("one", {"x": 5})
    limits.leave("one")
    assert (limits.room("two"), limits.may_start("two")) == ({"x": 5}, None)
    limits.leave("two")
    assert limits.used() == ()


def test_an_application_is_in_one_queue() -> None:
    """Entering twice is a mistake of the caller."""
    limits = _with(_config(), "one")
    with pytest.raises(ValueError, match=r"one is in root\.a\.b already"):
        limits.enter("one", "root.c", "ann")


def test_usage_is_shown_with_what_limits_it() -> None:
    """By queue and subject."""
    limits = _with(_config(a=(_user("ann", 3, x=5),)), "one")
    limits.start("one")
    limits.allocate("one", {"x": 2})
    shown = [(used.queue, used.subject, used.max_resources, used.max_applications) for used in limits.used()]
    assert shown == [
        ("root", "user ann", None, 0),
        ("root.a", "user ann", {"x": 5}, 3),
        ("root.a.b", "user ann", None, 0),
    ]
    assert all((used.allocated, used.applications) == ({"x": 2}, 1) for used in limits.used())


def test_usage_is_shown_where_nobody_is_limited() -> None:
    """It is added up then from what applications have."""
    limits = _with(_config(), "one", "two")
    limits.start("one")
    limits.allocate("one", {"x": 2})
    limits.allocate("two", {"x": 3})
    shown = [(used.queue, used.subject, used.allocated, used.applications) for used in limits.used()]
    assert shown == [(path, "user ann", {"x": 5}, 1) for path in ("root", "root.a", "root.a.b")]


# -- new limits ------------------------------------------------------------------------------------------------------

_CONFIGS = (
    _config(),
    _config(a=(_user("ann", 1, x=5),)),
    _config(root=(_user("*", 2, x=9),), b=(_group("dev", 1, x=3),)),
    _config(a=(_group("ops", 1, x=4), _group("dev", 2, x=7), _group("*", x=8))),
)

_APPLICATIONS = {"one": ("ann", ("dev", "ops")), "two": ("bob", ("dev",)), "three": ("ann", ())}

_steps = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), st.sampled_from(sorted(_APPLICATIONS)), st.integers(0, 5)),
        st.tuples(st.just("release"), st.sampled_from(sorted(_APPLICATIONS)), st.integers(0, 5)),
        st.tuples(st.just("start"), st.sampled_from(sorted(_APPLICATIONS)), st.just(0)),
        st.tuples(st.just("finish"), st.sampled_from(sorted(_APPLICATIONS)), st.just(0)),
        st.tuples(st.just("leave"), st.sampled_from(sorted(_APPLICATIONS)), st.just(0)),
        st.tuples(st.just("configure"), st.just(""), st.integers(0, len(_CONFIGS) - 1)),
    ),
    max_size=20,
)


@dataclasses.dataclass(slots=True)
class _Fact:
    """What an application has, kept by hand."""

    allocated: dict[str, int]
    runs: bool = False


def _afresh(config: QueueDocument, facts: dict[str, _Fact]) -> MeasuredLimits:
    """The same state, reached at once."""
    limits = MeasuredLimits(config)
    for name, fact in facts.items():
        user, groups = _APPLICATIONS[name]
        limits.enter(name, "root.a.b", user, groups)
        limits.allocate(name, fact.allocated)
        if fact.runs:
            limits.start(name)
    return limits


def _apply(limits: MeasuredLimits, facts: dict[str, _Fact], step: tuple[str, str, int]) -> None:
    action, name, number = step
    if name not in facts:
        user, groups = _APPLICATIONS[name]
        limits.enter(name, "root.a.b", user, groups)
        facts[name] = _Fact({})
    fact = facts[name]
    if action in {"allocate", "release"}:
        amount = {"x": min(number, fact.allocated.get("x", 0)) if action == "release" else number}
        getattr(limits, action)(name, amount)
        amounts.add(fact.allocated, amount if action == "allocate" else amounts.times(amount, -1))
    elif action == "leave":
        limits.leave(name)
        del facts[name]
    else:
        getattr(limits, action)(name)
        fact.runs = action == "start"


@given(_steps)
def test_what_is_kept_is_what_would_be_counted(steps: list[tuple[str, str, int]]) -> None:
    """After any changes, new limits among them: no usage is lost, none is left over."""
    config, facts = _CONFIGS[0], dict[str, _Fact]()
    limits: Any = MeasuredLimits(config)
    for step in steps:
        if step[0] == "configure":
            config = _CONFIGS[step[2]]
            limits.configure(config)
        else:
            _apply(limits, facts, step)
    afresh = _afresh(config, facts)
    assert limits.used() == afresh.used()
    assert {name: limits.room(name) for name in facts} == {name: afresh.room(name) for name in facts}
