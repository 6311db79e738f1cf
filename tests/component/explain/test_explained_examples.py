"""Every example has a page with what `slurm-bridge explain` says of it, and the page is what the code says now."""

import pathlib
from collections.abc import Mapping

import pytest

from hack import docs_explained
from slurm_bridge.demo import work

pytestmark = pytest.mark.thorough

PROJECT = pathlib.Path(__file__).resolve().parents[3]
PAGES = PROJECT / "docs" / "explained"
FOLDERS = [path for path in (PROJECT / "examples").iterdir() if path.name not in work.APART]
EXAMPLES = sorted(path.name for path in FOLDERS if any(path.glob("*.yaml")))


@pytest.fixture(scope="module")
def written() -> Mapping[str, str]:
    """As the code would write them now."""
    return docs_explained.pages()


def test_every_example_has_its_page_and_no_page_is_left_over() -> None:
    """Beside the list of them, and the pods of the families."""
    names = ["README", *EXAMPLES, *docs_explained.FAMILIES]
    assert sorted(page.name for page in PAGES.glob("*.md")) == sorted(f"{name}.md" for name in names)


@pytest.mark.parametrize("name", [*EXAMPLES, *docs_explained.FAMILIES])
def test_the_page_of_an_example_is_current(name: str, written: Mapping[str, str]) -> None:
    """`make docs` writes it again."""
    assert (PAGES / f"{name}.md").read_text() == written[f"{name}.md"]


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in docs_explained.HOOKS])
def test_an_example_would_be_submitted(name: str, written: Mapping[str, str]) -> None:
    """With the configuration that is shipped."""
    verdicts = {line for line in written[f"{name}.md"].splitlines() if line.startswith("  would ")}
    assert verdicts == {"  would be submitted"}


def test_the_example_with_a_hook_of_its_own_waits_as_that_hook_says(written: Mapping[str, str]) -> None:
    """It is evening where the clock of these pages stands."""
    assert "would wait: OutsideOfficeHours: the office opens on Wednesday at 08:00" in written["custom-hook.md"]


@pytest.mark.parametrize("name", [name for name in docs_explained.FAMILIES if name.endswith("-waits")])
def test_the_pod_of_a_family_waits_and_the_family_is_named(name: str, written: Mapping[str, str]) -> None:
    """The hook, and a reason that counts nodes."""
    page = written[f"{name}.md"]
    assert "would wait: Unschedulable: " in page
    (held,) = (line for line in page.splitlines() if line.startswith("  held by "))
    assert f"hook {name.removesuffix('-waits')}" in held
