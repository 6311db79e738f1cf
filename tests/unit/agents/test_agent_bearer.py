"""The token file: renewed while it is read, and never shown."""

import os
import pathlib

import pytest

from slurm_bridge import errors
from slurm_bridge.agents.bearer import AcceptedTokens


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    """A file with one token."""
    file = tmp_path / "token"
    file.write_text("secret-one\n")
    return file


def test_a_token_that_was_written_anew_is_used(path: pathlib.Path) -> None:
    """In place."""
    file = AcceptedTokens(path)
    assert file.first() == "secret-one"
    path.write_text("secret-second\n")
    assert file.first() == "secret-second"


def test_a_token_whose_link_was_moved_is_used(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """As the kubelet exchanges a mounted Secret."""
    link, renewed = tmp_path / "link", tmp_path / "renewed"
    link.symlink_to(path)
    file = AcceptedTokens(link)
    assert file.first() == "secret-one"
    renewed.write_text("secret-two\n")
    (tmp_path / "new").symlink_to(renewed)
    (tmp_path / "new").replace(link)
    assert file.first() == "secret-two"


def test_a_file_that_is_empty_for_a_moment_keeps_its_token(path: pathlib.Path) -> None:
    """A shell empties it before it writes."""
    file = AcceptedTokens(path)
    assert file.first() == "secret-one"
    path.write_text("")
    assert file.first() == "secret-one"
    path.write_text("secret-two\n")
    assert file.first() == "secret-two"


def test_a_renewal_that_stat_does_not_show_is_found_when_asked_again(path: pathlib.Path) -> None:
    """Same length, same inode, same time."""
    file = AcceptedTokens(path)
    seen = path.stat()
    assert file.first() == "secret-one"
    path.write_text("secret-two\n")
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert file.again() == "secret-two"


def test_any_of_several_tokens_is_known(path: pathlib.Path) -> None:
    """So that a renewal refuses nobody in between."""
    path.write_text("secret-one\n\nsecret-two\n")
    file = AcceptedTokens(path)
    assert file.first() == "secret-one"
    assert [file.knows(one) for one in ("secret-one", "secret-two", "secret-three", "", "ü")] == [
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file"), ("\n", "is empty"), ("two words", "not a token"), ("täst", "not a token")],
)
def test_a_file_without_a_token_is_named(path: pathlib.Path, content: str | None, said: str) -> None:
    """And nothing of what it holds."""
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(errors.BadConfiguration, match=f"token file {path}.*{said}") as raised:
        AcceptedTokens(path).first()
    assert content is None or not content.strip() or content not in str(raised.value)


def test_its_repr_names_the_path_alone(path: pathlib.Path) -> None:
    """Logs show objects."""
    file = AcceptedTokens(path)
    file.first()
    assert "secret" not in repr(file)
