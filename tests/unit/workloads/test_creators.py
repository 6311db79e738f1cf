"""Which user created a workload: by its own record, or by the nearest record above it."""

import pytest

from slurm_bridge.model import creator, kinds, names
from slurm_bridge.workloads.known import Options
from tests.unit.workloads.heard import Heard

KEY = names.ANNOTATION_CREATED_BY
ALICE, BOB = {KEY: creator.write("alice", ("physics",))}, {KEY: creator.write("bob", ())}


@pytest.fixture
def heard() -> Heard:
    """A world in which records count."""
    return Heard(options=Options(creators=True))


def user(heard: Heard, *pods: object) -> list[str | None]:
    """The users that created the members of a workload."""
    found = heard.whole(*pods)  # type: ignore[arg-type]
    users = [found.creator_of(pod) for pod in found.pods]
    return [None if one is None else one.user for one in users]


def test_a_pod_belongs_to_the_user_in_its_record(heard: Heard) -> None:
    """Whatever is above it, because its own record says that no controller made it."""
    job = (kinds.JOBS, heard.put(kinds.JOBS, "train", annotations=ALICE))
    assert user(heard, heard.pod("a", annotations=BOB)) == ["bob"]
    assert user(heard, heard.pod("b", above=job, annotations=BOB)) == ["bob"]


def test_a_pod_of_a_controller_belongs_to_the_creator_of_its_owner(heard: Heard) -> None:
    """Of the nearest one with a record: a Job of a CronJob has none."""
    cron = (kinds.CRONJOBS, heard.made(kinds.CRONJOBS, "nightly", annotations=ALICE))
    heard.server.there[kinds.CRONJOBS, "default", "nightly"] = cron[1]
    made = (kinds.JOBS, heard.put(kinds.JOBS, "nightly-1", above=cron))
    own = (kinds.JOBS, heard.put(kinds.JOBS, "train", annotations=BOB))
    assert user(heard, heard.pod("a", above=made)) == ["alice"]
    assert user(heard, heard.pod("b", above=own)) == ["bob"]


@pytest.mark.security("identity")
def test_members_of_a_group_belong_to_the_creators_of_their_own_owners(heard: Heard) -> None:
    """A pod that joins the group of another user's pods does not pass for a pod of that user."""
    alices = (kinds.JOBS, heard.put(kinds.JOBS, "one", annotations=ALICE))
    bobs = (kinds.JOBS, heard.put(kinds.JOBS, "two", annotations=BOB))
    group = {names.GROUP: "g", names.GROUP_SIZE: "2"}
    pods = [heard.pod("a", above=alices, labels=group), heard.pod("b", above=bobs, labels=group)]
    assert user(heard, *pods) == ["alice", "bob"]


@pytest.mark.security("identity")
def test_records_do_not_count_unless_the_settings_say_so() -> None:
    """Without admission.trust_created_by the annotation created-by names no user, because every user may write it."""
    heard = Heard()
    assert user(heard, heard.pod("a", annotations=ALICE)) == [None]


def test_a_record_that_cannot_be_read_names_no_user(heard: Heard) -> None:
    """Not even the one above."""
    job = (kinds.JOBS, heard.put(kinds.JOBS, "train", annotations=ALICE))
    assert user(heard, heard.pod("a", above=job, annotations={KEY: "alice"})) == [None]
