"""`python -m tests.operators build`: build the controllers of job kinds, once."""

from __future__ import annotations

import click

from tests.controlplane import building
from tests.controlplane.errors import ControlPlaneError
from tests.operators.table import DEFAULT, EXTRA


@click.group()
def main() -> None:
    """Controllers of job kinds that tests start."""


@main.command()
@click.option("--force", is_flag=True, help="Build again even if nothing changed.")
@click.option("--all", "everything", is_flag=True, help="Build all there are.")
@click.argument("names", nargs=-1)
def build(force: bool, everything: bool, names: tuple[str, ...]) -> None:
    """Build these controllers, or the default ones, each into a folder of the cache."""
    failed = []
    for operator in (*DEFAULT, *EXTRA) if names or everything else DEFAULT:
        if names and operator.name not in names:
            continue
        try:
            building.build(operator.folder, (operator.source,), say=click.echo, force=force)
        except ControlPlaneError as error:
            click.echo(f"{operator.name}: {error}", err=True)
            failed.append(f"{operator.name} ({', '.join(operator.kinds)})")
    if failed:
        raise click.ClickException(f"Not built, their kinds are run by the sandbox only: {', '.join(failed)}")


main()
