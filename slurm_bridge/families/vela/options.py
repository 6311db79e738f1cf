"""How the hook "vela" and its agents are configured: every number has the default that the family is described with."""

from typing import Annotated, Any, Literal, Self

import pydantic
from pydantic import Field

from slurm_bridge.families.vela import commit, extensions, sample_order, smart, strategies
from slurm_bridge.families.vela.catalogue import USUAL_FILTERS, USUAL_SCORES, Filter, Score
from slurm_bridge.families.vela.samples import USUAL_NODES_BP
from slurm_bridge.model import selectors

SAMPLERS = ("RemoteNodesSampler", "LocalNodesSampler")

Seconds = Annotated[float, Field(gt=0, le=3600)]
Count = Annotated[int, Field(ge=1, le=1000)]
_Name = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")]


class PipelineOptions(pydantic.BaseModel, frozen=True, extra="forbid"):
    """The pipelines of an agent."""

    filters: tuple[Filter, ...] = Field(default=USUAL_FILTERS, description="plugins that exclude nodes, in this order")
    scores: tuple[Score, ...] = Field(
        default=USUAL_SCORES, description="plugins that rate the remaining nodes, with their weights"
    )
    strategies: tuple[_Name, ...] = Field(
        default=tuple(strategies.BUILTIN), min_length=1, description="the strategies that agents in this process have"
    )
    parallel_sampling_pipelines: Count = Field(
        default=10, description="how many requests an agent answers at once; further requests wait"
    )
    wait_seconds: Seconds = Field(
        default=1.0,
        description="how long a request waits for an idle pipeline, and never longer than half of the time that the "
        "caller has",
    )
    max_rounds: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None,
        description="how often the strategy is asked for one sample at most; unset: until it is complete, or "
        "timeout_ms has passed",
    )
    timeout_ms: Annotated[int, Field(ge=1, le=60_000)] = Field(
        default=500, description="after this time no further round begins; what was found is the answer"
    )


class ShardOptions(pydantic.BaseModel, frozen=True, extra="forbid"):
    """Which nodes an agent covers: those that meet all that is given here, all nodes where nothing is."""

    partition: str = Field(default="", description="nodes of this Slurm partition")
    selector: str = Field(default="", description="nodes with these labels, such as rack in (r1,r2)")
    zone: str = Field(default="", description="nodes of this topology.kubernetes.io/zone")

    @pydantic.field_validator("selector")
    @classmethod
    def _readable(cls, text: str) -> str:
        selectors.parse(text)
        return text


class AgentOptions(pydantic.BaseModel, frozen=True, extra="forbid"):
    """One agent: a service with a `url`, or, without, a part of this process for a shard of the nodes."""

    name: _Name = Field(description="the name of the cluster, in messages and answers")
    url: str = Field(default="", description="where the service listens; empty: in this process")
    token_file: str = Field(default="", description="the file with the bearer token for it")
    ca_file: str = Field(
        default="", description="the authorities that may sign its certificate, in place of the system's"
    )
    timeout_seconds: Seconds = Field(
        default=2.0, description="the deadline of one request; an agent that is later is left out"
    )
    shard: ShardOptions = Field(default=ShardOptions(), description="the nodes of an agent in this process")

    @pydantic.model_validator(mode="after")
    def _either(self) -> Self:
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ValueError(f"agent {self.name}: url {self.url!r} does not begin with http:// or https://")
        if self.url and self.shard != ShardOptions():
            raise ValueError(f"agent {self.name}: has a url, so its shard is configured where it runs")
        if not self.url and (self.token_file or self.ca_file):
            raise ValueError(f"agent {self.name}: has no url, so token_file and ca_file are of no use")
        return self


class DecisionOptions(pydantic.BaseModel, frozen=True, extra="forbid"):
    """The decision among the nodes that were sampled."""

    filters: tuple[Filter, ...] = Field(default=USUAL_FILTERS, description="plugins that exclude nodes, in this order")
    scores: tuple[Score, ...] = Field(
        default=USUAL_SCORES,
        description="plugins whose ratings are added to the scores of the agents, with their weights",
    )
    pipelines: Count = Field(default=4, description="how many decisions are made at once")
    queue: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=400, description="sampled pods that wait for a decision"
    )


