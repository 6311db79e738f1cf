"""The page about hooks says what is so."""

import dataclasses
import pathlib
import re
import tomllib
from typing import Any

import msgspec
import pytest
import yaml

from slurm_bridge.families.eligibility import EligibilityOptions
from slurm_bridge.families.policy import PolicyDefaults
from slurm_bridge.hooks import calls, registry
from slurm_bridge.hooks.base import Fields, HookPhase
from slurm_bridge.hooks.chain import Chain, Plan
from slurm_bridge.hooks.needs import KINDS, Need
from slurm_bridge.model.job import JobRequest
from slurm_bridge.model.pod import Container, ResourceNeeds
from tests.unit.hooks.builders import Around, cluster, gang, node, pod, shape, translated, workload

PAGE = (pathlib.Path(__file__).parents[3] / "docs" / "hooks.md").read_text()


def blocks(language: str) -> list[str]:
    """The page's code in this language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def example(name: str) -> str:
    """The block that defines this class."""
    (found,) = (block for block in blocks("python") if f"class {name}:" in block)
    return found


def test_the_example_works(around: Around) -> None:
    """Code, entry point and configuration as they stand there, together."""
    scope: dict[str, object] = {}
    exec(compile(blocks("python")[0], "hooks.md", "exec"), scope)  # noqa: S102 - the page's own example
    (name, target), *_ = tomllib.loads(blocks("toml")[0])["project"]["entry-points"][registry.GROUP].items()
    configured = yaml.safe_load(blocks("yaml")[0])["hooks"]
    configs = [
        registry.HookConfig(name=one["name"], options=one.get("options", {}), budget_ms=60_000) for one in configured
    ]

    class Point:
        def load(self) -> object:
            return scope[target.partition(":")[2]]

    chain = registry.build(configs, around.make(), {name: Point()})
    seen = cluster([node("a", labels={"rack": "r7"}), node("b", labels={"rack": "r1"})])
    plan = chain.plan(workload(), translated(), seen, now=0.0)
    assert isinstance(plan, Plan)
    assert plan.request.excluded_nodes == ("a",)
    held = chain.plan(workload(pod(metadata={"labels": {"maintenance": ""}})), translated(), seen, now=0.0)
    assert getattr(held, "reason", "") == "Maintenance"
    chain.close()


def test_the_example_for_groups_works(around: Around) -> None:
    """Workers may use the noisy room, the leader's GPU may not, and together they try one room after the other."""
    scope: dict[str, Any] = {}
    exec(compile(example("OneRoom"), "hooks.md", "exec"), scope)  # noqa: S102 - the page's own example
    made = calls.Hook(name="one-room", hook=scope["OneRoom"]({"noisy": "c"}), budget_seconds=60)
    gpu = Container(name="c", resources=ResourceNeeds(limits={"nvidia.com/gpu": "1"}))
    leader = pod("leader")
    leader = msgspec.structs.replace(leader, spec=msgspec.structs.replace(leader.spec, containers=(gpu,)))
    workers = [pod(f"worker-{number}") for number in range(3)]
    shapes = (shape(leader), shape(*workers))
    seen = cluster([node(f"{room}{number}", labels={"room": room}) for room in "abc" for number in (1, 2)])
    plan = Chain([made], around.make()).plan(gang(leader, *workers), translated(shapes=shapes), seen, now=0.0)
    assert isinstance(plan, Plan)
    assert [one.name for one in plan.course.attempts] == ["a", "b", "any"]
    assert plan.excluded == {"b1", "b2", "c1", "c2"}
    few = Chain([made], around.make()).plan(gang(*workers), translated(), seen, now=0.0)
    assert isinstance(few, Plan)
    assert not few.excluded


