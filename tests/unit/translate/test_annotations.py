"""Every annotation key, its form, and what users read when a value has another one."""

import dataclasses
import pathlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model import job, names
from slurm_bridge.translate import annotations, gres
from tests.unit.translate.translating import keys

#: What users of the existing bridge have in their manifests, and the keys that are ours.
PROMISED = """account constraints cpu-per-task exclusive gres group-id user-id job-name licenses max-nodes min-nodes
mem-per-node partition priority qos reservation wckey timelimit gang member-lost one-per-node environment
node-sort-policy queue""".split()

GOOD = [
    ("account", " physics ", "physics"),
    ("constraints", "[rack1|rack2]*2&!old,gpu=v100", "[rack1|rack2]*2&!old,gpu=v100"),
    ("cpu-per-task", "500m", 1),
    ("cpu-per-task", "1500m", 2),
    ("cpu-per-task", "65533", 65533),
    ("exclusive", "TRUE", True),
    ("exclusive", "False", False),
    ("gres", "GPU:V100:2", (job.Gres(name="GPU", type="V100", count=2),)),
    ("gres", "gpu:2, nic:1", (job.Gres(name="gpu", count=2), job.Gres(name="nic", count=1))),
    ("gres", "gpu", (job.Gres(name="gpu", count=1),)),
    ("gres", "gres/gpu=2", (job.Gres(name="gpu", count=2),)),
    ("gres", "gres/gpu:2", (job.Gres(name="gpu", count=2),)),
    ("gres", "gres/gpu", (job.Gres(name="gpu", count=1),)),
    ("gres", "GRES:gpu:a100:2", (job.Gres(name="gpu", type="a100", count=2),)),
    ("gres", "gres/gpu:a100=2,gres/nic=1", (job.Gres(name="gpu", type="a100", count=2), job.Gres(name="nic", count=1))),
    ("gres", "gres:2", (job.Gres(name="gres", count=2),)),
    ("gres", "gpu:a100", (job.Gres(name="gpu", type="a100", count=1),)),
    (
        "gres",
        "gpu:1g.10gb:7,gpu:2g.20gb",
        (job.Gres(name="gpu", type="1g.10gb", count=7), job.Gres(name="gpu", type="2g.20gb", count=1)),
    ),
    ("gres", "None", ()),
    ("group-id", "2000", "2000"),
    ("user-id", "01000", "1000"),
    ("user-id", "alice", "alice"),
    ("user-id", "4294967293", "4294967293"),
    ("job-name", "Mein Job \u00e4\u6f22", "Mein Job \u00e4\u6f22"),
    ("job-name", "x" * 255, "x" * 255),
    ("licenses", "matlab:2,ansys@db:1", "matlab:2,ansys@db:1"),
    ("max-nodes", "3", 3),
    ("min-nodes", " 1\n", 1),
    ("mem-per-node", "8Gi", job.Memory(mib=8192)),
    ("mem-per-node", "512Ki", job.Memory(mib=1)),
    ("mem-per-node", "1", job.Memory(mib=1)),
    ("partition", "debug", "debug"),
    ("partition", "debug, gpu,debug", "debug,gpu"),
    ("priority", "1", 1),
    ("priority", "4294967293", 4294967293),
    ("qos", "high", "high"),
    ("reservation", "course_1", "course_1"),
    ("wckey", "thesis", "thesis"),
    ("timelimit", "1", 1),
    ("timelimit", "71582788", 71582788),
    ("gang", "true", True),
    ("member-lost", "Restart-Group", "restart-group"),
    ("member-lost", "keep", "keep"),
    ("one-per-node", "true", True),
    ("node-sort-policy", "fair", "fair"),
    ("queue", "root.a.b", "root.a.b"),
    ("environment", "Torch", "torch"),
]

