"""The assumptions that scheduling through Slurm rests on, each tested on the real servers and told with its remedy.

Belongs here: reading what both sides say, one placeholder that is held, read and cancelled, and the judgement of what
was seen, which is pure. Does not belong here: repairing anything, and what the bridge does when an assumption fails.
"""
