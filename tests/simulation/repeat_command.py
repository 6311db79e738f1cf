"""The command that runs one case of the simulation again: a random run by its seed, others among as many as before."""

import dataclasses
import os


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the cases were chosen by."""

    runs: int
    first: int
    every_call: bool


def command(node: str, seed: int | None, options: Options) -> str:
    """For a shell, in the root of the repository; `node` is pytest's name of the case."""
    hash_seed = os.environ.get("PYTHONHASHSEED", "")
    order = f"PYTHONHASHSEED={hash_seed} " if hash_seed.isdecimal() else ""
    if seed is not None:
        return f"{order}.venv/bin/pytest {node.partition('[')[0]} --seed {seed}"
    every = " --every-call" if options.every_call else ""
    return f"{order}.venv/bin/pytest '{node}' --runs {options.runs} --first-seed {options.first}{every}"
