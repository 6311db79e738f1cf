"""What would become of a pod, and why, before or after it exists: the daemon's own steps, taken without any effect.

Belongs here: from a manifest or a pod to an explanation, and the words of it. Does not belong here: any rule of its
own (translation, hooks and the scheduler's records are asked), any write, and the adapters: whoever composes the
program hands in both ports and the function that writes a request as JSON.
"""
