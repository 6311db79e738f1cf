"""The page of the tutorial can be run: what `make tutorial` reads of it is all that it shows."""

import re
import subprocess

from tests.tutorial import test_tutorial


def test_every_block_of_commands_is_run() -> None:
    """No block is in a form that would be passed over."""
    text = test_tutorial.PAGE.read_text()
    assert len(list(test_tutorial.steps(text))) == len(re.findall(r"^ *```sh$", text, re.MULTILINE)) >= 15
    assert set(re.findall(r"^ *```(\w*)$", text, re.MULTILINE)) == {"sh", "text", ""}


def test_the_commands_are_a_shell_script() -> None:
    """As a whole, because later blocks use what earlier ones set."""
    commands = "\n".join(one.commands for one in test_tutorial.steps(test_tutorial.PAGE.read_text()))
    checked = subprocess.run(("bash", "-n"), input=commands, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_words_of_a_line_are_found_in_order() -> None:
    """With anything between them, and within one line."""
    assert test_tutorial.shown("real1   Ready", "NAME STATUS\nreal1 x Ready <none>\n")
    assert not test_tutorial.shown("real1 Ready", "real1\nReady\n")
