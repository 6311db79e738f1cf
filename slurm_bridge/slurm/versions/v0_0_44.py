"""Slurm 25.11: adds SLUIDs, `resources/{id}`, and the word EXTERNAL among the states of a node."""

from slurm_bridge.slurm.wire import Wire

WIRE = Wire(name="v0.0.44", conf=False)
