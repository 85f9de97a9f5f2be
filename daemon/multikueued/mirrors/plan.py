"""What is to be done about one pod of a worker and its mirror. Pure: a table, the first row that applies."""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

import attrs

from multikueue.core.model.labels import KUBERNETES_FINALIZERS
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, finalizers_of, is_terminating, merge_patch
from multikueued.mirrors.mirror import Run, comparable, has_ended, mirror_body, mirror_status


@attrs.frozen
class Create:
    """Make the mirror, and write its status."""

    body: Json


@attrs.frozen
class PatchStatus:
    """Write the status of a mirror, with the proof."""

    mirror: Json
    status: Json
    """Merge patch of the status."""


@attrs.frozen
class Delete:
    """Take a mirror away."""

    mirror: Json


@attrs.frozen
class Refuse:
    """The pod is not shown beside the others."""

    why: str


Step: TypeAlias = Create | PatchStatus | Delete | Refuse


@attrs.frozen
class Seen:
    """One pod of a worker, and what the manager has of it."""

    pod: Json | None
    """The worker's, as `shown_of` keeps it; None: it is gone, or cannot be seen, see `lost_since`."""
    run: Run | None
    """Whose it is; None: nobody's whom the manager has, as far as can be told now."""
    current: bool
    """Whether it is of the attempt that counts, on the worker that is recorded."""
    mirror: Json | None
    """Our mirror of it."""
    job_gone: bool
    """Whether the job that owns the mirror is gone, or does not own it any more: it was deleted with `orphan`."""
    in_the_way: Json | None
    """Another mirror of the job that has its name: of an earlier attempt; or one that is not proven."""
    unseen: bool = False
    """Whether what happens on the worker cannot be seen for now."""
    lost_since: datetime | None = None
    """Since when the worker is out of reach; None: it is not."""
    proven: bool = True
    """Whether the mirror has its proof: it is written with the first status."""
    held: bool = False
    """Whether the mirror of the pod as it is was refused, or somebody has removed it."""
    room: str = ""
    """Why it cannot be shown beside the others: there are too many, or its name is taken; empty: it can."""


def plan(seen: Seen, origin: str) -> Step | None:
    """The next step; None: all is as it should be, for now."""
    if seen.mirror is not None and is_terminating(seen.mirror):
        return Delete(seen.mirror) if _can_be_ended(seen.mirror) else None
    if seen.unseen:
        return None if seen.mirror is None or seen.lost_since is None else _updated(seen.mirror, seen.mirror, seen)
    if seen.mirror is not None and _is_over(seen):
        return Delete(seen.mirror)
    if seen.pod is None:
        return None
    if seen.mirror is not None:
        return _updated(seen.mirror, seen.pod, seen)
    if seen.run is None or not seen.current or is_terminating(seen.run.job) or seen.held:
        return None
    if seen.in_the_way is not None:
        return Delete(seen.in_the_way)  # never two attempts under one name: the one that counts has it
    return Refuse(seen.room) if seen.room else Create(mirror_body(seen.pod, seen.run, origin))


def _can_be_ended(mirror: Json) -> bool:
    """Whether one that somebody has deleted waits for a kubelet, which we are, or for what they have it own: a deletion
    of ours takes both back. Else it goes, or their finalizer holds it."""
    waits = KUBERNETES_FINALIZERS.intersection(finalizers_of(mirror))
    return bool(waits or dig(mirror, "metadata", "deletionGracePeriodSeconds"))


def _is_over(seen: Seen) -> bool:
    """Whether nothing is to be seen any more: what a pod says while it is being stopped can be read."""
    if seen.pod is None or seen.job_gone:
        return True
    # Whose it is cannot be told once its job there is gone: one that is deleted is nobody's.
    return not seen.current and has_ended(seen.pod) and (seen.run is not None or is_terminating(seen.pod))


def _updated(mirror: Json, of: Json, seen: Seen) -> PatchStatus | None:
    """By the live mirror: others write to it, too, as the node controller does."""
    if seen.held:
        return None
    patch = merge_patch(comparable(mirror), mirror_status(of, seen.lost_since))
    return PatchStatus(mirror, patch) if patch or not seen.proven else None