def test_the_example_that_sets_a_field_works(around: Around) -> None:
    """A job with a GPU gets the time limit, and any other job none."""
    scope: dict[str, Any] = {}
    exec(compile(example("GpuLimit"), "hooks.md", "exec"), scope)  # noqa: S102 - the page's own example
    made = calls.Hook(name="gpu-limit", hook=scope["GpuLimit"]({"minutes": 60}), budget_seconds=60)
    gpu = Container(name="c", resources=ResourceNeeds(limits={"nvidia.com/gpu": "1"}))
    plain = pod("a")
    with_gpu = msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, containers=(gpu,)))
    chain, seen = Chain([made], around.make()), cluster([node("a")])
    found = [chain.plan(workload(one), translated(), seen, now=0.0) for one in (with_gpu, plain)]
    assert [one.request.time_limit_minutes for one in found if isinstance(one, Plan)] == [60, None]


def told_of(beginning: str) -> set[str]:
    """The names in the paragraph that begins like this, up to its first full stop."""
    return set(re.findall(r"`(\w+)`", PAGE.partition(beginning)[2].partition(".\n")[0].partition(". ")[0]))


def test_every_field_that_a_hook_may_set_is_told() -> None:
    """A new one needs a word on the page."""
    assert told_of("`Fields` sets ") == {one.name for one in dataclasses.fields(Fields)} - {"source"}


def test_every_field_that_a_hook_may_read_is_told() -> None:
    """But for those that the emitter and the scheduler set."""
    own = {"name", "owner", "job_id", "hold", "gres_per", "excluded_nodes", "mcs_label", "components"}
    assert (
        told_of("`ask.request` has what the job will ask for: ")
        == {one.name for one in dataclasses.fields(JobRequest)} - own
    )


def test_what_a_group_looks_like_is_told_for_every_phase() -> None:
    """Each phase is in one row of the table."""
    table = PAGE.partition("| phase | what a hook sees of a group |")[2].partition("\n\n")[0]
    told = [name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(told) == sorted(phase.value for phase in HookPhase)


@pytest.mark.parametrize("phase", list(HookPhase))
def test_every_phase_is_in_the_table(phase: HookPhase) -> None:
    """With as many arguments as it gets, and all its answers."""
    row = re.search(rf"^\| `{phase.value}\(([^)]*)\)` \|.*\| (.*) \|$", PAGE, re.MULTILINE)
    assert row, phase
    shape = calls.SHAPES[phase]
    assert len(row[1].split(",")) == shape.arguments
    assert re.findall(r"`(\w+)`", row[2]) == [answer.__name__ for answer in shape.answers]


def test_the_policy_example_is_accepted(around: Around) -> None:
    """As it stands there."""
    options = yaml.safe_load(blocks("yaml")[1])[0]["options"]
    registry.build([registry.HookConfig(name="policy", options=options)], around.make(), {})


def test_every_option_and_need_is_named() -> None:
    """Nothing is left out."""
    for option in EligibilityOptions.model_fields:
        assert f"| `{option}` |" in PAGE
    for field in PolicyDefaults.model_fields:
        assert field in PAGE
    for need in Need:
        assert need.name in PAGE


def test_every_need_has_its_kind() -> None:
    """What is declared can be watched."""
    assert set(KINDS) == set(Need)
    assert [kind.plural for kind in KINDS.values()] == [need.value for need in KINDS]


def test_the_example_for_columns_works(around: Around) -> None:
    """The nodes of another zone are denied, and said so in kube-scheduler's words."""
    scope: dict[str, Any] = {}
    exec(compile(example("SameZone"), "hooks.md", "exec"), scope)  # noqa: S102 - the page's own example
    made = calls.Hook(name="same-zone", hook=scope["SameZone"]({"zone": "a"}), budget_seconds=60)
    seen = cluster([node("a1", labels={"zone": "a"}), node("b1", labels={"zone": "b"}), node("none")])
    plan = Chain([made], around.make()).plan(workload(), translated(), seen, now=0.0)
    assert isinstance(plan, Plan)
    assert plan.excluded == {"b1", "none"}
    assert "2 node(s) are in another zone" in str(plan.lines[-1])
