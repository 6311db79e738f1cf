"""The core as a whole: what wakes whom, what is held back and told, and what a failure costs."""

import dataclasses

import pytest

from slurm_bridge import errors
from slurm_bridge.daemon import configuration
from slurm_bridge.hooks import attempts, chain
from slurm_bridge.hooks.base import NodeSet, Scores, Subsets, Tiers
from slurm_bridge.hooks.services import ChainServices
from slurm_bridge.model import kinds, names
from slurm_bridge.model.verdict import Wait
from slurm_bridge.scheduler import pending_workloads
from slurm_bridge.sim import faults
from slurm_bridge.sim.slurm import state
from tests.component.scheduler.whole_core import Bridge
from tests.effort import Work
from tests.simulation.weather import Side
from tests.unit.hooks.builders import hook


def test_unstarted_placeholders_are_bounded_by_the_window(bridge: Bridge) -> None:
    """Slurm's own scheduler gets slow with a long queue; the rest waits here, and says so once."""
    bridge = Bridge(bridge.folder, world=bridge.world, scheduling={"unstarted_window": 3})
    bridge.slurm.control.pause()
    for number in range(6):
        bridge.pod(f"p{number}")
    bridge.run(10)
    assert bridge.submits() == 3
    outside = [name for name, _ in bridge.world.pods() if bridge.condition(name)[0] == "SlurmQueueFull"]
    assert len(outside) == 3
    bridge.slurm.control.unpause()
    bridge.until(lambda: all(bridge.node_of(f"p{number}") for number in range(6)))


def test_workloads_that_line_up_cost_nothing_while_nothing_changes(bridge: Bridge) -> None:
    """However many there are: each was told why it waits, and is looked at when something has changed."""
    bridge = Bridge(bridge.folder, world=bridge.world, scheduling={"unstarted_window": 10})
    bridge.slurm.control.pause()

    def work(pods: int) -> int:
        for number in range(pods):
            bridge.pod(f"p{pods}-{number}")
        bridge.run(90)
        with Work() as work:
            bridge.run(30)
        return work.total

    few, many = work(20), work(80)
    outside = [name for name, _ in bridge.world.pods() if bridge.condition(name)[0] == "SlurmQueueFull"]
    assert len(outside) == 90
    assert many <= 1.1 * few


def test_a_workload_that_lines_up_again_is_told_again(bridge: Bridge) -> None:
    """The window is full, has room, and is full once more: a newcomer is told as the first ones were."""
    bridge = Bridge(bridge.folder, world=bridge.world, scheduling={"unstarted_window": 1})
    bridge.slurm.control.pause()
    for name in ("a", "b"):
        bridge.pod(name)
        bridge.run(3)
    assert bridge.condition("b")[0] == "SlurmQueueFull"
    bridge.delete("a", grace=0)
    bridge.until(lambda: bridge.condition("b")[0] == "SlurmJobPending")
    bridge.pod("c")
    bridge.until(lambda: bridge.condition("c")[0] == "SlurmQueueFull")
    assert pending_workloads.count(bridge.core.context.states).by_reason[("default", "SlurmQueueFull")] == 1


def test_a_replica_that_does_not_lead_keeps_nothing_of_pods_that_are_gone(bridge: Bridge) -> None:
    """It may stand by for months; when it leads it looks at all pods that are there."""
    for number in range(20):
        bridge.pod(f"p{number}")
        bridge.hear()
        bridge.delete(f"p{number}", grace=0)
    bridge.pod("last")
    bridge.hear()
    bridge.core.stand_by()
    assert len(bridge.core.context.states) == 0
    bridge.until(lambda: bridge.node_of("last"))


def test_who_is_let_in_first_is_who_stands_first(bridge: Bridge) -> None:
    """Priority decides when the window is full, not who came first."""
    bridge = Bridge(bridge.folder, world=bridge.world, scheduling={"unstarted_window": 1})
    bridge.slurm.control.pause()
    for name, priority in (("first", 0), ("second", 0), ("vip", 1000)):
        bridge.pod(name, spec={"priority": priority})
        bridge.step()
    bridge.delete("first", grace=0)
    bridge.step()
    assert bridge.job("vip").pending


