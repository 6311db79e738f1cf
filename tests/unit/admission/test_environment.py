"""Slurm's environment: which variables a container gets, and where their values come from."""

import pytest

from slurm_bridge.admission import environment
from slurm_bridge.model import names
from slurm_bridge.translate import forms

TORCH = {"MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK"}


def added(asked: str, *present: str) -> set[str]:
    """The names of the variables."""
    return {one["name"] for one in environment.slurm_environment(asked, present)}


def test_every_value_that_the_annotation_may_have_is_known() -> None:
    """`false` and what is no value ask for nothing; `torch` asks for more than `true`."""
    assert {one: bool(added(one)) for one in forms.ENVIRONMENTS} == {"true": True, "false": False, "torch": True}
    assert added("torch") - added("true") == TORCH
    assert not added("yes") | added("") | added("x" * 100_000)
    assert added(" TRUE ") == added("true")


def test_a_variable_that_the_container_sets_stays_as_it_is() -> None:
    """The user's own value wins, and the others are still added."""
    assert added("torch") - added("torch", "RANK", "SLURM_JOB_ID") == {"RANK", "SLURM_JOB_ID"}
    own = {"name": "main", "env": [{"name": "MASTER_ADDR", "value": "mine"}]}
    (container,) = environment.with_environment({"containers": [own]}, "true")["containers"]
    assert [one for one in container["env"] if one["name"] == "MASTER_ADDR"] == own["env"]
    assert container["env"][-1] == own["env"][0], "own variables may refer to those before them"


def test_every_container_gets_them_and_the_pod_that_does_not_ask_is_unchanged() -> None:
    """Also init containers; a second pass adds nothing."""
    spec = {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "c"}], "nodeName": ""}
    once = environment.with_environment(spec, "true")
    assert all(one["env"] for key in ("containers", "initContainers") for one in once[key])
    assert environment.with_environment(once, "true") == once
    assert environment.with_environment(spec, "false") == spec


@pytest.mark.parametrize("variable", environment.VARIABLES, ids=lambda one: one.name)
def test_a_variable_is_read_from_what_the_binding_writes(variable: environment.Variable) -> None:
    """The downward API resolves a field of the pod when the container starts, which is after the binding."""
    written = {names.LABEL_JOB_ID, names.ANNOTATION_SLURM_NODE, *names.TASK_ANNOTATIONS}
    assert variable.fixed or variable.source in written
    assert variable.fixed or variable.source in variable.manifest["valueFrom"]["fieldRef"]["fieldPath"]