BAD = {
    "account": ["", " ", "a b", "a,b", "x" * 256, 'a"'],
    "constraints": ["", "a b", 'a"', "a;b", "a\n b"],
    "cpu-per-task": ["0", "-1", "65534", "1K", "one", "", "1e99"],
    "exclusive": ["yes", "1", "", "user"],
    "gres": [
        "gres/gpu=0",
        "gres/gpu=",
        "gres/=2",
        "gres/gpu=a:2",
        "gpu=2",
        "gres/gres/gpu:2",
        "nicgres/gpu",
        "gres/gpu:1,gpu:2",
        "",
        "gpu:0",
        "gpu:-1",
        "gpu:1.5",
        "gpu:a:b:1",
        "gpu,,nic",
        "gpu:1,GPU:2",
        "gpu:a,gpu:A:2",
        ":2",
        "gpu:",
        "gpu:4294967294",
    ],
    "group-id": ["0", "99", "65534", "999", "-1", "root", "nobody", "nogroup", "4294967294", "a b", "1.5", ""],
    "user-id": [
        "0",
        "000",
        "99",
        "65534",
        "999",
        "-1",
        "root",
        "nobody",
        "Root",
        "slurm",
        "MUNGE",
        "daemon",
        "bin",
        "systemd-network",
        "1e3",
        "+1000",
        "0x3e8",
        "\u0661\u0660\u0660\u0660",
        "",
    ],
    "job-name": ["", "x" * 256, "a\tb", "a\x00b"],
    "licenses": ["", "a b", "a\nb", 'a"b'],
    "max-nodes": ["0", "-1", "1.0", "+1", "0x1", "1_0", "", "4294967294", "9" * 5000],
    "min-nodes": ["0", "all"],
    "mem-per-node": ["0", "-1Gi", "8GB", "1Kb", "", "0Ki"],
    "partition": ["", ",", "a,,b", "a b", "debug,"],
    "priority": ["0", "-5", "4294967295", "high", "5e3"],
    "qos": ["", "a b"],
    "reservation": ["", "a,b"],
    "wckey": ["", "*"],
    "timelimit": ["0", "-1", "1:30:00", "UNLIMITED", "1.5", "71582789"],
    "gang": ["maybe"],
    "member-lost": ["", "restart", "follow"],
    "one-per-node": ["", "1", "yes"],
    "node-sort-policy": ["", "a b"],
    "queue": ["", "a b"],
    "environment": ["", "yes", "torch,true"],
}


def test_every_promised_key_has_a_row_and_every_row_was_promised() -> None:
    """No manifest stops working, and no key is added without documentation."""
    assert sorted(annotations.BY_KEY) == sorted(PROMISED)
    assert len(annotations.ANNOTATIONS) == len(annotations.BY_KEY)


def test_every_row_becomes_a_field_of_the_request_or_a_hint() -> None:
    """And no two rows the same one."""
    fields = {field.name for field in dataclasses.fields(job.JobRequest)}
    for row in annotations.ANNOTATIONS:
        assert (row.field in fields) is not row.hint, row.key
    assert len({row.field for row in annotations.ANNOTATIONS}) == len(annotations.ANNOTATIONS)


def test_every_key_has_good_and_bad_values_here() -> None:
    """These tables are complete."""
    assert {key for key, _, _ in GOOD} == set(BAD) == set(PROMISED)


def test_s1_keys_that_speak_for_somebody_else_are_guarded() -> None:
    """Identity, money and precedence need a policy."""
    expected = {"account", "group-id", "priority", "qos", "reservation", "user-id", "wckey"}
    assert expected == annotations.GUARDED


@pytest.mark.parametrize("row", annotations.ANNOTATIONS, ids=lambda row: row.key)
def test_every_example_is_a_good_value(row: annotations.AnnotationRow) -> None:
    """What the documentation shows works."""
    assert annotations.read("Pod a/b", {row.annotation: row.example.strip('"')})[1] == ()


@pytest.mark.parametrize(("key", "text", "value"), GOOD)
def test_a_value_of_the_right_form_is_understood(key: str, text: str, value: object) -> None:
    """Surrounding blanks do not matter."""
    said, problems = annotations.read("Pod a/b", keys(**{key: text}))
    assert problems == ()
    assert [one.value for one in said] == [value]


@pytest.mark.parametrize(("key", "text"), [(key, text) for key, texts in BAD.items() for text in texts])
def test_t06_any_other_value_is_told_with_object_key_value_and_what_is_allowed(key: str, text: str) -> None:
    """On one line, however long or strange the value is."""
    said, problems = annotations.read("Job team/web", keys(**{key: text}))
    assert said == ()
    (problem,) = problems
    row = annotations.BY_KEY[key]
    assert problem.startswith(f'Job team/web: annotation {row.annotation}="')
    assert problem.endswith(f'": use {row.form.words}')
    assert problem.isprintable()
    assert len(problem) < 400
    if text.isprintable() and len(text) < 60:
        assert f'="{text}":' in problem


