"""The program shown to newcomers: the real daemon in a pocket world, with examples, extra pods and failures on order.

Belongs here: what is put on the stage, how somebody who is not the daemon looks at both sides, and how that is drawn.
Does not belong here: anything that the daemon does; the daemon is composed for the demo as it is for a real cluster.
"""
