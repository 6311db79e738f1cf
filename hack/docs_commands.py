"""The reference of the command line, from the parsers of its arguments."""

from collections.abc import Iterator

from slurm_bridge.cli import command_line, completion_words
from slurm_bridge.cli.completion_words import CommandOption, CommandWords


def commands() -> str:
    """Both programs."""
    programs = (command_line.parser(), command_line.plugin_parser())
    return "\n".join(line for parser in programs for line in _program(completion_words.tree(parser)))


def _program(program: CommandWords) -> Iterator[str]:
    for command in program.every():
        path = " ".join(command.path)
        yield from (f"{'##' if command is program else '###'} {path}", "")
        if command.help:
            yield from (f"{command.help[0].upper()}{command.help[1:]}.", "")
        words = [_value(one) for one in command.positionals]
        yield from ("```", " ".join([path, *(["[OPTION ...]"] if command.options else []), *words]) + _below(command))
        yield from ("```", "")
        yield from _table(command)


def _below(command: CommandWords) -> str:
    return " COMMAND" if command.commands else ""


def _value(one: CommandOption) -> str:
    return "|".join(one.choices) or one.value


def _table(command: CommandWords) -> Iterator[str]:
    rows = [one for one in (*command.positionals, *command.options) if "--help" not in one.flags]
    if rows:
        yield from ("| option | |", "|---|---|")
        for one in rows:
            name = ", ".join(one.flags) + (f" {_value(one)}" if one.value else "") if one.flags else _value(one)
            yield f"| `{_cell(name)}` | {_cell(one.help)} |"
        yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
