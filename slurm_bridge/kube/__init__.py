"""The Kubernetes adapter: ports.Cluster on a real API server.

Belongs here: addresses and credentials (through the `kubernetes` package), HTTP, reading JSON into the records of
`model`, and the spelling of every request. Does not belong here: what a request is for, when to repeat a write, and
any memory of objects; that is the core's and the informers' business. No other package imports `kubernetes`.
"""
