"""Slurm 25.05, the first with external jobs: no SLUID, no `resources`, and nodes do not say that they are external."""

from slurm_bridge.slurm.wire import Wire

WIRE = Wire(name="v0.0.43", resources=False, conf=False)
