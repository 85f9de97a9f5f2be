"""Options that have another name now, because the former one means another cluster or file everywhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def renamed_option(former: str, means: str, new: str) -> Callable[[F], F]:
    """Refuse a former name for one version: as an alias, the same word would silently mean something else after it.

    Args:
        former: the option.
        means: what it means with other commands, and will mean here.
        new: the option that is meant.
    """

    def refuse(_context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            raise click.UsageError(f"{former} means {means}, here too from the next version on: write {new} {value}")

    hidden = former.lstrip("-").replace("-", "_") + "_before"
    return click.option(former, hidden, hidden=True, expose_value=False, is_eager=True, callback=refuse)


WORKER_CONTEXT = renamed_option("--context", "the manager's context", "--worker-context")
