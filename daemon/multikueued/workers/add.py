"""`multikueue worker add`: the account and its token on the worker, then the objects on the manager, then the list.

Nothing is offered to a worker that is not in a MultiKueueConfig, so its entry comes last: after the daemon has
connected. Each step can be repeated, so the same command again goes on where it was interrupted.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

import anyio
import attrs

from multikueue.core.config.admission_check import clusters
from multikueue.core.machinery.connection_facts import connection_facts
from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import ADMISSION_CHECK, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, SECRET, WORKLOAD
from multikueue.core.model.labels import NAMESPACES_ANNOTATION
from multikueue.core.model.name_lists import alike
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, name_of
from multikueue.core.model.second_names import held_as_second, second_name
from multikueue.core.model.worker_names import WorkerNames
from multikueue.errors import NotFound
from multikueue.kube import ClusterConfig
from multikueue.protocols import ApiClient, read
from multikueue.runtime.reconcilers.configuration import KUBECONFIG_KEY
from multikueue.runtime.workers.cluster_identity import cluster_uid
from multikueued.clusters import ClusterClient
from multikueued.exits import CommandError
from multikueued.rbac.objects import CLUSTER_ROLE
from multikueued.rbac.role_rule import allow
from multikueued.rbac.rules import EXTRAS
from multikueued.reports.worker_facts import secret_name
from multikueued.tokens.bound import Bound, bound_in
from multikueued.workers import objects
from multikueued.workers.addresses import certificates_in, check_server
from multikueued.workers.bound_token import authority, check_bound, issued, still_good
from multikueued.workers.connection_wait import INTERVAL, until_connected
from multikueued.workers.objects import WorkerSide
from multikueued.workers.places import FIELD_MANAGER, ManagerAccess, apply_all, change_list, decoded, make_namespace
from multikueued.workers.tokens import account_secrets, filled, kubeconfig_secret, server_in, token_in
from multikueued.yaml_output import to_yaml


@attrs.frozen
class Joining:
    """What a worker is added with."""

    name: str
    context: str
    """Of the worker, for what the user is told."""
    source: ClusterConfig
    """How this command reaches the worker; its server's address is the daemon's, too, unless there is another."""
    side: WorkerSide = attrs.field(factory=WorkerSide)
    server: str = ""
    authority: str = ""
    """PEM; empty: what the source trusts, or, with another server, what the worker gives its own pods."""
    config: str | None = None
    outside: bool = False
    timeout: float = 60.0
    """Seconds that the daemon may take to connect."""
    diagnose: bool | None = None
    """Whether the account may read queues; None: a new one may, and one that is there gets no right by itself."""
    logs: bool = False
    """Whether the account may read pods and their logs."""
    bound: bool = False
    """Whether its token ends, and is renewed by the daemon."""
    life: float | None = None
    """Seconds that a bound token lasts; None: the default."""
    namespaces: str = ""
    """How they are called there, as `multikueue.dev/namespaces` says it; empty: the MultiKueueCluster's stays."""

    def grants(self, *, known: bool = False) -> dict[str, bool]:
        """What its role has beside the job kinds.

        Args:
            known: whether there is such a role already.
        """
        return {"diagnose": not known if self.diagnose is None else self.diagnose, "logs": self.logs}

    @property
    def address(self) -> str:
        """Where the daemon finds the worker."""
        return check_server(self.server or self.source.server, outside=self.outside)

    @property
    def undo(self) -> str:
        """The command that removes what this one made."""
        return f"multikueue worker remove {self.name} --worker-context {shlex.quote(self.context)}"

    @property
    def remarks(self) -> Iterator[str]:
        """What the context does that the daemon will not do."""
        if self.source.proxy and not self.server:
            yield (
                "leads through a proxy, and the daemon's kubeconfig does not: the daemon must reach "
                f"{self.address} itself; name another address with --server"
            )
        if self.asks_for_authority and not self.source.verify_tls:
            yield (
                "does not verify who answers, and who did said whom the daemon is to trust: name the authority with "
                "--ca, unless nobody can be in between"
            )

    @property
    def asks_for_authority(self) -> bool:
        """Whether only the worker can say who signed the certificate of the daemon's address."""
        return not self.authority and not self._same_server

    @property
    def _same_server(self) -> bool:
        return not self.server and self.source.verify_tls

    def check(self) -> None:
        """
        Raises:
            CommandError: the daemon could not use the worker's address, or what is known of its certificate.
        """
        self.kubeconfig("any", "")

    def kubeconfig(self, token: str, authority: str) -> bytes:
        """The daemon's kubeconfig.

        Args:
            token: of the account.
            authority: PEM of who signed the worker's certificate, as the worker says it; used if nothing else is known.

        Raises:
            CommandError: the daemon would refuse it.
        """
        given = authority if self.asks_for_authority else self.authority or self.source.ca_pem
        known = certificates_in(given)
        if given and not known:
            raise CommandError(f"context {self.context}: its authority is no PEM with certificates: name one with --ca")
        server_name = self.source.tls_server_name if self._same_server else ""
        return objects.check_kubeconfig(objects.kubeconfig(self.name, self.address, known, token, server_name))


