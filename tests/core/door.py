"""The one door to the decisions of `multikueue.core.workload`: what tests show one, and what they see of its answer.

No other test imports that package; `tests/test_layout.py` names the few exceptions. A core that reads or answers in
other types is translated here: in `decide`, and in types of the same fields, which stand in for these names.

What is shown: `Snapshot`, `Worker` and `JobCopy`, built by `tests.core.building` and `tests.core.pods` of Kubernetes
objects, and how each worker stands (`Lost`, `Syncing`, `Created`, ...). What is seen: a `Plan`, whose effects
`tests.core.wording` puts into words, and `those`, `only`, `sole` and `notes` pick.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, TypeVar

from multikueue import PlanSettings
from multikueue.core.dispatchers.dispatcher import AllAtOnce, Dispatcher
from multikueue.core.model.check_message import NOBODY_TAKES_IT
from multikueue.core.model.earlier_run_facts import WAITS, EarlierRun, earlier_run_condition, earlier_runs_in
from multikueue.core.model.refusal_facts import REFUSALS, RefusalFacts, refusals_condition, refusals_in
from multikueue.core.model.worker_states import (
    NAME_TAKEN,
    Connected,
    Connecting,
    Created,
    Creating,
    Creation,
    Idle,
    InFlight,
    Kind,
    Lost,
    NothingSent,
    Opaque,
    OutcomeUnknown,
    Reach,
    Refusal,
    Removing,
    Served,
    ShareUsedUp,
    Syncing,
    Unanswered,
    Unserved,
    Untracked,
    Unusable,
    WritingStatus,
)
from multikueue.core.workload.effects import (
    MANAGER,
    AnnounceWorkload,
    ApplyStatus,
    CheckDependencies,
    CountAdmitted,
    CountRejections,
    CreateDependencies,
    CreateJob,
    CreateWorkload,
    DeleteJob,
    DeleteWorkload,
    DependencyEffect,
    Effect,
    LookForPods,
    OwnDependencies,
    PatchJob,
    PatchJobStatus,
    PatchWorkload,
    Plan,
)
from multikueue.core.workload.plan import TABLE, guarded_plan, plan
from multikueue.core.workload.seen.graces import (
    END_SHOWN,
    FINALIZER,
    FINISHING,
    HELD_UP,
    LEFTOVER_GRACE,
    LONGEST_GRACE,
    RESUMING,
    STEADY,
    STOP,
    SYNC_GRACE,
    VANISHED,
)
from multikueue.core.workload.seen.snapshot import JobCopy, Snapshot, Worker, hidden

__all__ = [
    "END_SHOWN",
    "FINALIZER",
    "FINISHING",
    "HELD_UP",
    "LEFTOVER_GRACE",
    "LONGEST_GRACE",
    "MANAGER",
    "NAME_TAKEN",
    "NOBODY_TAKES_IT",
    "NOW",
    "REFUSALS",
    "RESUMING",
    "SETTINGS",
    "STEADY",
    "STOP",
    "SYNC_GRACE",
    "TABLE",
    "VANISHED",
    "WAITS",
    "AnnounceWorkload",
    "ApplyStatus",
    "CheckDependencies",
    "Connected",
    "Connecting",
    "CountAdmitted",
    "CountRejections",
    "CreateDependencies",
    "CreateJob",
    "CreateWorkload",
    "Created",
    "Creating",
    "Creation",
    "DeleteJob",
    "DeleteWorkload",
    "DependencyEffect",
    "EarlierRun",
    "Effect",
    "Idle",
    "InFlight",
    "JobCopy",
    "Kind",
    "LookForPods",
    "Lost",
    "NothingSent",
    "Opaque",
    "OutcomeUnknown",
    "OwnDependencies",
    "PatchJob",
    "PatchJobStatus",
    "PatchWorkload",
    "Plan",
    "Reach",
    "Refusal",
    "RefusalFacts",
    "Removing",
    "Served",
    "ShareUsedUp",
    "Snapshot",
    "Syncing",
    "Unanswered",
    "Unserved",
    "Untracked",
    "Unusable",
    "Worker",
    "WritingStatus",
    "decide",
    "earlier_run_condition",
    "earlier_runs_in",
    "guarded_plan",
    "hidden",
    "notes",
    "only",
    "refusals_condition",
    "refusals_in",
    "sole",
    "those",
]
"""What tests of decisions, and of what carries them out, may name. Of these types they read fields only."""

NOW: Final = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
"""When everything is decided."""
SETTINGS: Final = PlanSettings()
"""As an operator leaves them."""
One = TypeVar("One")


def decide(
    seen: Snapshot, dispatcher: Dispatcher | None = None, settings: PlanSettings = SETTINGS, *, at: datetime = NOW
) -> Plan:
    """What is decided where this is seen: by the plain settings, at `NOW`, and offered to all at once, if not said."""
    return plan(seen, at, settings, dispatcher or AllAtOnce())


def those(kind: type[One], effects: Iterable[object]) -> list[One]:
    """The effects of one kind, in order."""
    return [effect for effect in effects if isinstance(effect, kind)]


def only(kind: type[One], effects: Iterable[object]) -> One:
    """The one effect of this kind that is among them."""
    (effect,) = those(kind, effects)
    return effect


def sole(kind: type[One], effects: Iterable[object]) -> One:
    """The one effect, which is of this kind: nothing else is done."""
    (effect,) = effects
    assert isinstance(effect, kind), effect
    return effect


def notes(decided: Plan) -> list[str]:
    """What the user is told in events."""
    return [event.note for event in those(AnnounceWorkload, decided.effects)]
