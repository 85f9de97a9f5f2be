"""Asks all workers at once, with the credentials that the manager holds. A dead one costs its own deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from typing import Final

import anyio
import attrs

from multikueue import JobKind
from multikueue.core.model.kinds import CLUSTER_QUEUE, LOCAL_QUEUE, NAMESPACE, POD, WORKLOAD
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import is_terminating, name_of
from multikueue.errors import ApiError, Cause, KubeconfigError, ServerFault, Unreachable, Unreadable
from multikueue.kube import ClientOptions, ClusterConfig
from multikueued.clusters import ClusterClient, Connect, over_http
from multikueued.doctor.cluster_reader import Sight, needed, permissions
from multikueued.doctor.needs import missing
from multikueued.doctor.probe import Measure, probe
from multikueued.rbac.policies import TAKING, taking_name
from multikueued.rbac.rules import on_worker, own_token_rules
from multikueued.reports.worker_facts import KubeconfigFacts, Need, NotChecked, Permission, WorkerFacts, stranded_pods
from multikueued.reports.worker_queues import QueuesOnWorker
from multikueued.settings.config import Settings
from multikueued.workers.copy_reader import CopyReader

LONG: Final = 3.0
"""Seconds after which it is told which workers have not answered."""
DEADLINE: Final = 20.0
"""Seconds for one worker, whatever it is asked."""
CONNECT: Final = over_http(ClientOptions(deadline=8.0, connection_wait=8.0, connect_deadline=4.0, connections=8))
DIAGNOSE: Final = "grant it (multikueue rbac worker --diagnose), or ask an administrator of"


@attrs.define(eq=False)
class Rounds:
    """One look at all workers."""

    settings: Settings
    kinds: tuple[JobKind, ...]
    lacking: frozenset[GVK]
    """Kinds that the manager does not serve: nobody needs them anywhere."""
    connected_by_daemon: frozenset[str]
    """Those that the daemon says it is connected to, with the credentials that are asked with."""
    connect: Connect = CONNECT
    measure: Measure = probe
    credentials: Mapping[str, KubeconfigFacts] = attrs.field(factory=dict)
    """By worker: whose tokens are bound must be able to ask for tokens of itself."""
    granted: Mapping[str, Set[Permission]] = attrs.field(factory=dict)
    """By worker: what it has granted not long ago, which it is not asked again."""
    now: datetime | None = None
    """This machine's clock; None: job copies that do not end are not looked for."""
    deleted: Mapping[str, Sequence[tuple[Resource, Json]]] | None = None
    """By worker, the job copies that somebody has deleted, or whose Workload is gone; None: they are listed."""
    orphans: Mapping[str, Set[str]] = attrs.field(factory=dict)
    """By worker: see `CopyReader`."""
    needs: Mapping[str, Sequence[Need]] = attrs.field(factory=dict)
    """By worker: what jobs there name."""
    workers: dict[str, WorkerFacts] = attrs.field(factory=dict)
    not_checked: list[NotChecked] = attrs.field(factory=list)
    queues_not_checked: dict[str, list[NotChecked]] = attrs.field(factory=dict)
    """By worker: what of these is about its queues."""
    tell: Callable[[str], None] = lambda text: None
    """Is told what takes long."""

    async def visit(self, configs: Mapping[str, ClusterConfig]) -> None:
        """Ask all workers."""
        waiting = set(configs)
        async with anyio.create_task_group() as all_tasks:
            all_tasks.start_soon(self._say_who_is_late, waiting)
            async with anyio.create_task_group() as tasks:
                for name, config in configs.items():
                    tasks.start_soon(self._bounded, name, config, waiting)
            all_tasks.cancel_scope.cancel()

    async def _say_who_is_late(self, waiting: set[str]) -> None:
        await anyio.sleep(LONG)
        self.tell(f"still asking {', '.join(sorted(waiting))}, for up to {DEADLINE - LONG:g} s more")

    async def _bounded(self, name: str, config: ClusterConfig, waiting: set[str]) -> None:
        await self._asked(name, config)
        waiting.discard(name)

    async def _asked(self, name: str, config: ClusterConfig) -> None:
        visit = Visit(name, self)
        with anyio.move_on_after(DEADLINE) as scope:
            try:
                async with self.connect(name, config) as client:
                    await visit.run(client, config)
            except (ApiError, KubeconfigError) as error:
                self._failed(visit, str(error), error.cause or "", silent=isinstance(error, Unreachable))
                return
        if scope.cancelled_caught and not visit.answered:
            self._failed(visit, f"no answer in time ({DEADLINE:g} s)", Cause.NO_ANSWER, silent=True)
            return
        if scope.cancelled_caught:
            why = f"it answers, but not all within {DEADLINE:g} s"
            self.not_checked.append(NotChecked(f"the rest of {name}", why, "try again, or from where the daemon runs"))
        self.workers[name] = visit.facts
        self.not_checked += [*visit.not_checked, *visit.queues_not_checked]
        self.queues_not_checked[name] = visit.queues_not_checked

    def _failed(self, visit: Visit, error: str, cause: str, *, silent: bool) -> None:
        """A worker that does not answer from here, though it does answer the daemon, says nothing about itself."""
        name, elsewhere = visit.name, silent and visit.name in self.connected_by_daemon
        why = f"it cannot be reached from here, and the daemon can: {error}" if elsewhere else error
        who = "run multikueue doctor where the daemon runs" if elsewhere else "once it answers, multikueue doctor can"
        self.not_checked.append(NotChecked(f"{name} itself", why, who, name))
        if not elsewhere:
            self.workers[name] = WorkerFacts(name, error=error, cause=cause)


