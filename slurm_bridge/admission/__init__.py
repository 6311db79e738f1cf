"""What is changed and refused in objects before the API server stores them.

Belongs here: AdmissionReviews as records, the changes of pods of the bridge, what is wrong with an object, the record
of its creator, and the policies that say the same in CEL. All of it follows from one object and the rules. Does not
belong here: HTTP (web), clocks, logs, any call of a server, and what an annotation means for Slurm (translate).
"""
