"""An option that is a time."""

from __future__ import annotations

import click

from multikueued.settings.values import parse_duration


class Duration(click.ParamType[float]):
    """Seconds, written as in the settings: `90s`, `15m`."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it."""
        if isinstance(value, float):
            return value
        try:
            return parse_duration(str(value)).total_seconds()
        except ValueError as error:
            self.fail(str(error), param, ctx)
