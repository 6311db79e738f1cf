"""How the program reports on itself: logs, metrics, health.

Belongs here: the one place that configures logging, and every metric by name. Does not belong here: the decision
what is worth a log line, which is made where the event is handled.
"""
