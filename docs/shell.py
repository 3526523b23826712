"""The man page of `winnow` and its completion for bash, zsh and fish, made from the command line;
`python -m docs.build` writes them to `deploy/shell/`, from where a wheel installs them.

Not for: what a command does (`cli/`).
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from cli.command import command_line
from server.version import VERSION

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = ROOT / "deploy/shell"
CODES: Final = "0 an answer, 1 a failure, 2 wrong usage, 3 no answer."


class Command(NamedTuple):
    """One command: its name, what it does, its options with their help, its words."""

    name: str
    about: str
    options: dict[str, str]
    words: list[str]
    """Values of its first argument, where there are a few."""


def shell_files() -> dict[Path, str]:
    """Return each file and its text."""
    commands = [*_commands()]
    return {
        FOLDER / "winnow.1": man_page(commands),
        FOLDER / "winnow.bash": bash(commands),
        FOLDER / "_winnow": zsh(commands),
        FOLDER / "winnow.fish": fish(commands),
    }


def _commands() -> Iterator[Command]:
    parser, _ = command_line()
    (choices,) = (
        action
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    for name, command in choices.choices.items():
        options = {
            option: _plain(action.help or "")
            for action in command._actions
            for option in action.option_strings
            if option.startswith("--")
        }
        words = [
            str(choice)
            for action in command._actions
            if not action.option_strings and action.choices
            for choice in action.choices
        ]
        yield Command(name, _plain(command.description or ""), options, words)


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("%%", "%")


def man_page(commands: list[Command]) -> str:
    """Return the page of section 1."""
    lines = [
        f'.TH WINNOW 1 "" "winnow {VERSION}" "User Commands"',
        ".SH NAME",
        r"winnow \- the web and your own documents as small, cited evidence",
        ".SH SYNOPSIS",
        r".B winnow",
        r"\fICOMMAND\fR [\fIOPTION\fR ...]",
        ".SH DESCRIPTION",
        "Without arguments, and with a program at its standard input, it serves MCP. "
        "The package is called winnow-mcp.",
        ".SH COMMANDS",
    ]
    for command in commands:
        lines += [f".SS winnow {_roff(command.name)}", _roff(f"{command.about}.")]
        for option, about in command.options.items():
            lines += [".TP", rf"\fB{_roff(option)}\fR", _roff(about) or _roff(option)]
    lines += [
        ".SH EXIT STATUS",
        CODES,
        ".SH ENVIRONMENT",
        "Every setting is a variable WINNOW_NAME; see docs/settings.md of the repository.",
        ".SH SEE ALSO",
        "https://github.com/winnow\\-mcp/winnow",
    ]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> str:
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{escaped}" if escaped[:1] in (".", "'") else escaped


def bash(commands: list[Command]) -> str:
    """Return the completion for bash: commands, then options, words or files."""
    cases = "\n".join(
        f"    {command.name}) words='{' '.join([*command.words, *command.options])}' ;;"
        for command in commands
    )
    names = " ".join(command.name for command in commands)
    return f"""# Completion of winnow for bash. Written by docs/shell.py.
_winnow() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words=
  if [ "$COMP_CWORD" = 1 ]; then
    words='{names} --help --version'
  else
    case ${{COMP_WORDS[1]}} in
{cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _winnow winnow winnow-mcp
"""


def zsh(commands: list[Command]) -> str:
    """Return the completion for zsh."""
    names = "\n".join(
        f"    '{command.name}:{_quoted(command.about)}'" for command in commands
    )
    cases = "\n".join(
        f"    {command.name}) compadd -- {' '.join([*command.words, *command.options])} ;;"
        for command in commands
    )
    return f"""#compdef winnow winnow-mcp
# Completion of winnow for zsh. Written by docs/shell.py.
local -a commands
if (( CURRENT == 2 )); then
  commands=(
{names}
  )
  _describe command commands
else
  case $words[2] in
{cases}
  esac
  _files
fi
"""


def fish(commands: list[Command]) -> str:
    """Return the completion for fish."""
    lines = ["# Completion of winnow for fish. Written by docs/shell.py."]
    for command in commands:
        lines.append(
            f"complete -c winnow -n __fish_use_subcommand -a {command.name} "
            f"-d '{_quoted(command.about)}'"
        )
        given = f"-n '__fish_seen_subcommand_from {command.name}'"
        if command.words:
            lines.append(f"complete -c winnow {given} -a '{' '.join(command.words)}'")
        lines += [
            f"complete -c winnow {given} -l {option[2:]} -d '{_quoted(about)}'"
            for option, about in command.options.items()
        ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return re.sub(r"[':\\]", "", text)
