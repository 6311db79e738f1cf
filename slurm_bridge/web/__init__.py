"""The HTTP door: probes, metrics, and whatever else people and machines may ask the daemon.

Belongs here: taking requests apart, within bounds that no client can exceed, and finding who answers. Does not belong
here: the answers, which are made in the rooms that know them.
"""
