"""Namespaces that come and go while the core works: what belongs to another daemon is left alone, and adopted later."""

import dataclasses

from slurm_bridge import ports
from slurm_bridge.mirror.served import ServedNamespaces
from slurm_bridge.model import kinds, names
from slurm_bridge.model.pod import Pod
from tests.component.scheduler.whole_core import Bridge

NAMESPACE = "default"


class Served:
    """Which namespaces this daemon has."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge, self.there = bridge, True
        bridge.core.context.serves = lambda _namespace: self.there
        bridge.core.context.mirror._served = ServedNamespaces(serves=lambda _namespace: self.there)

    def let_go(self) -> None:
        """Another daemon has it from now on."""
        self.there = False
        self._bridge.core.let_go(NAMESPACE)

    def take_up(self) -> None:
        """It is back."""
        self.there = True
        self._bridge.core.context.mirror.recover()
        self._bridge.core.take_up({NAMESPACE}, self.pods())

    def pods(self) -> list[Pod]:
        """As the watch has them."""
        cluster = self._bridge.core.context.cluster
        every = cluster.list(kinds.PODS, ports.Scope(namespace=NAMESPACE)).items
        return [pod for pod in every if pod.spec.scheduler_name == names.SCHEDULER_NAME]


def test_nothing_of_a_namespace_that_is_let_go_is_touched_or_known(bridge: Bridge) -> None:
    """Jobs and pods stay as they are: those of a pod with a node, and of one that waits in Slurm."""
    running, waiting = bridge.bound("a"), bridge.waiting("b")
    served = Served(bridge)
    served.let_go()
    core = bridge.core
    assert core.pod_index.roots() == ()
    assert core.context.table.all() == ()
    assert [key for key, state in core.context.states.all() if state.current is not None] == []
    calls = bridge.slurm_calls.count(method="DELETE") + bridge.slurm_calls.count(method="POST")
    bridge.run(120)
    assert bridge.slurm_calls.count(method="DELETE") + bridge.slurm_calls.count(method="POST") == calls
    assert not bridge.of(running).over
    assert not bridge.of(waiting).over


def test_what_is_heard_too_late_of_a_job_that_was_let_go_ends_nothing(bridge: Bridge) -> None:
    """A reading that was under way brings the job back to the table, without its pod: it would look left over."""
    job = bridge.bound("a")
    known = bridge.known(job)
    assert known is not None
    served = Served(bridge)
    served.let_go()
    bridge.core.context.table.put(dataclasses.replace(known))
    bridge.run(60)
    assert not bridge.of(job).over
    assert bridge.core.context.table.all() == ()


def test_a_namespace_that_is_taken_up_is_adopted_with_its_jobs(bridge: Bridge) -> None:
    """No pod gets a second job, what waited is bound, and what is deleted ends its job."""
    running, waiting = bridge.bound("a"), bridge.waiting("b")
    submits, served = bridge.submits(), Served(bridge)
    served.let_go()
    bridge.run(10)
    served.take_up()
    bridge.run(30)
    assert bridge.submits() == submits
    assert bridge.known(running) is not None
    assert bridge.known(waiting) is not None
    bridge.delete("a", grace=0)
    bridge.until(lambda: bridge.of(running).over)
    assert not bridge.of(waiting).over


def test_a_namespace_that_goes_and_comes_again_and_again_leaves_nothing_behind(bridge: Bridge) -> None:
    """What is known of its workloads does not grow."""
    bridge.bound("a")
    served = Served(bridge)
    for _ in range(3):
        served.let_go()
        left = len(bridge.core.context.states)
        served.take_up()
        bridge.run(5)
    served.let_go()
    bridge.run(5)
    assert len(bridge.core.context.states) <= left
    assert bridge.core.queue.lining_up == 0
