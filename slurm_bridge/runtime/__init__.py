"""How the program lives in its process: time, threads, retries, caches, HTTP.

Belongs here: what any daemon needs and no domain knows. Does not belong here: anything about pods or jobs.
"""
