"""The reference of the command line is what the commands say of themselves."""

from __future__ import annotations

import re
from pathlib import Path

import click

from multikueued.cli import SUBCOMMANDS, main
from multikueued.commands.exits import EXIT_CODES
from multikueued.commands.reference import written_into
from multikueued.reports.check_remedies import CHECK_RULES, MANAGER_RULES
from multikueued.reports.remedy_table import WORKER_RULES

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "cli.md").read_text()
HELD = re.findall(r"^\| .+ \| `([a-z-]+)` \| `(\S+)::(\w+)` \|$", PAGE, re.MULTILINE)


def test_the_page_is_up_to_date() -> None:
    """`python -m multikueued.commands.reference docs/cli.md` writes it."""
    assert written_into(PAGE) == PAGE


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


def test_each_break_names_a_finding_and_a_test_that_exist() -> None:
    assert len(HELD) == 15
    ids = {rule.id for rule in (*WORKER_RULES, *CHECK_RULES, *MANAGER_RULES)} | {"cluster-missing", "clock-skew"}
    for finding, file, test in HELD:
        text = (TESTS / file).read_text()
        assert finding in ids
        assert re.search(rf"def {test}\b.*?\"{finding}\"", text, re.DOTALL), (finding, test)
