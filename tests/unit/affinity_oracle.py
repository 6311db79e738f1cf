"""Node selectors and node affinity, asked about one node: what selectors over columns have to agree with."""

from slurm_bridge.cluster.rules.affinity import FIELD_OPERATORS, NAME, Term, required
from slurm_bridge.model import selectors
from slurm_bridge.model.node import Node
from slurm_bridge.model.pod import Pod


def accepts(pod: Pod, node: Node) -> bool:
    """Node selector and required affinity, both."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    selector = required(pod)
    return selector is None or selects(selector, node)


def selects(selector: Term, node: Node) -> bool:
    """One of its terms holds; a selector without terms, and a term without conditions, hold nowhere."""
    return any(_holds(term, node) for term in selector.get("nodeSelectorTerms") or ())


def _holds(term: Term, node: Node) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    of_name = {NAME: node.metadata.name}
    return all(selectors.requirement(row).holds(node.metadata.labels) for row in expressions) and all(
        row.get("operator") in FIELD_OPERATORS and selectors.requirement(row).holds(of_name) for row in fields
    )
