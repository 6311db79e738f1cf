"""Samples as JSON between the bridge and its agents. Both sides read with these, so they cannot drift apart.

    POST /v1/samples/{strategy}   {podInfo: {pod}, nodesToSampleBp, partition, timeoutMs}
                                  ─► {nodes: [{clusterName, node: {metadata: {name, uid}}, samplingScore: {accumulated,
                                      plugins}}]}
    GET  /v1/samples/status       ─► {status, routes, nodesCount}

Fields that are not named here are skipped, so that either side may be the newer one.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec
import numpy as np

from slurm_bridge.families.vela.samples import SamplingRequest, SamplingResponse
from slurm_bridge.model.meta import Record
from slurm_bridge.model.pod import Pod

SAMPLES: Final = "/v1/samples/{strategy}"
STATUS: Final = "/v1/samples/status"
#: The same under the paths of the system that this one follows.
SAMPLES_ALIAS: Final = "/samples/{strategy}"
STATUS_ALIAS: Final = "/samples/status"

#: No honest sum of scores comes near it, and sums of these still fit into 64 bits.
_MOST_SCORE: Final = 2**48
_MOST_PLUGINS: Final = 1000
_MOST_NAME: Final = 253
_MOST_PARTITIONS: Final = 4096
_MOST_MS: Final = 3_600_000

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=_MOST_NAME)]
T = TypeVar("T")


class UnreadableMessage(ValueError):
    """What the other side sent is not a request (or an answer); the message says what is wrong with which field."""


class _PodInfo(Record, frozen=True, kw_only=True):
    pod: Pod


class _Request(Record, frozen=True, kw_only=True):
    pod_info: _PodInfo
    nodes_to_sample_bp: Annotated[int, msgspec.Meta(ge=0)] = 0
    partition: Annotated[str, msgspec.Meta(max_length=_MOST_PARTITIONS)] | None = None
    timeout_ms: Annotated[int, msgspec.Meta(ge=1, le=_MOST_MS)] | None = None


class _Metadata(Record, frozen=True, kw_only=True):
    name: _Name
    uid: Annotated[str, msgspec.Meta(max_length=_MOST_NAME)] = ""


class _SampledNode(Record, frozen=True, kw_only=True):
    metadata: _Metadata


class _Score(Record, frozen=True, kw_only=True, omit_defaults=False):
    accumulated: Annotated[int, msgspec.Meta(ge=-_MOST_SCORE, le=_MOST_SCORE)] = 0
    plugins: Annotated[int, msgspec.Meta(ge=0, le=_MOST_PLUGINS)] = 0


class _Sampled(Record, frozen=True, kw_only=True):
    cluster_name: str = ""
    node: _SampledNode
    sampling_score: _Score = _Score()


class _AgentAnswer(Record, frozen=True, kw_only=True, omit_defaults=False):
    nodes: tuple[_Sampled, ...]


class _Status(Record, frozen=True, kw_only=True, omit_defaults=False):
    status: str
    routes: tuple[str, ...]
    nodes_count: int


# Made at import, and used by many threads later: see runtime.decoding. Converting needs what the second one describes.
_requests: Final = msgspec.json.Decoder(_Request)
_answers: Final = msgspec.json.Decoder(_AgentAnswer)


def path(strategy: str) -> str:
    """Where to ask for samples by this strategy."""
    return SAMPLES.format(strategy=strategy)


def request_body(request: SamplingRequest) -> Mapping[str, Any]:
    """A request as an agent reads it."""
    made: Mapping[str, Any] = msgspec.to_builtins(
        _Request(
            pod_info=_PodInfo(pod=request.pod),
            nodes_to_sample_bp=request.nodes_bp,
            partition=request.partition,
            timeout_ms=None if request.seconds is None else max(1, int(request.seconds * 1000)),
        )
    )
    return made


def read_request(body: bytes) -> SamplingRequest:
    """What a bridge asks; Unreadable otherwise."""
    wrong = "the request is not {podInfo: {pod}, nodesToSampleBp}"
    try:
        asked = _requests.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableMessage(f"{wrong}: {error}") from error
    except RecursionError:
        raise UnreadableMessage(f"{wrong}: it is nested too deeply") from None
    return SamplingRequest(
        pod=asked.pod_info.pod,
        nodes_bp=asked.nodes_to_sample_bp,
        partition=asked.partition,
        seconds=None if asked.timeout_ms is None else asked.timeout_ms / 1000,
    )


def write_response(response: SamplingResponse) -> bytes:
    """An agent's answer."""
    rows = zip(response.nodes, response.uids, response.accumulated.tolist(), response.plugins.tolist(), strict=True)
    return msgspec.json.encode(_AgentAnswer(nodes=tuple(_sampled(response.cluster, *row) for row in rows)))


def response_of(answer: object, cluster: str) -> SamplingResponse:
    """The decoded answer of the agent that is configured under this name; Unreadable otherwise.

    Whose nodes they are is not for the answer to say: an agent speaks for its own cluster only.
    """
    try:
        nodes = msgspec.convert(answer, type=_AgentAnswer).nodes
    except msgspec.ValidationError as error:
        raise UnreadableMessage(
            f"agent {cluster} did not answer with {{nodes: [{{clusterName, node}}]}}: {error}"
        ) from error
    return SamplingResponse(
        cluster=cluster,
        nodes=[one.node.metadata.name for one in nodes],
        uids=[one.node.metadata.uid for one in nodes],
        accumulated=np.array([one.sampling_score.accumulated for one in nodes], np.int64),
        plugins=np.array([one.sampling_score.plugins for one in nodes], np.int64),
    )


def status_body(status: str, routes: tuple[str, ...], nodes_count: int) -> bytes:
    """An agent's answer about its own state."""
    return msgspec.json.encode(_Status(status=status, routes=routes, nodes_count=nodes_count))


def _sampled(cluster: str, name: str, uid: str, accumulated: int, plugins: int) -> _Sampled:
    return _Sampled(
        cluster_name=cluster,
        node=_SampledNode(metadata=_Metadata(name=name, uid=uid)),
        sampling_score=_Score(accumulated=accumulated, plugins=plugins),
    )
