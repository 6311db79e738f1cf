"""The sampling plugins: 2-Smart over agents, or the snapshot itself."""

import functools
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from slurm_bridge import ports
from slurm_bridge.families.shared.worker_pool import KeyedWorkerPool
from slurm_bridge.families.vela import dice, extensions, smart
from slurm_bridge.families.vela.agents import AgentMember, Patience, RemoteAgent
from slurm_bridge.families.vela.options import AgentOptions, VelaOptions
from slurm_bridge.families.vela.pipeline import Agent, NotSampled
from slurm_bridge.families.vela.samples import SamplingRequest, SamplingResponse
from slurm_bridge.families.vela.smart import AgentFailure, Merged
from slurm_bridge.hooks.services import HookServices

#: Calls that wait for their turn, for each that may run: more of them would only be late.
WAITING = 20


class SampleNodesPlugin(Protocol):
    """Nodes for one pod; called from several threads."""

    def sample(self, request: SamplingRequest, /) -> Merged: ...

    @property
    def share(self) -> float:
        """Which part of all nodes is asked for one pod."""

    @property
    def near(self) -> bool:
        """It asks only this process: a sample takes no longer than its computation."""

    def close(self) -> None: ...


def sampler(options: VelaOptions, services: HookServices, patience: Patience) -> SampleNodesPlugin:
    """The one that is configured; ValueError names one that cannot be had."""
    name = options.sample_nodes[0]
    builtin: Mapping[str, Callable[[VelaOptions, HookServices], SampleNodesPlugin]] = {
        "RemoteNodesSampler": lambda chosen, near: RemoteNodesSampler(chosen, near, patience),
        "LocalNodesSampler": LocalNodesSampler,
    }
    builder = extensions.find("sample_nodes", extensions.SAMPLERS, name, builtin)
    has = {"sample": 1, "share": None, "near": None, "close": 0}
    made: SampleNodesPlugin = extensions.build("sample_nodes", name, functools.partial(builder, options, services), has)
    return made


class LocalNodesSampler:
    """The snapshot is the only shard."""

    def __init__(self, options: VelaOptions, services: HookServices) -> None:
        self._strategy = options.strategy
        self._agent = _in_process(AgentOptions(name="local"), options, services)
        self.share, self.near = 1.0, True

    def sample(self, request: SamplingRequest) -> Merged:
        try:
            return smart.merge({self._agent.cluster: self._agent.sample(request, self._strategy)})
        except NotSampled as error:
            return smart.merge({self._agent.cluster: AgentFailure(why=str(error))})

    def close(self) -> None:
        """Nothing runs beside the sampler."""


class RemoteNodesSampler:
    """2-Smart sampling. Agents over HTTP are asked at once, each with its own deadline, the others here meanwhile."""

    def __init__(self, options: VelaOptions, services: HookServices, patience: Patience) -> None:
        self._options = options
        self._services = services
        members = []
        for one in options.agents:
            agent = RemoteAgent(one, services.post) if one.url else _in_process(one, options, services)
            members.append(AgentMember(agent, one, services.clock, patience=patience))
        self._members = tuple(members)
        self.near = not any(member.remote for member in self._members)
        self._dice = dice.throw(_own(services.dice))
        self._turn = threading.Lock()
        self._numbers = 0
        calls = options.concurrent_calls
        self._desk = KeyedWorkerPool("vela-call", services, workers=calls, most=calls * WAITING)

    @property
    def share(self) -> float:
        number = len(self._members)
        return smart.cluster_count(number, self._options.clusters_percent) / number

    def sample(self, request: SamplingRequest) -> Merged:
        with self._turn:
            # An agent that is left out for a while is not drawn: the pod would wait in vain while others have nodes.
            chosen = smart.choose_clusters(
                self._members, self._options.clusters_percent, self._dice, AgentMember.willing
            )
        if self.near or not any(member.remote for member in chosen):
            return smart.merge({member.name: member.ask(request, self._options.strategy) for member in chosen})
        gathering = _Gathering(chosen, self._services.clock)
        for member in chosen:
            if member.remote:
                self._call(gathering, member, request)
        for member in chosen:
            if not member.remote:
                gathering.put(member, member.ask(request, self._options.strategy))
        return smart.merge(gathering.answers())

    def close(self) -> None:
        self._desk.close()

    def _call(self, gathering: "_Gathering", member: AgentMember, request: SamplingRequest) -> None:
        with self._turn:
            self._numbers += 1
            key = f"{member.name}/{self._numbers}"

        # Without threads one is asked after the other, which is no reason to leave out later ones.
        in_turn = not self._services.threads

        def call() -> None:
            if in_turn or gathering.waits_for(member):
                gathering.put(member, member.ask(request, self._options.strategy))

        if not self._desk.submit(key, call):
            gathering.put(member, AgentFailure(why="too many calls wait for agents already"))


class _Gathering:
    """The answers of some agents, for as long as each of them has time."""

    def __init__(self, members: Sequence[AgentMember], clock: ports.Clock) -> None:
        self._members = members
        self._clock = clock
        self._began = clock.now()
        self._lock = threading.Lock()
        self._answers: dict[str, SamplingResponse | AgentFailure] = {}
        self._complete = threading.Event()

    def put(self, member: AgentMember, answer: SamplingResponse | AgentFailure) -> None:
        """What comes after the end is not looked at."""
        with self._lock:
            self._answers.setdefault(member.name, answer)
            if len(self._answers) == len(self._members):
                self._complete.set()

    def waits_for(self, member: AgentMember) -> bool:
        """Its time has not passed yet: a call that had to wait for its turn may come too late to be made."""
        return self._clock.now() < self._began + member.seconds

    def answers(self) -> dict[str, SamplingResponse | AgentFailure]:
        """All, in the order of the members; an agent that is late has failed."""
        for member in sorted(self._members, key=lambda one: one.seconds):
            self._clock.wait(self._complete, self._began + member.seconds - self._clock.now())
            self.put(member, member.late())
        with self._lock:
            return {member.name: self._answers[member.name] for member in self._members}


def _in_process(one: AgentOptions, options: VelaOptions, services: HookServices) -> Agent:
    return Agent(
        one.name,
        services.snapshot,
        clock=services.clock,
        options=options.sampling,
        shard=one.shard,
        dice=_own(services.dice),
    )


def _own(shared: random.Random) -> random.Random:
    """Dice for one user: which threads throw first must not change what others throw."""
    return random.Random(shared.getrandbits(64))  # noqa: S311 - no secret
