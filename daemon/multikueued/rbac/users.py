"""The roles of those who submit jobs and of those who look at them, to be bound in their namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from multikueue import AVAILABLE, JobKind
from multikueue.core.model.kinds import EVENT, KUEUE_GROUP
from multikueue.core.model.names import Json
from multikueued.logserver.answers import GROUP, PARTS, REMOTE_JOB
from multikueued.rbac.role_rule import merged, rule

READ: Final = ("get", "list", "watch")
WRITE: Final = ("create", "delete", "patch", "update")
AGGREGATED: Final = {"viewer": "view", "submitter": "edit"}
"""By role: the role of Kubernetes that it may be made a part of. `view` shows the jobs of a namespace, their pods and
logs already, and no Secret: this shows the same of where they run. `edit` creates and deletes them already."""


def viewer_rules() -> list[Json]:
    """In a namespace of the manager, whatever kinds its jobs have: the API, and what is read without it."""
    return [
        rule(GROUP, [REMOTE_JOB.plural], READ),
        rule(GROUP, [f"{REMOTE_JOB.plural}/{part}" for part in PARTS], ["get"]),
        rule(KUEUE_GROUP, ["workloads", "localqueues"], READ),
        rule(EVENT.gvk.group, [EVENT.plural], READ),
    ]


def user_kind_rules(kind: JobKind, verbs: Sequence[str]) -> list[Json]:
    """To read jobs of a kind, or to submit, change and delete them."""
    return [] if kind.workload_only else [rule(kind.resource.gvk.group, [kind.resource.plural], verbs)]


def role_rules(name: str, kinds: Sequence[JobKind]) -> list[Json]:
    """The rules of one of the two roles, for these kinds."""
    return merged([*viewer_rules(), *(one for kind in kinds for one in user_kind_rules(kind, verbs_of(name)))])


def verbs_of(name: str) -> Sequence[str]:
    """What one of the two roles may do with jobs."""
    return READ if name == "viewer" else (*WRITE, *READ)


def user_framework_rules(name: str) -> dict[str, list[Json]]:
    """By Kueue's name of a built-in framework: what one of the two roles has for it."""
    found: dict[str, list[Json]] = {}
    for kind in AVAILABLE:
        found.setdefault(kind.framework, []).extend(user_kind_rules(kind, verbs_of(name)))
    return {framework: merged(rules) for framework, rules in found.items()}
