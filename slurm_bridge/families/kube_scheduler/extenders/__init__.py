"""Services outside that have a say about nodes, in kube-scheduler's extender protocol over HTTP.

Here belong the questions and answers as they are on the wire (`wire`), what all extenders together say of a pod
(`verdicts`), and having it asked beside the passes (`desk`). Not here: HTTP itself, which a `JsonClient` does, and what
their scores are added to (`priority_chain`).
"""
