"""The options of `multikueue worker grant-logs`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from multikueued.workers.command import BESIDE, FILE, NAME, Clusters, side_options, worker_context
from multikueued.workers.objects import WorkerSide


@click.command("grant-logs")
@NAME
@worker_context
@BESIDE
@partial(side_options, account="multikueue-logs")
@click.option("--server", default="", help="The worker's address for the server, if it is not the context's.")
@click.option("--ca", type=FILE, help="PEM of who signed the worker's certificate, if it is not the context's.")
@click.option("--into", default="multikueue", show_default=True, help="The namespace of multikueue api-server.")
@click.option("--outside", is_flag=True, help="It runs on this machine: its own address may be a worker's.")
def grant_logs_command(clusters: Clusters, **options: Any) -> None:
    """Let multikueue api-server read logs of the worker cluster NAME.

    It makes a service account there that reads copies, their pods and logs, with a token that does not expire, and
    on the manager a Secret with its kubeconfig. The daemon has others. To undo it, delete both.
    """
    _grant(clusters, **options)


def _grant(clusters: Clusters, context: str, side: WorkerSide, ca: Path | None, into: str, **at: Any) -> None:
    from multikueued.workers.add import Joining
    from multikueued.workers.addresses import authority_of
    from multikueued.workers.logs_account import Granting, grant_logs

    assert clusters.worker is not None, "--worker-context is required"
    authority = authority_of(ca.read_text()) if ca is not None else ""
    granting = Granting(Joining(context=context, source=clusters.worker, side=side, authority=authority, **at), into)

    clusters.run_on_both(lambda manager, client: grant_logs(manager, client, granting))
