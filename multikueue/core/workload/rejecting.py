"""Workloads that can never run through us: they are told so, once, and nothing of them stays on a worker."""

from __future__ import annotations

from multikueue.core.model.workloads import Rejection
from multikueue.core.workload.check_updates import reject
from multikueue.core.workload.effects import AnnounceWorkload, Plan
from multikueue.core.workload.facts.situation import Situation
from multikueue.core.workload.removal import remove_all


def acted_on(situation: Situation) -> Plan | None:
    """A controller of the manager acts on the job although it is delegated: it would run there, too."""
    job, adapter = situation.job, situation.snapshot.adapter
    why = adapter.acted_on(job) if job is not None and adapter is not None else ""
    return rejected(situation, Rejection.ACTED_ON_HERE, why, why) if why else None


def unknown_kind(situation: Situation) -> Plan | None:
    """Nobody handles its kind; its user is told which setting does."""
    if situation.snapshot.adapter is not None and not situation.traits.draining:
        return None
    owner, setting = situation.facts.owner, situation.snapshot.missing_setting
    told = "No multikueue adapter found" + (f' for owner kind "{owner.gvk}"' if owner is not None else "")
    advice = f"Jobs of this kind are not dispatched, and this one is off until multikueue retry: {setting}"
    return rejected(situation, Rejection.KIND_NOT_ENABLED, told, advice if setting else "")


def undelegated(situation: Situation) -> Plan | None:
    """The manager's own controllers would run it.

    The verdict is in Kueue's words, which tools know; what a person can do about it is told beside it, once.
    """
    if not isinstance(situation.not_delegated, str):
        return None
    advice = f"{situation.not_delegated}: create the job again with that value, or enable the webhook that fills it in"
    told = f"The owner is not managed by Kueue: {situation.not_delegated}"
    return rejected(situation, Rejection.NOT_DELEGATED, told, advice)


def rejected(situation: Situation, verdict: Rejection, base: str, advice: str = "") -> Plan:
    """Say so, and leave nothing of it anywhere."""
    told = [AnnounceWorkload("Warning", advice, on_job=True)] if advice else []
    return Plan((reject(situation, verdict, base), *told, *remove_all(situation)))
