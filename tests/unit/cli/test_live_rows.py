"""The rows of the live view in a client, and how a terminal shows them."""

from typing import Any

import pytest

from slurm_bridge import errors
from slurm_bridge.cli import live_rows, top_text
from slurm_bridge.cli.live_rows import LiveRows, RowChoice
from slurm_bridge.runtime.clock import thread_seconds
from slurm_bridge.view import rows as view_rows

ABOUT = {
    "cluster": "here",
    "window": 10,
    "fields": {
        "workload": view_rows.names(view_rows.LiveWorkload),
        "node": view_rows.names(view_rows.LiveNode),
        "decision": view_rows.names(view_rows.LiveDecision),
    },
}


def workload(number: int, **changes: Any) -> list[Any]:
    """A row as it is sent."""
    usual = {
        "number": number,
        "kind": "Pod",
        "namespace": "team",
        "name": f"train-{number}",
        "uid": f"u{number}",
        "stage": "held",
        "pods": 1,
        "bound": 0,
        "job": 0,
        "reason": "Unschedulable",
        "message": "no node is large enough",
        "partition": "",
        "account": "",
        "cpus": number,
        "memory": 2048,
        "gpus": 0,
        "nodes": [],
        "node_count": 0,
        "priority": 0,
        "created": 1000 + number,
        "submitted": 0,
        "starts": 0,
        "lead": f"train-{number}",
    }
    return list({**usual, **changes}.values())


def node(name: str, state: str = "mixed") -> list[Any]:
    """A node of which a half is held by us, and a quarter by others."""
    return [name, "", state, "", ["debug"], 3, [64, 32, 8, 8], [1024, 512, 0, 0], [0, 0, 0, 0]]


def known(*sent: list[Any], **more: Any) -> LiveRows:
    """Rows that have come."""
    made = LiveRows(ABOUT)
    made.apply({"workloads": list(sent), **more})
    return made


def test_rows_are_replaced_and_go() -> None:
    """By their numbers."""
    rows = known(workload(1), workload(2))
    rows.apply({"workloads": [workload(1, stage="running")], "gone": [2, 99]})
    assert {row["number"]: row["stage"] for row in rows.workloads.values()} == {1: "running"}


def test_the_latest_decision_is_the_first() -> None:
    """And no more are kept than fit."""
    rows = known()
    for number in range(live_rows.MOST_DECISIONS + 5):
        rows.apply({"decisions": [[number, "Pod", "team", "a", "Wait", "text", False]]})
    assert rows.decisions[0]["at"] == live_rows.MOST_DECISIONS + 4
    assert len(rows.decisions) == live_rows.MOST_DECISIONS


@pytest.mark.parametrize("sent", [{"workloads": [[1, 2]]}, {"workloads": 7}, {"nodes": [None]}, {"gone": 1}])
def test_rows_of_another_form_are_refused(sent: dict[str, Any]) -> None:
    """A server that speaks another version, or is none of ours."""
    with pytest.raises(errors.BadAnswer, match="rows that cannot be read"):
        LiveRows(ABOUT).apply(sent)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (RowChoice(), [3, 2, 1]),
        (RowChoice(reverse=True), [1, 2, 3]),
        (RowChoice(order="cpus"), [3, 2, 1]),
        (RowChoice(order="name"), [1, 2, 3]),
        (RowChoice(stages="running"), [2]),
        (RowChoice(stages="all"), [4, 3, 2, 1]),
        (RowChoice(reason="Unschedulable"), [3, 1]),
        (RowChoice(text="TRAIN-2 n7"), [2]),
        (RowChoice(text="nothing"), []),
    ],
)
def test_a_choice_filters_and_sorts(choice: RowChoice, expected: list[int]) -> None:
    """As the flags and the keys say."""
    rows = known(
        workload(1),
        workload(2, stage="running", reason="", nodes=["n7"]),
        workload(3),
        workload(4, stage="done", reason=""),
    )
    assert [row["number"] for row in choice.of(rows.workloads.values())] == expected


def test_every_order_sorts_every_row() -> None:
    """Also rows without a job or a start."""
    rows = known(workload(1), workload(2, job=7, starts=99, reason="", stage="queued"))
    for order in live_rows.ORDERS:
        assert len(RowChoice(order=order).of(rows.workloads.values())) == 2


