"""Hands the jobs and pods of another bridge over to this one, and back, while neither bridge acts.

Belongs here: how SchedMD's bridge marks what is its own, the plan of a handover (pure), its execution in steps of which
each may be the last, and the translation of its Helm values. Does not belong here: what the daemon does with the jobs
afterwards.
"""
