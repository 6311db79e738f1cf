"""Slurm 26.05: adds slurm.conf, the state of a controller to ping, and tells an implied node maximum from a wanted."""

from slurm_bridge.slurm.wire import Wire

WIRE = Wire(name="v0.0.45")