def test_the_largest_priority_is_sent_as_the_largest_that_slurm_can_hold() -> None:
    """4294967294 means "unset" to Slurm, which would then compute a priority of its own."""
    (said,) = annotations.read("Pod a/b", keys(priority="4294967294"))[0]
    assert said.value == 4294967293


@pytest.mark.parametrize(
    ("typo", "meant"), [("time-limit", "timelimit"), ("partiton", "partition"), ("Account", "account")]
)
def test_a_mistyped_key_is_told_with_the_one_that_was_meant(typo: str, meant: str) -> None:
    """Ignored, it would run the job somewhere else than the user thinks."""
    (problem,) = annotations.read("Pod a/b", {names.JOB_PREFIX + typo: "x"})[1]
    assert problem == f'Pod a/b: annotation {names.JOB_PREFIX}{typo}="x": unknown key, did you mean {meant}?'


def test_a_key_that_resembles_none_is_told_with_all_there_are() -> None:
    """Every one of them."""
    (problem,) = annotations.read("Pod a/b", keys(zzzzzz="1"))[1]
    assert all(key in problem for key in PROMISED)


def test_annotations_of_others_are_not_ours_to_read() -> None:
    """Only our prefix is."""
    others = {
        "partition": "x",
        "example.com/timelimit": "never",
        names.NODE_PREFIX + "slurm-node": "n",
        names.ANNOTATION_RETRY: "1",
    }
    assert annotations.read("Pod a/b", others) == ((), ())


def test_all_problems_of_an_object_are_told_at_once() -> None:
    """A user submits once to learn of all mistakes."""
    problems = annotations.read("Pod a/b", keys(timelimit="0", max_nodes="x", foo="1", min_nodes="2", gres="gpu:0"))[1]
    assert len(problems) == 4


def test_fewer_nodes_allowed_than_needed_is_a_contradiction() -> None:
    """Both are named."""
    said, wrong = annotations.read("Job a/b", keys(min_nodes="3", max_nodes="2"))
    assert wrong == ()
    (problem,) = annotations.contradictions({one.row.key: one for one in said})
    assert 'min-nodes="3"' in problem
    assert 'max-nodes="2"' in problem
    said, _ = annotations.read("Job a/b", keys(min_nodes="2", max_nodes="2"))
    assert tuple(annotations.contradictions({one.row.key: one for one in said})) == ()


def test_a_message_has_an_end() -> None:
    """A manifest with thousands of mistakes does not fill the pod's condition."""
    message = annotations.together(str(number) for number in range(1000))
    assert message.endswith("; and 950 more")


@given(st.dictionaries(st.sampled_from(PROMISED), st.text(max_size=30)))
def test_no_value_whatsoever_raises(values: dict[str, str]) -> None:
    """Each is either understood or a problem."""
    said, problems = annotations.read("Pod a/b", keys(**values))
    assert len(said) + len(problems) == len(values)


@given(st.from_regex(re.compile(r"[a-z]{1,8}(:[a-z][a-z0-9]{0,4})?:[1-9][0-9]{0,3}", re.ASCII), fullmatch=True))
def test_gres_is_written_as_it_was_read(text: str) -> None:
    """For people it looks as people write it."""
    assert gres.write(gres.parse(text)) == text


def test_the_suite_on_real_servers_has_a_case_for_every_key_that_becomes_a_field() -> None:
    """That suite says the same of itself, but only where a cluster runs."""
    cases = (pathlib.Path(__file__).parents[3] / "tests" / "e2e" / "test_shown.py").read_text()
    missing = [row.key for row in annotations.ANNOTATIONS if not row.hint and f'"{row.key}": case(' not in cases]
    assert not missing, f"CASES of tests/e2e/test_shown.py has no row for {', '.join(missing)}"


def test_the_documentation_names_every_key() -> None:
    """The page is generated from the rows."""
    page = (pathlib.Path(__file__).parents[3] / "docs" / "annotations.md").read_text()
    assert all(f"`{row.key}`" in page for row in annotations.ANNOTATIONS)
