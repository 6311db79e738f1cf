"""How the program shows what it does: logs, metrics, health.

Belongs here: the one place that configures logging, and every metric by name. Does not belong here: the decision
what is worth saying, which is made where a thing is handled.
"""
