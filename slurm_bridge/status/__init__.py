"""What users see on their pods: the condition that says why a pod waits, events, and why a pod was ended.

Belongs here: writing these, few and only on change. Does not belong here: the texts, which come from the package that
decides, and every write that places a pod.
"""
