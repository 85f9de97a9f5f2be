"""`multikueue worker grant-logs`: an account on the worker for `multikueue api-server`, and its kubeconfig.

The account reads copies, pods and logs there, and nothing else. It is not the daemon's, and neither is the Secret.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import ObjectKey
from multikueue.protocols import ApiClient, read
from multikueued.commands.options import FILE, NAME, WORKER_CONTEXT, WORKER_NAME
from multikueued.exits import CommandError
from multikueued.rbac.objects import CLUSTER_ROLE, logs_worker_objects
from multikueued.rbac.role_rule import verbs_of
from multikueued.workers import objects
from multikueued.workers.add import Joining
from multikueued.workers.addresses import authority_in
from multikueued.workers.command import Clusters, manager_options, side_options
from multikueued.workers.objects import WorkerSide
from multikueued.workers.places import FIELD_MANAGER, ManagerAccess, apply_all, decoded, make_namespace
from multikueued.workers.tokens import filled

PREFIX: Final = "multikueue-logs"


def secret_name(worker: str) -> str:
    """The Secret on the manager with the server's kubeconfig for a worker."""
    return f"{PREFIX}-{worker}"


async def grant_logs(manager: ManagerAccess, worker: ApiClient, joining: Joining, namespace: str) -> None:
    """Make the account and its token there, and the Secret on the manager. The same again changes nothing.

    Args:
        manager: the manager cluster.
        worker: with an administrator's credentials.
        joining: which worker, and how it is reached; its side is the server's account.
        namespace: of the server on the manager.

    Raises:
        CommandError: there is no such worker, or it cannot be done.
        ApiError: a cluster refuses a request.
    """
    name, side = joining.name, joining.side
    await manager.cluster(name)
    joining.check()
    key = ObjectKey(namespace, secret_name(name))
    before = await read(manager.client, SECRET, key)
    if before is not None and not objects.is_ours(before):
        raise CommandError(f"the Secret {key} exists on the manager, and this command did not make it: delete it first")
    role = await read(worker, CLUSTER_ROLE, ObjectKey("", side.role))
    if verbs_of(role) - {"get", "list"}:
        refusal = f"the account {side.key} may change things on {name}, as the daemon's: use another --account"
        raise CommandError(refusal)
    await make_namespace(worker, side.namespace)
    made = logs_worker_objects(manager.settings, side.role, side.subject)
    await apply_all(worker, map(objects.ours, made))
    issued = await filled(worker, side, side.token)
    await make_namespace(manager.client, namespace)
    secret = objects.manager_secret(
        name, namespace, joining.kubeconfig(decoded(issued, "token"), decoded(issued, "ca.crt"))
    )
    secret["metadata"]["name"] = key.name
    await manager.client.apply(SECRET, secret, field_manager=FIELD_MANAGER)
    manager.say(f"{name}: service account {side.key}, which reads pods and logs")
    manager.say(f"manager: Secret {key}. Name it to the server: --worker {name}={key.name}, or in the chart's")
    manager.say(f"values: apiServer.workers: {{{name}: {key.name}}}")


@click.command("grant-logs")
@WORKER_NAME
@WORKER_CONTEXT
@manager_options
@partial(side_options, account="multikueue-logs")
@click.option(
    "--server", type=NAME, default="", help="The worker's address for the server, if it is not the context's."
)
@click.option("--ca", type=FILE, help="PEM of who signed the worker's certificate, if it is not the context's.")
@click.option(
    "--into", type=NAME, default="multikueue", show_default=True, help="The namespace of multikueue api-server."
)
@click.option("--outside", is_flag=True, help="It runs on this machine: its own address may be a worker's.")
def grant_logs_command(
    name: str, clusters: Clusters, side: WorkerSide, ca: Path | None, into: str, **reached: Any
) -> None:
    """Let multikueue api-server read logs of the worker cluster NAME.

    It makes a service account there that reads copies, their pods, logs and events, with a token that does not expire,
    and on the manager a Secret with its kubeconfig. The daemon has others. To undo it, delete both.
    """
    context = str(clusters.worker_context)
    joining = Joining(name, context, clusters.worker, side, authority=authority_in(ca), **reached)
    clusters.run_on_both(lambda manager, client: grant_logs(manager, client, joining, into))
