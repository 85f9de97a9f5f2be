"""The Jobs a demo submits: drawn ones, or the user's own from a file."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from multikueue.core.kinds import JOB
from multikueue.core.labels import CONTROLLER_NAME, QUEUE_LABEL
from multikueue.core.names import Json
from multikueue.core.objects import dig, labels_of
from multikueue.errors import SettingsError
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME

_NAMES = ("train", "simulate", "render", "index", "fold", "tune", "encode", "crunch")


def drawn_jobs(count: int, rng: random.Random) -> list[Json]:
    """Jobs of one or two CPUs with readable names; the same for the same random numbers."""
    return [_job(f"{rng.choice(_NAMES)}-{number:02}", rng.choice(("1", "1", "2"))) for number in range(1, count + 1)]


def _job(name: str, cpu: str) -> Json:
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
    }
    return {
        "apiVersion": JOB.gvk.api_version,
        "kind": JOB.gvk.kind,
        "metadata": {"name": name, "namespace": "default", "labels": {QUEUE_LABEL: LOCAL_QUEUE_NAME}},
        "spec": {
            "suspend": True,
            "managedBy": CONTROLLER_NAME,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def load_jobs(path: Path) -> list[Json]:
    """The Jobs in a YAML file, ready to submit: suspended, and delegated unless they say otherwise.

    Raises:
        SettingsError: the file cannot be read, is not YAML, or holds something that is not a Job for our queue.
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
        raise SettingsError(f"{path}: holds no Job")
    return jobs


def _numbered(documents: list[Any]) -> Iterator[tuple[int, Any]]:
    for number, document in enumerate(documents, 1):
        if isinstance(document, dict) and document.get("kind") == "List":
            yield from ((number, item) for item in document.get("items") or [])
        elif document is not None:
            yield number, document


def _checked(job: Any, where: str) -> Json:
    if not isinstance(job, dict):
        raise SettingsError(f"{where}: is not a Kubernetes object")
    found = (job.get("apiVersion"), job.get("kind"))
    if found != (JOB.gvk.api_version, JOB.gvk.kind):
        raise SettingsError(f"{where}: is {found[0]} {found[1]}, not batch/v1 Job")
    name = dig(job, "metadata", "name")
    if not isinstance(name, str) or not name:
        raise SettingsError(f"{where}: has no metadata.name")
    if not isinstance(job.get("spec"), dict):
        raise SettingsError(f'{where}: Job "{name}" has no spec')
    queue = labels_of(job).get(QUEUE_LABEL)
    if queue != LOCAL_QUEUE_NAME:
        problem = f'names the queue "{queue}", which does not exist' if queue else "names no queue"
        raise SettingsError(f'{where}: Job "{name}" {problem}: label it {QUEUE_LABEL}: {LOCAL_QUEUE_NAME}')
    job["metadata"].setdefault("namespace", "default")
    job["spec"]["suspend"] = True
    job["spec"].setdefault("managedBy", CONTROLLER_NAME)
    return job


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
