"""`python -m tests.operators build`: build the controllers of job kinds, once. `missing` names those that are not."""

from __future__ import annotations

import click

from tests.controlplane import building
from tests.controlplane.binaries import find
from tests.controlplane.errors import BinariesMissing, ControlPlaneError
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


@main.command()
def missing() -> None:
    """Name those of the default set that are not built, each in a line, and the control plane if it is not."""
    try:
        find()
    except BinariesMissing:
        click.echo("the control plane")
    for operator in DEFAULT:
        try:
            operator.require()
        except BinariesMissing:
            click.echo(f"{operator.name} {operator.version}")


main()
