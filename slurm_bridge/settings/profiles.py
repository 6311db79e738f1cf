"""Sets of defaults that one key chooses: they stand below the file, so every key of a file, variable or flag wins."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from slurm_bridge.settings.sources import SettingsSource
from slurm_bridge.settings.trees import Assignment, SettingsTree, assign

#: What SchedMD's bridge does where its users say nothing.
PROFILES: Final[Mapping[str, Mapping[str, Any]]] = {
    "slinky": {
        "defaults.exclusive": True,
        "defaults.one_per_node": True,
        "defaults.count": "limits",
        "defaults.partition": "slurm-bridge",
        "defaults.mcs_label": "kubernetes",
        "workloads.jobset": "pod",
        # Its pods have whole nodes anyway.
        "hybrid_devices": "whole-node",
    },
}


def below(given: Sequence[SettingsSource]) -> SettingsSource:
    """The profile that the strongest of these sources names; nothing where none does."""
    said = (one.tree.values["profile"] for one in given if "profile" in one.tree.values)
    name = next(said, None)
    tree = SettingsTree(values={}, places={})
    for key, value in PROFILES.get(name if isinstance(name, str) else "", {}).items():
        tree = assign(tree, Assignment(path=tuple(key.split(".")), value=value, place=f"profile {name}: {key}"))
    return SettingsSource(tree, ())
