"""Cluster agents: a service that samples nodes from a cache of its own, and the client that asks such services.

Belongs here: the service's life, its shard and cache, its tokens, its routes; and JSON over HTTP with kept
connections and deadlines, for agents and whatever else hooks ask. Does not belong here: sampling itself, which is a
hook family's, and how either cluster is reached, which is handed in.
"""
