"""The objects of one spoke, each with whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import attrs

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, SECRET
from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import is_terminating, name_of
from multikueue.core.spokes.names import CLUSTER_PERMISSION, MANAGED_SERVICE_ACCOUNT, kubeconfig_location
from multikueue.core.spokes.ownership import Standing, standing
from multikueue.core.spokes.settings import Source, SpokeSettings
from multikueue.core.spokes.spoke import Spoke


@attrs.frozen
class Part:
    """One object, or its absence."""

    resource: Resource
    name: str
    seen: Json | None
    standing: Standing
    in_use: bool = False
    """Of a worker: see `Worker`."""

    @property
    def ours(self) -> bool:
        """Whether it is ours, made for this ManagedCluster."""
        return self.standing is Standing.OURS

    @property
    def leaving(self) -> bool:
        """Whether somebody has deleted it and it is still there."""
        return self.seen is not None and is_terminating(self.seen)


@attrs.frozen
class Parts:
    """All objects of a spoke."""

    spoke: str
    workers: tuple[Part, ...]
    """The MultiKueueClusters that are there."""
    secret: Part
    older_secret: Part
    account: Part
    permission: Part
    uses_secret: bool
    """Whether these settings have us write it; so the others."""
    uses_account: bool
    uses_permission: bool

    @classmethod
    def of(cls, spoke: Spoke, settings: SpokeSettings) -> Self:
        """The parts of a spoke with these settings."""

        def part(resource: Resource, seen: Json | None, in_use: bool = False) -> Part:
            if resource in spoke.unserved:
                return Part(resource, "", None, Standing.UNKNOWN)
            found = standing(seen, resource, spoke.name, spoke.uid, settings.owner, settings.adopt)
            return Part(resource, name_of(seen) if seen is not None else "", seen, found, in_use)

        return cls(
            spoke.name,
            tuple(part(MULTIKUEUE_CLUSTER, one.object, one.in_use) for one in spoke.workers),
            part(SECRET, spoke.secret),
            part(SECRET, spoke.older_secret),
            part(MANAGED_SERVICE_ACCOUNT, spoke.account),
            part(CLUSTER_PERMISSION, spoke.permission),
            uses_secret=settings.source is Source.KUBECONFIG,
            uses_account=settings.accounts,
            uses_permission=settings.rules is not None,
        )

    def all(self) -> Iterator[Part]:
        """In the order in which they are deleted: workers before what they are reached by."""
        yield from self.workers
        yield from (self.secret, self.older_secret, self.account, self.permission)

    def needed(self) -> Iterator[Part]:
        """Those under whose names the settings have us write; nobody else's may be there."""
        yield from self.workers
        used = (self.uses_secret, self.uses_account, self.uses_permission)
        yield from (part for part, yes in zip((self.secret, self.account, self.permission), used, strict=True) if yes)

    def kept_workers(self) -> list[Part]:
        """The workers to keep up: the one of the spoke's name, or those that the recipe of 2024 named otherwise.

        One cluster must not become two workers: the copies that one of them has would be strange to the other, and be
        removed. So the spoke's own name is used once all others are gone.
        """
        own = [part for part in self.workers if part.name == self.spoke]
        others = [part for part in self.workers if part.name != self.spoke]
        if own or not others:
            return own or [Part(MULTIKUEUE_CLUSTER, self.spoke, None, Standing.ABSENT)]
        return [part for part in others if part.in_use]

    def names(self, secret: Part) -> bool:
        """Whether a worker is reached by a Secret."""
        seen = [part.seen for part in self.workers if part.seen is not None]
        return any(kubeconfig_location(worker) == secret.name for worker in seen)

    def only_ours(self) -> Self:
        """The same for a decision that takes over nothing; what is missing of ours it makes again."""

        def mine(part: Part) -> Part:
            kept = part.ours or part.standing is Standing.ABSENT
            return part if kept else Part(part.resource, part.name, None, Standing.FOREIGN)

        return attrs.evolve(
            self,
            workers=tuple(part for part in self.workers if part.ours),
            secret=mine(self.secret),
            older_secret=mine(self.older_secret),
            account=mine(self.account),
            permission=mine(self.permission),
        )
