"""The cluster as NumPy columns: one row for each node (or pod), one array for each thing that rules look at.

Here belong the columns, how they follow a cluster that changes, and answers about nodes that are kept by row. Not here:
any rule about placement. Arrays that are given out are shared and never written.
"""

from slurm_bridge.cluster.columns.answers import Numbers, Reasons
from slurm_bridge.cluster.columns.coded import Coded, Codes, Mask, Whole, units
from slurm_bridge.cluster.columns.denials import Ruling
from slurm_bridge.cluster.columns.kept import QuestionCache
from slurm_bridge.cluster.columns.nodes import NodeColumns
from slurm_bridge.cluster.columns.pods import PodColumns

__all__ = [
    "Coded",
    "Codes",
    "Mask",
    "NodeColumns",
    "Numbers",
    "PodColumns",
    "QuestionCache",
    "Reasons",
    "Ruling",
    "Whole",
    "units",
]
