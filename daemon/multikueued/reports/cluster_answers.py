"""What a MultiKueueCluster says: of its connection, and of names on its worker."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import attrs

from multikueue.core.config.cluster_profiles import BAD_PROFILE, FEATURE_DISABLED
from multikueue.core.machinery.connection import BAD_NAMES, UNREADABLE
from multikueue.core.machinery.connection_facts import ConnectionFacts, connection_facts
from multikueue.core.model.conditions import changed_at, condition, is_true
from multikueue.core.model.giving_up import detached_at
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, dig
from multikueue.core.model.second_names import SecondName, second_name, why_nothing_new
from multikueue.core.model.worker_names import WorkerNames, cordon_of
from multikueue.errors import Cause


class WorkerState(StrEnum):
    """Whether a worker can be used."""

    CONNECTED = "Connected"
    DEGRADED = "Degraded"
    """It is connected, and a kind cannot be used there."""
    LOST = "Lost"
    NOT_CONNECTED = "NotConnected"
    """It never was, or its kubeconfig is refused."""
    MISSING = "Missing"
    """A MultiKueueConfig lists it, and there is no such MultiKueueCluster."""


@attrs.frozen(kw_only=True)
class ClusterAnswer(ConnectionFacts):
    """What a MultiKueueCluster says; the error and its cause also where another controller than ours watches it."""

    state: WorkerState
    since: datetime | None = None
    names: WorkerNames = attrs.field(factory=WorkerNames)
    """How it calls namespaces and queues."""
    cordon: str = ""
    """That it is cordoned, and why; empty: it is not."""
    second: SecondName | None = None
    """What makes it another name of a cluster; None: it is none."""
    hold: str = ""
    """Why it gets nothing new: one of the two; empty: it does."""
    detached: datetime | None = None
    """Since when its cluster is being detached; None: it is not."""
    source: Mapping[str, str] = MappingProxyType({"secret": "", "profile": ""})
    """How it is reached, as remedies fill it in."""

    @property
    def connected(self) -> bool:
        """Whether the daemon can ask it."""
        return self.state in (WorkerState.CONNECTED, WorkerState.DEGRADED)

    @property
    def is_lost_by_detaching(self) -> bool:
        """Whether it is out of reach because its cluster is being detached: it answered until then."""
        return not self.connected and self.moves_at is None and self.detached is not None


NO_CLUSTER: Final = ClusterAnswer(state=WorkerState.MISSING)
"""Of a name that has no MultiKueueCluster."""


def cluster_answer(cluster: Json) -> ClusterAnswer:
    """What a MultiKueueCluster says; where another controller than ours watches it, only whether it is connected."""
    active, facts = condition(cluster, "Active") or {}, connection_facts(cluster) or ConnectionFacts()
    reason, source = str(active.get("reason") or ""), dig(cluster, "spec", "clusterSource")
    if is_true(cluster, "Active"):
        state = WorkerState.DEGRADED if facts.unusable else WorkerState.CONNECTED
        known = ConnectionFacts(unusable=facts.unusable, causes=facts.causes, same_as=facts.same_as)
    else:
        state = WorkerState.LOST if reason == "ClientConnectionFailed" else WorkerState.NOT_CONNECTED
        error = facts.error or str(active.get("message") or "")
        error = error or "no attempt to connect to it has ended yet: does the daemon run?"
        known = attrs.evolve(facts, error=error, cause=_cause(reason, facts), unusable={}, causes={}, same_as=())
    return ClusterAnswer(
        **attrs.asdict(known, recurse=False),
        state=state,
        since=changed_at(cluster, "Active"),
        names=WorkerNames.of(annotations_of(cluster), of_manager=facts.is_manager is True),
        cordon=cordon_of(annotations_of(cluster)),
        second=second_name(cluster),
        hold=why_nothing_new(cluster),
        detached=detached_at(annotations_of(cluster)),
        source={
            "secret": str(dig(source, "kubeConfig", "location") or ""),
            "profile": str(dig(source, "clusterProfileRef", "name") or ""),
        },
    )


_CAUSES: Final = {
    "BadKubeConfig": Cause.CONTENT,
    "InsecureKubeConfig": Cause.CONTENT,
    "BadRestConfig": Cause.CONTENT,
    BAD_PROFILE: Cause.CONTENT,
    FEATURE_DISABLED: Cause.PROFILES_OFF,
    UNREADABLE: Cause.ANSWERS_UNREADABLE,
}
"""By the reason of the condition, where no facts are beside it: Kueue's own controller writes it alone."""


def _cause(reason: str, facts: ConnectionFacts) -> str:
    if not reason:
        return Cause.NEVER_TRIED
    if reason == BAD_NAMES:
        return Cause.WORKER_IS_MANAGER if facts.is_manager else Cause.WORKER_NAMES
    return facts.cause or _CAUSES.get(reason, "")