@attrs.define(eq=False)
class Visit:
    """One look at one worker."""

    name: str
    rounds: Rounds
    facts: WorkerFacts = attrs.field(init=False)
    not_checked: list[NotChecked] = attrs.field(factory=list, init=False)
    queues_not_checked: list[NotChecked] = attrs.field(factory=list, init=False)
    """The same of its queues."""
    answered: bool = attrs.field(default=False, init=False)
    """Whether its API server took the credentials and answered something."""

    @facts.default
    def _unknown(self) -> WorkerFacts:
        return WorkerFacts(self.name)

    async def run(self, client: ClusterClient, config: ClusterConfig) -> None:
        """Ask.

        Raises:
            ApiError: it does not answer, or does not accept the credentials.
        """
        sight = Sight(client, self.name, f"{DIAGNOSE} {self.name}", self.not_checked)
        measured = await self.rounds.measure(config)
        if measured.error:
            here = "run multikueue doctor where the daemon runs"
            sight.blind(f"clock and latency of {self.name}", measured.error, here)
        self.facts = attrs.evolve(self.facts, latency=measured.latency, clock=measured.clock)
        for step in (
            self._kinds,
            self._kueue,
            self._user,
            self._permissions,
            self._namespaces,
            self._queues,
            self._taking,
            self._pods,
            self._overdue,
            self._needs,
        ):
            await step(sight)

    async def _user(self, sight: Sight) -> None:
        """Of credentials that do not say whose they are: a client certificate, or a token that is no JWT."""
        held = self.rounds.credentials.get(self.name)
        if held is None or not held.account:
            self.facts = attrs.evolve(self.facts, user=await sight.user())

    async def _permissions(self, sight: Sight) -> None:
        rounds, credentials = self.rounds, self.rounds.credentials.get(self.name)
        asked = needed(permissions(on_worker(rounds.settings)), rounds.kinds, rounds.lacking | self.facts.lacking)
        if credentials is not None and credentials.bound is not None:
            account = credentials.bound.account
            asked += permissions(own_token_rules(account.name), account.namespace)
        granted = rounds.granted.get(self.name, frozenset())
        held = {permission: had for permission in asked if (had := attrs.evolve(permission, allowed=True)) in granted}
        unknown = [permission for permission in asked if permission not in held]
        answered = await sight.reviewed(unknown, f"permissions on {self.name}")
        self.facts = attrs.evolve(self.facts, permissions=(*answered, *held.values()))

    async def _kinds(self, sight: Sight) -> None:
        kueues = [WORKLOAD.gvk, LOCAL_QUEUE.gvk, CLUSTER_QUEUE.gvk]
        lacking = await lacking_of(sight, [*kueues, *(kind.resource.gvk for kind in self.rounds.kinds)])
        self.facts, self.answered = attrs.evolve(self.facts, lacking=lacking), True

    async def _kueue(self, sight: Sight) -> None:
        self.facts = attrs.evolve(self.facts, kueue=await sight.kueue(f"what Kueue of {self.name} lacks"))

    async def _namespaces(self, sight: Sight) -> None:
        namespaces = await sight.items(NAMESPACE, f"namespaces of {self.name}")
        if namespaces is not None:
            going = frozenset(map(name_of, filter(is_terminating, namespaces)))
            self.facts = attrs.evolve(self.facts, namespaces=frozenset(map(name_of, namespaces)), terminating=going)

    async def _queues(self, sight: Sight) -> None:
        if self.facts.lacking & {LOCAL_QUEUE.gvk, CLUSTER_QUEUE.gvk}:
            return  # that is told, and no right would show them
        sight = attrs.evolve(sight, not_checked=self.queues_not_checked)
        local = await sight.items(LOCAL_QUEUE, f"LocalQueues of {self.name}")
        cluster = await sight.items(CLUSTER_QUEUE, f"quotas of {self.name}")
        if cluster is None:
            self.facts = attrs.evolve(self.facts, queues_unseen=self.queues_not_checked[-1].why)
        if local is not None and cluster is not None:
            self.facts = attrs.evolve(self.facts, queues=QueuesOnWorker.of(local, cluster))

    async def _taking(self, sight: Sight) -> None:
        if name := self.rounds.settings.manager_name:
            exists = await sight.exists(TAKING, ObjectKey("", taking_name(name)), f"who may have copies on {self.name}")
            self.facts = attrs.evolve(self.facts, takes_anybody=None if exists is None else not exists)

    async def _needs(self, sight: Sight) -> None:
        self.facts = attrs.evolve(self.facts, lacks=await missing(sight, self.rounds.needs.get(self.name, ())))

    async def _pods(self, sight: Sight) -> None:
        if POD.gvk in self.facts.lacking or all(kind.resource.gvk != POD.gvk for kind in self.rounds.kinds):
            return
        what = f"pods on {self.name} that Kueue does not let go of"
        ours = await sight.items(POD, what, label_selector=ORIGIN_LABEL)
        if not (deleted := list(filter(is_terminating, ours or ()))):
            return
        if (listed := await sight.items(WORKLOAD, what, label_selector=ORIGIN_LABEL)) is not None:
            stranded = stranded_pods(deleted, set(map(ObjectKey.of, listed)))
            self.facts = attrs.evolve(self.facts, stranded=tuple(stranded))

    async def _overdue(self, sight: Sight) -> None:
        if self.rounds.now is None:
            return
        behind = self.facts.clock.low if self.facts.clock is not None else 0.0
        kinds = [kind for kind in self.rounds.kinds if kind.resource.gvk not in self.facts.lacking]
        orphans = self.rounds.orphans.get(self.name, frozenset())
        reader = CopyReader(sight.client, kinds, str(self.rounds.settings.origin), orphans)
        there = self.rounds.now + timedelta(seconds=behind)
        what = f"which job copies on {self.name} do not end"
        try:
            if self.rounds.deleted is None:
                seen = await reader.look(there, overdue_only=True)
            else:
                seen = await reader.read(self.rounds.deleted.get(self.name, ()), there)
        except (Unreadable, ServerFault) as error:
            sight.blind(what, str(error))
            return
        if seen.not_read:
            sight.blind(what, f"the user of its kubeconfig may not list {', '.join(map(str, seen.not_read))} there")
        if seen.pods_unseen:
            named = ", ".join(map(str, seen.pods_unseen))
            sight.blind(f"whether pods of {named} outlive their jobs on {self.name}", "pods may not be listed there")
        self.facts = attrs.evolve(self.facts, overdue=seen.copies)


async def lacking_of(sight: Sight, kinds: Iterable[GVK]) -> frozenset[GVK]:
    """Those of the kinds that a server does not serve."""
    served = await sight.served()
    asked = [gvk for gvk in dict.fromkeys(kinds) if gvk not in served]
    return frozenset({gvk for gvk in asked if await sight.lacks(gvk, f"whether {sight.whose} serves {gvk.kind}")})
