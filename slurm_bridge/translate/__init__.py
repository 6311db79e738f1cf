"""Translates a workload to a placeholder: pods, annotations and configured defaults become a `JobRequest`.

Belongs here: the rules of translation as pure functions and tables, the form in which Slurm is asked for several pods,
the source of each value, and messages about values that are wrong. Does not belong here: settings as they are read
from files, calls of servers, and which nodes a job may use; the hooks decide that afterwards.
"""
