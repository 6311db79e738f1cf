"""Wherever it is written in which rack a node is, the tree and the sets are the same; wrong options are named."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import pydantic
import pytest
import yaml

from slurm_bridge.cluster import cluster_cache
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.kai import files, sources
from slurm_bridge.families.kai.copies import BadCopy
from slurm_bridge.families.kai.options import KaiOptions, TopologyOptions
from slurm_bridge.model import names
from slurm_bridge.translate import resources
from tests.unit.families.kai import racks
from tests.unit.families.kai.racks import LEVELS, PLACES, RACK, ZONE
from tests.unit.hooks.builders import Around, node, partition, slurm_node

CONF = "\n".join(
    [
        *(f"SwitchName=r{rack} Nodes=s-n{2 * rack - 2},s-n{2 * rack - 1}" for rack in range(1, 5)),
        "SwitchName=z1 Switches=r[1-2]",
        "SwitchName=z2 Switches=r[3-4]",
        "SwitchName=all Switches=z[1-2]",
    ]
)
TREE = [
    {
        "topology": "halls",
        "tree": {
            "switches": [
                *({"switch": f"r{rack}", "nodes": f"s-n[{2 * rack - 2}-{2 * rack - 1}]"} for rack in range(1, 5)),
                {"switch": "z1", "children": "r[1-2]"},
                {"switch": "z2", "children": "r[3-4]"},
            ]
        },
    }
]

SOURCES: Mapping[str, Mapping[str, Any]] = {
    "labels": {},
    "annotation": {"source": "annotation", "slurm_name": "halls"},
    "slurm": {"source": "slurm", "slurm_name": "halls"},
    "leaves of slurm, and a copy": {"source": "slurm", "slurm_name": "leaves", "conf": CONF},
    "conf": {"source": "copy", "conf": CONF},
    "yaml": {"source": "copy", "tree": TREE, "slurm_name": "halls"},
}


@pytest.fixture(scope="module")
def everywhere() -> ClusterSnapshot:
    """Racks as labels, as annotations, and as Slurm tells them, of nodes with other names in Slurm."""
    made = cluster_cache.ClusterCache(resources.requests_of)
    known = []
    for name, (zone, rack) in PLACES.items():
        labels = {ZONE: zone, RACK: rack, names.LABEL_SLURM_NODE_NAME: f"s-{name}"}
        one = node(name, labels=labels)
        marks = {names.ANNOTATION_NODE_TOPOLOGY: f"other:x, halls:{zone}:{rack}"}
        one.metadata.annotations.update(marks)
        made.on_node(None, one)
        known.append(slurm_node(f"s-{name}", topology=f"halls:all:{zone}:{rack},leaves:{rack}"))
    made.set_slurm(known, (partition("debug", *(one.name for one in known), default=True),))
    return made.snapshot()


@pytest.mark.parametrize("source", SOURCES)
def test_all_sources_give_the_same_sets(source: str, around: Around, everywhere: ClusterSnapshot) -> None:
    """The same racks in the same order."""
    workload = racks.team(2, required=ZONE, preferred=RACK)
    usual = racks.planned(racks.chain(around), workload, everywhere)
    options = {"topologies": [{"name": "dc", "levels": LEVELS, **SOURCES[source]}]}
    plan = racks.planned(racks.chain(around, options=options), workload, everywhere)
    assert racks.tried(plan) == racks.tried(usual)
    assert [one.name for one in plan.course.attempts] == [one.name for one in usual.course.attempts]
    assert plan.state == usual.state


def test_files_are_read(tmp_path: pathlib.Path) -> None:
    """In either form, by their ending."""
    conf, tree = tmp_path / "topology.conf", tmp_path / "topology.yaml"
    conf.write_text(CONF)
    tree.write_text(yaml.safe_dump(TREE))
    made = [
        files.copy_of(TopologyOptions(name="halls", levels=("rack",), source="copy", file=str(path)))
        for path in (conf, tree)
    ]
    assert made[0] is not None
    assert made[1] is not None
    assert made[0].nodes["s-n3"] == ("all", "z1", "r2")
    assert made[1].nodes["s-n3"] == ("z1", "r2")


def test_a_file_that_cannot_be_read_is_named(tmp_path: pathlib.Path) -> None:
    """With the topology that wanted it."""
    path = tmp_path / "topology.conf"
    with pytest.raises(BadCopy, match=f"topology halls: file {path}: "):
        files.copy_of(TopologyOptions(name="halls", levels=("rack",), source="copy", file=str(path)))


@pytest.mark.parametrize(
    ("text", "units"),
    [("racks:core:r1,blocks:b2", ("core", "r1")), ("blocks:b2", ()), ("", ()), ("racks", ()), ("racks:core:", ())],
)
def test_a_text_of_units(text: str, units: tuple[str, ...]) -> None:
    """By the topology's name; half a text is none."""
    assert sources.unit_of(text, "racks") == units


WRONG: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "no copy": ({"source": "copy"}, "source copy needs one of conf, tree and file"),
    "two copies": ({"source": "copy", "conf": CONF, "tree": TREE}, "has conf and tree; use one of them"),
    "for labels": ({"conf": CONF}, "conf is of no use with source labels"),
    "levels": ({"levels": ["a", "a"]}, "each may be there once"),
    "broken": ({"source": "copy", "conf": "x"}, "topology dc: conf: line 1: 'x' has none of"),
    "other source": ({"source": "stars"}, "Input should be 'labels', 'annotation', 'slurm' or 'copy'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_options_are_named(name: str) -> None:
    """With the topology and the key."""
    given, words = WRONG[name]
    with pytest.raises(pydantic.ValidationError, match=words):
        KaiOptions.model_validate({"topologies": [{"name": "dc", "levels": ["rack"], **given}]})


def test_topologies_have_names_of_their_own() -> None:
    """And the usual one is among them."""
    one = {"name": "dc", "levels": ["rack"]}
    with pytest.raises(pydantic.ValidationError, match="the name dc is given to more than one"):
        KaiOptions.model_validate({"topologies": [one, one]})
    with pytest.raises(pydantic.ValidationError, match="default 'x' is no topology; there are dc"):
        KaiOptions.model_validate({"topologies": [one], "default": "x"})


def test_a_node_that_slurm_moves_is_moved(around: Around, everywhere: ClusterSnapshot) -> None:
    """The tree follows the snapshots."""
    options = {"topologies": [{"name": "dc", "levels": LEVELS, **SOURCES["slurm"]}]}
    chain, workload = racks.chain(around, options=options), racks.team(3, cpus="16", required=RACK)
    assert chain.plan(workload, racks.asked(tasks=3), everywhere, now=1.0).message.startswith("unschedulable")  # type: ignore[union-attr]
    facts = everywhere.nodes["n2"]
    assert facts.slurm is not None
    moved = dataclasses.replace(facts, slurm=dataclasses.replace(facts.slurm, topology="halls:z1:r1"))
    later = dataclasses.replace(everywhere, version=10**6, use_version=10**6, nodes={**everywhere.nodes, "n2": moved})
    assert racks.tried(racks.planned(chain, workload, later)) == ["n0 n1 n2"]
