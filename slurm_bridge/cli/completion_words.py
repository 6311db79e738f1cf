"""The words that a parser of arguments takes, as a tree: completion and the command reference follow from it."""

import argparse
import dataclasses
import pathlib
import re
from collections.abc import Iterator, Sequence

#: As kubectl's own completion counts: no file names, and no blank after the only match.
_NO_FILES, _FILES = ":4", ":0"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CommandOption:
    """An option (`flags`) or a positional argument (none). `files`: its value is the name of a file."""

    flags: tuple[str, ...]
    value: str
    choices: tuple[str, ...]
    files: bool
    help: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CommandWords:
    """A command with its options and subcommands; `path` is the words before it."""

    path: tuple[str, ...]
    help: str
    options: tuple[CommandOption, ...]
    positionals: tuple[CommandOption, ...]
    commands: "tuple[CommandWords, ...]"

    @property
    def name(self) -> str:
        """The last word of it."""
        return self.path[-1]

    def every(self) -> "Iterator[CommandWords]":
        """This command and all below it."""
        yield self
        for command in self.commands:
            yield from command.every()


def tree(parser: argparse.ArgumentParser, path: tuple[str, ...] = (), words: str = "") -> CommandWords:
    """All that this parser takes."""
    path = path or (parser.prog,)
    options, positionals, commands = list[CommandOption](), list[CommandOption](), list[CommandWords]()
    for action in parser._actions:  # noqa: SLF001 - argparse has no public name for them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - likewise
            said = {one.dest: one.help or "" for one in action._choices_actions}  # noqa: SLF001 - likewise
            commands += [tree(one, (*path, name), said.get(name, "")) for name, one in action.choices.items()]
        elif action.option_strings:
            options.append(_option(parser, action))
        else:
            positionals.append(_option(parser, action))
    return CommandWords(
        path=path, help=words, options=tuple(options), positionals=tuple(positionals), commands=tuple(commands)
    )


def _option(parser: argparse.ArgumentParser, action: argparse.Action) -> CommandOption:
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    choices = tuple(map(str, action.choices or ()))
    value = "" if action.nargs == 0 else metavar or "|".join(choices) or action.dest.upper()
    files = action.type is pathlib.Path or "FILE" in re.split(r"\W+", metavar)
    help_ = (action.help or "") % {**vars(action), "prog": parser.prog}
    return CommandOption(flags=tuple(action.option_strings), value=value, choices=choices, files=files, help=help_)


def answer(parser: argparse.ArgumentParser, words: Sequence[str]) -> Iterator[str]:
    """What may stand for the last of these words, with descriptions, and what the shell should do beside that.

    The form is that of kubectl's own commands: a line for each, then a colon and a number.
    """
    *before, incomplete = words or [""]
    command, option, given = _reached(tree(parser), before)
    if option is not None:
        found, files = [(choice, "") for choice in option.choices], option.files
    elif incomplete.startswith("-"):
        found, files = [(flag, one.help) for one in command.options for flag in one.flags], False
    else:
        positional = command.positionals[min(given, len(command.positionals) - 1)] if command.positionals else None
        found = [(one.name, one.help) for one in command.commands]
        found += [(choice, "") for choice in positional.choices] if positional else []
        files = positional is not None and positional.files
    yield from ("\t".join(filter(None, one)) for one in found if one[0].startswith(incomplete))
    yield _FILES if files else _NO_FILES


def _reached(command: CommandWords, words: Sequence[str]) -> tuple[CommandWords, CommandOption | None, int]:
    """The command that these words lead to, the option that waits for its value, and how many arguments are there."""
    waits: CommandOption | None = None
    given = 0
    for word in words:
        if waits is not None:
            waits = None
        elif word.startswith("-"):
            waits = next((one for one in command.options if one.value and word in one.flags), None)
        elif below := next((one for one in command.commands if one.name == word), None):
            command, given = below, 0
        else:
            given += 1
    return command, waits, given