def test_nothing_is_submitted_while_slurm_does_not_answer(bridge: Bridge) -> None:
    """No pod loses its place or its patience; with the first answer all go on at once."""
    bridge.run(1)
    bridge.world.weather.hide(Side.SLURM)
    bridge.run(15)
    bridge.pod("a")
    bridge.slurm_calls.forget()
    bridge.run(60)
    assert bridge.submits() == 0
    bridge.world.weather.show(Side.SLURM)
    bridge.until(lambda: bridge.node_of("a"), 12)


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [(faults.Answer(401), "SlurmRefusesBridge"), (faults.Answer(502), "SlurmUnavailable")],
    ids=["refuses", "does not answer"],
)
def test_a_pod_is_told_whether_slurm_refuses_or_does_not_answer(
    bridge: Bridge, trouble: faults.Answer, reason: str
) -> None:
    """A refusal has to be mended by somebody; the other passes. Then the pod starts."""
    bridge.run(1)
    bridge.slurm_calls.plan(trouble, times=10_000)
    bridge.run(15)
    bridge.pod("a")
    bridge.until(lambda: bridge.condition("a")[0] == reason, 20)
    bridge.slurm_calls.clear()
    bridge.until(lambda: bridge.node_of("a"), 60)


def test_a_pause_ends_when_slurm_answers_again(bridge: Bridge) -> None:
    """Backing off had its reason, and that is gone."""
    bridge.run(1)
    bridge.slurm_calls.plan(faults.Answer(502), method="POST", target="/job/submit", times=6)
    bridge.pod("a")
    bridge.run(40)
    assert pending_workloads.count(bridge.core.context.states).by_status["backoff"] == 1
    bridge.world.weather.hide(Side.SLURM)
    bridge.run(6)
    bridge.world.weather.show(Side.SLURM)
    bridge.run(8)
    assert bridge.node_of("a")


def test_a_node_that_comes_back_frees_those_who_wait_for_one(bridge: Bridge) -> None:
    """Nobody polls for it."""
    for node in ("n1", "n2", "n3", "n4"):
        bridge.kube.merge(kinds.NODES, ("", node), {"spec": {"unschedulable": True}})
    bridge.pod("a")
    bridge.run(10)
    assert bridge.submits() == 0
    assert "unschedulable" in bridge.condition("a")[1]
    bridge.kube.merge(kinds.NODES, ("", "n2"), {"spec": {"unschedulable": None}})
    bridge.until(lambda: bridge.node_of("a") == "n2", 5)


def test_a_pending_job_is_told_of_a_node_that_it_may_no_longer_use(bridge: Bridge) -> None:
    """The exclusion is updated, in the same job."""
    job = bridge.waiting("a")
    bridge.kube.merge(kinds.NODES, ("", "n1"), {"spec": {"unschedulable": True}})
    bridge.run(3)
    assert bridge.of(job).ask.excluded == ("n1",)
    bridge.kube.merge(kinds.NODES, ("", "n1"), {"spec": {"unschedulable": None}})
    bridge.run(3)
    assert bridge.of(job).ask.excluded == ()
    assert bridge.submits() == 1


def test_a_node_that_never_comes_to_rest_starves_nobody(bridge: Bridge) -> None:
    """It changes more often than changes are looked at."""
    for node in ("n1", "n2", "n3", "n4"):
        bridge.kube.merge(kinds.NODES, ("", node), {"spec": {"unschedulable": True}})
    bridge.pod("a")
    bridge.run(5)
    bridge.kube.merge(kinds.NODES, ("", "n2"), {"spec": {"unschedulable": None}})
    for number in range(10):
        bridge.kube.merge(kinds.NODES, ("", "n1"), {"metadata": {"labels": {"beat": str(number)}}})
        bridge.step(0.5)
    assert bridge.node_of("a") == "n2"


def test_a_node_that_joins_slurm_later_is_used(bridge: Bridge) -> None:
    """Slurm's nodes are read again and again."""
    bridge.kube.add_nodes("n9", capacity=bridge.world.fleet.capacity("s1"), labels={})
    bridge.pod("a", spec={"nodeSelector": {"kubernetes.io/hostname": "n9"}})
    bridge.run(5)
    assert "not known to Slurm" in bridge.condition("a")[1]
    bridge.slurm.control.add_node(state.Node(name="n9", cpus=4, memory_mib=8000), "debug")
    bridge.until(lambda: bridge.node_of("a") == "n9", 40)


def test_nothing_is_decided_before_slurms_nodes_are_known(bridge: Bridge) -> None:
    """A job that runs would be given back, for nobody would know its node."""
    job = bridge.waiting("a")
    bridge.slurm.control.unpause()
    bridge.slurm.tick()
    bridge.start()
    bridge.slurm_calls.plan(faults.Answer(502), target="/nodes/", times=4)
    with pytest.raises(errors.BridgeError):
        bridge.recover()
    bridge.slurm_calls.clear()
    bridge.until(lambda: bridge.node_of("a"))
    assert bridge.job("a").job_id == job.job_id


def test_nodes_that_could_not_be_read_are_asked_for_again_soon(bridge: Bridge) -> None:
    """Half a minute of ignorance would be long."""
    bridge.run(1)
    bridge.slurm_calls.plan(faults.Answer(502), target="/nodes/", times=4)
    bridge.core.context.refresh_facts()
    bridge.slurm_calls.forget()
    bridge.run(10)
    assert bridge.slurm_calls.count(target="/nodes/") >= 5
    assert bridge.slurm_calls.count(target="/partitions/") == 1


