"""Why a node cannot take a pod, in kube-scheduler's names and words: one function over all nodes for each predicate.

Here belong the predicates, the words that they say, and the table of them (`standard`). Not here: which of them are
asked, in which order, and what is made of their answers (`filters`), and the rules that do not need columns
(`cluster.rules`).
"""