@pytest.mark.parametrize("width", [20, 60, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """A narrow one has fewer columns."""
    rows = known(workload(1, name="x" * 250), nodes=[node("n" * 80)])
    head, lines = top_text.workloads(list(rows.workloads.values()), width, 2000.0)
    for line in (head, *lines):
        assert sum(top_text.width_of(text) for text, _ in line) <= max(width, 34 + 11)


def test_letters_that_take_two_cells_are_counted() -> None:
    """A column ends where it should."""
    assert top_text.fit("訓練訓練", 5) == "訓練…"
    assert top_text.width_of(top_text.fit("訓", 4)) == 4
    assert top_text.fit("abc", 5, right=True) == "  abc"


def test_what_a_terminal_obeys_is_not_written_to_it() -> None:
    """Whatever a server or a user sends."""
    evil = "\x1b[2Jgone\n\x07"
    rows = known(workload(1, name=evil, message=evil), decisions=[[1, "Pod", "team", evil, evil, evil, True]])
    shown = [
        *top_text.plain(top_text.workloads(list(rows.workloads.values()), 200, 0.0)[1]),
        *top_text.plain(top_text.decisions(rows, 200)[1]),
        *top_text.plain([(line, "")] for line in top_text.wrapped(evil, 80)),
    ]
    assert all(line.isprintable() for line in shown)


def test_lists_and_names_of_fields_are_printable_in_every_row() -> None:
    """Names of nodes, partitions, queues and resources are texts of others, too; those that go are found again."""
    evil = "\x1b[2J"
    sent = [evil, *node("n")[1:4], [evil], *node("n")[5:]]
    queue = {"partition": evil, "queues": [{"path": evil, "depth": 0, "used": {evil: 1}}]}
    rows = known(workload(1, nodes=[evil]), nodes=[sent], queues=[queue])
    texts = [*rows.workloads[1]["nodes"], *rows.nodes["?[2J"]["partitions"], str(rows.queues)]
    assert all(text.isprintable() and "x1b" not in text for text in texts)
    rows.apply({"nodes_gone": [evil]})
    assert rows.nodes == {}


def test_details_are_written_without_what_a_terminal_obeys() -> None:
    """They come from the daemon as they are: every field of them is made printable where it is written."""
    evil = "\x1b[2J\n"
    found = dict.fromkeys(("kind", "namespace", "name", "stage", "reason", "message", "step"), evil)
    member, job = {"name": evil, "state": evil, "node": evil}, {"attempt": evil, "text": evil}
    timeline = [{"at": 1000, "text": evil}]
    whole = {**found, "row": {"pods": 1}, "members": [member], "jobs": [job], "timeline": timeline}
    pod = {"namespace": evil, "name": evil, "job": evil, "cpus": evil, "gpus": evil}
    row = known(nodes=[[evil, "", evil, evil, [evil], *node("n")[5:]]]).nodes["?[2J?"]
    shown = [
        *top_text.plain(top_text.detail(whole, 0.0, 80)),
        *top_text.plain(top_text.node_detail(row, {"pods": [pod], "unseen": 0}, 80)),
        *top_text.plain(top_text.explanation({"text": evil * 2}, 80)),
    ]
    assert all(line.isprintable() for line in shown)


def test_a_text_of_any_length_is_cut_at_once() -> None:
    """Letters that take no cell are no way around."""
    assert top_text.fit("x" * 10_000_000, 5) == "xxxx…"
    assert top_text.width_of(top_text.fit("e" + "\u0301" * 10_000_000, 5)) == 5
    began = thread_seconds()
    top_text.fit("訓" * 500_000, 40)
    assert thread_seconds() - began < 0.1


def test_the_header_sums_up() -> None:
    """Workloads by stage, what nodes have, and the reasons."""
    rows = known(workload(1), workload(2, stage="running", reason=""), nodes=[node("a"), node("b")])
    lines = list(top_text.plain(top_text.header(rows, "live", "workloads", RowChoice(text="x", reason="y"))))
    assert "1 running" in lines[0]
    assert "96 of 128" in lines[1]
    assert "Unschedulable 1" in lines[2]
    assert ("reason: y" in lines[3], "search: x" in lines[3]) == (True, True)


def test_a_node_says_how_much_is_free() -> None:
    """With letters that tell holders apart without colours."""
    rows = known(nodes=[node("a")])
    (line,) = top_text.plain(top_text.nodes(list(rows.nodes.values()), 160)[1])
    assert " 16 free" in line
    assert all(letter in line for letter in "█▓▒")


def test_queues_and_namespaces_are_listed() -> None:
    """Queues with their depth, namespaces with their workloads."""
    queue = {
        "path": "root.a",
        "depth": 1,
        "used": {"vcore": 1500},
        "guaranteed": {},
        "max": {},
        "running": 1,
        "waiting": 0,
    }
    rows = known(workload(1), workload(2, stage="queued"), queues=[{"partition": "p", "queues": [queue]}])
    text = "\n".join(top_text.plain(top_text.queues(rows)))
    assert "  a " in text
    assert "1.5 CPUs" in text
    assert any(line.split() == ["team", "0", "0", "0", "1", "1"] for line in text.splitlines())


@pytest.mark.parametrize(("amount", "text"), [(5, "5 MiB"), (2048, "2 GiB"), (1536, "1.5 GiB"), (1 << 20, "1 TiB")])
def test_memory_is_in_the_largest_unit(amount: int, text: str) -> None:
    """With one digit where it is not whole."""
    assert live_rows.mebibytes(amount) == text
