"""`slurm-bridge completion`: scripts by which bash, zsh and fish complete the command line, without starting Python.

Each is made of the words that the parser of the arguments takes. `kubectl` completes `kubectl slurm` itself: it asks
the program `kubectl_complete-slurm`.
"""

import argparse
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from slurm_bridge.cli import completion_words
from slurm_bridge.cli.completion_words import CommandOption, CommandWords
from slurm_bridge.cli.configured import Commands


def add(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser("completion", help="print the script by which a shell completes this command line")
    parser.add_argument("shell", choices=tuple(SHELLS), help="the shell that reads it")
    parser.set_defaults(run=_print)


def _print(options: argparse.Namespace) -> int:
    print(script(options.shell, options.whole), end="")
    return 0


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The script for this shell."""
    return "\n".join(SHELLS[shell](completion_words.tree(parser))) + "\n"


def _function(words: CommandWords) -> str:
    return "_" + words.name.replace("-", "_").replace(" ", "_")


def _walk(words: CommandWords, word: str) -> Iterator[str]:
    """Lines of bash and zsh: after them, `path` is the command that the words so far lead to, `prev` an open option."""
    yield f"    path={shlex.quote(words.name)} prev="
    yield f"    for word in {word}; do"
    yield "        if [[ -n $prev ]]; then prev=; continue; fi"
    yield '        case "$path $word" in'
    for command in words.every():
        head = shlex.quote(" ".join(command.path))
        for flag in (flag for one in command.options if one.value for flag in one.flags):
            yield f"            {head}' {flag}') prev=$word ;;"
        for below in command.commands:
            yield f"            {head}' {below.name}') path={shlex.quote(' '.join(below.path))} ;;"
    yield "        esac"
    yield "    done"


def _bash(words: CommandWords) -> Iterator[str]:
    name = _function(words)
    yield f"# bash completion of {words.name}: source <({words.name} completion bash)"
    yield f"{name}() {{"
    yield "    local word path prev cur=${COMP_WORDS[COMP_CWORD]}"
    yield "    COMPREPLY=()"
    yield from _walk(words, '"${COMP_WORDS[@]:1:COMP_CWORD-1}"')
    yield '    case "$path $prev" in'
    for command in words.every():
        head = shlex.quote(" ".join(command.path) + " ")
        for option in (one for one in command.options if one.value):
            for flag in option.flags:
                yield f"        {head}{shlex.quote(flag)}) {_bash_reply(option)} ;;"
        flags = " ".join(flag for one in command.options for flag in one.flags)
        rest = [one.name for one in command.commands] + [word for one in command.positionals for word in one.choices]
        files = any(one.files for one in command.positionals)
        reply = f'COMPREPLY=($(compgen -W {shlex.quote(" ".join(rest))} -- "$cur"))'
        more = '; compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -f -- "$cur"))' if files else ""
        yield f"        {head}) if [[ $cur == -* ]]"
        yield f'            then COMPREPLY=($(compgen -W {shlex.quote(flags)} -- "$cur"))'
        yield f"            else {reply}{more}"
        yield "            fi ;;"
    yield "    esac"
    yield "}"
    yield f"complete -F {name} {words.name}"


def _bash_reply(option: CommandOption) -> str:
    if option.files:
        return 'compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur"))'
    return f'COMPREPLY=($(compgen -W {shlex.quote(" ".join(option.choices))} -- "$cur"))' if option.choices else ":"


def _zsh(words: CommandWords) -> Iterator[str]:
    name = _function(words)
    yield f"#compdef {words.name}"
    yield f"# zsh completion of {words.name}: source <({words.name} completion zsh), after compinit"
    yield f"{name}() {{"
    # `path` is a variable of zsh itself, tied to PATH.
    yield "    local word way prev cur=${words[CURRENT]}"
    yield "    local -a found"
    yield from (
        line.replace("path=", "way=").replace("$path", "$way") for line in _walk(words, '"${(@)words[2,CURRENT-1]}"')
    )
    yield '    case "$way $prev" in'
    for command in words.every():
        head = shlex.quote(" ".join(command.path) + " ")
        for option in (one for one in command.options if one.value):
            reply = "_files" if option.files else f"compadd -- {shlex.join(option.choices)}" if option.choices else ":"
            for flag in option.flags:
                yield f"        {head}{shlex.quote(flag)}) {reply} ;;"
        flags = [(flag, one.help) for one in command.options for flag in one.flags]
        rest = [(one.name, one.help) for one in command.commands]
        rest += [(word, "") for one in command.positionals for word in one.choices]
        yield f"        {head})"
        yield f"            if [[ $cur == -* ]]; then found=({_described(flags)}); _describe option found"
        yield f"            else found=({_described(rest)}); _describe command found"
        yield "            " + ("_files; fi ;;" if any(one.files for one in command.positionals) else "fi ;;")
    yield "    esac"
    yield "}"
    yield f"compdef {name} {words.name}"


def _described(pairs: list[tuple[str, str]]) -> str:
    """Words with descriptions, as `_describe` takes them: a colon ends the word."""
    return " ".join(shlex.quote(f"{word.replace(':', chr(92) + ':')}:{words}".rstrip(":")) for word, words in pairs)


def _fish(words: CommandWords) -> Iterator[str]:
    name, tool = _function(words).replace("_", "__fish_", 1), words.name
    yield f"# fish completion of {tool}: {tool} completion fish | source"
    yield f"function {name}_at"
    yield f"    set --local path {shlex.quote(tool)}"
    yield "    set --local prev ''"
    yield "    for word in (commandline -opc)[2..]"
    yield '        if test -n "$prev"'
    yield "            set prev ''"
    yield "            continue"
    yield "        end"
    yield '        switch "$path $word"'
    for command in words.every():
        head = " ".join(command.path)
        for flag in (flag for one in command.options if one.value for flag in one.flags):
            yield f"            case {_fished(f'{head} {flag}')}"
            yield "                set prev $word"
        for below in command.commands:
            yield f"            case {_fished(f'{head} {below.name}')}"
            yield f"                set path {_fished(' '.join(below.path))}"
    yield "        end"
    yield "    end"
    yield '    test "$path" = "$argv[1]"'
    yield "end"
    yield f"complete -c {tool} -f"
    for command in words.every():
        at = f"complete -c {tool} -n {_fished(name + '_at ' + _fished(' '.join(command.path)))}"
        for below in command.commands:
            yield f"{at} -a {_fished(below.name)} -d {_fished(below.help)}"
        for positional in command.positionals:
            yield from ([f"{at} -F"] if positional.files else [])
            yield from (f"{at} -a {_fished(word)}" for word in positional.choices)
        for option in command.options:
            yield f"{at}{_fish_flags(option)} -d {_fished(option.help)}"


def _fish_flags(option: CommandOption) -> str:
    flags = "".join(f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}" for flag in option.flags)
    if not option.value:
        return flags
    return f"{flags} -r" + (" -F" if option.files else f" -x -a {_fished(' '.join(option.choices))}")


def _fished(text: str) -> str:
    """Quoted for fish, where only these two letters mean something between quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SHELLS: Final[Mapping[str, Callable[[CommandWords], Iterator[str]]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
