"""Open Cluster Management on the manager of a run: profiles lead to the workers, and a Placement fills the config."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Final

import anyio.abc
import attrs

from multikueue.core.config.access_providers import AccessProvider, ProfileSettings
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    MULTIKUEUE_CLUSTER,
    NAMESPACE,
    SECRET,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import controller_of, dig, uid
from multikueue.errors import NotFound
from multikueue.sandbox import setting_up
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.crds import install_ocm
from multikueue.sandbox.objects import built
from multikueue.sandbox.ocm import OcmHub, Spoke, Token, join
from multikueue.sandbox.ocm.kinds import ACCOUNT, MANAGED_CLUSTER, MANAGER, PLACEMENT, PROFILE, SCORE, SYNC_LABEL
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME, KUEUE_NAMESPACE
from tests.simulation.objects import find
from tests.simulation.virtual_time import wall_clock
from tests.simulation.world import CANARY, SimCluster, World

INVENTORIED: Final = 0.2
"""Share of the runs with a hub. Its dice are its own: what the others draw stays what it is."""
PLACED: Final = "placement"
"""The name of the check that stands for the Placement."""
PLACEMENT_CONTROLLER: Final = "open-cluster-management.io/placement"
NAME: Final = "multikueue"
"""Of the managed service account on every worker."""
LISTED: Final = "listed"
"""The label that the Placement asks for."""
VALIDITY: Final = "10m"
"""Of tokens: they are replaced after eight minutes."""
PAUSE: Final = 0.5
"""Seconds between two writes of a decision: what is between them is seen."""
SCORES: Final = "resource-usage-score"
PROFILES: Final = ProfileSettings((AccessProvider(MANAGER, builtin="cp-creds", managed_service_account=NAME),))
"""How workers are reached."""


@attrs.define(eq=False)
class Inventory:
    """The hub of a run."""

    manager: SimCluster
    workers: Mapping[str, SimCluster]
    scored: bool
    """Whether the Placement goes by scores."""
    best: int | None
    """How many clusters it takes, those with the best scores; None: all that are listed."""
    spokes: dict[str, Spoke] = attrs.field(init=False)
    hub: OcmHub = attrs.field(init=False)
    _issued: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        install_ocm(self.manager.registry)
        self.spokes = {name: self._spoke(worker) for name, worker in self.workers.items()}
        client = DirectClient(self.manager.registry, user="ocm")
        self.hub = OcmHub(client, self.spokes, clock=wall_clock(0.0), pause=PAUSE)

    @classmethod
    def draw(cls, world: World) -> Inventory | None:
        """The hub of a seed; None: it has none."""
        dice = random.Random(f"inventory/{world.seed}")
        if dice.random() >= INVENTORIED:
            return None
        scored, few = dice.choice(((False, False), (True, False), (True, True)))
        return cls(world.manager, world.workers, scored, len(world.workers) - 1 if few else None)

    @property
    def spec(self) -> Json:
        """What the Placement asks for when nothing is wrong with it."""
        selector = {"labelSelector": {"matchLabels": {LISTED: "yes"}}}
        spec: Json = {"predicates": [{"requiredClusterSelector": selector}], "tolerations": []}
        if self.best is not None:
            spec["numberOfClusters"] = self.best
        if self.scored:
            addon = {"type": "AddOn", "addOn": {"resourceName": SCORES, "scoreName": "gpu"}}
            policy = {"mode": "Exact", "configurations": [{"scoreCoordinate": addon, "weight": 1}]}
            spec["prioritizerPolicy"] = policy
        return spec

    async def set_up(self) -> None:
        """What administrators of a hub do: join clusters, make the Placement, the checks, the accounts, the workers."""
        api = self.manager.api
        await self.join()
        await self.list(self.workers)
        await api.create(ADMISSION_CHECK, setting_up.admission_check())
        placed = setting_up.admission_check(PLACEMENT_CONTROLLER, PLACED, PLACEMENT, CHECK)
        await api.create(ADMISSION_CHECK, placed)
        checks = {"admissionChecks": [{"name": CHECK}, {"name": PLACED}]}
        patch = {"spec": {"admissionChecksStrategy": checks}}
        await api.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), patch)
        for name in self.workers:
            await api.create(NAMESPACE, built(NAMESPACE, name))
            rotation = {"rotation": {"enabled": True, "validity": VALIDITY}}
            await api.create(ACCOUNT, built(ACCOUNT, NAME, name, labels={SYNC_LABEL: "true"}, spec=rotation))
            await api.create(MULTIKUEUE_CLUSTER, self.cluster_of(name))
        await api.create(PLACEMENT, built(PLACEMENT, CHECK, KUEUE_NAMESPACE, spec=self.spec))

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled."""
        await self.hub.run(task_status=task_status)

    async def join(self) -> None:
        """Join clusters, and bind their set."""
        await join(self.manager.api, KUEUE_NAMESPACE, self.spokes)

    def set_available(self, name: str, available: bool) -> None:
        """Whether a cluster's agent reports."""
        if self.spokes[name].available != available:
            self.spokes[name].available = available
            self.hub.changed(name)

    async def list(self, names: Iterable[str]) -> None:
        """Label these clusters, and no others."""
        wanted = set(names)
        for name in self.workers:
            patch = {"metadata": {"labels": {LISTED: "yes" if name in wanted else "no"}}}
            await self.manager.api.merge_patch(MANAGED_CLUSTER, ObjectKey("", name), patch)

    async def score(self, name: str, value: int) -> None:
        """Report a cluster's score."""
        key, status = ObjectKey(name, SCORES), {"scores": [{"name": "gpu", "value": value}]}
        if find(self.manager, SCORE, key) is None:
            await self.manager.api.create(SCORE, built(SCORE, SCORES, name))
        await self.manager.api.merge_patch(SCORE, key, {"status": status}, subresource="status")

    async def write_token(self, name: str, token: str) -> None:
        """Put a token where the agent of a cluster puts it."""
        data = {"token": base64.b64encode(token.encode()).decode()}
        with suppress(NotFound):  # the agent is about to write another one
            await self.manager.api.merge_patch(SECRET, ObjectKey(name, NAME), {"data": data})

    async def mend(self) -> None:
        """Put everything right that somebody has broken; from now on the Placement takes all clusters."""
        self.best = None
        await self.join()
        placement = await self.manager.api.get(PLACEMENT, ObjectKey(KUEUE_NAMESPACE, CHECK))
        await self.manager.api.replace(PLACEMENT, {**placement, "spec": self.spec})
        for name in self.spokes:
            self.set_available(name, True)

    def leads_to(self, worker: SimCluster) -> bool:
        """Whether a daemon that reads the profile of a worker gets there."""
        profile = find(self.manager, PROFILE, ObjectKey(KUEUE_NAMESPACE, worker.name))
        secret = find(self.manager, SECRET, ObjectKey(KUEUE_NAMESPACE, f"{worker.name}-{NAME}"))
        if profile is None or secret is None or (controller_of(secret) or {}).get("uid") != uid(profile):
            return False
        known = {provider["name"] for provider in dig(profile, "status", "accessProviders") or []}
        token = base64.b64decode(dig(secret, "data", "token") or "").decode()
        return MANAGER in known and worker.link.accepts(token)

    def cluster_of(self, worker: str) -> Json:
        """The MultiKueueCluster of a worker."""
        return built(MULTIKUEUE_CLUSTER, worker, spec={"clusterSource": {"clusterProfileRef": {"name": worker}}})

    def _spoke(self, worker: SimCluster) -> Spoke:
        def issue(_namespace: str, _name: str, seconds: int) -> Token:
            self._issued += 1
            worker.link.renew(f"{CANARY}-{worker.name}-issued-{self._issued}")
            return Token(worker.link.token, wall_clock(0.0)() + timedelta(seconds=seconds))

        client = DirectClient(worker.registry, user="agent")
        return Spoke(client, f"https://{worker.name}.example.com:6443", "", issue)
