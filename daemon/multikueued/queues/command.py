"""`multikueue queues`: the options."""

from __future__ import annotations

import anyio
import click

from multikueue.core.model.names import ObjectKey
from multikueue.kube import ClusterConfig, KubeClient
from multikueued.commands.options import (
    CLIENT,
    KUBECONFIGS,
    MANAGER_CONTEXT,
    NAME,
    WORKER_CONTEXT,
    WORKER_KUBECONFIG,
    completed_by,
    named_cluster,
    namespace_option,
    option_of,
)
from multikueued.queues.mirror import Twin, mirror, planned
from multikueued.workers.places import tell
from multikueued.yaml_output import to_yaml


@click.command("mirror")
@click.argument("name", type=NAME, shell_complete=completed_by("local_queues"))
@WORKER_CONTEXT
@KUBECONFIGS
@MANAGER_CONTEXT
@WORKER_KUBECONFIG
@namespace_option("Of the LocalQueue. Without it: that of the manager's context, or default.")
@click.option(
    "--cluster-queue", type=NAME, default="", help="Of the worker. Without it: the one with the name it has here."
)
@option_of(
    "--worker",
    completes="workers",
    help="Its MultiKueueCluster, if namespaces or queues have other names there.",
)
@click.option("--print", "only_print", is_flag=True, help="Print the YAML of what is lacking, and change nothing.")
def mirror_command(
    name: str, namespace: str | None, cluster_queue: str, worker: str, only_print: bool, **contexts: str | None
) -> None:
    """Make the twin of the LocalQueue NAME on a worker, and its namespace if that is lacking.

    It uses your own credentials for the worker. A ClusterQueue is not made: its quota is yours to decide. The same
    again changes nothing.
    """
    kubeconfig = contexts["kubeconfig"]
    manager = named_cluster(kubeconfig, contexts["manager_context"])
    there = named_cluster(contexts["worker_kubeconfig"] or kubeconfig, contexts["worker_context"])
    twin = Twin(ObjectKey(namespace or manager.namespace or "default", name), cluster_queue, worker)
    anyio.run(_run, manager, there, twin, only_print)


async def _run(manager: ClusterConfig, worker: ClusterConfig, twin: Twin, only_print: bool) -> None:
    async with (
        KubeClient(manager, name="manager", options=CLIENT) as here,
        KubeClient(worker, name="worker", options=CLIENT) as there,
    ):
        if only_print:
            click.echo(to_yaml(await planned(here, there, twin)), nl=False)
        else:
            await mirror(here, there, twin, tell)
