"""The token file: every way of renewing it is seen, and the token itself never is."""

import base64
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge import errors
from slurm_bridge.model.slurmtoken import TokenLife
from slurm_bridge.slurm import token as token_file
from slurm_bridge.slurm.token import TokenFile


def signed(claims: object) -> str:
    """A token with these claims, and a signature of nobody."""
    head, body = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "HS256"}, claims)
    )
    return f"{head.decode()}.{body.decode()}.c2VjcmV0"


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


def test_the_life_of_a_token_is_read_from_its_claims(token, clock):
    """As `scontrol token` makes them; a new token has another end."""
    file = TokenFile(token, clock.now)
    token.write_text(f"SLURM_JWT={signed({'exp': 5400, 'iat': 3600, 'sun': 'slurm'})}\n")
    assert file.life() == TokenLife(issued=3600, expires=5400)
    token.write_text(signed({"exp": 9000, "iat": 5000}))
    clock.advance(1)
    assert file.life() == TokenLife(issued=5000, expires=9000)
    token.unlink()
    clock.advance(1)
    assert file.life() is None


@pytest.mark.parametrize(
    "claims", [{}, [], "exp", {"exp": 9}, {"iat": 1, "exp": "9"}, {"iat": 9, "exp": 9}, {"iat": 0, "exp": 1e999}]
)
def test_a_token_whose_end_makes_no_sense_has_none(claims):
    """Other clusters' authentication may use tokens of any form."""
    assert token_file.life_of(signed(claims)) is None


@given(st.text(max_size=60) | st.text("eyJ.A_-=", max_size=60))
def test_no_token_is_a_reason_to_fail(text):
    """The end of a token is a remark: whatever the file holds is sent as it is."""
    token_file.life_of(text)
