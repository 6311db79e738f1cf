"""2-Smart over agents that answer, fail, hang and lie."""

import threading
from typing import Any

import pytest

from slurm_bridge.families.vela.agents import AgentMember, Patience, RemoteAgent
from slurm_bridge.families.vela.options import AgentOptions, VelaOptions
from slurm_bridge.families.vela.pipeline import NotSampled, PodRefused
from slurm_bridge.families.vela.samplers import LocalNodesSampler, RemoteNodesSampler
from slurm_bridge.families.vela.samples import SamplingRequest
from slurm_bridge.families.vela.smart import AgentFailure, Merged
from slurm_bridge.hooks.services import NotAnswered
from slurm_bridge.runtime.clock import SystemClock, VirtualClock
from tests.unit.families.vela.support_vela import DOWN, FakeAgent, FakePost, Stage, answering, farm, limited, response
from tests.unit.hooks.builders import cluster, node

REQUEST = SamplingRequest(pod=limited())


def remote(*names: str, **others: Any) -> list[dict[str, Any]]:
    """Agents that are services."""
    return [{"name": name, "url": f"http://{name}", **others} for name in names]


def sampler(stage: Stage, patience: Patience | None = None, **options: Any) -> RemoteNodesSampler:
    """With every agent asked, unless told."""
    chosen = VelaOptions.model_validate({"clusters_percent": 100, **options})
    return RemoteNodesSampler(chosen, stage.services(), patience or Patience(3, 5.0))


class TestRemote:
    def test_answers_are_in_the_order_of_the_clusters(self):
        """Who fails is reported and left out."""
        post = FakePost(east=answering("east", "a"), north=DOWN, west=answering("west", "b"))
        merged = sampler(Stage(farm(1), post=post), agents=remote("east", "north", "west")).sample(REQUEST)
        assert merged.qualified == ["east/a", "west/b"]
        assert (merged.answered, merged.failed) == (("east", "west"), {"north": "http://north: connection refused"})

    def test_only_a_share_of_the_agents_is_asked(self):
        """ceil(Cp * C), others at other times."""
        names = [f"c{number}" for number in range(10)]
        post = FakePost(**{name: answering(name, name) for name in names})
        one = sampler(Stage(farm(1), post=post), agents=remote(*names), clusters_percent=33)
        asked = [frozenset(one.sample(REQUEST).answered) for _ in range(20)]
        assert {len(clusters) for clusters in asked} == {4}
        assert frozenset().union(*asked) == set(names)

    def test_agents_that_are_left_out_for_a_while_are_not_drawn(self):
        """One of three is asked as ever, the one that answers; once the pause is over the others are tried."""
        post, clock = FakePost(east=answering("east", "a"), north=DOWN, west=DOWN), VirtualClock()
        stage = Stage(farm(1), post=post, clock=clock)
        one = sampler(stage, Patience(1, 5.0), agents=remote("east", "north", "west"), clusters_percent=33)
        while not {"north", "west"} <= set(post.asked()):
            one.sample(REQUEST)
        assert {one.sample(REQUEST).answered for _ in range(20)} == {("east",)}
        before = len(post.asked())
        clock.advance(5)
        while len({*post.asked()[before:]} - {"east"}) < 2:
            assert len(one.sample(REQUEST).answered) <= 1

    def test_of_more_agents_than_are_willing_all_of_these_are_asked(self):
        """How many are wanted is a share of all."""
        post = FakePost(east=answering("east", "a"), north=DOWN, west=answering("west", "b"))
        agents = remote("east", "north", "west")
        one = sampler(Stage(farm(1), post=post), Patience(1, 5.0), agents=agents)
        assert one.sample(REQUEST).answered == ("east", "west")
        assert not one.sample(REQUEST).failed

    def test_when_all_are_left_out_they_say_so(self):
        """Nobody is asked, and the reason is told."""
        post = FakePost(east=DOWN, west=DOWN)
        one = sampler(Stage(farm(1), post=post), Patience(1, 5.0), agents=remote("east", "west"))
        one.sample(REQUEST)
        assert all("is left out for another 5 s" in why for why in one.sample(REQUEST).failed.values())
        assert len(post.asked()) == 2

    def test_agents_are_asked_as_configured(self):
        """With the strategy, the size and the deadline."""
        post = FakePost(east=answering("east"))
        agents = remote("east", timeout_seconds=0.5)
        sampler(Stage(farm(1), post=post), agents=agents, strategy="mine").sample(REQUEST)
        ((url, path, body, seconds),) = post.calls
        assert (url, path, body["nodesToSampleBp"], seconds) == ("http://east", "/v1/samples/mine", 200, 0.5)

    def test_a_liar_is_left_out(self):
        """What it says is not an answer."""
        post = FakePost(east={"nodes": "all"}, west=answering("west", "b"))
        merged = sampler(Stage(farm(1), post=post), agents=remote("east", "west")).sample(REQUEST)
        assert merged.qualified == ["west/b"]
        assert "agent east did not answer with" in merged.failed["east"]

    def test_agents_in_this_process_are_asked_beside_services(self):
        """In one answer, in the order of the configuration."""
        snapshot = cluster([node("n1", labels={"rack": "a"}), node("n2", labels={"rack": "b"})])
        agents = [{"name": "here", "shard": {"selector": "rack=a"}}, *remote("east")]
        post = FakePost(east=answering("east", "n2"))
        merged = sampler(Stage(snapshot, post=post), agents=agents).sample(REQUEST)
        assert merged.qualified == ["here/n1", "east/n2"]

    def test_who_hangs_is_left_out_at_its_deadline(self):
        """The others' nodes are there, and nobody waits for the one who hangs."""
        hanging, clock = threading.Event(), SystemClock()

        def hang(_body: Any) -> Any:
            assert hanging.wait(30)
            return answering("north", "late")

        post = FakePost(east=answering("east", "a"), north=hang)
        stage = Stage(farm(1), post=post, threads=True, clock=clock)
        agents = [*remote("east", timeout_seconds=30), *remote("north", timeout_seconds=0.05)]
        one = sampler(stage, agents=agents)
        try:
            merged = one.sample(REQUEST)
            assert (merged.qualified, merged.failed) == (["east/a"], {"north": "did not answer within 0.05 s"})
        finally:
            hanging.set()
            one.close()

    def test_calls_at_once_are_bounded(self):
        """What has to wait for too long is not called any more."""
        hanging, clock = threading.Event(), SystemClock()
        post = FakePost(east=lambda _body: hanging.wait(30), west=answering("west", "b"))
        stage = Stage(farm(1), post=post, threads=True, clock=clock)
        one = sampler(stage, agents=remote("east", "west", timeout_seconds=0.05), concurrent_calls=1)
        try:
            assert set(one.sample(REQUEST).failed) == {"east", "west"}
        finally:
            hanging.set()
            one.close()
        assert "west" not in post.asked()


