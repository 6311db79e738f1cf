"""Vela's three phases as a family of hooks: sample nodes in the background, decide among them, commit in order.

    queue ─► samplers ─► agents (strategy, filter, score, in rounds) ─► decision queue ─► decision ─► candidates 1 2 3

Here belong the queue and its order, 2-Smart sampling, strategies, the pipelines of an agent, the wire between bridge
and agent, the decision, the bookkeeping of the commit, and the hook that shows all of this to the chain. Not here: the
service that an agent runs in, HTTP, and anything that another family does.
"""
