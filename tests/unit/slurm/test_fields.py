"""Requests on their way out: complete, and checked before Slurm casts what it should refuse."""

import dataclasses

import pytest

from slurm_bridge.model import marks
from slurm_bridge.model.job import Gres, GresPer, JobRequest, Memory, MemoryPer
from slurm_bridge.slurm import fields, readback
from tests.unit.slurm.samples import owner, request

FULL = request(
    job_id=77,
    partition="batch",
    account="acc",
    qos="high",
    reservation="res",
    wckey="key",
    licenses="matlab:1",
    constraints="gpu&rack1",
    user="svc",
    group="grp",
    priority=5,
    nice=3,
    time_limit_minutes=60,
    minimum_nodes=2,
    maximum_nodes=4,
    tasks=8,
    cpus_per_task=2,
    gres=(Gres(name="gpu", type="v100", count=2), Gres(name="shard", count=1)),
    exclusive=True,
    excluded_nodes=("n3", "n2", "other"),
    mcs_label="label",
    comment="hello",
)


def test_every_field_of_a_request_has_a_row():
    """A field added to JobRequest must be given a row, or it would silently never reach Slurm."""
    assert sorted(field.name for field in fields.FIELDS) == sorted(each.name for each in dataclasses.fields(JobRequest))


def test_every_field_that_an_update_carries_is_read_back():
    """What an update sends is compared afterwards; only the guard and the other half of `gres` are not."""
    carried = {field.name for field in fields.FIELDS if list(field.update(FULL))}
    compared = {name for name, _ in readback.ROWS + readback.WHILE_PENDING}
    assert carried - compared == {"mcs_label"}


def test_few_nodes_are_preferred_wherever_a_maximum_leaves_a_choice():
    """Also with a maximum of one, which can be raised later; not with a fixed number of nodes."""

    def flags(minimum, maximum):
        return fields.submit(dataclasses.replace(FULL, minimum_nodes=minimum, maximum_nodes=maximum))["flags"][1:]

    few = ["PREFER_MINIMUM_NODE_COUNT"]
    assert [flags(None, 1), flags(None, 4), flags(2, 3)] == [few, few, few]
    assert [flags(None, None), flags(2, None), flags(1, 1), flags(3, 3)] == [[], [], [], []]


def test_a_submit_carries_everything():
    """All fields arrive under Slurm's names, nodes as compressed hostlists, numbers with their `set`."""
    assert fields.submit(FULL) == {
        "flags": ["EXTERNAL_JOB", "PREFER_MINIMUM_NODE_COUNT"],
        "environment": ["PATH=/usr/bin:/bin"],
        "current_working_directory": "/",
        "kill_on_node_fail": True,
        "mcs_label": "label",
        "name": "train",
        "admin_comment": marks.write(owner()),
        "job_id": 77,
        "partition": "batch",
        "account": "acc",
        "qos": "high",
        "reservation": "res",
        "wckey": "key",
        "licenses": "matlab:1",
        "constraints": "gpu&rack1",
        "user_id": "svc",
        "group_id": "grp",
        "priority": {"set": True, "infinite": False, "number": 5},
        "nice": 3,
        "time_limit": {"set": True, "infinite": False, "number": 60},
        "minimum_nodes": 2,
        "maximum_nodes": 4,
        "tasks": 8,
        "cpus_per_task": 2,
        "memory_per_node": {"set": True, "infinite": False, "number": 500},
        "tres_per_node": "gres/gpu:v100:2,gres/shard:1",
        "shared": ["none"],
        "excluded_nodes": ["n[2-3],other"],
        "comment": "hello",
    }


def test_a_submit_leaves_out_what_is_not_wanted():
    """An empty list or label would mean something to Slurm; only the shape and the owner are always there."""
    always = {"flags", "environment", "current_working_directory", "kill_on_node_fail", "name", "admin_comment"}
    assert set(fields.submit(request())) == always | {"tasks", "cpus_per_task", "memory_per_node"}


