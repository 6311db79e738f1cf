"""The token file: every way of renewing it is seen, and the token itself never is."""

import os

import pytest

from slurm_bridge import errors
from slurm_bridge.slurm.token import TokenFile


@pytest.mark.parametrize("text", ["abc.def", "SLURM_JWT=abc.def\n", "  SLURM_JWT=abc.def  \n\n"])
def test_the_prefix_of_scontrol_is_accepted(text, tmp_path, clock):
    """`scontrol token` prints an assignment, secrets usually hold the bare token."""
    path = tmp_path / "token"
    path.write_text(text)
    assert TokenFile(path, clock.now).current() == "abc.def"


def test_a_rewritten_file_is_read_again(token, clock):
    """A change of time, size or inode is enough."""
    file = TokenFile(token, clock.now)
    file.current()
    token.write_text("second")
    clock.advance(1)
    assert file.current() == "second"


def test_a_file_is_looked_at_once_a_second(token, clock):
    """Hundreds of calls per second share one look, even one at a file that went away; a refused token asks for more."""
    file = TokenFile(token, clock.now)
    file.current()
    token.unlink()
    clock.advance(0.9)
    assert file.current() == "first.secret.token"
    token.write_text("second")
    assert file.changed_since("first.secret.token")
    assert file.current() == "second"
    token.unlink()
    clock.advance(1)
    with pytest.raises(errors.BadConfiguration):
        file.current()


def test_a_swapped_symbolic_link_is_seen(tmp_path, clock):
    """Mounted secrets change by moving a link to another directory."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(name)
        os.utime(tmp_path / name / "token", (1, 1))
    (tmp_path / "data").symlink_to("one")
    file = TokenFile(tmp_path / "data" / "token", clock.now)
    assert file.current() == "one"
    (tmp_path / "new").symlink_to("two")
    (tmp_path / "new").rename(tmp_path / "data")
    clock.advance(1)
    assert file.current() == "two"


def test_an_unchanged_file_is_not_read(token, clock):
    """The file may even become unreadable as long as it looks the same."""
    file = TokenFile(token, clock.now)
    before = token.stat()
    assert file.current() == "first.secret.token"
    token.write_text("SLURM_JWT=other.secret.token\n")
    os.utime(token, ns=(before.st_atime_ns, before.st_mtime_ns))
    clock.advance(1)
    assert file.current() == "first.secret.token"
    assert file.changed_since("first.secret.token")
    assert file.current() == "other.secret.token"


def test_a_moment_of_emptiness_keeps_the_old_token(token, clock):
    """A shell that redirects into the file empties it before it writes."""
    file = TokenFile(token, clock.now)
    file.current()
    token.write_text("")
    clock.advance(1)
    assert file.current() == "first.secret.token"
    token.write_text("third")
    clock.advance(1)
    assert file.current() == "third"


@pytest.mark.parametrize("text", ["", "\n", "SLURM_JWT=\n", "two words", "line\nbreak", "\u00e4"])
def test_what_is_no_token_is_named_by_its_file_only(text, tmp_path, clock):
    """The message names the path and repeats nothing of the content."""
    path = tmp_path / "token"
    path.write_text(text)
    with pytest.raises(errors.BadConfiguration) as caught:
        TokenFile(path, clock.now).current()
    assert str(path) in str(caught.value)
    assert "words" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path, clock):
    """The operator has to know which file is meant."""
    with pytest.raises(errors.BadConfiguration, match="nowhere"):
        TokenFile(tmp_path / "nowhere", clock.now).current()


def test_the_token_is_in_no_repr(token, clock):
    """Neither of the file nor of what it has read."""
    file = TokenFile(token, clock.now)
    file.current()
    assert "secret" not in repr(file)
