"""The jobs a demo submits: drawn at random, of the kinds asked for, or read from the user's files."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import attrs
import yaml

from multikueue import GVK, Json, SettingsError
from multikueue.adapters.declaration import Declaration
from multikueue.core.model.labels import QUEUE_LABEL
from multikueue.core.model.objects import dig
from multikueue.core.model.quantities import MILLI
from multikueue.kube.kubernetes_yaml import KubernetesLoader
from multikueue.sandbox.apiserver import Registry, StatusError
from multikueue.sandbox.kinds import AVAILABLE, SandboxKind, define
from multikueue.sandbox.kueue.scheduling.podsets import PodSetRequest, request
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME
from multikueued.settings.config import IntegrationSettings, Settings
from multikueued.settings.documents import read_text, reading
from multikueued.settings.frameworks import framework_names

NAMESPACE: Final = "default"
"""Where the sandbox has its LocalQueue."""
ALL: Final = "all"
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
    def cpus(self) -> float:
        """The CPUs that its pods request in sum."""
        return sum(dict(found.amounts).get("cpu", 0) for found in self.requests) / MILLI


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
    pods = sum(found.count for found in Submission(kind, name, tuple(examples(_template("1")))).requests)
    cpu = str(cpus) if pods == 1 else f"{1000 * cpus // pods}m"
    return Submission(kind, name, tuple(examples(_template(cpu))))


def _template(cpu: str) -> Json:
    """A pod that requests CPU and memory."""
    resources = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": resources}
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}


def load_jobs(paths: Iterable[Path], available: Sequence[SandboxKind] = AVAILABLE) -> list[Submission]:
    """The jobs in YAML files, ready to submit: suspended, and with `managedBy` set unless they have one.

    Args:
        paths: the files.
        available: the kinds there are.

    Raises:
        SettingsError: a file cannot be read, is not YAML, or holds something that is not a job for our queue.
    """
    # A server in memory refuses what a manager would refuse, before one is started. What is created in it stays, so a
    # second job of the same name is refused.
    rehearsal = Registry(garbage_collection=False)
    define(rehearsal, available)
    return _together(job for path in paths for job in _jobs_in(path, rehearsal, available))


def _jobs_in(path: Path, rehearsal: Registry, available: Sequence[SandboxKind]) -> list[Submission]:
    text = read_text(path)
    with reading(str(path)):
        documents = list(yaml.load_all(text, KubernetesLoader))  # a SafeLoader
    jobs = [_checked(job, where, rehearsal, available) for where, job in _listed(documents, path)]
    if not jobs:
        raise SettingsError(f"{path}: holds no job")
    return jobs


def _together(jobs: Iterable[Submission]) -> list[Submission]:
    """The pods of a group as one job."""
    found: dict[tuple[SandboxKind, str], Submission] = {}
    for job in jobs:
        known = found.get((job.kind, job.name))
        objects = (*known.objects, *job.objects) if known is not None else job.objects
        found[job.kind, job.name] = Submission(job.kind, job.name, objects)
    return list(found.values())


def _listed(documents: list[Any], path: Path) -> Iterator[tuple[str, Json]]:
    """The objects in the documents, also those in Lists, each with its place."""
    for number, document in enumerate(documents, 1):
        where = f"{path}, document {number}"
        if document is None:
            continue
        obj = _object(document, where)
        if obj.get("kind") != "List":
            yield where, obj
            continue
        items = obj.get("items") or []
        if not isinstance(items, list):
            raise SettingsError(f"{where}: items is not a list")
        for item_number, item in enumerate(items, 1):
            place = f"{where}, item {item_number}"
            yield place, _object(item, place)


def _object(value: Any, where: str) -> Json:
    if not isinstance(value, dict):
        raise SettingsError(f"{where}: is not a Kubernetes object")
    return value


def _checked(job: Json, where: str, rehearsal: Registry, available: Sequence[SandboxKind]) -> Submission:
    kind, name = _kind_of(job, where, available), dig(job, "metadata", "name") or dig(job, "metadata", "generateName")
    if not isinstance(name, str) or not name:
        raise SettingsError(f"{where}: has no metadata.name")
    what = f'{where}: {job["kind"]} "{name}"'
    if not isinstance(job.get("spec"), dict):
        raise SettingsError(f"{what} has no spec")
    namespace = job["metadata"].setdefault("namespace", NAMESPACE)
    if namespace != NAMESPACE:
        raise SettingsError(f'{what} is in namespace "{namespace}": only {NAMESPACE} has a queue here')
    queue = dig(job, "metadata", "labels", QUEUE_LABEL)
    if queue != LOCAL_QUEUE_NAME:
        problem = f'names the queue "{queue}", which does not exist' if queue else "names no queue"
        raise SettingsError(f"{what} {problem}: label it {QUEUE_LABEL}: {LOCAL_QUEUE_NAME}")
    try:
        # The demo knows jobs by their names, so one that is generated is taken from here.
        job["metadata"]["name"] = rehearsal.create_object(job)["metadata"]["name"]
    except StatusError as error:
        raise SettingsError(f"{where}: {error.message}") from error
    try:
        submission = Submission(kind, kind.job_name(job), (kind.submitted(job),))
        requests = submission.requests
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # no server checks the types of custom kinds
        raise SettingsError(f"{what} has no pods that can be read: {error}") from error
    if not requests:
        raise SettingsError(f"{what} has no pods")
    return submission


def _kind_of(job: Json, where: str, available: Sequence[SandboxKind]) -> SandboxKind:
    version, what = job.get("apiVersion"), job.get("kind")
    for kind in available:
        if isinstance(version, str) and isinstance(what, str) and kind.resource.gvk == GVK.of(version, what):
            return kind
    known = ", ".join(sorted({f"{kind.resource.gvk.api_version} {kind.resource.gvk.kind}" for kind in available}))
    raise SettingsError(
        f"{where}: is {version} {what}, which is no kind of job here; these are: {known}; --config adds yours"
    )
