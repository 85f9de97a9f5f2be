"""The reference of the command line is what the commands say of themselves."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from multikueued.cli import main
from multikueued.lazy_group import HELP
from tests.commands.test_breaks import BREAKS
from tests.commands.test_ten_breaks import BREAKS as TEN
from tests.docs.cli_reference import EXIT_CODES, pages, stored_help

TESTS = Path(__file__).parents[1]
DOCS = TESTS.parent / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
OVERVIEW = (DOCS / "cli.md").read_text()


def test_the_pages_are_up_to_date() -> None:
    """`python -m tests.docs.cli_reference` writes them."""
    assert [page.name for page, text in pages().items() if page.read_text() != text] == []


def test_each_page_loads_on_a_telephone() -> None:
    """All in one it was 50 KB of Markdown."""
    assert {page.name: len(text) for page, text in pages().items() if len(text) > 25_000} == {}


def test_the_stored_help_is_up_to_date() -> None:
    """The same command writes it."""
    assert HELP.read_text() == stored_help()


def test_every_command_and_every_exit_code_is_there() -> None:
    reference = "".join(pages().values())
    assert all(re.search(rf"^## multikueue {name}\b", reference, re.MULTILINE) for name in main.subcommands)
    assert all(f"| {code} | " in OVERVIEW for code in EXIT_CODES)


def _shown(page: str) -> Iterator[str]:
    """The commands of a page: lines of its code, and what stands in a sentence."""
    for block in re.findall(r"^```(?:console|bash|sh)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        lines = block.replace("\\\n", " ").splitlines()
        yield from (line for line in lines if line.startswith("multikueue "))
    yield from (" ".join(command.split()) for command in re.findall(r"`(multikueue [^`]+)`", page))


def _flaw(line: str) -> str:
    """Why a command line is none; files need not exist, and a sentence may leave arguments out."""
    _, *words = itertools.takewhile(lambda word: word not in ("|", ">", "&"), shlex.split(line, comments=True))
    command: click.Command = main
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        subcommand = command.get_command(click.Context(command), words.pop(0))
        if subcommand is None:
            return "no such command"
        command = subcommand
    if isinstance(command, click.Group):
        return ""
    try:
        command.make_context(command.name, words)
    except click.MissingParameter:
        return ""
    except click.UsageError as error:
        return "" if "does not exist" in str(error) else error.format_message()
    except click.exceptions.Exit:  # --help
        return ""
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_commands_that_a_page_shows_are_taken(page: Path) -> None:
    """An option was renamed, and a page that was written meanwhile went on with its former name."""
    assert {line: why for line in _shown(page.read_text()) if (why := _flaw(line))} == {}


def test_a_command_line_that_is_none_is_seen() -> None:
    assert "--worker" in _flaw("multikueue worker add oslo --worker oslo")
    assert _flaw("multikueue worker ad oslo") == "no such command"
    assert "--olso" in _flaw("multikueue status --olso  # a comment")


def test_each_break_has_a_finding_that_the_tests_of_breaks_produce() -> None:
    """That of the clocks stands in `reports/test_explanation`."""
    on_page = set(re.findall(r"^\| .+ \| `([a-z-]+)` \|$", OVERVIEW, re.MULTILINE))
    ten = {finding for case in TEN for command, (finding, _) in case.expected.items() if command == "explain"}
    assert on_page == {case.id for case in BREAKS} | ten | {"clock-skew"}


def test_the_output_for_programs_describes_whatever_stands_in_it() -> None:
    """Types of which nothing was said, and rows that a `|` had split."""
    page = (DOCS / "cli/output.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    assert [row for row in rows if len(row) != 3] == []
    kinds = {kind.removeprefix("list of ").removesuffix(" or null") for _, kind, _ in rows}
    described = set(re.findall(r"^\*\*(\w+)\*\*: ", page, re.MULTILINE))
    assert {kind for kind in kinds if re.fullmatch(r"[A-Z]\w+", kind)} <= described
