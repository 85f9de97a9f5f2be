"""`JobKind`: one row per job kind, and the behaviour all kinds share."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import Final, TypeVar

import attrs

from multikueue.adapters import rules
from multikueue.adapters.checked import checked
from multikueue.adapters.declaration import Declaration
from multikueue.adapters.paths import FieldPath
from multikueue.adapters.templates import restore_templates, texts_at
from multikueue.core.model.adapter import KindTraits, OnHold, Outcome, Stamp
from multikueue.core.model.copies import bare_metadata, prebuilt_workload, stamped_metadata, unlabelled
from multikueue.core.model.labels import CONTROLLER_NAME, ORIGIN_UID_ANNOTATION, STOPPING_ANNOTATION
from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import (
    annotations_of,
    clone,
    dig,
    has_owner,
    is_terminating,
    overlaid,
    resource_version,
    uid,
    with_value,
    without,
    without_nulls,
)
from multikueue.core.model.started import is_started, without_start
from multikueue.core.model.workloads import is_elastic
from multikueue.core.model.writers import status_controllers
from multikueue.errors import RuleError

NO_JOBS: Final = "whose objects are no jobs: Kueue, Kubernetes or we work with them; name the kind that people submit"
"""Why there is no row for a kind, after its name."""
_T = TypeVar("_T")
_OR_NONE: Final = " or None"
_ORIGIN_UID: Final = ("metadata", "annotations", ORIGIN_UID_ANNOTATION)
"""Whose copy a copy is. Some rows set it afterwards; the job, which is its user's, has no say in it."""