async def add(manager: ManagerAccess, worker: ClusterClient, joining: Joining) -> None:
    """Add a worker; return once the daemon has connected to it and a MultiKueueConfig lists it.

    Raises:
        CommandError: it cannot be added, or the daemon does not connect.
        ApiError: a cluster refuses a request.
    """
    config, listing = await check(manager, worker, joining)
    try:
        await grant(manager, worker, joining)
        kubeconfig, bound = await credentials(manager, worker, joining)
        await introduce(manager, joining.name, kubeconfig, bound, joining.namespaces)
        for remark in joining.remarks:
            manager.say(f"context {joining.context} {remark}")
        manager.say(f"waiting for the daemon to connect to {joining.name}, for up to {joining.timeout:g} s")
        await until_connected(manager, joining.name, kubeconfig, joining.timeout, must_tell=False)
        await enlist(manager, config, listing, joining.name)
    except BaseException:  # Ctrl-C as well
        listed = listing is not None and joining.name in clusters(listing)
        stands = "is in use as before" if listed else "is offered nothing yet"
        undo = "" if listed else f"; undo: {joining.undo}"
        manager.say(f"Not done. {joining.name} {stands}. The same command goes on{undo}")
        raise
    manager.say(f"{joining.name} is connected, and MultiKueueConfig {config} lists it.")
    await _tell_unused(manager, config)
    await _tell_second_name(manager, joining.name)


async def check(manager: ManagerAccess, worker: ApiClient, joining: Joining) -> tuple[str, Json | None]:
    """Look before anything is written; return the config to list it in, and the object if there is one.

    Raises:
        CommandError: it cannot be added.
    """
    objects.check_name(joining.name)
    if joining.bound:
        check_bound(manager.settings, joining.name, joining.life)
    config, listing = await check_manager(manager, joining)
    cluster = await read(manager.client, MULTIKUEUE_CLUSTER, ObjectKey("", joining.name)) or {}
    secret = await kubeconfig_secret(manager, joining.name, cluster) if is_true(cluster, "Active") else None
    if (known := server_in(secret or {})) and known != joining.address and not joining.server:
        mismatch = f"{joining.name} is the worker at {known}, and context {joining.context} leads to {joining.address}"
        raise CommandError(f"{mismatch}: choose another name; if it is one cluster, name its address with --server")
    try:
        await worker.list(WORKLOAD, limit=1)
    except NotFound:
        raise CommandError(f"context {joining.context}: Kueue is not installed there: install it first") from None
    itself = await cluster_uid(manager.client) == await cluster_uid(worker)
    said = {**annotations_of(cluster), **objects.naming(joining.namespaces)}
    if flaw := WorkerNames.of(said, of_manager=itself).flaw:
        option = "name the worker's with --worker-context, or give --namespaces" if itself else "correct --namespaces"
        raise CommandError(f"context {joining.context}: {flaw}; {option}")
    return config, listing


async def check_manager(manager: ManagerAccess, joining: Joining) -> tuple[str, Json | None]:
    """What `check` looks at on this machine, and on the manager."""
    joining.check()
    try:
        configs = (await manager.client.list(MULTIKUEUE_CONFIG)).items
    except NotFound:
        raise CommandError("Kueue is not installed on the manager: there is no MultiKueueConfig kind") from None
    config, listing = objects.choose_config(configs, joining.config)
    if listing is not None:
        objects.with_entry(listing, joining.name)
    objects.check_cluster(await read(manager.client, MULTIKUEUE_CLUSTER, ObjectKey("", joining.name)), joining.name)
    key = ObjectKey(manager.namespace, secret_name(joining.name))
    secret = await read(manager.client, SECRET, key)
    if secret is not None and not objects.is_ours(secret):
        raise CommandError(
            f"the Secret {key} exists on the manager, and this command did not make it: choose another name"
        )
    return config, listing


