"""Shows how a pod would be scheduled, and why, before or after it exists: the steps of the daemon, without effects.

Belongs here: the way from a manifest or a pod to an explanation, and its text. Does not belong here: rules of its own
(the translation, the hooks and the scheduler's records decide), writes, and the adapters: `app` passes in both ports
and the function that writes a request as JSON.
"""
