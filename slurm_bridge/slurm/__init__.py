"""The slurmrestd adapter: `ports.Slurm` over HTTP, and everything that is odd about that HTTP.

Belongs here: sessions and sockets, the token file, API versions, the JSON of requests and answers, error numbers, and
what an answer (or its absence) says about what Slurm has done. Does not belong here: what a job is for, when to
submit or cancel one, or anything about pods. `runtime.http` speaks HTTP.
"""