async def grant(manager: ManagerAccess, worker: ApiClient, joining: Joining) -> None:
    """Make the account on the worker, with what it may do."""
    if await make_namespace(worker, joining.side.namespace):
        manager.say(f"{joining.name}: made namespace {joining.side.namespace}")
    granted = await read(worker, CLUSTER_ROLE, ObjectKey("", joining.side.role))
    listed = dig(granted, "rules")
    there = listed if isinstance(listed, list) else []
    before = {option for option, rules in EXTRAS.items() if allow(there, rules)}
    wanted = joining.grants(known=granted is not None)
    options = wanted | dict.fromkeys(before, True)
    if joining.diagnose is None and not options["diagnose"]:
        manager.say(
            f"{joining.name}: the account may not read queues there, so its quota is not known, and no job is moved "
            "to it: the same command with --diagnose grants that"
        )
    unasked = {option for option in before if not wanted.get(option)}
    for option in sorted(unasked - ({"diagnose"} if joining.diagnose is None else set())):
        manager.say(
            f"{joining.name}: what --{option} grants is there already and stays; to take it away, delete ClusterRole "
            f"{joining.side.role} there first"
        )
    await apply_all(worker, joining.side.objects(manager.settings, **options))
    manager.say(f"{joining.name}: service account {joining.side.key} and its role")


async def credentials(manager: ManagerAccess, worker: ClusterClient, joining: Joining) -> tuple[bytes, Bound | None]:
    """The kubeconfig with the token in use, if there is one, else with a new one; and what is known of a bound one.

    Raises:
        CommandError: the token in use does not end, and one that does is wanted.
        ApiError: the worker refuses.
    """
    stored = await _stored(manager, joining)
    if joining.bound or (stored is not None and bound_in(stored) is not None):
        return await _bound(manager, worker, joining, stored)
    side = joining.side
    secret = await _in_use(stored, worker, joining) or await filled(worker, side, side.token)
    return joining.kubeconfig(decoded(secret, "token"), decoded(secret, "ca.crt")), None


async def _stored(manager: ManagerAccess, joining: Joining) -> Json | None:
    """The Secret on the manager with the worker's kubeconfig."""
    return await read(manager.client, SECRET, ObjectKey(manager.namespace, secret_name(joining.name)))


async def _in_use(stored: Json | None, worker: ApiClient, joining: Joining) -> Json | None:
    """The account's Secret on the worker with the token that the manager has: after a rotation it has another name."""
    used = token_in(stored) if stored is not None else ""
    secrets = await account_secrets(worker, joining.side) if used else []
    return next((secret for secret in secrets if decoded(secret, "token") == used), None)


async def _bound(
    manager: ManagerAccess, worker: ClusterClient, joining: Joining, stored: Json | None
) -> tuple[bytes, Bound | None]:
    used, bound = token_in(stored) if stored is not None else "", await still_good(worker, stored, joining.side)
    if stored is not None and used and bound_in(stored) is None:
        raise CommandError(
            f"{joining.name} has a token that does not end: multikueue worker rotate {joining.name} --bound "
            f"--worker-context {shlex.quote(joining.context)} --config-file FILE puts a bound one in its place"
        )
    token = used
    if bound is None or not used:
        holder = joining.side.holder
        token, bound = await issued(manager, worker, joining.side, holder, joining.life)
    pem = await authority(worker, joining.side) if joining.asks_for_authority else ""
    return joining.kubeconfig(token, pem), bound


async def introduce(
    manager: ManagerAccess, worker: str, kubeconfig: bytes, bound: Bound | None = None, namespaces: str = ""
) -> None:
    """Write the Secret and the MultiKueueCluster on the manager; without namespaces it keeps those it names."""
    secret = objects.manager_secret(worker, manager.namespace, kubeconfig, bound)
    await manager.client.apply(SECRET, secret, field_manager=FIELD_MANAGER)
    before = await read(manager.client, MULTIKUEUE_CLUSTER, ObjectKey("", worker)) or {}
    cluster = objects.multikueue_cluster(worker, namespaces or annotations_of(before).get(NAMESPACES_ANNOTATION, ""))
    await manager.client.apply(MULTIKUEUE_CLUSTER, cluster, field_manager=FIELD_MANAGER)
    manager.say(f"manager: Secret {manager.namespace}/{name_of(secret)} and MultiKueueCluster {worker}")


