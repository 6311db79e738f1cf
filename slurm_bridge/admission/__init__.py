"""What is changed and refused in objects before the API server stores them.

Belongs here: pure functions from an object to its changes and to what is wrong with it, and the policies that say the
same in CEL. Does not belong here: HTTP (web), and what an annotation means for Slurm (translate).
"""
