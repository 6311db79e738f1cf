"""What the hook answers to whoever administers its queues."""

import pathlib
from typing import Any

import pytest
import yaml

from slurm_bridge.families.yunikorn import admin, files, setup
from slurm_bridge.families.yunikorn.options import YunikornOptions
from slurm_bridge.hooks.services import CarriedState
from tests.component.families.yunikorn.yunikorn_scenes import Queues, document, queue
from tests.component.scheduler.whole_core import Bridge

USERS = [{"namespaces": ["team"], "service_accounts": ["admin"], "user": "ann", "groups": ["ops"]}]


def administered(acl: str, *queues: Any) -> dict[str, Any]:
    """A configuration whose root has this adminacl."""
    made = document(*(queues or (queue("a"),)))
    made["partitions"][0]["queues"][0]["adminacl"] = acl
    return made


def desk(acl: str = "", now: float = 0.0, **options: Any) -> admin.QueueAdmin:
    """Of queues that nobody is in."""
    given = {"configuration": administered(acl), **options}
    return admin.QueueAdmin(setup.make(YunikornOptions.model_validate(given), now), CarriedState())


@pytest.mark.parametrize(
    ("acl", "name", "groups", "may"),
    [
        ("ann", "ann", (), True),
        ("ann", "eve", ("staff",), False),
        (" ops", "eve", ("staff", "ops"), True),
        ("*", "anybody", (), True),
        ("", "ann", ("ops",), False),
        ("ann", "system:serviceaccount:team:admin", (), True),
        (" ops", "system:serviceaccount:team:admin", (), True),
        ("ann ops", "system:serviceaccount:other:admin", (), False),
        ("ann", "system:serviceaccount:team", (), False),
        ("admin", "system:serviceaccount:team:admin", (), False),
        ("system:serviceaccount:other:admin", "system:serviceaccount:other:admin", (), True),
        ("ann ops ", "eve", ("ops",), True),
    ],
)
def test_the_adminacl_of_the_root_says_who_administers(
    acl: str, name: str, groups: tuple[str, ...], *, may: bool
) -> None:
    """By names and groups as the API server says them; a service account is who its workloads belong to."""
    assert desk(acl, users=USERS).may(name, groups) is may


def test_below_the_root_nobody_administers_all_queues() -> None:
    """The list of a queue is about that queue."""
    made = desk(configuration=administered("", queue("a", adminacl="ann")))
    assert not made.may("ann", ())


def test_the_limits_that_slurm_has_do_not_take_the_list_away() -> None:
    """Whatever the mode is, the list is as it was written."""
    assert desk("ann", mode="slurm").may("ann", ())


def test_what_is_in_force_is_shown_as_it_was_read(tmp_path: pathlib.Path) -> None:
    """A file with its comments; what stands in the daemon's own configuration, as a file that would hold the same."""
    text = f"# the queues\n{yaml.safe_dump(document(queue('a')))}"
    file = tmp_path / "queues.yaml"
    file.write_text(text)
    stored = desk(configuration=None, file=str(file)).in_force
    inline = desk().in_force
    assert (stored.text, stored.file, stored.mode, stored.partition) == (text, str(file), "local", "default")
    assert yaml.safe_load(inline.text) == administered("")
    assert (inline.file, inline.version != stored.version) == ("", True)


def test_a_file_that_changes_is_noticed(tmp_path: pathlib.Path) -> None:
    """By its content; one that is gone is not what was read."""
    file = tmp_path / "queues.yaml"
    file.write_text(yaml.safe_dump(document(queue("a"))))
    made = desk(configuration=None, file=str(file))
    assert made.stored == (str(file), made.in_force.version, made.in_force.version)
    file.write_text(yaml.safe_dump(document(queue("b"))))
    assert made.stored is not None
    assert made.stored[1] != made.stored[2]
    file.unlink()
    assert "No such file" in made.stored[2]
    assert desk().stored is None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"\xff", "is not UTF-8"),
        (b"a: ]", "line 1: is not YAML"),
        (b"a: &x [1]\nb: *x", "YAML aliases are not taken, write *x out"),
        (b"[" * 10_000, "nested too deeply"),
        (b"a: !!timestamp soon", "is not YAML: "),
    ],
)
def test_what_is_no_configuration_at_all_is_told_apart(body: bytes, words: str) -> None:
    """Before anything is built of it."""
    with pytest.raises(files.UnreadableFile) as raised:
        desk().problems(body)
    assert words in str(raised.value)


def test_a_dry_run_tells_all_that_is_wrong() -> None:
    """Not only the first."""
    wrong = yaml.safe_dump(
        document(queue("a b"), queue("c", resources={"max": {"vcore": "1"}, "guaranteed": {"vcore": "2"}}))
    )
    found = desk().problems(wrong.encode())
    assert any("a b" in one for one in found)
    assert any("[guaranteed_above_max]" in one for one in found)


def test_a_dry_run_holds_it_against_the_other_options() -> None:
    """The map names queues, and the partition has to be there."""
    made = desk(configuration=administered("", queue("a", queue("b"))), map={"root.a.b": {"qos": "low"}})
    assert "root.a.b" in made.problems(yaml.safe_dump(document(queue("a"))).encode())[0]
    elsewhere = document(queue("a", queue("b")))
    elsewhere["partitions"][0]["name"] = "other"
    assert made.problems(yaml.safe_dump(elsewhere).encode()) == (
        "partition 'default': the configuration has only other",
    )


def test_a_dry_run_changes_nothing_and_knows_who_is_in_the_queues(tmp_path: pathlib.Path) -> None:
    """A leaf in use cannot become a parent."""
    made = Queues(Bridge(tmp_path), queue("a"))
    made.pod("runs")
    made.bridge.run(3)
    parent = yaml.safe_dump(document(queue("a", queue("below")))).encode()
    assert "root.a" in made.hook.desk.problems(parent)[0]
    assert made.hook.desk.problems(yaml.safe_dump(document(queue("a"), queue("c"))).encode()) == ()
    picture = made.hook.picture()
    assert picture is not None
    assert [one["path"] for one in picture["queues"]["queues"]] == ["root.a"]


def test_the_same_queues_are_in_force_since_they_first_were(tmp_path: pathlib.Path) -> None:
    """Whatever else of the configuration has changed meanwhile."""
    made = Queues(Bridge(tmp_path), queue("a"))
    made.bridge.run(1)
    first = made.hook.desk.in_force
    made.bridge.clock.advance(100)
    made.configure(queue("a"), ahead=3)
    assert (made.hook.desk.in_force.version, made.hook.desk.in_force.since) == (first.version, first.since)
    made.configure(queue("a"), queue("b"))
    assert made.hook.desk.in_force.since >= first.since + 100
