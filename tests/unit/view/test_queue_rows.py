"""The trees of queues without the workloads in them."""

import json

from slurm_bridge.view import queue_rows


def queue(path: str, *children: dict[str, object]) -> dict[str, object]:
    """One queue of the picture."""
    amounts = {"pods": 2, "memory": 5, "vcore": 1000}
    numbers = {"running": 1, "waiting": 2, "maxapplications": 0, "configured": True, "state": "active"}
    return {"path": path, "guaranteed": {}, "max": {}, "used": amounts, "pending": {}, **numbers, "queues": [*children]}


def test_queues_come_in_order_with_their_depth() -> None:
    """Parents before their children; cpus and memory before other resources."""
    picture = {
        "partition": "p",
        "mode": "local",
        "queues": queue("root", queue("root.a", queue("root.a.b")), queue("root.c")),
    }
    (tree,) = queue_rows.trees(picture)
    assert [(one["path"], one["depth"]) for one in tree["queues"]] == [
        ("root", 0),
        ("root.a", 1),
        ("root.a.b", 2),
        ("root.c", 1),
    ]
    assert list(tree["queues"][0]["used"]) == ["vcore", "memory", "pods"]


def test_no_workload_of_any_namespace_is_in_a_tree() -> None:
    """The picture has waiting workloads and applications: viewers may not list all of them."""
    picture = {
        "partition": "p",
        "queues": queue("root"),
        "waiting": [{"workload": "hidden"}],
        "applications": ["hidden"],
    }
    assert "hidden" not in json.dumps(queue_rows.trees(picture))


def test_partitions_have_a_tree_each_and_a_huge_tree_is_cut_off() -> None:
    """Without queues there is none."""
    wide = queue("root", *(queue(f"root.q{number}") for number in range(queue_rows.MOST_QUEUES + 10)))
    found = queue_rows.trees({"partitions": [{"partition": "a", "queues": wide}, {"partition": "b", "queues": None}]})
    assert [len(one["queues"]) for one in found] == [queue_rows.MOST_QUEUES, 0]
    assert queue_rows.trees(None) == []
