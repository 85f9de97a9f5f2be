"""The reference of the command line is what the commands say of themselves."""

from __future__ import annotations

import re
from pathlib import Path

import click

from multikueued.cli import SUBCOMMANDS, main
from multikueued.commands.exits import EXIT_CODES
from multikueued.commands.reference import stored_help, written_into
from multikueued.lazy_group import HELP
from tests.commands.test_breaks import BREAKS

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "cli.md").read_text()


def test_the_page_is_up_to_date() -> None:
    """`python -m multikueued.commands.reference docs/cli.md` writes it."""
    assert written_into(PAGE) == PAGE


def test_the_stored_help_is_up_to_date() -> None:
    """The same command writes it."""
    assert HELP.read_text() == stored_help()


def test_every_command_and_every_exit_code_is_there() -> None:
    assert all(re.search(rf"^### multikueue {name}\b", PAGE, re.MULTILINE) for name in SUBCOMMANDS)
    assert all(f"| {code} | " in PAGE for code in EXIT_CODES)


def test_the_commands_it_shows_exist() -> None:
    (shown,) = re.findall(r"^```console\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    for line in shown.splitlines():
        _, *words = line.partition("#")[0].split()
        group: click.Command = main
        while isinstance(group, click.Group):
            found = group.get_command(click.Context(group), words.pop(0))
            assert found is not None, line
            group = found
        group.make_context(group.name, words, resilient_parsing=True)


def test_each_break_has_a_finding_that_the_tests_of_breaks_produce() -> None:
    """Three of them stand elsewhere: `test_breaks_told_by_workers` and `reports/test_explanation`."""
    told = set(re.findall(r"^\| .+ \| `([a-z-]+)` \|$", PAGE, re.MULTILINE))
    assert told == {case.id for case in BREAKS} | {"local-queue-missing", "quota-too-small", "clock-skew"}
