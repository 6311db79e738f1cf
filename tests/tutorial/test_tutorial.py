"""Every command of docs/tutorial.md, in order and in one shell, with what the page says that they print.

It starts the local cluster where none runs, and the page's last commands remove it: `make tutorial`.
"""

import dataclasses
import pathlib
import re
import subprocess
from collections.abc import Iterator

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs" / "tutorial.md"

#: Blocks, also those within items of lists.
BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE)
#: The servers are built the first time.
SECONDS = 3600.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Commands, and lines that they have to print."""

    line: int
    commands: str
    printed: tuple[str, ...]


def steps(text: str) -> Iterator[Step]:
    """The blocks in `sh`, each with the block in `text` behind it."""
    found = list(BLOCK.finditer(text))
    for number, block in enumerate(found):
        if block["language"] == "sh":
            after = found[number + 1] if number + 1 < len(found) else None
            printed = after["text"].splitlines() if after is not None and after["language"] == "text" else []
            commands = "\n".join(line.removeprefix(block["indent"]) for line in block["text"].splitlines())
            yield Step(line=text.count("\n", 0, block.start()) + 1, commands=commands, printed=tuple(printed))


def shown(line: str, output: str) -> bool:
    """Whether the words of a line stand in one line of the output, in this order."""
    pattern = r"[^\n]*".join(re.escape(word) for word in line.split())
    return re.search(pattern, output) is not None


@pytest.mark.timeout(SECONDS)
def test_every_command_of_the_tutorial_works() -> None:
    """In one shell that ends at the first command that fails."""
    every = list(steps(PAGE.read_text()))
    # A mark after each step tells the outputs apart.
    script = "set -euo pipefail\n" + "".join(f"{one.commands}\necho '== end of step {one.line}'\n" for one in every)
    with subprocess.Popen(
        ("bash", "-c", script), cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as shell:
        assert shell.stdout is not None
        output = shell.stdout.read()
        status = shell.wait(SECONDS)
    assert status == 0, f"the tutorial ended early:\n{output[-4000:]}"
    for one in every:
        said, _, output = output.partition(f"== end of step {one.line}\n")
        missing = [line for line in one.printed if not shown(line, said)]
        assert not missing, f"{PAGE.name}:{one.line} did not print {missing}, but:\n{said}"