def test_the_owners_annotations_reach_the_job_and_its_changes_too(bridge: Bridge) -> None:
    """The Job speaks for its pods."""
    bridge.slurm.control.pause()
    bridge.world.job("batch", completions=1, parallelism=1)
    limit = {"metadata": {"annotations": {names.JOB_PREFIX + "timelimit": "30"}}}
    bridge.kube.merge(kinds.JOBS, ("default", "batch"), limit)
    bridge.run(3)
    (job,) = bridge.jobs()
    assert job.ask.minutes == 30
    limit["metadata"]["annotations"][names.JOB_PREFIX + "timelimit"] = "9"
    bridge.kube.merge(kinds.JOBS, ("default", "batch"), limit)
    bridge.run(3)
    assert bridge.of(job).ask.minutes == 9


def test_a_new_configuration_is_taken_to_those_who_wait(bridge: Bridge) -> None:
    """A default that has changed changes the jobs that it stands in."""
    job = bridge.waiting("a", spec={"containers": [{"name": "main", "image": "none"}]})
    assert job.ask.cpus_per_task * job.ask.tasks == 1
    settings = bridge.settings.model_copy(
        update={"defaults": bridge.settings.defaults.model_copy(update={"cpus": "2", "memory": "600Mi"})}
    )
    rules = configuration.rules(settings)
    bridge.core.configure(dataclasses.replace(bridge.core.context.config, rules=rules))
    bridge.run(3)
    now = bridge.job("a")
    assert now.ask.cpus_per_task * now.ask.tasks == 2
    assert now.ask.memory_mib == 600


def test_a_pod_that_is_held_by_a_gate_is_not_submitted(bridge: Bridge) -> None:
    """Somebody will open it, and that is a change that wakes it."""
    bridge.pod("a", spec={"schedulingGates": [{"name": "example.com/quota"}]})
    bridge.run(10)
    assert bridge.submits() == 0
    bridge.kube.merge(kinds.PODS, ("default", "a"), {"spec": {"schedulingGates": None}})
    bridge.until(lambda: bridge.node_of("a"), 10)


def test_a_poison_pod_hurts_nobody_else(bridge: Bridge) -> None:
    """Whatever goes wrong with it goes wrong for it alone."""
    bridge.pod("poison", annotations={names.JOB_PREFIX + "timelimit": "-1"}, spec={"priority": 10**6})
    for number in range(5):
        bridge.pod(f"p{number}")
    bridge.until(lambda: all(bridge.node_of(f"p{number}") for number in range(5)), 10)
    assert not bridge.node_of("poison")


def test_what_kubelets_report_of_running_pods_wakes_nobody(bridge: Bridge) -> None:
    """Thousands of pods do that all the time."""
    bridge.bound("a")
    bridge.run(3)
    bridge.status("a", containerStatuses=[{"name": "main", "ready": True, "restartCount": 7, "state": {"running": {}}}])
    bridge.hear()
    assert pending_workloads.count(bridge.core.context.states).by_status["active"] == 0


def test_a_forbidden_write_is_told_and_not_repeated_all_the_time(bridge: Bridge) -> None:
    """An access rule is missing: an administrator has to act."""
    bridge.run(1)
    body = b'{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}'
    bridge.kube_calls.plan(faults.Answer(403, body), method="POST", target="/binding", times=1000)
    bridge.pod("a")
    bridge.run(60)
    assert 2 <= bridge.kube_calls.count(target="/binding") <= 10
    bridge.kube_calls.clear()
    bridge.until(lambda: bridge.node_of("a"), 90)
    assert bridge.submits() == 1


def preferring(bridge: Bridge, *nodes: str) -> None:
    """From now on a hook wants these nodes first, for ten seconds."""
    first = hook(subset=lambda *_: Subsets(sets=(NodeSet(nodes=frozenset(nodes), name="first"),)))
    limits = attempts.AttemptLimits(candidates=1, window_seconds=10.0)
    around = ChainServices(clock=bridge.clock, limits=limits, settle=configuration.settle())
    bridge.recover()
    bridge.core.configure(dataclasses.replace(bridge.core.context.config, chain=chain.Chain([first], around)))


def test_preferred_nodes_are_tried_for_a_while_and_then_any(bridge: Bridge) -> None:
    """The window counts from Slurm's first look; the same job is widened, not a new one made."""
    preferring(bridge, "n1")
    bridge.pod("a", cpu="4")
    bridge.run(5)
    job = bridge.job("a")
    assert (job.ask.required, job.ask.excluded) == ((), ("n2", "n3", "s4"))
    bridge.until(lambda: bridge.node_of("a"), 40)
    assert bridge.job("a").job_id == job.job_id
    assert bridge.node_of("a") != "n1"


