"""Reading an update back: every field that Slurm kept to itself is named."""

import pytest

from slurm_bridge.model import marks
from slurm_bridge.model.job import Gres, GresPer, Memory, MemoryPer
from slurm_bridge.slurm import readback, shapes
from tests.unit.slurm.samples import owner, request

ASKED = request(
    tasks=4,
    cpus_per_task=2,
    minimum_nodes=2,
    time_limit_minutes=30,
    gres=(Gres(name="gpu", count=1),),
    excluded_nodes=("n1", "n2", "n3"),
    constraints="gpu",
    licenses="m:1",
    comment="c",
    nice=3,
)


def there(**changes) -> shapes.JobRow:
    """Slurm's record of the job as asked, with changes."""
    kept = {
        "job_id": 9,
        "name": "train",
        "job_state": ["PENDING"],
        "admin_comment": marks.write(owner()),
        "tasks": 4,
        "cpus": 8,
        "cpus_per_task": 2,
        "memory_per_node": 500,
        "tres_per_node": "gres/gpu:1",
        "required_nodes": "",
        "excluded_nodes": "n[1-3]",
        "features": "gpu",
        "licenses": "m:1",
        "comment": "c",
        "nice": 3,
        "time_limit": 30,
        "node_count": 2,
        "max_nodes": 4,
        "flags": ["JOB_IMPLICIT_MAX_NODES"],
    }
    return shapes.JobRow(**(kept | changes))


#: A change of Slurm's record, and the field that is named then.
KEPT = [
    ({"admin_comment": "{}"}, "owner"),
    ({"tasks": 3}, "tasks"),
    ({"cpus": 4}, "cpus"),
    ({"cpus_per_task": 1}, "cpus_per_task"),
    ({"memory_per_node": 0}, "memory"),
    ({"tres_per_node": ""}, "gres"),
    ({"tres_per_task": "gres/gpu:1"}, "gres"),
    ({"required_nodes": "n[1-2]"}, "required_nodes"),
    ({"excluded_nodes": "n9"}, "excluded_nodes"),
    ({"features": ""}, "constraints"),
    ({"licenses": None}, "licenses"),
    ({"comment": ""}, "comment"),
    ({"name": "other"}, "name"),
    ({"nice": 0}, "nice"),
    ({"het_job_id": 7}, "components"),
    ({"time_limit": None}, "time_limit_minutes"),
    ({"node_count": 1}, "minimum_nodes"),
    ({"max_nodes": 2, "flags": []}, "maximum_nodes"),
    ({"tasks_per_node": 3}, "tasks_per_node"),
]


def test_every_field_that_is_read_back_has_a_case():
    """A new row of the table needs a change here, or it may compare nothing."""
    rows = {name for name, _ in readback.ROWS + readback.WHILE_PENDING}
    assert rows == {named for _, named in KEPT}


def test_the_same_shape_has_no_differences():
    """Slurm's spelling of what was asked counts as the same."""
    assert readback.differences(ASKED, there()) == ()


@pytest.mark.parametrize(("changes", "named"), KEPT)
def test_a_field_that_slurm_kept_is_named(changes, named):
    """Each difference is reported under the name of its field."""
    assert readback.differences(ASKED, there(**changes)) == (named,)


def test_a_start_between_update_and_reading_is_no_difference():
    """A started job shows what it got where a waiting one shows what it wants."""
    started = there(job_state=["RUNNING"], node_count=3, max_nodes=0, time_limit=600, cpus=64, flags=[])
    assert readback.differences(ASKED, started) == ()


def test_more_cpus_than_asked_are_no_difference():
    """Slurm rounds up to whole cores."""
    assert readback.differences(ASKED, there(cpus=10)) == ()


def test_gres_counted_per_task_are_looked_for_there():
    """The same text under the other key is not the same request."""
    per_task = request(gres=(Gres(name="gpu", count=1),), gres_per=GresPer.TASK)
    row = there(tasks=1, cpus=1, cpus_per_task=1, tres_per_node="gres/gpu:1")
    assert "gres" in readback.differences(per_task, row)


def test_memory_per_gpu_is_compared_per_gpu():
    """Beside it Slurm shows an amount per node that nobody asked for."""
    per_gpu = request(memory=Memory(mib=70, per=MemoryPer.GPU), gres=(Gres(name="gpu", count=1),))
    assert "memory" not in readback.differences(per_gpu, there(memory_per_tres="gres/gpu:70"))
