"""Options of the demo that exclude each other."""

from __future__ import annotations

from collections.abc import Mapping

import click
from click.core import ParameterSource

from multikueue.errors import SettingsError


def check_alone(context: click.Context, others: Mapping[str, str], told: str) -> None:
    """Refuse options that have no place beside another one.

    Args:
        context: of the command.
        others: the names of their parameters, and how they are written.
        told: how the message begins: the option, and why.

    Raises:
        SettingsError: one of them was given.
    """
    for name, option in others.items():
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise SettingsError(f"{told}: leave {option} out")
