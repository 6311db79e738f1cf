"""Looked at all at once, nodes are denied for the same reasons as one by one."""

from collections.abc import Iterator
from typing import Any

import hypothesis
from hypothesis import strategies as st

from slurm_bridge.cluster import facts
from slurm_bridge.cluster.cluster_cache import ClusterCache
from slurm_bridge.cluster.facts import NodeFacts
from slurm_bridge.cluster.rules import taints
from slurm_bridge.cluster.snapshot import ClusterSnapshot
from slurm_bridge.families.eligibility import Eligibility, EligibilityOptions
from slurm_bridge.hooks.base import Ask
from slurm_bridge.hooks.calls import Hook
from slurm_bridge.hooks.chain import Chain
from slurm_bridge.model.node import Taint
from slurm_bridge.model.pod import Pod, Toleration
from slurm_bridge.translate import resources
from tests.unit import affinity_oracle
from tests.unit.hooks.builders import Around, gang, node, partition, pod, request, shape, slurm_node

_taint = st.builds(
    Taint,
    key=st.sampled_from("ab"),
    value=st.sampled_from("12"),
    effect=st.sampled_from(["NoSchedule", "NoExecute", "x"]),
)
_node = st.fixed_dictionaries(
    {
        "labels": st.dictionaries(st.sampled_from(["zone", "managed"]), st.sampled_from(["yes", "no"])),
        "taints": st.lists(_taint, max_size=2),
        "allocatable": st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), st.sampled_from(["0", "1500m", "3"])),
        "ready": st.booleans(),
        "unschedulable": st.booleans(),
        "deleting": st.booleans(),
    }
)
_toleration = st.builds(
    Toleration,
    key=st.sampled_from(["", "a", taints.UNSCHEDULABLE.key]),
    operator=st.sampled_from(["Exists", "Equal"]),
    value=st.sampled_from("12"),
)
_pod = st.fixed_dictionaries(
    {
        "requests": st.dictionaries(
            st.sampled_from(["cpu", "memory", "gpu"]), st.sampled_from(["0", "250m", "1", "2"])
        ),
        "node_selector": st.dictionaries(st.just("zone"), st.sampled_from(["yes", "no"])),
        "tolerations": st.lists(_toleration, max_size=2).map(tuple),
    }
)
_used = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["500m", "1", "3"])), max_size=4)


def cluster(nodes: list[dict[str, Any]], used: list[tuple[int, str]]) -> ClusterSnapshot:
    """These nodes, of which Slurm knows all but the last, and pods on them."""
    made = ClusterCache(resources.requests_of)
    for number, one in enumerate(nodes):
        made.on_node(None, node(f"n{number}", **one))
    for number, (where, cpu) in enumerate(used):
        made.on_pod(None, pod(f"p{number}", requests={"cpu": cpu}, node_name=f"n{where}"))
    known = [f"n{number}" for number in range(max(1, len(nodes) - 1))]
    made.set_slurm(map(slurm_node, known), [partition("debug", *known)])
    return made.snapshot()


def expected(there: NodeFacts, asking: Pod, *, managed: bool, free: bool) -> Iterator[str]:
    """The rules, asked about one node: the first that says no, or everything that there is too little of."""
    one, tolerations = there.node, asking.spec.tolerations
    tainted = taints.untolerated(one.spec.taints, tolerations)
    if managed and one.metadata.labels.get("managed") != "yes":
        yield "node(s) are not managed by this bridge"
    elif there.slurm is None:
        yield "node(s) are not known to Slurm"
    elif one.metadata.deletion_timestamp is not None:
        yield "node(s) are being deleted"
    elif one.spec.unschedulable and taints.untolerated((taints.UNSCHEDULABLE,), tolerations):
        yield "node(s) were unschedulable"
    elif not one.ready:
        yield "node(s) were not ready"
    elif not affinity_oracle.accepts(asking, one):
        yield "node(s) didn't match Pod's node affinity/selector"
    elif tainted:
        yield f"node(s) had untolerated taint {{{tainted.key}: {tainted.value}}}"
    else:
        yield from facts.lacking(there, resources.requests_of(asking), free=free)


@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(
    st.lists(_node, max_size=5), _used, st.lists(_pod, min_size=1, max_size=2), st.booleans(), st.booleans()
)
def test_as_one_by_one(
    around: Around,
    nodes: list[dict[str, Any]],
    used: list[tuple[int, str]],
    asked: list[dict[str, Any]],
    managed: Any,
    free: Any,
) -> None:
    """Every node has the reasons that the rules give for it alone; of several shapes, those that all of them have."""
    seen, asking = cluster(nodes, used), [pod(f"asking-{number}", **one) for number, one in enumerate(asked)]
    options = EligibilityOptions(
        node_selector="managed=yes" if managed else "", capacity="free" if free else "allocatable", volumes=False
    )
    chain = Chain([Hook(name="eligibility", hook=Eligibility(options), budget_seconds=60)], around.make())
    alike = [
        {
            name: reasons
            for name, there in seen.nodes.items()
            if (reasons := tuple(expected(there, one, managed=managed, free=free)))
        }
        for one in asking
    ]
    whole = Ask(workload=gang(*asking), request=request(), shapes=tuple(map(shape, asking)) if len(asking) > 1 else ())
    with chain.session(seen, now=0.0) as session:
        left = session.filter_nodes(whole, seen.names)
        denied = [dict(one.nodes) for one in session.denied]
    first = {name: said for name, said in alike[0].items() if all(name in other for other in alike)}
    assert left == seen.names - first.keys()
    assert denied == ([first] if first else [])
