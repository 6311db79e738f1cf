"""Every annotation shows its value in the job that slurmctld keeps: `scontrol show job`, not our own reading."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from slurm_bridge.model import names
from slurm_bridge.translate import annotations
from tests.e2e import support_world
from tests.e2e.support_fixtures import OpenWorld
from tests.e2e.support_servers import Json
from tests.e2e.support_world import World

#: A partition that is down: jobs wait there, and show what was asked for rather than what was given.
WAITING = "closed"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """Annotations of a pod, and the words in which Slurm repeats them."""

    marks: Mapping[str, str]
    shown: Mapping[str, str]
    containers: list[Json] | None = None


def case(shown: Mapping[str, str], containers: list[Json] | None = None, **marks: str) -> Case:
    """An underscore stands for the dash of a key."""
    return Case(
        marks={key.replace("_", "-"): value for key, value in marks.items()}, shown=shown, containers=containers
    )


CASES = {
    "account": case({"Account": "schedmd"}, account="schedmd"),
    "constraints": case({"Features": "gpu|v100"}, constraints="gpu|v100"),
    "cpu-per-task": case({"CPUs/Task": "2", "NumCPUs": "2"}, cpu_per_task="1500m"),
    "exclusive": case({"OverSubscribe": "NO"}, exclusive="True"),
    "gres": case({"TresPerNode": "gres/gpu:v100:2"}, gres="GPU:V100:2"),
    "group-id": case({"GroupId": "bob(5003)"}, group_id="bob"),
    "job-name": case({"JobName": "research"}, job_name="research"),
    "licenses": case({"Licenses": "matlab:2,ansys:1"}, licenses="matlab:2,ansys:1"),
    "max-nodes": case({"NumNodes": "1-3"}, max_nodes="3"),
    "mem-per-node": case({"MinMemoryNode": "8G"}, mem_per_node="8Gi"),
    "min-nodes": case({"NumNodes": "1-1"}, min_nodes="1"),
    "partition": case({"Partition": "batch"}, partition="batch"),
    "priority": case({"Priority": "4711"}, priority="4711"),
    "qos": case({"QOS": "normal"}, qos="normal"),
    "reservation": case({"Reservation": "held"}, reservation="held"),
    "timelimit": case({"TimeLimit": "00:07:00"}, timelimit="7"),
    "user-id": case({"UserId": "alice(5002)"}, user_id="5002"),
    "wckey": case({"WCKey": "thesis"}, wckey="thesis"),
}

#: What pods ask for themselves, without a word of ours.
DERIVED = {
    "requests": Case(
        marks={},
        shown={"NumCPUs": "3", "MinMemoryNode": "1537M"},
        containers=support_world.asks(cpu="2100m", memory="1537Mi"),
    ),
    "gpus": Case(
        marks={}, shown={"TresPerNode": "gres/gpu:1"}, containers=support_world.asks(cpu="1", nvidia_com__gpu="1")
    ),
}

Shown = Mapping[str, Mapping[str, str]]


@pytest.fixture(scope="module")
def shown(open_world: OpenWorld) -> Shown:
    """One pod per case, all at once, and what Slurm shows of each."""
    world = open_world("shown", **everything_allowed())
    made = world.create(*(manifest(world, name, one) for name, one in {**CASES, **DERIVED}.items()))
    jobs = world.await_placeholders(one["metadata"]["uid"] for one in made)
    words = world.slurm.all_shown()
    return {one["metadata"]["name"]: words[jobs[one["metadata"]["uid"]]] for one in made}


def manifest(world: World, name: str, one: Case) -> Json:
    """A pod that stays: it is looked at, not run."""
    marks = {"partition": WAITING, **one.marks} if "reservation" not in one.marks else dict(one.marks)
    annotations = {names.JOB_PREFIX + key: value for key, value in marks.items()}
    spec: dict[str, Any] = {} if one.containers is None else {"containers": one.containers}
    return support_world.pod(name, world.daemon.scheduler, annotations=annotations, **spec)


def everything_allowed() -> dict[str, Any]:
    """A site that lets every user of every namespace say everything."""
    allow: dict[str, Any] = {row.key: ["*"] for row in annotations.ANNOTATIONS if row.guarded}
    allow["priority"] = {"max": 2**32 - 2}
    return {"hooks": [{"name": "policy", "options": {"rules": [{"allow": allow}]}}, {"name": "eligibility"}]}


def test_every_annotation_that_becomes_a_field_has_a_case() -> None:
    """A new key cannot be forgotten here."""
    assert set(CASES) == {row.key for row in annotations.ANNOTATIONS if not row.hint}


@pytest.mark.real
@pytest.mark.parametrize("key", CASES)
def test_an_annotation_shows_in_the_job(shown: Shown, key: str) -> None:
    """The value that was written is the value that slurmctld keeps."""
    expected = CASES[key].shown
    assert {word: shown[key].get(word) for word in expected} == expected


@pytest.mark.real
@pytest.mark.parametrize("what", DERIVED)
def test_what_pods_ask_for_shows_in_the_job(shown: Shown, what: str) -> None:
    """CPUs and memory are rounded up, devices become generic resources."""
    expected = DERIVED[what].shown
    assert {word: shown[what].get(word) for word in expected} == expected