class Ranked:
    """Scores that can change, followed in two tiers of ten seconds."""

    def __init__(self, **scores: float) -> None:
        self.scores = scores

    def __call__(self, *_: object) -> Scores:
        return Scores(nodes=dict(self.scores), tiers=Tiers(count=2, first=1, widen_after=10.0))


def rated(bridge: Bridge, ranked: Ranked) -> None:
    """From now on a hook prefers nodes by these scores."""
    around = ChainServices(clock=bridge.clock, settle=configuration.settle())
    bridge.recover()
    one = chain.Chain([hook(score=ranked)], around)
    bridge.core.configure(dataclasses.replace(bridge.core.context.config, chain=one))


def test_the_best_nodes_are_tried_first_and_then_any(bridge: Bridge) -> None:
    """No pin: when the best node was taken meanwhile, the same job has another one after a few seconds."""
    bridge.delete("foreign", grace=0)
    rated(bridge, Ranked(n2=5.0, n3=1.0))
    bridge.world.submit("quicker", tasks=4, required_nodes=["n2"])
    bridge.world.pass_time(1.0)
    bridge.pod("a", cpu="4")
    bridge.run(5)
    job = bridge.job("a")
    assert (job.ask.required, job.ask.excluded) == ((), ("n1", "n3", "s4"))
    bridge.until(lambda: bridge.node_of("a"), 40)
    assert (bridge.job("a").job_id, bridge.submits()) == (job.job_id, 1)
    assert bridge.node_of("a") != "n2"


def test_a_full_node_is_not_preferred(bridge: Bridge) -> None:
    """Somebody else's job is on the best one: the next best is where the pod starts at once."""
    rated(bridge, Ranked(n1=5.0, n2=1.0))
    bridge.pod("a", cpu="4")
    bridge.until(lambda: bridge.node_of("a"), 10)
    assert (bridge.node_of("a"), bridge.submits()) == ("n2", 1)


def test_a_waiting_job_is_not_written_anew_when_scores_move(bridge: Bridge) -> None:
    """They move with every pod that comes and goes; thousands of waiting jobs must not follow each time."""
    ranked = Ranked(n1=5.0, n2=1.0)
    rated(bridge, ranked)
    bridge.pod("a", cpu="64")
    bridge.run(3)
    bridge.slurm_calls.forget()
    for number in range(4):
        ranked.scores = {"n1": float(number), "n2": 9.0 - number}
        bridge.core.on_surroundings()
        bridge.run(1)
    assert bridge.slurm_calls.count(method="POST") == 0


def test_a_job_that_began_without_scores_is_not_narrowed_by_them(bridge: Bridge) -> None:
    """It was offered all nodes; taking them away again would only make it wait longer."""
    ranked = Ranked()
    rated(bridge, ranked)
    bridge.pod("a", cpu="64")
    bridge.run(3)
    bridge.slurm_calls.forget()
    ranked.scores = {"n1": 5.0}
    bridge.core.on_surroundings()
    bridge.run(5)
    assert bridge.slurm_calls.count(method="POST") == 0
    assert (bridge.job("a").ask.required, bridge.job("a").ask.excluded) == ((), ())


def test_an_attempt_goes_on_where_it_was_after_a_restart(bridge: Bridge) -> None:
    """The owner record says which attempt runs since when."""
    preferring(bridge, "n1")
    bridge.pod("a", cpu="4")
    bridge.run(5)
    bridge.start()
    preferring(bridge, "n1")
    bridge.run(3)
    assert bridge.submits() == 0
    assert bridge.slurm_calls.count(method="POST") == 0
    bridge.until(lambda: bridge.node_of("a"), 40)
    assert bridge.submits() == 0


@pytest.mark.parametrize("warning", [True, False])
def test_a_wait_that_nothing_will_end_by_itself_is_an_event_too(bridge: Bridge, *, warning: bool) -> None:
    """Once, however often the workload is looked at; other waits are told by the condition alone."""
    obstacle = Wait(reason="FailedScheduling", message="it was tried 11 times", warning=warning)
    bridge.recover()
    one = chain.Chain([hook(admit=obstacle)], ChainServices(clock=bridge.clock))
    bridge.core.configure(dataclasses.replace(bridge.core.context.config, chain=one))
    bridge.pod("a")
    for _ in range(3):
        bridge.core.on_surroundings()
        bridge.run(3)
    told = [said for said in bridge.events("a") if said[0] == "FailedScheduling"]
    assert told == ([("FailedScheduling", "it was tried 11 times")] if warning else [])
