"""TYPE/NAME: how people name a job, as kubectl does, and which objects a name stands for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from multikueue.adapters.declaration import usual_plural
from multikueue.adapters.registry import AVAILABLE
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.name_lists import alike, listed, question
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, name_of
from multikueue.core.model.outside_text import one_line
from multikueue.core.model.workloads import has_members, is_finished, owner

WORKLOAD_TYPE: Final = "workload"
GROUP_TYPE: Final = "podgroup"
"""Stands for a Workload of several pods: the group has no object of its own."""
_WORKLOAD_NAMES: Final = (WORKLOAD_TYPE, WORKLOAD.plural, "wl")
_BUILTIN: Final = {kind.resource.gvk: kind.resource for kind in AVAILABLE}
_TAKEN: Final = dict.fromkeys((*_WORKLOAD_NAMES, GROUP_TYPE), WORKLOAD.gvk.group) | {
    name: gvk.group for gvk, resource in _BUILTIN.items() for name in (gvk.kind.lower(), resource.plural)
}
"""Names without a group, and the one group whose kind they stand for: a Volcano Job is no `job`."""


@attrs.frozen
class JobName:
    """A job as the user names it."""

    type: str
    """In lower case: a kind, a plural, either with its group; empty: any."""
    name: str

    @classmethod
    def parse(cls, text: str) -> JobName:
        """Read `TYPE/NAME`, or a NAME alone."""
        kind, _, name = text.rpartition("/")
        return cls(kind.lower(), name)

    def __str__(self) -> str:
        return f"{self.type}/{self.name}" if self.type else self.name


def type_of(gvk: GVK) -> str:
    """The TYPE of a kind: `job`, `job.batch.volcano.sh`."""
    kind = gvk.kind.lower()
    return kind if _TAKEN.get(kind, gvk.group) == gvk.group else f"{kind}.{gvk.group}"


def type_name(workload: Json) -> str:
    """TYPE/NAME of the job behind a Workload: `job/train-1`; `workload/NAME` if it names no job."""
    if has_members(workload):
        return f"{GROUP_TYPE}/{name_of(workload)}"
    job = owner(workload)
    return f"{type_of(job.gvk)}/{job.name}" if job is not None else f"{WORKLOAD_TYPE}/{name_of(workload)}"


def resource_of(type: str) -> Resource | None:
    """The built-in job kind of that TYPE."""
    return next((resource for gvk, resource in _BUILTIN.items() if type in names_of(gvk)), None)


def names_of(gvk: GVK) -> set[str]:
    """What a kind may be called: `job`, `jobs`, `job.batch`, `jobs.batch`; with its group only, where the rest is the
    name of a built-in kind of another group."""
    kind = gvk.kind.lower()
    plain = {kind, _BUILTIN[gvk].plural if gvk in _BUILTIN else usual_plural(gvk.kind)}
    free = {name for name in plain if _TAKEN.get(name, gvk.group) == gvk.group}
    return free | ({f"{name}.{gvk.group}" for name in plain} if gvk.group else set())


def is_called(type: str, kind: str) -> bool:
    """Whether a TYPE as people write it, or none, stands for one as `type_of` says it."""
    if kind == WORKLOAD_TYPE:
        return type in ("", *_WORKLOAD_NAMES)
    known = resource_of(kind)
    name, _, group = kind.partition(".")
    return type in ("", kind, *names_of(known.gvk if known is not None else GVK(group, "", name)))


def matching(name: JobName, workloads: Iterable[Json]) -> list[Json]:
    """The Workloads that a name stands for, the one that counts first: not ended, then newest."""
    fitting = [workload for workload in workloads if _fits(name, workload)]
    newest = sorted(
        fitting, key=lambda workload: str(dig(workload, "metadata", "creationTimestamp") or ""), reverse=True
    )
    return sorted(newest, key=is_finished)


def meant(workloads: Iterable[Json]) -> list[str]:
    """The different jobs among Workloads that one name stands for; those that have ended count if all have. Kinds that
    differ in their group alone are told with it."""
    every = list(workloads)
    counting = [workload for workload in every if not is_finished(workload)] or every
    names = {(type_name(workload), _with_group(workload)) for workload in counting}
    plain = [name for name, _ in names]
    return sorted(name if plain.count(name) == 1 else full for name, full in names)


def jobs_in(workloads: Iterable[Json]) -> list[str]:
    """The different jobs behind Workloads."""
    return sorted({type_name(workload) for workload in workloads})


def suggestions(name: JobName, workloads: Iterable[Json], namespace: str) -> str:
    """What to try instead of a name that stands for nothing; empty if there is no idea."""
    every = list(workloads)
    here = [workload for workload in every if ObjectKey.of(workload).namespace == namespace]
    elsewhere = sorted({ObjectKey.of(workload).namespace for workload in every if _fits(name, workload)} - {namespace})
    if elsewhere:
        return f"there is one in namespace {', '.join(elsewhere)}: use -n {elsewhere[0]}"
    known = {job: job.partition("/")[2] for job in jobs_in(here)}
    of_name = [job for job, plain in known.items() if plain == name.name]
    close = of_name or alike(str(name), known, most=3)
    close = close or [job for job, plain in known.items() if alike(name.name, [plain])]
    return question(close[:3]) or (f"the jobs here are {listed([*known])}" if known else "")


def _fits(name: JobName, workload: Json) -> bool:
    if name.type in ("", *_WORKLOAD_NAMES) and name_of(workload) == name.name:
        return True
    if name.type in ("", GROUP_TYPE) and has_members(workload) and name_of(workload) == name.name:
        return True
    references = dig(workload, "metadata", "ownerReferences") or []
    members = [
        (GVK.of(reference.get("apiVersion", ""), reference.get("kind", "")), reference.get("name"))
        for reference in references
    ]
    job = owner(workload)
    named = members if has_members(workload) else [(job.gvk, job.name)] if job is not None else []
    return any(called == name.name and (not name.type or name.type in names_of(gvk)) for gvk, called in named)


def title(workload: Json) -> str:
    """A job as its user knows it, among those of all namespaces, on one line: `team/job/train`."""
    return one_line(f"{ObjectKey.of(workload).namespace}/{type_name(workload)}")


def _with_group(workload: Json) -> str:
    job = owner(workload)
    kind, _, name = type_name(workload).partition("/")
    group = job.gvk.group if job is not None and not has_members(workload) and "." not in kind else ""
    return f"{kind}.{group}/{name}" if group else f"{kind}/{name}"
