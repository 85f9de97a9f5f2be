"""The manager's configuration: whether its AdmissionChecks are active, and connections for its MultiKueueClusters."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import anyio
import anyio.to_thread
import attrs

from multikueue.core.config.admission_check import active_condition
from multikueue.core.config.cluster_profiles import profile_reference
from multikueue.core.machinery.action import Action
from multikueue.core.machinery.connection import (
    active_status,
    credentials_status,
    notice,
)
from multikueue.core.machinery.connection_facts import facts_status
from multikueue.core.machinery.remembered_loss import remembered_loss
from multikueue.core.model.conditions import condition, conditions, replaced, says_the_same, updated
from multikueue.core.model.giving_up import detached_at
from multikueue.core.model.kinds import ADMISSION_CHECK, MULTIKUEUE_CLUSTER
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, is_terminating, resource_version
from multikueue.core.model.second_names import SECOND_NAME, held_as_second, second_name_status
from multikueue.core.model.worker_kueue import kueue_status
from multikueue.core.model.workloads import cluster_name, is_finished
from multikueue.errors import Cause, KubeconfigError
from multikueue.kube import ClusterConfig, parse_worker_kubeconfig
from multikueue.kube.kubeconfigs.worker_kubeconfig import credentials_digest
from multikueue.logs import get_logger
from multikueue.runtime.caches.manager_cluster import ManagerCluster, kubeconfig_path
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.workers.cluster_profiles import ClusterProfiles
from multikueue.runtime.workers.kubeconfig_files import KubeconfigFiles
from multikueue.runtime.workers.pool import WorkerCluster, WorkerPool, names_on, workloads_on

log = get_logger(__name__)

KUBECONFIG_KEY: Final = "kubeconfig"
"""Where in a Secret the kubeconfig is."""
SMALL: Final = 8 << 10
"""Bytes of a kubeconfig that is parsed at once: any of them takes a fifth of a second at most, a real one ten
milliseconds. A larger one is parsed in a thread."""
NAMED: Final = 5
"""Jobs that an event names."""
DRAINING: Final = 5.0
"""Seconds between two looks whether a removed worker still runs jobs."""
_HELD: Final = "it gets nothing new until one of the two is removed, and what runs there goes on"
_Parsed: TypeAlias = tuple[bytes, ClusterConfig | KubeconfigError]
"""A kubeconfig, and what is in it or why it is refused."""


def kubeconfig_in(secret: Json | None, name: str) -> bytes:
    """The kubeconfig in a Secret.

    Args:
        secret: None: there is none of that name.
        name: for the message.

    Raises:
        KubeconfigError: it is not there.
    """
    if secret is None:
        raise KubeconfigError("BadKubeConfig", f'Secret "{name}" not found', Cause.SECRET_MISSING)
    encoded = dig(secret, "data", KUBECONFIG_KEY)
    if encoded is None:
        raise KubeconfigError(
            "BadKubeConfig", f'key "{KUBECONFIG_KEY}" not found in secret "{name}"', Cause.KEY_MISSING
        )
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error:
        raise KubeconfigError("BadKubeConfig", f'key "{KUBECONFIG_KEY}" of secret "{name}" is not base64') from None


@attrs.define(eq=False)
class AdmissionCheckReconciler:
    """Keeps the Active condition of our AdmissionChecks."""

    manager: ManagerCluster
    clock: Callable[[], datetime]
    profiles: Collection[str] | None = None
    """Of the dispatcher, of which a config may name one; None: it has none."""
    _logged: dict[str, tuple[str, str]] = attrs.field(factory=dict, init=False, repr=False)
    """By check, its status and message as the log has them."""

    async def reconcile(self, key: ObjectKey) -> Action:
        """See `Reconciler`."""
        check = self.manager.checks.get(key)
        if check is None or not self.manager.is_ours(check):
            self._logged.pop(key.name, None)
            return Action.done()
        known = {cluster["metadata"]["name"]: cluster for cluster in self.manager.clusters.values()}
        wanted = active_condition(check, self.manager.config_of(key.name), known, self.clock(), self.profiles)
        if not says_the_same(condition(check, "Active"), wanted):
            await self.manager.write_conditions(ADMISSION_CHECK, check, updated(conditions(check), wanted))
        self._log(key.name, wanted["status"], wanted["message"])
        return Action.done()

    def _log(self, name: str, status: str, message: str) -> None:
        before, self._logged[name] = self._logged.get(name), (status, message)
        if status == "False" and before != (status, message):
            log.warning("admission check inactive", check=name, why=message)
        elif status == "True" and before is not None and before[0] == "False":
            log.info("admission check active", check=name)


@attrs.define(eq=False)
class ClusterReconciler:
    """Keeps the pool in line with the MultiKueueClusters, and their Active condition in line with the pool."""

    manager: ManagerCluster
    workers: WorkerPool
    files: KubeconfigFiles
    profiles: ClusterProfiles
    events: EventRecorder
    namespace: str
    """Where the Secrets are."""
    clock: Callable[[], datetime]
    led_until: datetime | None = None
    """When the leader before this process was at work last; None if that is not known."""
    lost_after: timedelta | None = None
    """For how long a lost worker keeps its jobs; None: nobody is told."""
    _parsed: dict[str, _Parsed] = attrs.field(factory=dict, init=False, repr=False)
    """By cluster."""
    _parsing: anyio.CapacityLimiter = attrs.field(factory=lambda: anyio.CapacityLimiter(1), init=False, repr=False)
    _written: dict[str, tuple[str, Json]] = attrs.field(factory=dict, init=False, repr=False)
    """By cluster, the version that our last write has replaced, and what it made: the cache may not show that yet."""
    _draining: set[str] = attrs.field(factory=set, init=False, repr=False)
    """Workers that are kept although their MultiKueueClusters are gone."""

    async def reconcile(self, key: ObjectKey) -> Action:
        """See `Reconciler`."""
        cluster = self.manager.clusters.get(key)
        if cluster is None or is_terminating(cluster):
            self.workers.note_gone(key.name)
            return self._remove(key.name)
        self._draining.discard(key.name)
        self._note_detached(key.name, cluster)
        await self._connect(ClusterName(key.name), cluster)
        replaced_version, written = self._written.get(key.name, ("", cluster))
        await self._write_status(written if resource_version(cluster) == replaced_version else cluster)
        return Action.done()

    def _note_detached(self, name: str, cluster: Json) -> None:
        """Tell whose jobs run there."""
        if not self.workers.note_detached(name, detached_at(annotations_of(cluster))):
            return
        workloads = self.manager.workloads.informer.values()
        jobs = [
            str(ObjectKey.of(workload))
            for workload in workloads
            if cluster_name(workload) == name and not is_finished(workload)
        ]
        if jobs:
            named = ", ".join(jobs[:NAMED]) + (f" and {len(jobs) - NAMED} more" if len(jobs) > NAMED else "")
            note = (
                f"Its cluster is being detached under {named}: they run on, and move workerLostTimeout after it is gone"
            )
            self.events.emit(cluster, "Warning", "Detached", "Connect", note)

    def _remove(self, name: str) -> Action:
        """Forget a worker, once no Workload runs there any more: its last configuration is kept until then."""
        known = self.manager.workloads.informer.values()
        running = sum(cluster_name(workload) == name and not is_finished(workload) for workload in known)
        worker = self.workers.get(name)
        # An eviction erases the name at once: what is still there is stopped and removed first. Where the cluster has
        # another name that is kept, that one shows the same.
        seen = worker is not None and worker.connection.connected and name not in self.workers.names.seconds
        left = worker is not None and seen and any(True for _ in workloads_on(worker))
        if worker is not None and (running or left):
            if name not in self._draining:
                log.warning("a removed worker still runs jobs and is kept until they end", cluster=name, jobs=running)
            self._draining.add(name)
            return Action.after(DRAINING)
        self._draining.discard(name)
        self.workers.clusters.forget(name)
        self._parsed.pop(name, None)
        self._written.pop(name, None)
        return Action.done()

    async def _connect(self, name: ClusterName, cluster: Json) -> None:
        try:
            config = await self._config(name, cluster)
            if config is None:
                return
        except KubeconfigError as error:
            message = f"load client config failed: {error}"
            self.workers.clusters.refuse(name, error.reason, message, self._lost_since(cluster), error.cause)
        else:
            self.workers.clusters.assign(name, config, self._lost_since(cluster))

    def _lost_since(self, cluster: Json) -> datetime | None:
        return remembered_loss(cluster, self.clock() - self.workers.running_for, self.led_until)

    async def _config(self, name: ClusterName, cluster: Json) -> ClusterConfig | None:
        """How a worker is reached; None: that is being read, and whoever reads it enqueues the cluster after that.

        Raises:
            KubeconfigError: it cannot be.
        """
        profile = profile_reference(cluster)
        if profile is not None:
            return self.profiles.config(profile)
        kubeconfig = self._load(cluster)
        return None if kubeconfig is None else await self._parse(name, kubeconfig)

    async def _parse(self, name: ClusterName, kubeconfig: bytes) -> ClusterConfig:
        """Parse a kubeconfig if it has changed: a large one takes a second, and each failed connection reconciles."""
        before, parsed = self._parsed.get(name, (b"", None))
        if parsed is None or before != kubeconfig:
            try:
                if len(kubeconfig) <= SMALL:
                    parsed = parse_worker_kubeconfig(kubeconfig)
                else:
                    parsed = await anyio.to_thread.run_sync(parse_worker_kubeconfig, kubeconfig, limiter=self._parsing)
            except KubeconfigError as error:
                parsed = error.with_traceback(None)
            self._parsed[name] = kubeconfig, parsed
        if isinstance(parsed, KubeconfigError):
            raise KubeconfigError(parsed.reason, str(parsed))
        return parsed

    def _load(self, cluster: Json) -> bytes | None:
        reference = dig(cluster, "spec", "clusterSource", "kubeConfig")
        if not reference:
            raise KubeconfigError("BadKubeConfig", "kubeconfig reference is nil")
        path = kubeconfig_path(cluster)
        return self._from_secret(reference.get("location") or "") if path is None else self.files.get(path)

    def _from_secret(self, name: str) -> bytes:
        return kubeconfig_in(self.manager.secrets.get(ObjectKey(self.namespace, name)), name)

    def _credentials(self, worker: WorkerCluster, cluster: Json) -> Json | None:
        """What to tell of the credentials in use; None: nothing new, or none are."""
        known = worker.state.known
        if known is None or not worker.connection.connected or worker.usable is None:
            return None
        return credentials_status(cluster, credentials_digest(known.config), self.clock())

    async def _write_status(self, cluster: Json) -> None:
        worker = self.workers.get(ObjectKey.of(cluster).name)
        if worker is None:
            return
        connection, now = worker.connection, self.clock()
        refused = worker.usable.unusable if worker.usable is not None else {}
        unusable, causes = ({kind: reason[part] for kind, reason in refused.items()} for part in (0, 1))
        runs = self.workers.counts_from(str(worker.name), connection.lost_since) is not None  # its time, to a move
        facts = connection.facts(unusable, lost_after=self.lost_after if runs else None)
        is_manager = worker.known.identity.is_manager if worker.known is not None else None
        same_as, flaw = tuple(self.workers.names.same_as(worker.name)), names_on(worker, cluster).flaw
        facts = attrs.evolve(facts, is_manager=is_manager, causes=causes, same_as=same_as)
        wanted = active_status(cluster, connection, now, unusable, flaw)
        active = wanted or condition(cluster, "Active")
        known = None if connection.unheard else facts_status(cluster, active, facts, now)
        kueue = kueue_status(cluster, worker.usable.kueue.known, now) if worker.usable is not None else None
        second = self.workers.names.seconds.get(worker.name)
        held = second_name_status(cluster, second, now) if second is not None else None
        changed = [new for new in (wanted, known, self._credentials(worker, cluster), kueue, held) if new is not None]
        wished = [old for old in conditions(cluster) if second is not None or old.get("type") != SECOND_NAME]
        for new in changed:
            wished = replaced(wished, new)
        if not changed and len(wished) == len(conditions(cluster)):
            return
        written = await self.manager.write_conditions(MULTIKUEUE_CLUSTER, cluster, wished)
        if written is None:
            return  # deleted: its event enqueues it
        self._written[str(worker.name)] = resource_version(cluster), written
        happened = notice(condition(cluster, "Active"), wanted, facts) if wanted is not None else None
        if happened is not None:
            self.events.emit(cluster, happened.type, happened.reason, "Connect", happened.note)
        if held is not None and second is not None:
            self.events.emit(cluster, "Warning", held["reason"], "Connect", f"{held_as_second(second.first)}: {_HELD}")
