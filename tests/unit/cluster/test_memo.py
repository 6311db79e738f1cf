"""What is remembered of a pod."""

from slurm_bridge.cluster.memo import ByPod
from slurm_bridge.model.pod import Pod
from tests.unit.hooks.builders import pod


def test_it_is_worked_out_once_for_a_pod() -> None:
    """For another one that is equal it is worked out again: to compare pods takes longer."""
    asked: list[Pod] = []

    def name(one: Pod) -> str:
        asked.append(one)
        return one.metadata.name

    remembered, one, other = ByPod(name), pod("p"), pod("p")
    assert [remembered(who) for who in (one, other, one, other)] == ["p"] * 4
    assert len(asked) == 2


def test_only_so_many_are_remembered() -> None:
    """What was forgotten is worked out again, and right."""
    remembered = ByPod(lambda one: one.metadata.name, most=2)
    pods = [pod(f"p{number}") for number in range(5)]
    for _ in range(2):
        assert [remembered(one) for one in pods] == [f"p{number}" for number in range(5)]