async def enlist(manager: ManagerAccess, config: str, listing: Json | None, worker: str) -> None:
    """List the worker in the MultiKueueConfig, which is made if there is none."""
    if listing is None:
        others = map(name_of, (await manager.client.list(MULTIKUEUE_CONFIG)).items)
        close = alike(config, others)
        meant = f"; if you meant {close[0]}, delete it and name that with --multikueue-config" if close else ""
        await manager.client.create(MULTIKUEUE_CONFIG, objects.multikueue_config(config, [worker]))
        manager.say(f"manager: made MultiKueueConfig {config}, as there was none of that name{meant}")
    else:
        key = ObjectKey("", config)
        await change_list(manager.client, MULTIKUEUE_CONFIG, key, lambda now: objects.with_entry(now, worker))


async def _tell_unused(manager: ManagerAccess, config: str) -> None:
    checks = (await manager.client.list(ADMISSION_CHECK)).items
    if not any(dig(check, "spec", "parameters", "name") == config for check in checks):
        controller = manager.settings.controller_name
        manager.say(
            f"No AdmissionCheck uses {config} yet: make one with controllerName {controller} and name it in a queue."
        )


IDENTITY_WAIT: Final = 15.0
"""Seconds for the daemon to learn which cluster a worker is: as a rule it knows once it has connected, else it asks
again every ten seconds."""


async def _tell_second_name(manager: ManagerAccess, worker: str) -> None:
    """Whoever adds a cluster that is a worker already waits for jobs in vain. The daemon says so, once it knows."""
    key, second = ObjectKey("", worker), None
    with anyio.move_on_after(IDENTITY_WAIT):
        while True:
            cluster = await read(manager.client, MULTIKUEUE_CLUSTER, key) or {}
            second, facts = second_name(cluster), connection_facts(cluster)
            if second is not None or facts is None or facts.is_manager is not None:
                break
            await anyio.sleep(INTERVAL)
    if second is not None:
        consequence = f"{worker} gets no jobs: {held_as_second(second.first)}."
        manager.say(f"{consequence} Undo: multikueue worker remove {worker}; multikueue doctor says what else may be.")


async def printed(manager: ManagerAccess, worker: ApiClient | None, joining: Joining) -> str:
    """The YAML of everything, for GitOps; nothing is written.

    Args:
        manager: is read only.
        worker: to read the token from; None: leave the credentials out.
        joining: what is wanted.

    Raises:
        CommandError: it cannot be added, or there is no token yet.
    """
    objects.check_name(joining.name)
    config, listing = await check_manager(manager, joining)
    listed = objects.with_entry(listing, joining.name) if listing is not None else [joining.name]
    token, kubeconfig = joining.side.token, None
    if worker is not None:
        secret = await _issued(manager, worker, joining)
        token, kubeconfig = name_of(secret), joining.kubeconfig(decoded(secret, "token"), decoded(secret, "ca.crt"))
    there: list[Json] = [
        objects.namespace_object(joining.side.namespace),
        *joining.side.objects(manager.settings, **joining.grants()),
        joining.side.token_secret(token),
    ]
    here = [
        objects.manager_secret(joining.name, manager.namespace, kubeconfig),
        objects.multikueue_cluster(joining.name, joining.namespaces),
        *([objects.multikueue_config(config, listed)] if listed is not None else []),
    ]
    return f"# on the worker\n{to_yaml(there)}# on the manager{_missing(joining, kubeconfig)}\n{to_yaml(here)}"


def _missing(joining: Joining, kubeconfig: bytes | None) -> str:
    if kubeconfig is not None:
        return ""
    key = f"{joining.side.namespace}/{joining.side.token}"
    return f"; the Secret's {KUBECONFIG_KEY} is left out: it holds the token of {key} on the worker (--with-secret)"


async def _issued(manager: ManagerAccess, worker: ApiClient, joining: Joining) -> Json:
    """The Secret on the worker whose token is printed."""
    if used := await _in_use(await _stored(manager, joining), worker, joining):
        return used
    key = ObjectKey(joining.side.namespace, joining.side.token)
    secret = await read(worker, SECRET, key)
    if secret is None or not dig(secret, "data", "token"):
        raise CommandError(f"there is no token in Secret {key} of the worker yet: apply the worker's part first")
    return secret