class VelaOptions(pydantic.BaseModel, frozen=True, extra="forbid"):
    """Sampling, decision and commit."""

    sort: tuple[str, ...] = Field(
        default=("PrioritySort",), description="the sort plugin: PrioritySort, AgeSort, or one of a package"
    )
    sample_nodes: tuple[str, ...] = Field(
        default=("RemoteNodesSampler",),
        description="the sampling plugin: RemoteNodesSampler asks agents, LocalNodesSampler the snapshot itself; or "
        "one of a package",
    )
    emit: Literal["order", "none"] = Field(
        default="order",
        description="`order`: the sort plugin also decides in which order workloads are submitted; `none`: it does not",
    )
    strategy: str = Field(
        default="random",
        description="how agents choose the nodes of a sample; `sampling.strategies` has those of this process",
    )
    clusters_percent: Annotated[int, Field(ge=1, le=smart.ALL_PERCENT)] = Field(
        33, description="Cp: how many of the agents are asked for one pod, rounded up"
    )
    nodes_bp: Annotated[int, Field(ge=1, le=smart.ALL_BP)] = Field(
        default=USUAL_NODES_BP, description="Np: how many of its nodes an agent returns, in basis points"
    )
    agents: tuple[AgentOptions, ...] = Field(
        default=(AgentOptions(name="local"),), min_length=1, description="the agents that RemoteNodesSampler asks"
    )
    samplers: Count | None = Field(
        default=None,
        description="pods that are sampled at once; unset: 10 where an agent is asked over the network, "
        "1 where all is done in this process",
    )
    concurrent_calls: Count = Field(default=50, description="how many requests are sent to agents at once")
    failures: Count = Field(
        default=3, description="after how many failures in a row an agent is left out for `pause_seconds`"
    )
    pause_seconds: Seconds = Field(default=5.0, description="how long an agent is left out after these failures")
    sampling: PipelineOptions = Field(default=PipelineOptions(), description="the pipelines of agents in this process")
    decision: DecisionOptions = Field(default=DecisionOptions(), description="what follows the sample")
    candidates: Annotated[int, Field(ge=1, le=10)] = Field(
        default=commit.CANDIDATES, description="m: how many candidates are tried in Slurm before every eligible node is"
    )
    max_retries: Annotated[int, Field(ge=0, le=1000)] = Field(
        default=commit.MAX_RETRIES, description="how often a pod without any node is sampled again before it is parked"
    )
    backoff_seconds: Seconds = Field(
        default=1.0, description="the pause before the first retry; each further pause is twice as long"
    )
    max_backoff_seconds: Seconds = Field(default=60.0, description="the longest time between two retries")

    @property
    def sampling_at_once(self) -> int:
        """Waiting for others is done by many at once; what computes only gets into each other's way."""
        if self.samplers is not None:
            return self.samplers
        asks = self.sample_nodes == ("RemoteNodesSampler",) and any(agent.url for agent in self.agents)
        return 10 if asks else 1

    @pydantic.field_validator("sort", "sample_nodes", mode="before")
    @classmethod
    def _bare(cls, written: Any) -> Any:
        return (written,) if isinstance(written, str) else written

    @pydantic.field_validator("sort")
    @classmethod
    def _one_sort(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        name = sample_order.only("sort", names, extensions.names(extensions.SORTS, sample_order.SORTS))
        sample_order.sort(name)
        return (name,)

    @pydantic.field_validator("sample_nodes")
    @classmethod
    def _one_sampler(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return (sample_order.only("sample_nodes", names, extensions.names(extensions.SAMPLERS, SAMPLERS)),)

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [agent.name for agent in self.agents]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"agents: the name {twice[0]} is given to more than one")
        local = self.sample_nodes != ("RemoteNodesSampler",) or any(not agent.url for agent in self.agents)
        if local and self.strategy not in self.sampling.strategies:
            offered = ", ".join(self.sampling.strategies)
            raise ValueError(f"strategy {self.strategy!r} is not among sampling.strategies, which are {offered}")
        return self
