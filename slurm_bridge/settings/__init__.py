"""What an administrator may configure: frozen records, read from one file, the environment and flags, checked at once.

Belongs here: keys, their meaning and defaults, what is allowed, where a wrong value was written. Does not belong here:
what is done with a value. Other packages do not import this one: the composition root hands each what it needs.
"""
