"""The settings of an agent, which is a separate process."""

import random
from collections.abc import Callable

from slurm_bridge import errors, ports
from slurm_bridge.agents.service import ListenAddress
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.vela import pipeline
from slurm_bridge.families.vela.options import PipelineOptions, ShardOptions
from slurm_bridge.settings.model import Settings
from slurm_bridge.web import tls
from slurm_bridge.web.server import Bounds

#: An idle connection is kept this long: the daemon reuses it for its next workload.
KEPT_SECONDS = 60.0


def place(settings: Settings) -> ListenAddress:
    """Where the agent listens. BadConfiguration without a token file, because no client could authenticate."""
    chosen = settings.agent
    if chosen.token_file is None:
        raise errors.BadConfiguration(
            "agent.token_file: an agent needs a file with the token that clients have to send"
        )
    return ListenAddress(
        host=chosen.host,
        port=chosen.port,
        token_file=chosen.token_file,
        files=tls.Files(cert=chosen.cert, key=chosen.key or chosen.cert) if chosen.cert else None,
        drain_seconds=chosen.drain_seconds,
        bounds=Bounds(connections=chosen.connections, most_body=chosen.max_body_bytes, idle=KEPT_SECONDS),
    )


def sampler(
    settings: Settings, snapshot: Callable[[], ClusterSnapshot], clock: ports.Clock, dice: random.Random
) -> pipeline.Agent:
    """The pipelines over the agent's nodes. BadConfiguration names a strategy that does not exist."""
    chosen, shard = settings.agent, settings.agent.shard
    try:
        return pipeline.Agent(
            chosen.name or shard.zone or shard.partition or settings.cluster_id,
            snapshot,
            clock=clock,
            options=PipelineOptions.model_validate(dict(chosen.sampling)),
            shard=ShardOptions(partition=shard.partition or "", selector=shard.selector or "", zone=shard.zone or ""),
            dice=dice,
        )
    except ValueError as problem:
        raise errors.BadConfiguration(f"agent.sampling: {problem}") from problem
