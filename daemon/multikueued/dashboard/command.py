"""The command `multikueue dashboard`."""

from __future__ import annotations

import secrets
from typing import Any

import anyio
import click

from multikueue.kube import KubeClient
from multikueued.commands.exits import NOT_REACHABLE, CommandError, for_people
from multikueued.commands.options import CLIENT, ReportTarget, target_of, target_options
from multikueued.dashboard.local_port import LocalPort, PassedOn
from multikueued.logserver.answers import REMOTE_JOB


@click.command("dashboard")
@target_options
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The local port; without it: any free one.")
def dashboard(port: int, **options: Any) -> None:
    """Show the fleet and the jobs as a page on a local port, with your own kubeconfig, until Ctrl-C.

    Open the address that is printed. It holds a token: whoever has it sees what you may see.
    """
    anyio.run(_serve, target_of(options), port)


async def _serve(target: ReportTarget, port: int) -> None:
    async with KubeClient(target.config, name="manager", options=CLIENT) as client:
        with for_people(target.config.server):
            served = await client.discover(REMOTE_JOB.gvk)
        if served is None:
            told = f"the manager at {target.config.server} does not serve {REMOTE_JOB}"
            raise CommandError(f"{told}: ask an operator to run multikueue api-server there", NOT_REACHABLE)
        local = LocalPort(PassedOn(client), secrets.token_urlsafe(24))
        async with local.serving(port):
            click.echo(f"Open {local.address}\nCtrl-C ends it.")
            await anyio.sleep_forever()
