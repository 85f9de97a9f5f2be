"""The jobs a demo submits: drawn ones, or the user's own from a file."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import yaml

from multikueue.core.labels import QUEUE_LABEL
from multikueue.core.names import GVK, Json
from multikueue.core.objects import dig, labels_of
from multikueue.errors import SettingsError
from multikueue.sandbox.kinds import AVAILABLE, SandboxKind
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME

_NAMES = ("train", "simulate", "render", "index", "fold", "tune", "encode", "crunch")


@attrs.frozen
class Submission:
    """One job to submit."""

    kind: SandboxKind
    name: str
    objects: tuple[Json, ...]
    """What it is made of: one object, or the pods of a group."""


def drawn_jobs(kinds: Sequence[SandboxKind], count: int, rng: random.Random) -> list[Submission]:
    """Jobs of one or two CPUs with readable names, kind by kind; the same for the same random numbers."""
    made = []
    for number in range(1, count + 1):
        kind = kinds[(number - 1) % len(kinds)]
        name, cpus = f"{rng.choice(_NAMES)}-{number:02}", rng.choice((1, 1, 2))
        made.append(drawn_job(kind, name, cpus))
    return made


def drawn_job(kind: SandboxKind, name: str, cpus: int) -> Submission:
    """A job whose pods share so many CPUs."""
    pods = sum(pod_set["count"] for obj in _examples(kind, name, pod_template("1")) for pod_set in kind.pods.read(obj))
    cpu = str(cpus) if pods == 1 else f"{1000 * cpus // pods}m"
    return Submission(kind, name, tuple(_examples(kind, name, pod_template(cpu))))


def pod_template(cpu: str) -> Json:
    """A pod that asks for something."""
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
    }
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}


def _examples(kind: SandboxKind, name: str, template: Json) -> list[Json]:
    return kind.examples(name, template, queue=LOCAL_QUEUE_NAME)


def load_jobs(path: Path) -> list[Submission]:
    """The jobs in a YAML file, ready to submit: suspended, and delegated unless they say otherwise.

    Raises:
        SettingsError: the file cannot be read, is not YAML, or holds something that is not a job for our queue.
    """
    try:
        documents = list(yaml.safe_load_all(path.read_text()))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(f"{path}: cannot be read: {reason}") from error
    except yaml.YAMLError as error:
        raise SettingsError(f"{path}: is not YAML: {_one_line(error)}") from error
    jobs = [_checked(job, f"{path}, document {number}") for number, job in _numbered(documents)]
    if not jobs:
        raise SettingsError(f"{path}: holds no job")
    return _together(jobs)


def _together(jobs: list[Submission]) -> list[Submission]:
    """The pods of a group as one job."""
    found: dict[tuple[SandboxKind, str], Submission] = {}
    for job in jobs:
        known = found.get((job.kind, job.name))
        objects = (*known.objects, *job.objects) if known is not None else job.objects
        found[job.kind, job.name] = Submission(job.kind, job.name, objects)
    return list(found.values())


def _numbered(documents: list[Any]) -> Iterator[tuple[int, Any]]:
    for number, document in enumerate(documents, 1):
        if isinstance(document, dict) and document.get("kind") == "List":
            yield from ((number, item) for item in document.get("items") or [])
        elif document is not None:
            yield number, document


def _checked(job: Any, where: str) -> Submission:
    if not isinstance(job, dict):
        raise SettingsError(f"{where}: is not a Kubernetes object")
    kind = _kind_of(job, where)
    what = job["kind"]
    name = dig(job, "metadata", "name")
    if not isinstance(name, str) or not name:
        raise SettingsError(f"{where}: has no metadata.name")
    if not isinstance(job.get("spec"), dict):
        raise SettingsError(f'{where}: {what} "{name}" has no spec')
    queue = labels_of(job).get(QUEUE_LABEL)
    if queue != LOCAL_QUEUE_NAME:
        problem = f'names the queue "{queue}", which does not exist' if queue else "names no queue"
        raise SettingsError(f'{where}: {what} "{name}" {problem}: label it {QUEUE_LABEL}: {LOCAL_QUEUE_NAME}')
    job["metadata"].setdefault("namespace", "default")
    return Submission(kind, kind.job_name(job), (kind.submitted(job),))


def _kind_of(job: Json, where: str) -> SandboxKind:
    version, what = job.get("apiVersion"), job.get("kind")
    for kind in AVAILABLE:
        if isinstance(version, str) and isinstance(what, str) and kind.resource.gvk == GVK.of(version, what):
            return kind
    known = ", ".join(sorted(f"{kind.resource.gvk.api_version} {kind.resource.gvk.kind}" for kind in AVAILABLE))
    raise SettingsError(f"{where}: is {version} {what}, which is no kind of job here; these are: {known}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
