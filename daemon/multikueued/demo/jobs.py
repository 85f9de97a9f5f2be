"""The jobs a demo draws at random, of the kinds asked for; `files` reads those of users."""

from __future__ import annotations

import functools
import itertools
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import attrs

from multikueue import GVK, Json, SettingsError
from multikueue.adapters.declaration import Declaration
from multikueue.core.model.quantities import MILLI, thousandths, written
from multikueue.sandbox.kinds import AVAILABLE, SandboxKind
from multikueue.sandbox.kueue.scheduling.podsets import PodSetRequest, request
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME
from multikueued.settings.config import IntegrationSettings, Settings
from multikueued.settings.frameworks import framework_names

ALL: Final = "all"
ROOM: Final = MappingProxyType({"cpu": "4", "memory": "16Gi"})
"""What each worker has: a few jobs fit, the rest wait in the queue."""
_NAMES = ("train", "simulate", "render", "index", "fold", "tune", "encode", "crunch")


@attrs.frozen
class Submission:
    """One job to submit."""

    kind: SandboxKind
    name: str
    objects: tuple[Json, ...]
    """Its objects: one, or the pods of a group."""

    @property
    def requests(self) -> list[PodSetRequest]:
        """The resource requests of its pods."""
        return [request(pod_set) for obj in self.objects for pod_set in self.kind.pods.read(obj)]

    @property
    def amounts(self) -> Counter[str]:
        """What its pods request in sum, in thousandths."""
        total: Counter[str] = Counter()
        for pod_set in self.requests:
            total.update(dict(pod_set.amounts))
        return total

    @property
    def cpus(self) -> float:
        """The CPUs that its pods request in sum."""
        return self.amounts["cpu"] / MILLI


def room_for(jobs: Iterable[Submission]) -> dict[str, str]:
    """What each worker has: `ROOM`, and as much of each resource as the largest of the jobs asks for."""
    room = Counter({resource: thousandths(amount) for resource, amount in ROOM.items()})
    for job in jobs:
        room |= Counter({resource: amount for resource, amount in job.amounts.items() if _is_named(resource)})
    return {resource: written(resource, amount) for resource, amount in room.items()}


def _is_named(resource: str) -> bool:
    """Whether a quota can name it: no quota bounds pods here, and `a=b` is an amount that nobody can read."""
    return resource != "pods" and "=" not in resource


def kinds_named(names: Iterable[str], available: Iterable[SandboxKind] = AVAILABLE) -> tuple[SandboxKind, ...]:
    """The kinds of these names, in that order and each once.

    Args:
        names: of kinds in any case, or `all`.
        available: the kinds there are.

    Raises:
        SettingsError: there is no such kind.
    """
    known = {kind.name: kind for kind in available}
    chosen: dict[str, SandboxKind] = {}
    for name in names:
        wanted = name.lower()
        if wanted != ALL and wanted not in known:
            raise SettingsError(f'--kind: there is no kind "{name}": use {ALL}, {", ".join(sorted(known))}')
        chosen.update(known if wanted == ALL else {wanted: known[wanted]})
    return tuple(chosen.values())


def with_kinds(
    settings: Settings, kinds: Iterable[SandboxKind], declared: Mapping[GVK, Declaration] = MappingProxyType({})
) -> Settings:
    """The settings of a daemon that dispatches these kinds; see `frameworks_of`."""
    names, declarations = frameworks_of(kinds, declared)
    return attrs.evolve(
        settings, integrations=IntegrationSettings(tuple(names)), external_frameworks=tuple(declarations)
    )


def frameworks_of(
    kinds: Iterable[SandboxKind], declared: Mapping[GVK, Declaration] = MappingProxyType({})
) -> tuple[list[str], list[Declaration]]:
    """How settings enable kinds: the names of those that are built in, and the declarations of all others.

    Args:
        kinds: those to enable.
        declared: the user's own declarations; one that is not there is its name alone.
    """
    built_in, names, declarations = set(framework_names()), dict[str, None](), dict[GVK, Declaration]()
    for kind in kinds:
        gvk = kind.resource.gvk
        if kind.integration in built_in and gvk not in declared:
            names[kind.integration] = None
        else:
            declarations[gvk] = declared.get(gvk) or Declaration(name=gvk.dotted)
    return list(names), list(declarations.values())


def drawn_jobs(kinds: Sequence[SandboxKind], count: int, rng: random.Random) -> list[Submission]:
    """Jobs of one or two CPUs with readable names, of each kind in turn; the same for the same random numbers."""
    return [
        drawn_job(kind, f"{rng.choice(_NAMES)}-{number:02}", cpus=rng.choice((1, 1, 2)))
        for number, kind in enumerate(itertools.islice(itertools.cycle(kinds), count), 1)
    ]


def drawn_job(kind: SandboxKind, name: str, cpus: int, queue: str = LOCAL_QUEUE_NAME) -> Submission:
    """A job whose pods request so many CPUs in sum."""
    examples = functools.partial(kind.examples, name, queue=queue)
    pods = sum(request.count for request in Submission(kind, name, tuple(examples(_template("1")))).requests)
    cpu = str(cpus) if pods == 1 else f"{1000 * cpus // pods}m"
    return Submission(kind, name, tuple(examples(_template(cpu))))


def _template(cpu: str) -> Json:
    """A pod that requests CPU and memory."""
    resources = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": resources}
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}
