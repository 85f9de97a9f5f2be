"""A name that is empty, as of a script's variable that is not set, is refused by every command that takes it.

It stood for another object: an empty `--worker-context` for the current context, which is the manager's, as an empty
`--worker-kubeconfig` for the manager's file, an empty `--worker` for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from multikueued.cli import main

NO_NAMES = {
    *("--reason", "--namespaces", "-l", "command"),  # texts
    "--user-label",  # empty it takes the place of MULTIKUEUE_USER_LABEL
    *("--cert-dir", "--page-cert-dir"),  # folders
    *("--bind-address", "--page-address", "--page-host"),  # addresses
}
"""Texts that name no object."""


def named(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Parameter]]:
    """Each parameter that takes a text, and of which command."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from named(below, (*path, name))
        return
    for parameter in command.params:
        if parameter.type.name == "text" and parameter.opts[0] not in NO_NAMES:
            yield path, parameter


PARAMETERS = list(named(main))


@pytest.mark.parametrize(
    ("path", "parameter"), PARAMETERS, ids=[f"{' '.join(path)} {one.opts[0]}" for path, one in PARAMETERS]
)
def test_an_empty_name_is_wrong_usage(path: tuple[str, ...], parameter: click.Parameter) -> None:
    is_option = isinstance(parameter, click.Option)
    result = CliRunner().invoke(main, [*path, parameter.opts[0], ""] if is_option else [*path, ""])
    called = parameter.opts[0] if is_option else parameter.human_readable_name.upper()
    assert result.exit_code == 2
    assert f"'{called}'" in result.stderr.splitlines()[-1]


def test_a_name_that_is_not_given_is_not_an_empty_one() -> None:
    """Nor is a variable of the environment that is empty, as kubectl takes it."""
    result = CliRunner().invoke(main, ["get", "jobs", "--context", "nowhere"], env={"KUBECONFIG": ""})
    assert "it is empty" not in result.stderr
