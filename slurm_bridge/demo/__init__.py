"""The demo: the real daemon between pocket servers, with examples, extra pods and faults.

Belongs here: what the demo creates, how it observes both servers, and how it shows them. Does not belong here: any
part of the daemon, which is composed as for a real cluster.
"""