@attrs.frozen(kw_only=True, field_transformer=checked)
class JobKind:
    """One job kind. Its functions may raise: a registry gives out a `SafeAdapter` of it, which says what then holds.

    Raises:
        AdapterError: a part is something else, as a text where rules belong.
    """

    resource: Resource
    framework: str = ""
    """The kind's name under Kueue's `integrations.frameworks`; empty for kinds that are not built into Kueue."""
    delegation: rules.Delegation = attrs.field(factory=rules.Delegation)
    copies: rules.CopyRules = attrs.field(factory=rules.CopyRules)
    status: rules.StatusRules = attrs.field(factory=rules.StatusRules)
    sync: rules.SyncRules = attrs.field(factory=rules.SyncRules)
    membership: rules.Membership = attrs.field(factory=rules.Membership)
    keeps_check_pending: bool = False
    """Whether Ready would start a job on the manager as well, unless we hold it there."""
    holding: rules.HoldRules | None = None
    """How we hold such a job; None: its check stays Pending in any case."""
    workload_only: bool = False
    """Whether somebody else's controller moves the jobs: the worker is chosen, and the jobs are left alone."""
    draining: bool = False
    """Whether the settings do not name the kind any more: only Workloads that a worker has already are followed."""
    unserved: bool = False
    """Whether the manager's API server does not serve the kind: its jobs are watched nowhere, Workloads of it wait."""
    deletes_expired: bool = False
    """Whether the manager's jobs are deleted when they say so, where their own controller leaves it: `time_to_live`."""
    pods_label: str = ""
    """See `KindTraits`."""
    source: str = attrs.field(default="", eq=False)
    """Where the row comes from, for messages: a setting, or a package."""
    declaration: Declaration | None = attrs.field(default=None, eq=False, repr=False)
    """What the row was compiled from, with what its profile filled in; None for rows written in Python."""

    @cached_property
    def traits(self) -> KindTraits:
        """What holds for all its jobs, by the rules that it has."""
        return KindTraits(
            keeps_check_pending=self.keeps_check_pending,
            keeps_status=self.status.rule is None,
            resizable=self.sync.resized is not None,
            ends=self.status.finished is not rules.never_finished,
            serves=self.declaration is None and self.status.finished is rules.never_finished,
            workload_only=self.workload_only,
            status_subresource=self.status.subresource,
            draining=self.draining,
            pods_label=self.pods_label,
        )

    def not_delegated(self, job: Json, controller_name: str) -> str | None:
        """See `JobAdapter`. The words are Kueue's: of declared kinds the path has a leading dot."""
        path, value = self.delegation.path, self.delegation.value
        if path is None:
            return None
        manager = dig(job, *path) or ""
        expected = value or controller_name
        if manager in (expected, value or CONTROLLER_NAME):
            return None  # Kueue's own name will do for any controller: many kinds take no other
        field = str(FieldPath(path)) if self.declaration is not None else str(FieldPath(path)).lstrip(".")
        # The API of an older version drops the field, whoever has set it.
        heeding = None if manager else self.delegation.heeding
        dropped = f" ({heeding.of_missing})" if heeding is not None else ""
        return f'Expecting {field} to be "{expected}" not "{manager}"{dropped}'

    def acted_on(self, job: Json) -> str:
        """See `JobAdapter`. Of declared kinds nobody knows who else writes the status, and what for."""
        path, heeding, writers = self.delegation.path, self.delegation.heeding, status_controllers(job)
        if path is None or heeding is None or self.declaration is not None or not writers:
            return ""
        field, said = str(FieldPath(path)).lstrip("."), dig(job, *path)
        return (
            f'A controller of the manager acts on the job and would run it here, too: "{writers[0]}" has written its '
            f'status although {field} is "{said}"; {heeding.advice}'
        )

    def refused(self, job: Json) -> str:
        """See `JobAdapter`."""
        return self.copies.refused(job)

    def unheeded(self, job: Json) -> Sequence[str]:
        """See `JobAdapter`."""
        lasts = self.copies.time_to_live
        own = () if lasts is None or (self.deletes_expired and lasts.deletes) else (lasts.seconds,)
        return [*self.copies.unheeded(job), *rules.FieldsSet(own)(job)]

    def expires_at(self, job: Json, seen: datetime) -> datetime | None:
        """See `JobAdapter`. What somebody owns is that one's to delete."""
        lasts = self.copies.time_to_live if self.deletes_expired else None
        if lasts is None or self.outcome(job) is None or is_terminating(job) or has_owner(job):
            return None
        return lasts.is_over_at(job, seen)

    def why_free(self, job: Json) -> str:
        """See `JobAdapter`."""
        if self.holding is None:
            return f"nothing but Kueue's gates can keep a {self.resource.gvk.kind} from running on the manager"
        return self.holding.why_free(job)

    def copy(self, job: Json, stamp: Stamp) -> Json:
        """See `JobAdapter`. Only metadata and spec are copied: status and other top-level fields are the worker's."""
        own = (self.delegation.path,) if self.delegation.path is not None else ()
        whole = {"metadata": bare_metadata(job, {}, {}), "spec": job.get("spec") or {}}
        if is_started(whole) or (self.sync.resized is not None and is_elastic(job)):
            whole = self._as_if_never_started(whole, stamp)
        if self.copies.time_to_live is not None:
            own = (*own, self.copies.time_to_live.seconds)
        bare = without(whole, (*own, *self.copies.left_out, _ORIGIN_UID))
        gvk = self.resource.gvk
        spec = self._answer("sanitised", self.copies.sanitised(bare["spec"]), dict)
        made = {"apiVersion": gvk.api_version, "kind": gvk.kind, **bare, "spec": spec}
        if self.copies.prepared is not None:
            made = self._answer("prepared", self.copies.prepared(job, made, stamp), dict)
        metadata = stamped_metadata(made, stamp, named=self.membership.carriers is None)
        return {**made, "metadata": metadata, "spec": unlabelled(made["spec"])}

    def _as_if_never_started(self, job: Json, stamp: Stamp) -> Json:
        """Kueue does not stop an elastic job that it lets grow; others are started once a worker has them."""
        made: Json = clone(job)
        restore_templates(made, self.copies.templates, stamp.pod_sets)
        made = without_start(made)
        return made if self.copies.suspend is None else with_value(made, self.copies.suspend, self.copies.suspend_value)

    def config_maps(self, job: Json) -> tuple[str, ...]:
        """See `JobAdapter`."""
        return tuple(name for path in self.copies.config_maps for name in texts_at(job, path))

    def carriers_of(self, copied: Json) -> Sequence[str]:
        """The names of the Workloads that carry a copy."""
        if self.membership.carriers is not None:
            return self.membership.carriers(copied)
        named = prebuilt_workload(copied)
        return (named,) if named else ()

    def groups_of(self, job: Json) -> Sequence[str]:
        """The name of the Workload that a manager's job shares with others, if it shares one."""
        name = self.membership.group(job) if self.membership.group is not None else ""
        return (name,) if name else ()

    def status_patch(self, local: Json, remote: Json, now: datetime) -> Json | None:
        """See `JobAdapter`."""
        rule = self.status.rule
        if rule is None or (self._ended(local) and not self._ended(remote)):
            return None
        observed = rules.observed_here(local, remote, counted=self.status.subresource)
        suspended = self._is_suspended(local)
        runs = not self._is_suspended(remote) and self._may_run(remote)
        if suspended and runs:
            return self.waiting_patch(local, now)
        says_nothing = not dig(remote, "status") and self.status.words is not None and not self._is_held(local)
        if says_nothing and (suspended or self.release_patch(local) is None):
            return None  # a copy that says nothing yet takes no word away, but those of a run before
        shown = self._answer("rule", rule(local, observed, now), dict, _OR_NONE)
        if shown and not suspended and self.status.words is not None:
            shown = self.status.words.of_started(shown)
        return _change(local, without(shown, self.status.addresses) if shown and self.status.addresses else shown)

    def waiting_patch(self, local: Json, now: datetime) -> Json | None:
        """See `JobAdapter`. While its Kueue is stopping it, that one writes the status."""
        words, stopping = self.status.words, annotations_of(local).get(STOPPING_ANNOTATION) == "true"
        if words is None or stopping or not self._is_suspended(local) or self.outcome(local) is not None:
            return None
        said = words.of_waiting(local, now)
        if (patch := _change(local, said)) is None:
            return None
        runs, would_run = (self.release_patch(job) is not None for job in (local, {**local, "status": said}))
        if runs != would_run or (runs and words.fields) or self._is_held(local):
            return None  # its Kueue reads in the status whether it runs: no words change that
        return patch

    def _is_held(self, local: Json) -> bool:
        return self.on_hold_here(local) in (OnHold.YES, OnHold.OUTDATED)

    def forward_patch(self, local: Json, remote: Json, stamp: Stamp) -> Json | None:
        """See `JobAdapter`."""
        patch: Json = {}
        if self.sync.resized is not None and is_elastic(local):
            resized = self._answer("resized", self.sync.resized(local, remote, stamp), dict, _OR_NONE)
            patch = resized or {}
            if patch:  # held up on its way, it must not undo a later size: the worker's Kueue would stop the job
                patch = with_value(patch, ("metadata", "resourceVersion"), resource_version(remote))
        for path in self.sync.forwarded:
            wanted = dig(local, *path)
            if wanted != dig(remote, *path):
                patch = with_value(patch, path, wanted)
        if self.sync.followed is not None:
            followed = self._answer("followed", self.sync.followed(local, remote, stamp), dict, _OR_NONE)
            patch = overlaid(patch, followed or {})
        return with_value(patch, ("metadata", "uid"), uid(remote)) if patch else None

    def outcome(self, job: Json) -> Outcome | None:
        """See `JobAdapter`."""
        return self._answer("finished", self.status.finished(job), Outcome, _OR_NONE)

    def outcome_of(self, jobs: Sequence[Json]) -> Outcome | None:
        """See `JobAdapter`."""
        together = self.status.all_finished
        return (
            self.outcome(jobs[0])
            if together is None
            else self._answer("all_finished", together(jobs), Outcome, _OR_NONE)
        )

    def _answer(self, function: str, answer: _T, wanted: type, alternative: str = "") -> _T:
        """What a rule has answered. Of True, as of anything but None, the job would count as ended; what is no object
        would be written as one."""
        if isinstance(answer, wanted) or (alternative and answer is None):
            return answer
        source = f", from {self.source}" if self.source else ""
        name = f"{'multikueue.adapters.' if wanted is Outcome else ''}{wanted.__name__}{alternative}"
        given = type(answer).__name__
        raise RuleError(f"the row for {self.resource}{source}: {function} answers with {given}, and not with a {name}")

    def release_patch(self, local: Json) -> Json | None:
        """See `JobAdapter`. Of a job that has ended nothing runs, and what it says of its end stays."""
        active = self.status.active
        if self.outcome(local) is not None or (active is not None and not active(local)):
            return None
        stopped = self.status.stopped(without_nulls(dig(local, "status") or {}))
        return _change(local, self._answer("stopped", stopped, dict))

    def settled_end(self, job: Json) -> Outcome | None:
        """See `JobAdapter`."""
        return self.outcome(job) or self._answer("settled", self.status.settled(job), Outcome, _OR_NONE)

    def settled_patch(self, local: Json, now: datetime) -> Json | None:
        """See `JobAdapter`."""
        return _change(local, self.status.at_settled_end(local, now))

    def is_stopped_here(self, local: Json) -> bool:
        """See `JobAdapter`. What of a declared kind's status means that it runs only its declaration tells."""
        if not self._is_suspended(local) or self.on_hold_here(local) is OnHold.YES:
            return False
        shows_activity = self.declaration is None or self.status.active is not None
        return shows_activity and self.release_patch(local) is not None

    def shows_former_run(self, local: Json) -> bool:
        """See `JobAdapter`. Kueue suspends jobs of its own kinds; what other controllers do then, each knows itself."""
        if self.declaration is None:
            return self.is_stopped_here(local)
        return self.traits.ends and self.release_patch(local) is not None

    def on_hold_here(self, local: Json) -> OnHold:
        """See `JobAdapter`. Words that name no generation may be of this one."""
        on_hold, generation = self.status.on_hold, dig(local, "metadata", "generation")
        if on_hold is None:
            return OnHold.UNKNOWN
        seen = dig(local, "status", rules.OBSERVED)
        is_older = isinstance(seen, int) and isinstance(generation, int) and seen < generation
        return (OnHold.OUTDATED if is_older else OnHold.YES) if on_hold(local) else OnHold.NO

    def pods_are_gone(self, job: Json) -> bool:
        """See `JobAdapter`."""
        return self.status.pods_are_gone(job)

    def is_counting(self, job: Json) -> bool:
        """See `JobAdapter`."""
        return self.status.counting(job)

    def _may_run(self, job: Json) -> bool:
        """Whether it has not ended; of kinds that do not tell that, whether it shows a run."""
        if self.status.finished is rules.never_finished:
            return self.release_patch(job) is not None
        return self._ended(job) is False

    def _ended(self, job: Json) -> bool | None:
        """Whether it has ended; None if its rule fails, which is told where the end is asked for: the rest is shown."""
        try:
            return self.outcome(job) is not None
        except Exception:  # another package's code may raise anything
            return None

    def _is_suspended(self, job: Json) -> bool:
        path = self.copies.suspend
        return path is not None and bool(dig(job, *path) == self.copies.suspend_value)


def _change(local: Json, wanted: Json | None) -> Json | None:
    return None if wanted is None else rules.status_change(local, wanted)
