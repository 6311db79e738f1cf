"""Copies of Slurm's topology say of each node in which units it is, and name what is wrong with them."""

from typing import Any

import pytest

from slurm_bridge.families.kai import copies
from slurm_bridge.families.kai.copies import BadCopy

TREE = """
# two racks
SwitchName=core Switches=rack[1-2] LinkSpeed=100
SwitchName=rack1 Nodes=n[1-2] \\
    LinkSpeed=10
SwitchName=rack2 Nodes=n3
"""

BLOCKS = """
BlockName=b1 Nodes=n[1-2]
BlockName=b2 Nodes=n[3-4]
BlockName=b3 Nodes=n[5-6]
BlockSizes=2,4
"""

WRITTEN: list[dict[str, Any]] = [
    {
        "topology": "racks",
        "cluster_default": True,
        "tree": {
            "switches": [
                {"switch": "core", "children": "rack[1-2]"},
                {"switch": "rack1", "nodes": "n[1-2]"},
                {"switch": "rack2", "nodes": "n3"},
            ]
        },
    },
    {
        "topology": "blocks",
        "block": {
            "block_sizes": [2, 4],
            "blocks": [{"block": f"b{one}", "nodes": f"n[{2 * one - 1}-{2 * one}]"} for one in (1, 2, 3)],
        },
    },
    {"topology": "flat", "flat": True},
]


def test_a_tree_of_switches() -> None:
    """Paths begin at the top, whatever the order of the lines."""
    found = copies.of_conf(TREE)
    assert found.nodes == {"n1": ("core", "rack1"), "n2": ("core", "rack1"), "n3": ("core", "rack2")}
    assert found.units == {"rack1": ("core", "rack1"), "rack2": ("core", "rack2")}


def test_blocks_are_joined_in_their_order() -> None:
    """As many neighbours as the larger size has room for; the last ones may be fewer."""
    found = copies.of_conf(BLOCKS)
    assert found.units == {"b1": ("b[1-2]", "b1"), "b2": ("b[1-2]", "b2"), "b3": ("b3", "b3")}
    assert found.nodes["n4"] == ("b[1-2]", "b2")


@pytest.mark.parametrize(("name", "conf"), [("racks", TREE), ("blocks", BLOCKS)])
def test_both_forms_say_the_same(name: str, conf: str) -> None:
    """topology.conf and topology.yaml."""
    assert copies.of_yaml(WRITTEN, name) == copies.of_conf(conf)


WRONG = {
    "other line": ("SwitchNme=a Nodes=n1", "has none of SwitchName, BlockName and BlockSizes"),
    "both": ("SwitchName=a Nodes=n1\nBlockName=b Nodes=n1", "both SwitchName and BlockName"),
    "hosts": ("SwitchName=a Nodes=n[1-", "line 1: "),
    "two parents": ("SwitchName=a Switches=c\nSwitchName=b Switches=c", "switch c is below both a and b"),
    "cycle": ("SwitchName=a Switches=b\nSwitchName=b Switches=a Nodes=n1", "is below itself"),
    "node twice": ("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1", "node n1 is in both a and b"),
    "sizes": ("BlockName=b Nodes=n1\nBlockSizes=4,6", "use the first one and multiples of it"),
    "words": ("BlockName=b Nodes=n1\nBlockSizes=four", "block sizes are whole numbers"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name: str) -> None:
    """The line, or the unit."""
    text, words = WRONG[name]
    with pytest.raises(BadCopy, match=words):
        copies.of_conf(text)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("text", "is no list of topologies"),
        ([], "has no topology 'racks'; there are none"),
        ([{"topology": "other"}], "has no topology 'racks'; there are other"),
        ([{"topology": "racks", "flat": True}], "has neither tree.switches nor block.blocks"),
        ([{"topology": "racks", "tree": {"switches": [{"nodes": "n1"}]}}], "has no switch"),
    ],
)
def test_what_is_wrong_with_yaml_is_named(written: Any, words: str) -> None:
    """Likewise."""
    with pytest.raises(BadCopy, match=words):
        copies.of_yaml(written, "racks")
