"""The requirements of scheduling through Slurm, each checked on the real servers and reported with its remedy.

Belongs here: reading the state of both servers, one placeholder that is held, read and cancelled, and judging the
result, which is pure. Does not belong here: repairing anything, and what the daemon does with a finding.
"""