def test_an_update_writes_out_what_is_not_wanted():
    """Slurm keeps what an update leaves out, so the empty shape is spelled: `[""]` for nodes, texts empty."""
    sent = fields.update(request(tasks=4, cpus_per_task=2))
    cleared = {
        "mcs_label": "",
        "licenses": "",
        "constraints": "",
        "comment": "",
        "tres_per_node": "",
        "tres_per_task": "",
    }
    assert sent.items() >= cleared.items()
    assert sent["required_nodes"] == [""]
    assert sent["excluded_nodes"] == [""]
    assert sent["minimum_nodes"] == 1


@pytest.mark.security("neighbours")
def test_no_node_is_ever_required():
    """A placeholder never requires nodes: removing a node from Slurm ends no running pod on another node."""
    assert "required_nodes" not in fields.submit(FULL)
    assert fields.update(FULL)["required_nodes"] == [""]


def test_an_update_names_the_cpus_with_the_tasks():
    """Without them Slurm takes one cpu per task, and a job of two cpus per task never starts."""
    assert fields.update(request(tasks=4, cpus_per_task=2))["minimum_cpus"] == 8


def test_an_update_begins_with_the_guard():
    """The label is what Slurm refuses once the job has started, before it applies anything."""
    assert next(iter(fields.update(FULL))) == "mcs_label"


@pytest.mark.parametrize("key", ["hold", "priority", "partition", "account", "qos", "reservation", "user_id", "job_id"])
def test_an_update_leaves_to_others_what_is_theirs(key):
    """Holds and priorities belong to the administrators, and Slurm cannot move a job between accounts reliably."""
    assert key not in fields.update(dataclasses.replace(FULL, hold=True))


def test_a_hold_drops_the_priority():
    """Given both, Slurm would start the job."""
    sent = fields.submit(request(hold=True, priority=9))
    assert sent["hold"] is True
    assert "priority" not in sent


@pytest.mark.parametrize(
    ("per", "key", "value"),
    [
        (MemoryPer.NODE, "memory_per_node", {"set": True, "infinite": False, "number": 70}),
        (MemoryPer.CPU, "memory_per_cpu", {"set": True, "infinite": False, "number": 70}),
        (MemoryPer.GPU, "memory_per_tres", "gres/gpu:70"),
    ],
)
def test_memory_is_counted_for_one_thing(per, key, value):
    """Exactly one of Slurm's three memory fields is sent."""
    sent = fields.submit(request(memory=Memory(mib=70, per=per), gres=(Gres(name="gpu", count=1),)))
    assert {name: sent[name] for name in sent if name.startswith("memory")} == {key: value}


def test_gres_per_task_leaves_the_node_field_alone():
    """At submit only the wanted way of counting is named."""
    sent = fields.submit(request(gres=(Gres(name="gpu", count=1),), gres_per=GresPer.TASK))
    assert sent["tres_per_task"] == "gres/gpu:1"
    assert "tres_per_node" not in sent


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tasks": -5}, "tasks"),
        ({"cpus_per_task": 0}, "tasks"),
        ({"memory": Memory(mib=0)}, "memory"),
        ({"gres": (Gres(name="gpu", count=0),)}, "generic"),
        ({"memory": Memory(mib=5, per=MemoryPer.GPU)}, "GPU"),
        ({"time_limit_minutes": 0}, "time limit"),
        ({"priority": 0}, "hold"),
        ({"job_id": 0}, "job id"),
        ({"minimum_nodes": 0}, "node counts"),
        ({"minimum_nodes": 3, "maximum_nodes": 2, "tasks": 3}, "fewer nodes"),
        ({"minimum_nodes": 3, "tasks": 2}, "more nodes"),
        ({"excluded_nodes": ("a,b",)}, "list"),
        ({"excluded_nodes": ("n[1-2]",)}, "list"),
        ({"excluded_nodes": ("",)}, "list"),
    ],
)
def test_what_slurm_would_cast_is_refused_before(changes, words):
    """Slurm accepts minus five tasks; we do not."""
    with pytest.raises(ValueError, match=words):
        fields.submit(request(**changes))
