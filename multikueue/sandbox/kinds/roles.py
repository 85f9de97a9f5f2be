"""Where a job's pods are in its spec: the pod templates, and how many of each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, clone, dig
from multikueue.sandbox.kinds.injecting import Injection, inject, is_noted, restore

REQUIRED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-required-topology"
"""On a pod template: the level of a topology within which all its pods must be."""
EACH: Final = "*"
"""In a path: every entry of a list, or of an object by the order of its keys."""


class PodSets(ABC):
    """How a kind's pods are read and written. Nothing here does I/O."""

    @abstractmethod
    def read(self, job: Json) -> list[Json]:
        """The pod sets of the job's Workload; copies."""

    def running(self, job: Json) -> list[Json]:
        """What the pods of a job that runs are made of: with what Kueue has put into it, wherever that stands."""
        return self.read(job)

    def counts(self, job: Json) -> Mapping[str, int]:
        """How many of each role the status of the job counts, by the role's name in the job."""
        return {entry["name"]: entry["count"] for entry in self.read(job)}

    def inject(self, job: Json, injections: Mapping[str, Injection]) -> None:
        """Put what Kueue wants into the job, in place; nothing, where Kueue does not change it.

        Raises:
            TemplateConflictError: the job has another value already.
        """
        del job, injections

    def restore(self, job: Json, originals: Mapping[str, Json]) -> None:
        """Take it out again, in place; nothing, where the pods are deleted instead.

        Args:
            originals: the Workload's templates, by pod set.
        """
        del job, originals

    def resize(self, job: Json, counts: Mapping[str, int]) -> None:
        """Give a job that may run with fewer pods so many, in place, by pod set; nothing, where Kueue does not."""
        del job, counts

    @abstractmethod
    def is_started(self, job: Json) -> bool:
        """Whether the job holds what Kueue puts in when it starts a job."""

    @abstractmethod
    def fill(self, job: Json, template: Json) -> None:
        """Give every role of an example this pod template, in place."""


@attrs.frozen
class Role:
    """One pod template found in a job."""

    name: str
    """What the job calls it."""
    pod_set: str
    count: int
    counted: int
    """What the status counts: pods, or for some kinds the jobs that make them."""
    template: Json
    """The very part of the job."""


@attrs.frozen(kw_only=True)
class Roles:
    """One or more roles at a path of the job."""

    at: tuple[str, ...] = ("spec",)
    """Where they are; `EACH` stands for every entry of a list or of an object."""
    template: tuple[str, ...] = ("template",)
    """The pod template, from there; empty: it is there itself."""
    counts: tuple[tuple[str, ...], ...] = (("replicas",),)
    """Numbers that multiply to the number of pods; one that is not given is 1."""
    name: str = "main"
    """Of the pod set, where there is one."""
    named_by: str = ""
    """The field that names an entry of a list; those without are numbered."""
    index_label: str = ""
    """The pod label with the pod's index, if the kind sets one."""
    container: str = ""
    """What the first container must be called, if the kind's own controller refuses any other name."""

    def find(self, job: Json) -> Iterator[Role]:
        """The roles that have a template."""
        for key, holder in self._holders(job):
            template = dig(holder, *self.template)
            if isinstance(template, dict):
                numbers = [_number(dig(holder, *path)) for path in self.counts]
                count = 1
                for number in numbers:
                    count *= number
                yield Role(key, key.lower(), count, numbers[0] if numbers else 1, template)

    def fill(self, job: Json, template: Json) -> None:
        """Put this template where there is none."""
        for _, holder in self._holders(job):
            if not self.template:
                holder.update({**clone(template), **holder})
                continue
            parent = holder
            for step in self.template[:-1]:
                parent = parent.setdefault(step, {})
            if self.template[-1] not in parent:
                parent[self.template[-1]] = filled = clone(template)
                if self.container:
                    filled["spec"]["containers"][0]["name"] = self.container

    def _holders(self, job: Json) -> Iterator[tuple[str, Json]]:
        yield from self._below(job, self.at, self.name)

    def _below(self, value: Any, path: tuple[str, ...], name: str) -> Iterator[tuple[str, Json]]:
        if not path:
            yield from [(name, value)] if isinstance(value, dict) else ()
        elif path[0] != EACH:
            yield from self._below(dig(value, path[0]), path[1:], name)
        elif isinstance(value, dict):
            for key in sorted(value):
                yield from self._below(value[key], path[1:], key)
        else:
            for number, entry in enumerate(value or ()):
                yield from self._below(entry, path[1:], str(dig(entry, self.named_by) or f"{name}-{number}"))


@attrs.frozen
class InTemplates(PodSets):
    """Pods whose templates are in the job, where Kueue changes them."""

    roles: Sequence[Roles]

    def read(self, job: Json) -> list[Json]:
        """See `PodSets`."""
        return [
            pod_set(role.pod_set, role.count, clone(role.template), roles.index_label)
            for roles, role in self._roles(job)
        ]

    def counts(self, job: Json) -> Mapping[str, int]:
        """See `PodSets`."""
        return {role.name: role.counted for _, role in self._roles(job)}

    def inject(self, job: Json, injections: Mapping[str, Injection]) -> None:
        """See `PodSets`."""
        for _, role in self._roles(job):
            inject(role.template, injections.get(role.pod_set, Injection()))

    def restore(self, job: Json, originals: Mapping[str, Json]) -> None:
        """See `PodSets`."""
        for _, role in self._roles(job):
            if role.pod_set in originals:
                restore(role.template, originals[role.pod_set], ())

    def is_started(self, job: Json) -> bool:
        """See `PodSets`."""
        return any(is_noted(role.template) for _, role in self._roles(job))

    def fill(self, job: Json, template: Json) -> None:
        """See `PodSets`."""
        for roles in self.roles:
            roles.fill(job, template)

    def _roles(self, job: Json) -> Iterator[tuple[Roles, Role]]:
        for roles in self.roles:
            yield from ((roles, role) for role in roles.find(job))


def pod_set(name: str, count: int, template: Json, index_label: str = "") -> Json:
    """A pod set of a Workload."""
    result: Json = {"name": name, "count": count, "template": template}
    asked = {"podIndexLabel": index_label} if index_label else {}
    required = annotations_of(template).get(REQUIRED_TOPOLOGY)
    if required:
        asked["required"] = required
    return {**result, "topologyRequest": asked} if asked else result


def _number(value: object) -> int:
    return value if isinstance(value, int) else 1
