"""What users see on their pods: the condition that says why a pod waits, events, and why a pod had to go.

Belongs here: writing these, few and only on change. Does not belong here: the words themselves, which come from where
a thing is decided, and every write that places a pod.
"""
