"""Who may submit to queues and administer them."""

import pytest

from slurm_bridge.errors import BadConfiguration
from slurm_bridge.families.yunikorn.queues import acl, placement
from slurm_bridge.families.yunikorn.queues.acl import Acl
from slurm_bridge.families.yunikorn.queues.settings import QueueSettings
from tests.unit.families.yunikorn.queues.support_trees import at, root_of


def _acl(*users: str, groups: tuple[str, ...] = ()) -> Acl:
    return Acl(users=frozenset(users), groups=frozenset(groups))


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("", Acl()),
        ("ann,bob", _acl("ann", "bob")),
        ("ann dev,ops", _acl("ann", groups=("dev", "ops"))),
        (" dev", _acl(groups=("dev",))),
        ("ann ", _acl("ann")),
        ("*", Acl(everybody=True)),
        ("* ", Acl(everybody=True)),
        (" *", Acl(everybody=True)),
        ("ann *", Acl(everybody=True)),
        ("machine$,_x,a@b.c", _acl("machine$", "_x", "a@b.c")),
        ("1st,*,bob a.b,*,dev", _acl("bob", groups=("dev",))),
        ("ann,ann,,", _acl("ann")),
        (
            "system:serviceaccount:physics:default system:serviceaccounts:physics",
            _acl("system:serviceaccount:physics:default", groups=("system:serviceaccounts:physics",)),
        ),
    ],
)
def test_a_list_is_users_then_groups(text: str, parsed: Acl):
    """Names that are none are left out, a star only counts alone."""
    assert acl.parse(text) == parsed


@pytest.mark.parametrize("text", ["  ", "a b c", " a ", " a b"])
def test_more_than_one_space_is_refused(text: str):
    """The message shows the text and what is allowed."""
    with pytest.raises(BadConfiguration, match="use users and groups with one space between") as refused:
        acl.parse(text)
    assert repr(text) in str(refused.value)


def test_everybody_is_allowed_even_without_a_name():
    """Somebody is allowed by name or by one group."""
    assert acl.parse("*").allows("", ())
    listed = acl.parse("ann dev")
    assert listed.allows("ann", ())
    assert listed.allows("bob", ["x", "dev"])
    assert not listed.allows("bob", ["ann"])
    assert not listed.allows("", ())


_GUARDED = root_of(
    "team.a",
    "@recovery@",
    settings={
        "root": QueueSettings(admin_acl=_acl("boss")),
        "root.team": QueueSettings(submit_acl=_acl("ann"), admin_acl=_acl(groups=("leads",))),
        "root.team.a": QueueSettings(submit_acl=_acl("bob")),
        "root.@recovery@": QueueSettings(submit_acl=Acl(everybody=True)),
    },
)


@pytest.mark.parametrize(
    ("user", "groups", "queue", "submits"),
    [
        ("bob", (), "root.team.a", True),
        ("bob", (), "root.team", False),
        ("ann", (), "root.team.a", True),
        ("eve", ("leads",), "root.team.a", True),
        ("boss", (), "root.team.a", True),
        ("boss", (), "root.@recovery@", False),
        ("eve", (), "root.@recovery@", False),
    ],
)
def test_what_is_allowed_above_is_allowed_below(user: str, groups: tuple[str, ...], queue: str, submits: bool):
    """Administering includes submitting, but nobody submits to the recovery queue."""
    assert placement.may_submit(at(_GUARDED, queue), user, groups) is submits
