"""A job kind as a user declares it: plain data, as it stands in the settings. `declared_kind` makes a row of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import attrs

from multikueue.adapters.paths import FieldPath
from multikueue.core.model.names import GVK, Json

_NAME: Final = re.compile(
    r"(?P<kind>[A-Z][A-Za-z0-9]*)\.(?P<version>v[0-9]+(?:(?:alpha|beta)[0-9]+)?)\."
    r"(?P<group>(?:[a-z0-9]([-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?)"
)


@attrs.frozen(kw_only=True)
class Declaration:
    """One entry of `externalFrameworks`. Only the name is needed; None is what is not declared."""

    name: str
    """Kind, version and group, as Kueue writes them: `PipelineRun.v1.tekton.dev`. The kind's case matters."""
    profile: str | None = None
    """The ready-made declaration that fills in what is not said here: the one of this kind, if there is one;
    `generic` for none."""
    plural: str | None = None
    """What URLs call the kind. By default the API server is asked; it is only needed for kinds that it does not serve
    when the daemon starts, and whose plural is not the usual one."""
    managed_by_path: str | None = None
    """The field in which a job says who runs it. `.spec.managedBy` by default."""
    managed_by_label: str | None = None
    """The label by which a job is delegated, for kinds without such a field: `KEY=VALUE`, or `KEY` for the value
    `multikueue`."""
    always_delegated: bool | None = None
    """Whether nobody runs jobs of this kind on the manager, so that none need say that it is delegated. With a
    controller there they would run twice."""
    suspend_path: str | None = None
    """The field that keeps a job from running. With it, a copy is always created suspended; without, as the manager's
    job is at that moment."""
    suspend_value: Any = None
    """What it holds when the job is suspended; true by default."""
    template_paths: tuple[str, ...] | None = None
    """Where the pod templates of a job are, in the order of its Workload's pod sets; `[*]` stands for every entry of a
    list. A copy of a job that the manager's Kueue has started has them as the Workload does."""
    config_map_paths: tuple[str, ...] | None = None
    """Where a job names ConfigMaps beside its pod templates, which are copied with the setting `dependencies`; `[*]`
    stands for every entry of a list."""
    status_subresource: bool | None = None
    """Whether the status is written through `/status`. By default as the API server has it."""
    status_paths: tuple[str, ...] | None = None
    """The fields of the status that the manager's job shows; all of it by default."""
    finished: str | None = None
    """In CEL over `object`: the job has ended. By default only its Workload tells."""
    failed: str | None = None
    """In CEL over `object`: it has ended badly. Such a job need not be `finished` as well."""
    message: str | None = None
    """In CEL over `object`: what is told about the end."""
    active: str | None = None
    """In CEL over `object`: something of the job runs, or its pods still end. Without it, what its status shows is not
    known to mean that."""
    pods_gone: str | None = None
    """In CEL over `object`: a copy that is still there has no pod left, and none is to come. Then its next attempt need
    not wait until the copy itself has gone."""
    pods_label: str | None = None
    """The label of a job's pods whose value is the job's name, for a kind whose controller does not set
    `blockOwnerDeletion`: there a copy may be gone while its pods still end."""
    creation_patches: tuple[Json, ...] | None = None
    """JSON patch of a copy before it is created. In place of `value` a step may have `valueExpression`, in CEL over
    `object` (the manager's job), `workload` and `origin`; and `when`, for a step that is not always done."""
    sync_patches: tuple[Json, ...] | None = None
    """JSON patch of a copy that is there, with `remote` (the copy) as one more variable."""
    forwarded_paths: tuple[str, ...] | None = None
    """What of the manager's job the copy follows after its creation: fields of the spec, labels, annotations."""
    workload_only: bool | None = None
    """Whether somebody else's controller moves the jobs: we choose the worker and follow the Workload alone."""

    def over(self, profile: Declaration) -> Declaration:
        """What is said here, and what `profile` says where nothing is said here."""
        said = {name: value for name, value in attrs.asdict(self, recurse=False).items() if value is not None}
        if {"managed_by_path", "managed_by_label"} & said.keys() or self.always_delegated:
            profile = attrs.evolve(profile, managed_by_path=None, managed_by_label=None)
        return attrs.evolve(profile, **said)

    def unknown_paths(self, definition: Json, version: str) -> Iterator[tuple[str, str]]:
        """The paths that its kind's definition does not have: each as the field it is in, and the path.

        Args:
            definition: the kind's CustomResourceDefinition on some cluster.
            version: of the kind.
        """
        paths = {"managedByPath": self.managed_by_path, "suspendPath": self.suspend_path}
        listed = {
            "statusPaths": self.status_paths,
            "forwardedPaths": self.forwarded_paths,
            "templatePaths": self.template_paths,
            "configMapPaths": self.config_map_paths,
        }
        for field, texts in listed.items():
            paths |= {f"{field}[{number}]": text for number, text in enumerate(texts or ())}
        for field, text in paths.items():
            if text is not None and FieldPath.parse(text, entries=True).is_unknown_to(definition, version):
                yield field, text


def kind_of(name: object) -> GVK:
    """Read `Kind.version.group`; the core group is empty, `Pod.v1.`.

    Raises:
        ValueError: it is not of that form.
    """
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise ValueError(f"{name!r} must be in 'Kind.version.group' format, as PipelineRun.v1.tekton.dev{_hint(name)}")
    return GVK(match["group"], match["version"], match["kind"])


def usual_plural(kind: str) -> str:
    """What a kind is called in URLs if nobody chose another name: the rule of Kubernetes' own tools."""
    name = kind.lower()
    if name.endswith("s"):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


def _hint(name: object) -> str:
    if not isinstance(name, str):
        return ""
    if name[:1].islower() and _NAME.fullmatch(name[:1].upper() + name[1:]):
        return ": a kind is written as in its objects, with a capital letter"
    if re.fullmatch(r"[\w.-]+/v\d\w*, Kind=\w+", name):
        group, version, kind = re.split(r"/|, Kind=", name)
        return f": write it {kind}.{version}.{group}"
    return ""
