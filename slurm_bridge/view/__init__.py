"""The live view for people: rows of workloads, nodes and decisions, kept current from the daemon's records.

Belongs here: what is shown of a record, which rows have changed, in which words a reason and the next step are told,
and the streams of viewers. Does not belong here: anything that decides, and how a browser or a terminal draws the rows.
"""
