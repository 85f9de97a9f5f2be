"""The files of `multikueue demo -f`: jobs, and what people have in a file beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from multikueue import GVK, Json, SettingsError
from multikueue.core.model.kinds import LOCAL_QUEUE, NAMESPACE, WORKLOAD_PRIORITY_CLASS
from multikueue.core.model.labels import PRIORITY_CLASS_LABEL, QUEUE_LABEL
from multikueue.core.model.name_lists import question
from multikueue.core.model.objects import dig, labels_of, with_value, without_nulls
from multikueue.kube.kubernetes_yaml import KubernetesLoader
from multikueue.sandbox.apiserver import Registry, StatusError
from multikueue.sandbox.crds import load_crds
from multikueue.sandbox.kinds import AVAILABLE, SandboxKind, define
from multikueue.sandbox.objects import built
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME, local_queue, namespace
from multikueued.demo.jobs import Submission
from multikueued.settings.documents import read_text, reading

DEFAULT: Final = "default"
"""The namespace of what names none."""
STANDARD_INPUT: Final = Path("/dev/stdin")
_READ: Final = (".json", ".yaml", ".yml")
"""What the files of a folder end with that kubectl reads."""
BESIDE: Final = ("", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io")
"""The groups of which objects are made on the manager, if its API server serves their kind."""


@attrs.frozen
class Files:
    """What the files of a user hold."""

    jobs: tuple[Submission, ...] = ()
    """Ready to submit: suspended, with `managedBy` unless they say something, and in a queue."""
    everywhere: tuple[Json, ...] = ()
    """Namespaces and LocalQueues, for all clusters."""
    beside: tuple[Json, ...] = ()
    """What else the manager gets before the jobs."""
    notes: tuple[str, ...] = ()
    """A line for each thing that was passed over, or filled in."""


def load_files(paths: Iterable[Path], available: Sequence[SandboxKind] = AVAILABLE) -> Files:
    """Read YAML files, as kubectl takes them with `-f`.

    Args:
        paths: files; folders, of which the files that kubectl reads are read; `-` for the standard input.
        available: the job kinds there are.

    Raises:
        SettingsError: a file cannot be read, is not YAML, or holds a job that cannot run here; or none holds any.
    """
    reader, files = _Reader(tuple(available)), [file for path in paths for file in _files_of(path)]
    reader.take([placed for file in files for placed in _objects_in(file)])
    if not reader.jobs:
        where = ", ".join(map(str, files or paths))
        raise SettingsError("; ".join((f"{where}: holds no job", *reader.notes)))
    return Files(_together(reader.jobs), tuple(reader.everywhere), tuple(reader.beside), tuple(reader.notes))


@attrs.define(eq=False)
class _Reader:
    """Makes the jobs, and what is made beside them, of the objects of all files.

    A server in memory refuses what a manager would refuse, before one is started. What is created in it stays, so a
    second job of the same name is refused.
    """

    available: tuple[SandboxKind, ...]
    jobs: list[Submission] = attrs.field(factory=list)
    everywhere: list[Json] = attrs.field(factory=list)
    beside: list[Json] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)
    rehearsal: Registry = attrs.field(factory=lambda: Registry(garbage_collection=False))
    queues: dict[str, list[str]] = attrs.field(factory=dict)
    """The LocalQueues by namespace, the one that is meant without a label first."""

    def __attrs_post_init__(self) -> None:
        define(self.rehearsal, self.available, load_crds())
        self.queues[DEFAULT] = [LOCAL_QUEUE_NAME]

    def take(self, objects: Sequence[tuple[str, Json]]) -> None:
        """Take objects, each with its place: queues and priority classes first, since jobs may stand before them."""
        for where, obj in objects:
            if _gvk(obj) == LOCAL_QUEUE.gvk:
                with _placed(where):
                    self._add_queue(
                        str(dig(obj, "metadata", "namespace") or DEFAULT), str(dig(obj, "metadata", "name"))
                    )
            if _gvk(obj) == WORKLOAD_PRIORITY_CLASS.gvk:
                self._take_beside(obj, where)
        for where, obj in objects:
            self._take(obj, where)

    def _take(self, obj: Json, where: str) -> None:
        gvk = _gvk(obj)
        kind = next((available for available in self.available if available.resource.gvk == gvk), None)
        if gvk in (LOCAL_QUEUE.gvk, NAMESPACE.gvk, WORKLOAD_PRIORITY_CLASS.gvk):
            return
        if kind is None:
            self._take_beside(obj, where)
        elif kind.gated and QUEUE_LABEL not in labels_of(obj):
            self.notes.append(f"{where}: passed over: {_named(obj)} names no queue: label it {QUEUE_LABEL}")
        else:
            self.jobs.append(self._job(obj, kind, where))

    def _take_beside(self, obj: Json, where: str) -> None:
        gvk, what = _gvk(obj), _named(obj)
        if gvk is None or (gvk.group not in BESIDE and gvk != WORKLOAD_PRIORITY_CLASS.gvk):
            named = (str(obj.get("apiVersion")).partition("/")[0], str(obj.get("kind")).lower())
            kinds = [each.resource.gvk for each in self.available]
            meant = [f"{each.api_version} {each.kind}" for each in kinds if (each.group, each.kind.lower()) == named]
            hint = question(meant) or "--config adds yours"
            self.notes.append(f"{where}: passed over: {what} is no kind of job here; {hint}")
            return
        self._add_namespace(str(dig(obj, "metadata", "namespace") or DEFAULT))
        try:
            self.rehearsal.create_object(obj)
        except StatusError as error:
            why = "its kind is not served here" if error.reason == "NotFound" else error.message
            self.notes.append(f"{where}: passed over: {what}: {why}")
        else:
            self.beside.append(obj)

    def _add_namespace(self, name: str) -> None:
        if name in self.queues:
            return
        self.queues[name] = []
        self.everywhere.append(namespace(name))
        self.rehearsal.create_object(namespace(name))

    def _add_queue(self, in_namespace: str, name: str) -> None:
        self._add_namespace(in_namespace)
        if name not in self.queues[in_namespace]:
            self.queues[in_namespace].append(name)
            self.everywhere.append(local_queue(in_namespace, name))
            self.rehearsal.create_object(local_queue(in_namespace, name))

    def _ensure_priority(self, job: Json, what: str) -> None:
        """Make the priority class that a job names, if no file has it: Kueue takes no job whose class is not there."""
        name = dig(job, "metadata", "labels", PRIORITY_CLASS_LABEL)
        classes = {dig(obj, "metadata", "name") for obj in self.beside if _gvk(obj) == WORKLOAD_PRIORITY_CLASS.gvk}
        if name and name not in classes:
            made = built(WORKLOAD_PRIORITY_CLASS, str(name), value=0)
            self.rehearsal.create_object(made)
            self.beside.append(made)
            self.notes.append(f'{what} names the priority class "{name}", which no file has: it is made')

    def _queue_of(self, job: Json, what: str) -> str:
        """The LocalQueue of a job: what it names, or the one of its namespace."""
        in_namespace, named = str(job["metadata"]["namespace"]), dig(job, "metadata", "labels", QUEUE_LABEL)
        if named:
            if named not in self.queues.get(in_namespace, ()):
                self._add_queue(in_namespace, str(named))
                self.notes.append(f'{what} names the queue "{named}", which no file has: it is made')
            return str(named)
        if not self.queues.get(in_namespace):
            self._add_queue(in_namespace, LOCAL_QUEUE_NAME)
        first = self.queues[in_namespace][0]
        self.notes.append(f"{what} names no queue: it is labelled {QUEUE_LABEL}: {first}")
        return first

    def _job(self, job: Json, kind: SandboxKind, where: str) -> Submission:
        name = dig(job, "metadata", "name") or dig(job, "metadata", "generateName")
        if not isinstance(name, str) or not name:
            raise SettingsError(f"{where}: has no metadata.name")
        what = f'{where}: {job["kind"]} "{name}"'
        if not isinstance(job.get("spec"), dict):
            raise SettingsError(f"{what} has no spec")
        job["metadata"].setdefault("namespace", DEFAULT)
        for path, value in kind.to_wait.items():
            if dig(job, *path) != value:
                field = f"{'.'.join(path)}: {json.dumps(value)}"
                self.notes.append(f"{what} gets {field}: its controller refuses one that is suspended without it")
                job = with_value(job, path, value)
        with _placed(where):
            if isinstance(job["metadata"].get("labels") or {}, dict):
                job = with_value(job, ("metadata", "labels", QUEUE_LABEL), self._queue_of(job, what))
                self._ensure_priority(job, what)
            # The demo knows jobs by their names, so one that is generated is taken from here.
            job["metadata"]["name"] = self.rehearsal.create_object(job)["metadata"]["name"]
        try:
            submission = Submission(kind, kind.job_name(job), (kind.submitted(job),))
            requests = submission.requests
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # no server checks the types of custom kinds
            raise SettingsError(f"{what} has no pods that can be read: {error}") from error
        if not requests:
            raise SettingsError(f"{what} has no pods")
        return submission


@contextmanager
def _placed(where: str) -> Iterator[None]:
    """What a server refuses in the body is told with its place.

    Raises:
        SettingsError: it refuses something.
    """
    try:
        yield
    except StatusError as error:
        raise SettingsError(f"{where}: {error.message}") from error


def _together(jobs: Iterable[Submission]) -> tuple[Submission, ...]:
    """The pods of a group as one job.

    Raises:
        SettingsError: two namespaces have a job of one name: the demo knows jobs by their names.
    """
    together: dict[tuple[SandboxKind, str], Submission] = {}
    for job in jobs:
        known = together.get((job.kind, job.name))
        objects = (*known.objects, *job.objects) if known is not None else job.objects
        if len({obj["metadata"]["namespace"] for obj in objects}) > 1:
            raise SettingsError(f'{job.kind.resource.gvk.kind} "{job.name}" is in two namespaces: rename one of them')
        together[job.kind, job.name] = Submission(job.kind, job.name, objects)
    return tuple(together.values())


def _files_of(path: Path) -> list[Path]:
    if not path.is_dir():
        return [STANDARD_INPUT if str(path) == "-" else path]
    return sorted(file for file in path.glob("*") if file.suffix in _READ)


def _objects_in(path: Path) -> list[tuple[str, Json]]:
    text = read_text(path)
    with reading(str(path)):
        documents = list(yaml.load_all(text, KubernetesLoader))  # a SafeLoader
    return list(_listed(documents, path))


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
    if not isinstance(value, dict) or (value.get("kind") != "List" and _gvk(value) is None):
        raise SettingsError(f"{where}: is not a Kubernetes object")
    # As a server reads it: a field without a value, as `annotations:` with its lines taken out, is not there.
    return dict(without_nulls(value))


def _gvk(obj: Json) -> GVK | None:
    version, kind = obj.get("apiVersion"), obj.get("kind")
    return GVK.of(version, kind) if isinstance(version, str) and isinstance(kind, str) else None


def _named(obj: Json) -> str:
    return f'{obj.get("apiVersion")} {obj.get("kind")} "{dig(obj, "metadata", "name") or ""}"'
