"""The commands that our texts tell people to run, read as a shell would: remedies, next steps, errors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, cast

import attrs
import click

import multikueued
from multikueued.cli import main
from multikueued.reports.remedies.remedy import REMEDIES

_ROOT: Final = Path(str(multikueued.__file__)).parent
_ABOUT_COMMANDS: Final = {_ROOT / "cli.py", _ROOT / "commands" / "reference.py"}
"""They name commands, and tell nobody to run one."""
SOURCES: Final = sorted({*_ROOT.rglob("*.py"), *_ROOT.rglob("remedies.toml")} - _ABOUT_COMMANDS)
_END: Final = ",;:)`\"'"
_VERBS: Final = frozenset(
    {
        "annotate",
        "apply",
        "auth",
        "certificate",
        "create",
        "delete",
        "describe",
        "explain",
        "get",
        "label",
        "logs",
        "patch",
        "scale",
    }
)
_KUBECTL: Final = {
    **dict.fromkeys(
        (
            "-n",
            "-f",
            "-l",
            "-o",
            "-p",
            "--as",
            "--context",
            "--kubeconfig",
            "--replicas",
            "--type",
            "--wait",
            "--from-file",
            "--dry-run",
            "--hard",
        ),
        True,
    ),
    **dict.fromkeys(("-A", "--ignore-not-found", "--overwrite", "--show-labels", "--show-managed-fields"), False),
}
"""By option: whether a value follows."""


@attrs.frozen
class Printed:
    """A command in a text."""

    where: str
    words: tuple[str, ...]
    """Without the program's name."""
    lacks: tuple[str, ...] = ()
    """What it must have and has not, or has and may not."""


@cache
def texts(path: Path) -> tuple[tuple[int, str], ...]:
    """The texts of a module with their lines, without docstrings; what is filled in stands as `{}`.

    Of the table of remedies each row is a line.
    """
    if path.suffix == ".toml":
        return tuple((line, f"{row.remedy}\n{row.command}") for line, row in enumerate(REMEDIES.values()))
    return tuple(_texts(path))


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    tree = ast.parse(path.read_text())
    helps = (node for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "help")
    skipped = {id(node.value) for node in helps}
    skipped |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    skipped |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "{x}" for part in node.values)
            yield node.lineno, "".join(parts)


def all_texts() -> Iterator[tuple[str, str]]:
    """All that we tell people, and where it stands."""
    return ((f"{path.name}:{line}", text) for path in SOURCES for line, text in texts(path))


def printed(program: str, texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """Where a program's name stands in a text, and the words after it."""
    for where, text in texts:
        for rest in re.split(rf"(?<![\w./-]){program} ", text)[1:]:
            yield where, rest.split()


def flaws_of(remedy: str) -> dict[str, tuple[str, ...]]:
    """By command of a remedy in which the names are filled in: why it cannot be pasted."""
    texts = [("", remedy)]
    commands = (*ours(texts, is_filled=True), *of_kubectl(texts))
    return {" ".join(command.words): command.lacks for command in commands if command.lacks}


def ours(texts: Iterable[tuple[str, str]] | None = None, *, is_filled: bool = False) -> Iterator[Printed]:
    """Commands of `multikueue`: words that begin with the name of one.

    Args:
        texts: texts, and where they stand; None: all that there are.
        is_filled: whether names stand in them, and no placeholders.
    """
    for where, rest in printed("multikueue", all_texts() if texts is None else texts):
        words, command = rest, cast("click.Command", main)
        path: list[str] = []
        while isinstance(command, click.Group) and words:
            name = words[0].rstrip(_END)
            subcommand = command.get_command(click.Context(command), name)
            if subcommand is None:
                break
            path.append(name)
            command, words = subcommand, words[1:] if words[0] == name else []
        if path and not isinstance(command, click.Group):
            yield _read(where, path, command, words, is_filled)


def _read(where: str, path: list[str], command: click.Command, words: list[str], is_filled: bool) -> Printed:
    options = {
        name: option
        for option in command.params
        if isinstance(option, click.Option)
        for name in (*option.opts, *option.secondary_opts)
    }
    places = [str(param.name) for param in command.params if isinstance(param, click.Argument) and param.required]
    given, lacks, rest = list[str](), list[str](), iter(words)
    for word in rest:
        bare, last = word.rstrip(_END), word
        if bare in options:
            given.append(bare)
            if not options[bare].is_flag:
                last = next(rest, "")
                given.append(last.rstrip(_END))
                lacks += [f"a value of {bare}"] * (not (is_filled or is_word(given[-1])))
        elif bare.startswith("-"):
            lacks.append(f"{bare}, which it has not")
        elif (is_filled or is_word(bare)) and places:
            places.pop(0)
            given.append(bare)
        else:
            break
        if last[-1:] in _END:
            break
    required = [option for option in options.values() if option.required and not set(option.opts) & set(given)]
    if "job" in [param.name for param in command.params] and any("{" in word for word in given) and "-n" not in given:
        lacks.append("the namespace of that job")
    return Printed(where, (*path, *given), (*lacks, *places, *(option.opts[0] for option in required)))


def is_word(word: str) -> bool:
    """Whether it is a name that is filled in, or a placeholder in capitals, and no word of the sentence."""
    return "{" in word or word.isupper()


def of_kubectl(texts: Iterable[tuple[str, str]] | None = None) -> Iterator[Printed]:
    """Commands of kubectl: its verbs and options as far as our texts use them."""
    for where, words in printed("kubectl", all_texts() if texts is None else texts):
        given, lacks, rest = list[str](), list[str](), iter(words)
        for word in rest:
            bare = word.rstrip(_END)
            if bare.startswith("-"):
                name, equals, _ = bare.partition("=")
                takes = _KUBECTL.get(name)
                lacks += [f"{name}, which is not known"] * (takes is None)
                given += [bare] if equals or not takes else [bare, next(rest, "")]
            else:
                given.append(bare)
            if word[-1:] in _END:
                break
        if any(not before.startswith("-") for before in given[2:]):  # more than the beginning of one
            lacks += ["a verb"] * (not _VERBS & set(given))
            yield Printed(where, tuple(given), tuple(lacks))
