"""Services outside that have a say about nodes, in kube-scheduler's extender protocol over HTTP.

Here belong the questions and answers as they are on the wire (`wire`), what all extenders together say of a pod
(`asking`), and having it asked beside the passes (`desk`). Not here: HTTP itself, which a `Post` does, and what their
scores are added to (`prioritizing`).
"""
