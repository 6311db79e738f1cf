"""The group of keys for agents: processes of their own that share the daemon's file, and so far its other keys."""

from collections.abc import Mapping
from typing import Annotated, Any

import pydantic
from pydantic import AfterValidator, Field

from slurm_bridge.families.vela.options import PipelineOptions
from slurm_bridge.model import selectors
from slurm_bridge.settings import kinds
from slurm_bridge.settings.kinds import File, Label, Name, Seconds, SettingsGroup


def _selector(text: str) -> str:
    selectors.parse(text)
    return text


def _pipelines(written: Mapping[str, Any]) -> Mapping[str, Any]:
    """Checked by the model of its reader, which names its own keys."""
    try:
        PipelineOptions.model_validate(dict(written))
    except pydantic.ValidationError as wrong:
        said = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in wrong.errors(include_url=False))
        raise ValueError("; ".join(said)) from None
    return written


class ShardSettings(SettingsGroup):
    """Which nodes an agent knows: those that meet all that is given here; all nodes where nothing is."""

    partition: Name | None = None
    """The nodes of this Slurm partition. The agent then reads them from slurmrestd, with the settings of `slurm`."""
    selector: Annotated[str, AfterValidator(_selector)] | None = None
    """The nodes whose labels match this selector, for example `pool in (a,b),!edge`."""
    zone: Name | None = None
    """The nodes whose label `topology.kubernetes.io/zone` is this."""


class AgentSettings(SettingsGroup):
    """What `slurm-bridge agent` serves. The daemon does not read these keys."""

    name: Label | None = None
    """The name of the agent's cluster in its answers. Left out, the zone or partition of its shard, else \
`cluster_id`."""
    host: str = "127.0.0.1"
    """The address to listen on; in a pod `0.0.0.0`."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8090
    """The port. 0: any free port."""
    token_file: File | None = None
    """A file with the bearer token that requests have to carry. If it has several tokens, one in each line, each of \
them is accepted. It is read again when it changes. An agent does not start without one."""
    cert: File | None = None
    """A certificate, for HTTPS. Certificate and key are read again when they change."""
    key: Annotated[File | None, kinds.together_with("cert")] = None
    """The key of the certificate, if it is not in the same file."""
    shard: ShardSettings = ShardSettings()
    sampling: Annotated[Mapping[str, Any], AfterValidator(_pipelines)] = {}
    """Strategies, plugins, pipelines, rounds and time limits: the keys of `sampling` of the hook `vela`."""
    drain_seconds: Seconds = 10.0
    """How long open requests may take after a SIGTERM. New requests are refused with 503 meanwhile."""
    max_body_bytes: Annotated[int, Field(ge=1024)] = 1 << 20
    """A longer request is refused with 413."""
    connections: Annotated[int, Field(ge=1, le=4096)] = 256
    """How many connections may be open at the same time, including idle ones. A daemon keeps as many open as it makes \
requests at once."""
