"""`python -m tests.controlplane build`: build the control plane's binaries, once."""

from __future__ import annotations

import click

from tests.controlplane import binaries, building
from tests.controlplane.errors import ControlPlaneError


@click.group()
def main() -> None:
    """Binaries of the control planes that tests start."""


@main.command()
@click.option("--force", is_flag=True, help="Build again even if nothing changed.")
def build(force: bool) -> None:
    """Build etcd, kube-apiserver, kube-controller-manager, Helm, kubectl and oauth2-proxy into folders of the cache."""
    try:
        building.build(binaries.cache_folder(), say=click.echo, force=force)
        building.build(binaries.helm_folder(), building.HELM, say=click.echo, force=force)
        building.build(binaries.kubectl_folder(), building.KUBECTL, say=click.echo, force=force)
        building.build(binaries.oauth2_proxy_folder(), building.OAUTH2_PROXY, say=click.echo, force=force)
    except ControlPlaneError as error:
        raise click.ClickException(str(error)) from error


@main.command()
def where() -> None:
    """Say which binaries the tests would use."""
    try:
        installed = binaries.find()
    except ControlPlaneError as error:
        raise click.ClickException(str(error)) from error
    for path in (installed.etcd, installed.apiserver, installed.controllers or "no kube-controller-manager"):
        click.echo(path)


main()