class TestMember:
    def member(self, agent: Any, clock: VirtualClock, patience: Patience, **options: Any) -> AgentMember:
        """An agent over HTTP, unless told."""
        given = AgentOptions.model_validate({"name": "east", "url": "http://east", **options})
        return AgentMember(agent, given, clock, patience=patience)

    def test_after_some_failures_in_a_row_it_is_left_out_for_a_while(self):
        """Then one more failure is enough."""
        clock, agent = VirtualClock(), FakeAgent("east", NotSampled("no"))
        one = self.member(agent, clock, Patience(2, 5.0))
        said = [one.ask(REQUEST, "random") for _ in range(3)]
        assert [answer.why for answer in said if isinstance(answer, AgentFailure)] == [
            "no",
            "no",
            "failed 2 times in a row and is left out for another 5 s",
        ]
        clock.advance(5)
        for _ in range(3):
            one.ask(REQUEST, "random")
        assert len(agent.asked) == 3

    def test_an_answer_forgets_the_failures(self):
        """And whoever waits for nodes is told that it is back."""
        told: list[int] = []
        patience = Patience(2, 5.0, lambda: told.append(1))
        agent = FakeAgent("east", NotSampled("no"), response("east"), NotSampled("no"), NotSampled("no"))
        one = self.member(agent, VirtualClock(), patience)
        for _ in range(4):
            one.ask(REQUEST, "random")
        assert (patience.version, told, len(agent.asked)) == (1, [1], 4)

    def test_a_pod_that_cannot_be_read_costs_no_other_pod_the_agent(self):
        """Users may write what they like: the agent is well, and is asked about other pods as ever."""
        agent = FakeAgent("east", PodRefused("annotation x: 'y' is not a whole number"))
        one = self.member(agent, VirtualClock(), Patience(1, 5.0))
        said = [one.ask(REQUEST, "random") for _ in range(3)]
        assert [getattr(answer, "why", "") for answer in said] == ["annotation x: 'y' is not a whole number"] * 3
        assert len(agent.asked) == 3

    def test_an_agent_in_this_process_is_always_asked(self):
        """It fails because of the pod, and costs no waiting."""
        agent = FakeAgent("here", NotSampled("no"))
        one = self.member(agent, VirtualClock(), Patience(1, 5.0), url="")
        for _ in range(3):
            one.ask(REQUEST, "random")
        assert len(agent.asked) == 3


@pytest.mark.parametrize(
    "failure", [NotAnswered("http://east: 503 draining", 503), NotAnswered("http://east: no route")]
)
def test_a_service_that_does_not_answer_has_no_sample(failure: NotAnswered):
    """The message is the one of the call."""
    agent = RemoteAgent(AgentOptions(name="east", url="http://east"), FakePost(east=failure))
    with pytest.raises(NotSampled, match=str(failure)):
        agent.sample(REQUEST, "random")


@pytest.mark.parametrize("status", [413, 422])
def test_a_service_says_that_it_is_the_pod(status: int):
    """By the status: what is too long, or unreadable, is so for every agent."""
    agent = RemoteAgent(AgentOptions(name="east", url="http://east"), FakePost(east=NotAnswered("no", status)))
    with pytest.raises(PodRefused, match="no"):
        agent.sample(REQUEST, "random")


class TestLocal:
    def sampled(self, **options: Any) -> Merged:
        """By the plugin that asks nobody."""
        chosen = VelaOptions.model_validate({"sample_nodes": "LocalNodesSampler", **options})
        return LocalNodesSampler(chosen, Stage(farm(10)).services()).sample(
            SamplingRequest(pod=limited(), nodes_bp=3000)
        )

    def test_samples_the_snapshot_itself(self):
        """All nodes are one shard."""
        assert self.sampled(strategy="round-robin").qualified == ["local/n00", "local/n01", "local/n02"]

    def test_a_failing_plugin_is_no_answer(self):
        """It does not raise."""
        chosen = VelaOptions.model_validate(
            {"sampling": {"filters": ["GeoLocation"]}, "sample_nodes": "LocalNodesSampler"}
        )
        wrong = limited(annotations={"scheduler.slinky.slurm.net/geo-target": "Vienna"})
        merged = LocalNodesSampler(chosen, Stage(farm(2)).services()).sample(SamplingRequest(pod=wrong))
        assert merged.answered == ()
        assert "Vienna" in merged.failed["local"]
