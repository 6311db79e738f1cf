"""Bad experiences with nodes: remembered for a while, and counted until a success."""

from slurm_bridge.cluster.snapshot import NodeFacts
from slurm_bridge.scheduler.avoid import Avoided
from slurm_bridge.scheduler.state import WorkloadStore
from tests.unit.hooks.builders import cluster, node


def whys(avoided: Avoided, keys: tuple[str, ...], now: float, *, there: bool = True) -> dict[str, str]:
    """The nodes that are avoided, with the reasons; all nodes are there, or none."""
    found = avoided.nodes(keys, now, lambda name: facts_of(name) if there else None)
    return {node: bad.why for node, bad in found.items()}


def facts_of(name: str) -> NodeFacts:
    """A node about which nothing matters."""
    return cluster([node(name)]).nodes[name]


def test_a_node_is_avoided_no_longer_than_its_reason_can_be_seen() -> None:
    """It has come, for example."""
    avoided = Avoided(WorkloadStore(), seconds=60)
    avoided.add("u", "n1", "no such node", 0.0, holds=lambda found: found is None)
    assert whys(avoided, ("u",), 1.0, there=False) == {"n1": "no such node"}
    assert whys(avoided, ("u",), 1.0) == {}


def test_a_reason_may_be_short() -> None:
    """What hooks say is asked again soon."""
    avoided = Avoided(WorkloadStore(), seconds=60)
    avoided.add("u", "n1", "denied", 0.0, seconds=30)
    assert whys(avoided, ("u",), 29.0) == {"n1": "denied"}
    assert whys(avoided, ("u",), 30.0) == {}


def test_a_node_that_is_denied_again_and_again_is_avoided_for_long() -> None:
    """Else the workload would be given it for ever, and never wait for another one; much later it has a new chance."""
    avoided = Avoided(WorkloadStore(), seconds=600)
    for number in range(3):
        avoided.add("u", "n1", "denied", 30.0 * number, holds=lambda _node: False, seconds=30)
        assert bool(whys(avoided, ("u",), 30.0 * number + 1)) is (number == 2)
    assert whys(avoided, ("u",), 659.0) == {"n1": "denied"}
    avoided.add("u", "n1", "denied", 1300.0, seconds=30)
    assert whys(avoided, ("u",), 1331.0) == {}


def test_of_two_nodes_that_are_no_good_in_turn_both_are_avoided_in_the_end() -> None:
    """The tries are further apart than a node is avoided: a third node would never be tried."""
    avoided = Avoided(WorkloadStore(), seconds=60)
    for number in range(8):
        avoided.add("u", f"n{number % 2}", "full", 40.0 * number)
    assert set(whys(avoided, ("u",), 355.0)) == {"n0", "n1"}


def test_a_kubelet_that_refused_a_pod_counts_for_longer_than_a_hook() -> None:
    """What is known for longer is not forgotten for a reason that is gone soon."""
    avoided = Avoided(WorkloadStore(), seconds=600)
    avoided.add("u", "n1", "refused", 0.0)
    avoided.add("u", "n1", "denied", 10.0, holds=lambda _node: False, seconds=30)
    assert whys(avoided, ("u",), 599.0) == {"n1": "refused"}


def test_a_node_is_avoided_for_a_while() -> None:
    """It may be repaired."""
    avoided = Avoided(WorkloadStore(), seconds=60)
    avoided.add("u", "n1", "no room", 0.0)
    assert whys(avoided, ("u",), 59.0) == {"n1": "no room"}
    assert whys(avoided, ("u",), 60.0) == {}


def test_a_node_may_be_avoided_until_something_happens() -> None:
    """However long that takes, and not a moment longer; more bad experiences of another kind count from then on."""
    avoided, left = Avoided(WorkloadStore(), seconds=60), [True]
    avoided.until("u", "n1", "still runs pod x", 0.0, lambda _node: left[0])
    assert whys(avoided, ("u",), 1e9) == {"n1": "still runs pod x"}
    assert avoided.waits_for("u", "n1", None)
    left.clear()
    left.append(False)
    assert whys(avoided, ("u",), 1e9) == {}
    assert not avoided.waits_for("u", "n1", None)
    avoided.add("u", "n1", "denied", 10.0, seconds=30)
    assert whys(avoided, ("u",), 41.0) == {}


def test_what_is_avoided_for_a_while_is_not_avoided_for_less_because_of_an_event() -> None:
    """A kubelet has refused the pod: the end of another pod there does not change that."""
    avoided = Avoided(WorkloadStore(), seconds=600)
    avoided.add("u", "n1", "refused", 0.0)
    avoided.until("u", "n1", "still runs pod x", 0.0, lambda _node: False)
    assert whys(avoided, ("u",), 599.0) == {"n1": "refused"}
    assert not avoided.waits_for("u", "n1", None)
    assert not avoided.waits_for("stranger", "n1", None)


def test_an_event_counts_where_an_older_reason_has_passed() -> None:
    """What a kubelet refused a while ago does not keep a node with an occupied place from being avoided now."""
    avoided = Avoided(WorkloadStore(), seconds=60)
    avoided.add("u", "n1", "refused", 0.0)
    avoided.until("u", "n1", "still runs pod x", 61.0, lambda _node: True)
    assert whys(avoided, ("u",), 62.0) == {"n1": "still runs pod x"}


def test_what_a_sibling_met_counts_too() -> None:
    """The controller makes another pod of the same kind."""
    avoided = Avoided(WorkloadStore())
    avoided.add("controller", "n1", "refused", 0.0)
    avoided.add("pod", "n2", "full", 0.0)
    assert whys(avoided, ("pod", "controller"), 1.0) == {"n1": "refused", "n2": "full"}
    assert whys(avoided, ("other",), 1.0) == {}


def test_stumbles_are_counted_until_a_success() -> None:
    """The pause after a failure depends on how many there were before."""
    avoided = Avoided(WorkloadStore())
    assert [avoided.stumble("u") for _ in range(3)] == [0, 1, 2]
    assert avoided.tries("u") == 3
    avoided.success("u")
    assert avoided.tries("u") == avoided.stumble("u") == 0


def test_a_success_makes_no_node_good_again() -> None:
    """It was another node that worked."""
    avoided = Avoided(WorkloadStore())
    avoided.add("u", "n1", "full", 0.0)
    avoided.success("u")
    assert whys(avoided, ("u",), 1.0) == {"n1": "full"}


def test_the_memory_is_bounded_and_forgets_the_oldest() -> None:
    """A crowd of unlucky pods must not fill the process."""
    states = WorkloadStore()
    avoided = Avoided(states, most=3)
    for number in range(5):
        avoided.add(f"u{number}", "n1", "full", 0.0)
        avoided.stumble(f"u{number}")
    assert [bool(whys(avoided, (f"u{number}",), 1.0)) for number in range(5)] == [False, False, True, True, True]
    assert [avoided.tries(f"u{number}") for number in range(5)] == [0, 0, 1, 1, 1]
    assert [states.find(f"u{number}") is None for number in range(5)] == [True, True, False, False, False]
