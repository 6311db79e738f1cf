"""How the family is configured: defaults, and what is wrong."""

from typing import Any

import pydantic
import pytest

from slurm_bridge.families.vela.options import VelaOptions


def test_the_defaults_are_those_of_the_family():
    """2-Smart over one agent for all nodes."""
    options = VelaOptions()
    assert (options.sort, options.sample_nodes, options.strategy) == (
        ("PrioritySort",),
        ("RemoteNodesSampler",),
        "random",
    )
    assert (options.clusters_percent, options.nodes_bp, options.concurrent_calls) == (33, 200, 50)
    assert (options.decision.queue, options.candidates, options.max_retries) == (400, 3, 10)
    assert (options.sampling.max_rounds, options.sampling.timeout_ms) == (None, 500)


@pytest.mark.parametrize(
    ("options", "at_once"),
    [
        ({}, 1),
        ({"agents": [{"name": "a", "url": "http://a"}]}, 10),
        ({"agents": [{"name": "a", "url": "http://a"}], "sample_nodes": "LocalNodesSampler"}, 1),
        ({"samplers": 3}, 3),
    ],
)
def test_only_waiting_for_agents_is_done_by_many_at_once(options: dict[str, Any], at_once: int):
    """What computes in this process only gets into its own way."""
    assert VelaOptions(**options).sampling_at_once == at_once


def test_every_option_is_described():
    """The reference is made from it."""
    fields = VelaOptions.model_fields
    assert all(field.description for field in fields.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sort": ["PrioritySort", "AgeSort"]}, "sort plugins PrioritySort and AgeSort: exactly one"),
        (
            {"sample_nodes": ["RemoteNodesSampler", "LocalNodesSampler"]},
            "sample_nodes plugins RemoteNodesSampler and LocalNodesSampler: exactly one",
        ),
        ({"sort": "Fastest"}, "'Fastest' is not known"),
        ({"agents": []}, "agents"),
        ({"agents": [{"name": "a"}, {"name": "a"}]}, "the name a is given to more than one"),
        ({"agents": [{"name": "a", "url": "ftp://a"}]}, "url 'ftp://a' does not begin with http"),
        ({"agents": [{"name": "a", "url": "http://a", "shard": {"zone": "z"}}]}, "shard is configured where it runs"),
        ({"agents": [{"name": "a", "token_file": "/t"}]}, "token_file and ca_file are of no use"),
        ({"agents": [{"name": "a/b"}]}, "pattern"),
        ({"agents": [{"name": "a", "shard": {"selector": "=="}}]}, "is not a label requirement"),
        ({"strategy": "fair"}, "strategy 'fair' is not among sampling.strategies, which are random, round-robin"),
        ({"candidates": 0}, "candidates"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_is_wrong_is_named(options: dict[str, Any], message: str):
    """With the value, and what is allowed."""
    with pytest.raises(pydantic.ValidationError, match=message):
        VelaOptions.model_validate(options)


def test_agents_elsewhere_may_have_strategies_of_their_own():
    """Nobody here knows them."""
    agents = [{"name": "a", "url": "https://a"}]
    assert VelaOptions.model_validate({"strategy": "fair", "agents": agents}).strategy == "fair"
