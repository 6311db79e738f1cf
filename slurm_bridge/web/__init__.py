"""The HTTP server: probes, metrics, the submission API, the admin API, and routes of other packages.

Belongs here: reading requests within bounds that no client can exceed, finding the route, and creating pods with the
caller's own rights. Does not belong here: what other packages know (they pass in routes), and the client of the API
server.
"""
