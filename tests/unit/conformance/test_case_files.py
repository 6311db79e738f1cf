"""Case files are read wholly or refused: nothing that somebody wrote is overlooked in silence."""

from pathlib import Path

import pytest

from tests.conformance import loading
from tests.conformance.loading import Malformed

CASE = "{id: one, given: {}, expect: {}}"


def written(folder: Path, text: str, name: str = "kube/schedule.yaml") -> Path:
    """A file of a folder of cases."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def refused(folder: Path, text: str) -> str:
    """Why this text is no file of cases."""
    with pytest.raises(Malformed) as raised:
        loading.cases(written(folder, text))
    return str(raised.value)


def test_a_case_is_what_is_given_and_what_is_expected(tmp_path: Path) -> None:
    """The family is the folder, the form is the file; comments are for people."""
    path = written(
        tmp_path, "# the rule\ncases:\n- {id: one, note: n, origin: derived, given: {a: 1}, expect: {b: 2}}\n"
    )
    (case,) = loading.cases(path)
    assert (case.family, case.file, case.id, case.binding) == ("kube", "schedule", "one", True)
    assert (case.given, case.expect) == ({"a": 1}, {"b": 2})


def test_an_unverified_case_says_why_it_does_not_bind(tmp_path: Path) -> None:
    """Its reason is what a run shows."""
    text = "cases: [{id: one, verified: false, reason: a typo upstream, given: {}, expect: {}}]"
    (case,) = loading.cases(written(tmp_path, text))
    assert (case.binding, case.reason) == (False, "a typo upstream")
    assert "case one.reason: is missing" in refused(tmp_path, text.replace(" reason: a typo upstream,", ""))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cases: [", "is not readable as YAML"),
        ("", "has nothing; a file has one key, 'cases'"),
        (f"cases: [{CASE}]\ndefaults: {{}}", "has 'cases', 'defaults'; a file has one key"),
        ("cases: []", "is a list, not a list of cases"),
        ("cases: {a: 1}", "is a map, not a list of cases"),
        ("cases: [{given: {}, expect: {}}]", "cases[0]: has no id"),
        ("cases: [1]", "cases[0]: has no id"),
        ("cases: [{id: one, given: {}, expects: {}}]", "case one: expects: is not a field of a case"),
        ("cases: [{id: one, given: {}}]", "case one.expect: is missing"),
        ("cases: [{id: one, given: [], expect: {}}]", "case one.given: is [], not a map"),
        (f"cases: [{CASE}, {CASE}]", "the id one is given to more than one case"),
        ("cases: [{id: one, given: {a: 1, a: 2}, expect: {}}]", "the key 'a' is given twice"),
    ],
)
def test_a_file_that_cannot_be_read_wholly_is_refused(tmp_path: Path, text: str, told: str) -> None:
    """The message names the file and the place."""
    message = refused(tmp_path, text)
    assert told in message
    assert str(tmp_path / "kube" / "schedule.yaml") in message


def test_a_key_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """An unquoted `on` is a truth value to YAML: no adapter would ever find it."""
    (case,) = loading.cases(written(tmp_path, "cases: [{id: one, given: {on: 1}, expect: {}}]"))
    with pytest.raises(Malformed, match="given: the key True is not a text; YAML takes it for true or false"):
        loading.Fields(case.given, "given")


def test_a_folder_is_searched_family_by_family(tmp_path: Path) -> None:
    """In one order, whatever the file system's is."""
    for name in ("vela/a.yaml", "kube/b.yaml", "kube/a.yaml"):
        written(tmp_path, f"cases: [{CASE}]", name)
    written(tmp_path, "for people", "README.md")
    assert [path.relative_to(tmp_path).as_posix() for path in loading.files(tmp_path)] == [
        "kube/a.yaml",
        "kube/b.yaml",
        "vela/a.yaml",
    ]


@pytest.mark.parametrize("name", ["lost.yaml", "kube/deep/lost.yaml", "kube/lost.yml"])
def test_a_file_where_nobody_looks_is_refused(tmp_path: Path, name: str) -> None:
    """It would pass for tested."""
    written(tmp_path, f"cases: [{CASE}]")
    written(tmp_path, f"cases: [{CASE}]", name)
    with pytest.raises(Malformed, match=r"lost\.ya?ml: would not be run"):
        loading.files(tmp_path)


def test_a_folder_without_cases_is_refused(tmp_path: Path) -> None:
    """So is one that is not there: a typo must not look like success."""
    with pytest.raises(Malformed, match="has no files"):
        loading.files(tmp_path)
    with pytest.raises(Malformed, match="is no folder"):
        loading.files(tmp_path / "typo")


def test_folders_are_named_as_in_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take the place of the project's own."""
    monkeypatch.setenv(loading.VARIABLE, "/a:/b")
    assert loading.roots() == (Path("/a"), Path("/b"))
    monkeypatch.setenv(loading.VARIABLE, "")
    assert loading.roots() == (loading.OWN,)


def test_the_projects_own_cases_are_all_there() -> None:
    """Every family that has hooks has its files, and no id of a file is used twice."""
    found = {path: loading.cases(path) for path in loading.files(loading.OWN)}
    assert {path.parent.name for path in found} == {"kai", "kube", "vela", "yunikorn"}
    assert sum(map(len, found.values())) == 906


SHARED = Path(loading.OWN).parents[3] / "shared" / "conformance"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared cases are not beside the project")
def test_the_projects_own_cases_are_the_shared_ones() -> None:
    """Byte for byte, file for file."""
    own = {path.relative_to(loading.OWN): path.read_bytes() for path in loading.files(loading.OWN)}
    shared = {path.relative_to(SHARED): path for path in loading.files(SHARED)}
    families = {path.parts[0] for path in own}
    assert own == {name: path.read_bytes() for name, path in shared.items() if name.parts[0] in families}
