"""The command `multikueue dashboard`."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import click

from multikueue.kube import KubeClient
from multikueued.commands.exits import for_people
from multikueued.commands.options import CLIENT, ReportTarget, target_of, target_options
from multikueued.dashboard.in_process import in_process
from multikueued.dashboard.local_port import LocalPort, PassedOn, Source
from multikueued.logserver.answers import REMOTE_JOB


@click.command("dashboard")
@target_options
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The local port; without it: any free one.")
def dashboard(port: int, **options: Any) -> None:
    """Show the fleet and the jobs as a page on a local port, with your own kubeconfig, until Ctrl-C.

    Open the address that is printed. It holds a token: whoever has it sees what you may see. Where the manager serves
    our API, the page shows what you may read of that; elsewhere what your kubeconfig may, of one namespace with -n.
    """
    namespace = options["namespace"] or ""
    anyio.run(_serve, target_of(options), namespace, port)


async def _serve(target: ReportTarget, namespace: str, port: int) -> None:
    async with dashboard_of(target, namespace, port) as local:
        click.echo(f"Open {local.address}\nCtrl-C ends it.")
        await anyio.sleep_forever()


@asynccontextmanager
async def dashboard_of(target: ReportTarget, namespace: str = "", port: int = 0) -> AsyncIterator[LocalPort]:
    """The page of a manager, while the context lasts.

    Args:
        target: the manager, and where the daemon is.
        namespace: of jobs, where the manager does not serve our API; empty: all.
        port: 0 for any free one.

    Raises:
        CommandError: the manager does not answer.
        SettingsError: the port cannot be opened.
    """
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(KubeClient(target.config, name="manager", options=CLIENT))
        with for_people(target.config.server):
            served = await client.discover(REMOTE_JOB.gvk)
        source: Source = PassedOn(client)
        if served is None or "explain" not in served.subresources:  # an older one serves logs alone
            source = await stack.enter_async_context(in_process(client, target, namespace))
        local = LocalPort(source, secrets.token_urlsafe(24))
        await stack.enter_async_context(local.serving(port))
        yield local
