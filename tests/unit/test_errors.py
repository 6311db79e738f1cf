"""The exception tree is drawn where it is written, and the drawing is complete."""

import inspect

import pytest

from slurm_bridge import errors

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_is_in_the_drawing(kind: type[Exception]) -> None:
    """Whoever reads the module's head has seen every error there is."""
    assert f"{kind.__name__} " in f"{errors.__doc__} ".replace("\n", " ")


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_has_the_one_root(kind: type[Exception]) -> None:
    """One except clause at the top of the program sees them all."""
    assert issubclass(kind, errors.BridgeError)


def test_an_error_carries_what_the_server_wished() -> None:
    """A wish for a pause and a number travel with the error."""
    assert errors.Unavailable("full", retry_after=3).retry_after == 3
    assert errors.Conflict("taken", code=2011).code == 2011
