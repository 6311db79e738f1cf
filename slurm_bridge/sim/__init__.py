"""The pocket servers: a small Kubernetes API and a small slurmrestd, served over real HTTP on loopback.

Belongs here: what the real servers do as far as the bridge can notice, their wrong answers included, and the means to
make them fail at a chosen moment. Does not belong here: anything that the daemon needs to run; only the demo and
tests import this package.
"""
