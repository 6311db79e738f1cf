"""Requests and answers as JSON: what one side writes the other reads, and nonsense is named."""

from typing import Any

import msgspec
import pytest

from slurm_bridge.families.vela import wire
from slurm_bridge.families.vela.samples import SamplingRequest
from tests.unit.families.vela.support_vela import answering, limited, response


class TestRequest:
    def test_what_a_bridge_writes_an_agent_reads(self):
        """The pod with all that decides where it can run, the partitions of its job, and the time that is left."""
        one = limited(limits={"cpu": "500m"}, node_selector={"zone": "a"})
        body = msgspec.json.encode(
            wire.request_body(SamplingRequest(pod=one, nodes_bp=300, partition="gpu", seconds=1.5))
        )
        read = wire.read_request(body)
        assert (read.pod, read.nodes_bp, read.partition) == (one, 300, "gpu")
        assert read.seconds == 1.5

    def test_is_written_in_the_words_of_the_wire(self):
        """`podInfo.pod` is a manifest."""
        body = wire.request_body(SamplingRequest(pod=limited(), nodes_bp=300))
        assert (sorted(body), body["nodesToSampleBp"], sorted(body["podInfo"])) == (
            ["nodesToSampleBp", "podInfo"],
            300,
            ["pod"],
        )

    def test_the_default_partition_is_told_from_an_unknown_one(self):
        """A bridge that does not know this field says nothing of partitions."""
        body = wire.request_body(SamplingRequest(pod=limited(), partition=""))
        assert (body["partition"], wire.read_request(msgspec.json.encode(body)).partition) == ("", "")
        del body["partition"]
        assert wire.read_request(msgspec.json.encode(body)).partition is None

    def test_how_many_may_be_left_out(self):
        """It is then the usual number, which is 0 on the wire."""
        assert wire.read_request(b'{"podInfo": {"pod": {"metadata": {"name": "p"}}}, "colour": 1}').nodes_bp == 0

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"[]",
            b"{}",
            b'{"podInfo": {}}',
            b'{"podInfo": {"pod": {"metadata": {}}}, "nodesToSampleBp": -1}',
            b"\xff",
        ],
    )
    def test_anything_else_is_unreadable(self, body: bytes):
        """The message says what a request is."""
        with pytest.raises(wire.UnreadableMessage, match="the request is not"):
            wire.read_request(body)


class TestResponse:
    def test_what_an_agent_writes_a_bridge_reads(self):
        """Names, uids and scores, by place."""
        sent = response("east", "a", "b", scores=(3, -4), uids=("ua", ""))
        read = wire.response_of(msgspec.json.decode(wire.write_response(sent)), "east")
        assert (read.cluster, read.nodes, read.uids) == ("east", ["a", "b"], ["ua", ""])
        assert (read.accumulated.tolist(), read.plugins.tolist()) == ([3, -4], [1, 1])

    def test_an_agent_speaks_for_its_own_cluster(self):
        """Whatever it says."""
        assert wire.response_of(answering("west", "a"), "east").cluster == "east"

    def test_no_nodes_are_an_answer(self):
        """An empty list, which is not left out."""
        assert msgspec.json.decode(wire.write_response(response("east"))) == {"nodes": []}

    def test_whole_nodes_and_unknown_fields_are_read(self):
        """The other side may be newer, or say more."""
        answer = answering("east", "a")
        answer["nodes"][0]["node"]["spec"] = {"providerID": "x"}
        answer["took"] = 3
        assert wire.response_of(answer, "east").nodes == ["a"]

    @pytest.mark.parametrize(
        "answer",
        [
            None,
            [],
            {},
            {"nodes": None},
            {"nodes": [{"node": "a"}]},
            {"nodes": [{"node": {"metadata": {"name": ""}}}]},
            {"nodes": [{"node": {"metadata": {"name": "a" * 300}}}]},
            {"nodes": [{"node": {"metadata": {"name": "a"}}, "samplingScore": {"accumulated": 2**60}}]},
            {"nodes": [{"node": {"metadata": {"name": "a"}}, "samplingScore": {"accumulated": 1.5}}]},
            {"nodes": [{"node": {"metadata": {"name": "a"}}, "samplingScore": {"plugins": -1}}]},
        ],
    )
    def test_nonsense_names_the_agent(self, answer: Any):
        """And the place in the answer."""
        with pytest.raises(wire.UnreadableMessage, match="agent east did not answer with"):
            wire.response_of(answer, "east")


def test_status():
    """How an agent does."""
    body = msgspec.json.decode(wire.status_body("ok", ("POST /v1/samples/{strategy}",), 7))
    assert body == {"status": "ok", "routes": ["POST /v1/samples/{strategy}"], "nodesCount": 7}


def test_the_path_names_the_strategy():
    """As the route has it."""
    assert wire.path("round-robin") == "/v1/samples/round-robin"
