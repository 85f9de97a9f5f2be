"""What a job needs beside itself: objects that its pod templates name, and what becomes of each on a worker.

ConfigMaps and ResourceClaimTemplates are copied under their own names: another name would change the pod templates, and
a worker's Kueue would find the Workload out of sync. Only their content is copied, no labels and no annotations: tools
act on those. Secrets, ServiceAccounts and PersistentVolumeClaims are never copied; a worker is asked for them at most.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

import attrs

from multikueue.core.model.kinds import CONFIG_MAP, SECRET
from multikueue.core.model.labels import DEPENDENCY_ANNOTATION, ORIGIN_LABEL
from multikueue.core.model.names import GVK, OBJECT_NAME, Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, dig, digest, is_terminating, merge_patch, pruned
from multikueue.errors import Cause

RESOURCE_CLAIM_TEMPLATE: Final = Resource(
    GVK("resource.k8s.io", "v1", "ResourceClaimTemplate"), "resourceclaimtemplates"
)
SERVICE_ACCOUNT: Final = Resource(GVK("", "v1", "ServiceAccount"), "serviceaccounts")
PERSISTENT_VOLUME_CLAIM: Final = Resource(GVK("", "v1", "PersistentVolumeClaim"), "persistentvolumeclaims")
COPIED: Final[Mapping[str, Resource]] = {
    resource.gvk.kind: resource for resource in (CONFIG_MAP, RESOURCE_CLAIM_TEMPLATE)
}
LOOKED_FOR: Final[Mapping[str, Resource]] = {
    resource.gvk.kind: resource for resource in (SECRET, SERVICE_ACCOUNT, PERSISTENT_VOLUME_CLAIM)
}
RESOURCES: Final[Mapping[str, Resource]] = {**COPIED, **LOOKED_FOR}
MAX_COPIED: Final = 64
"""Objects that are copied for one job."""
MAX_LOOKED_FOR: Final = 64
"""Those of one job that are looked for on a worker: each costs a request, and a tenant may name thousands."""
MAX_OWNERS: Final = 2_000
"""Of one copy: what an API server stores as one object has room for them."""
_CONTENT: Final = {
    CONFIG_MAP.gvk.kind: ("data", "binaryData", "immutable"),
    RESOURCE_CLAIM_TEMPLATE.gvk.kind: ("spec",),
}
_EVERYWHERE: Final = {("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")}
"""What each cluster makes in every namespace, each its own."""
_FIELDS: Final = {
    "configMap": "ConfigMap",
    "configMapRef": "ConfigMap",
    "configMapKeyRef": "ConfigMap",
    "secret": "Secret",
    "secretRef": "Secret",
    "secretKeyRef": "Secret",
    "persistentVolumeClaim": "PersistentVolumeClaim",
}


@attrs.frozen(order=True)
class Dependency:
    """An object that a job needs, in its namespace."""

    kind: str
    name: str
    required: bool = True
    """Whether pods do not start without it."""

    def __str__(self) -> str:
        return f'{self.kind} "{self.name}"'

    @property
    def resource(self) -> Resource:
        """Its kind."""
        return RESOURCES[self.kind]

    @property
    def is_copied(self) -> bool:
        """Whether it is copied; else it is looked for."""
        return self.kind in COPIED


def dependencies_of(workload: Json, config_maps: Iterable[str] = ()) -> tuple[Dependency, ...]:
    """What a job needs, each once; what no object can be called is left out.

    Args:
        workload: its Workload, whose pod templates name it.
        config_maps: ConfigMaps that the job names elsewhere.
    """
    needed = {("ConfigMap", name): True for name in config_maps if OBJECT_NAME.fullmatch(name)}
    for pod_set in dig(workload, "spec", "podSets") or ():
        for kind, name, required in _named(dig(pod_set, "template", "spec") or {}):
            if OBJECT_NAME.fullmatch(name) and (kind, name) not in _EVERYWHERE:
                needed[kind, name] = needed.get((kind, name), False) or required
    return tuple(sorted(Dependency(kind, name, required) for (kind, name), required in needed.items()))


def _named(spec: Json) -> Iterator[tuple[str, str, bool]]:
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for source in container.get("envFrom") or ():
            yield from _sources(source)
        for variable in container.get("env") or ():
            yield from _sources(variable.get("valueFrom") or {})
    for volume in spec.get("volumes") or ():
        yield from _sources(volume)
        for source in dig(volume, "projected", "sources") or ():
            yield from _sources(source)
    for claim in spec.get("resourceClaims") or ():
        yield "ResourceClaimTemplate", claim.get("resourceClaimTemplateName") or "", True
    yield "ServiceAccount", spec.get("serviceAccountName") or "", True


def _sources(source: Json) -> Iterator[tuple[str, str, bool]]:
    for field, kind in _FIELDS.items():
        if named := source.get(field):
            name = named.get("name") or named.get("secretName") or named.get("claimName") or ""
            yield kind, str(name), not named.get("optional")


def content_of(kind: str, obj: Json) -> Json:
    """What of an object is copied."""
    return dict(pruned({field: obj[field] for field in _CONTENT[kind] if field in obj}))


@attrs.frozen
class DependencyMark:
    """Marks the copies in one namespace of a worker: by it they are told from what anybody else has made there."""

    key: bytes = attrs.field(repr=False)

    @classmethod
    def of(cls, key: bytes, cluster: str, namespace: str) -> DependencyMark:
        """That of a namespace there.

        Args:
            key: by which copies are marked.
            cluster: the worker.
            namespace: as it is called there.
        """
        return cls(hmac.digest(key, "\0".join(("dependencies", cluster, namespace)).encode(), "sha256"))

    def mark(self, dependency: Dependency, of_content: str) -> str:
        """The mark of a copy with a content of this digest, which it names: a server adds defaults to a content."""
        signed = "\0".join((dependency.kind, dependency.name, of_content)).encode()
        return f"{hmac.digest(self.key, signed, 'sha256').hex()[:32]}.{of_content}"

    def made_of(self, dependency: Dependency, copy: Json) -> str:
        """The digest of what an object was made of; empty if it is not ours, or somebody has changed it since."""
        noted = str(annotations_of(copy).get(DEPENDENCY_ANNOTATION) or "")
        of_content = noted.rpartition(".")[2]
        if not noted or noted != self.mark(dependency, of_content):
            return ""
        # The spec of a template cannot be changed.
        changed = dependency.kind == CONFIG_MAP.gvk.kind and digest(content_of(dependency.kind, copy)) != of_content
        return "" if changed else of_content


@attrs.frozen
class Users:
    """Who of the owners of a copy is still there, as the caches show it."""

    present: bool = False
    """Whether any is: else the copy is about to be removed."""
    running: str = ""
    """A Workload that has not ended, another than the one it is decided about; empty: none."""


class CopyStep(Enum):
    """What becomes of an object on a worker."""

    CREATE = "create"
    SHARE = "share"
    """It is ours and has that content: it gets one more owner."""
    REPLACE = "replace"
    """It is ours, nobody uses it any more, and gets the new content."""
    LEAVE = "leave"
    """It is used as it is, or is not needed."""
    WAIT = "wait"
    """It is ours, and about to go."""
    REFUSE = "refuse"
    """The job cannot run there."""


@attrs.frozen
class CopyDecision:
    """What becomes of an object on a worker, and if the job cannot use it: why, and the cause if it is refused."""

    step: CopyStep
    why: str = ""
    cause: Cause | None = None


def decide(
    dependency: Dependency, wanted: Json | None, there: Json | None, mark: DependencyMark, users: Users
) -> CopyDecision:
    """What to do about one that is copied.

    Args:
        dependency: what it is.
        wanted: the manager's object; None: it has none.
        there: the worker's object of that name; None: it has none.
        mark: by which ours are known there.
        users: of the worker's object.
    """
    made_of = mark.made_of(dependency, there) if there is not None else ""
    if there is not None and not made_of:
        return _foreign(dependency, wanted, there)
    if wanted is None:
        missing = f"{dependency} is neither on the manager cluster nor there"
        return _refuse(missing, Cause.NEED_NOWHERE) if dependency.required else CopyDecision(CopyStep.LEAVE)
    if there is None:
        return CopyDecision(CopyStep.CREATE)
    owners = dig(there, "metadata", "ownerReferences") or ()
    if is_terminating(there) or (owners and not users.present):  # one without owners was left by an orphaning deletion
        return CopyDecision(CopyStep.WAIT, f"{dependency} of an earlier job is still being removed there")
    content = content_of(dependency.kind, wanted)
    if made_of == digest(content):
        if not _holds(content, content_of(dependency.kind, there)):
            return _foreign(dependency, wanted, there)  # made anew by somebody, with our mark
        if len(owners) >= MAX_OWNERS:
            return _refuse(f"{dependency} is used by as many jobs there as can share one", Cause.NEED_TOO_MUCH)
        return CopyDecision(CopyStep.SHARE)
    if users.running:
        used = f'{dependency} has other content there, which Workload "{users.running}" uses'
        return _refuse(used, Cause.NEED_IN_USE)
    if dependency.kind != CONFIG_MAP.gvk.kind or there.get("immutable"):
        fixed = f"{dependency} of an earlier job there has other content and cannot be changed"
        return CopyDecision(CopyStep.WAIT, fixed)
    return CopyDecision(CopyStep.REPLACE)


def _foreign(dependency: Dependency, wanted: Json | None, there: Json) -> CopyDecision:
    """Of what somebody else has made there, or changed. One that has owners may go with them at any time."""
    if wanted is None and not dependency.required:
        return CopyDecision(CopyStep.LEAVE)
    foreign = f"{dependency} there is not a copy of ours, or was changed, and"
    if is_terminating(there) or dig(there, "metadata", "ownerReferences"):
        return _refuse(f"{foreign} may go with its owners at any time", Cause.NEED_FOREIGN)
    if wanted is None or _holds(content_of(dependency.kind, wanted), content_of(dependency.kind, there)):
        return CopyDecision(CopyStep.LEAVE)
    return _refuse(f"{foreign} has other content", Cause.NEED_FOREIGN)


def _refuse(why: str, cause: Cause) -> CopyDecision:
    return CopyDecision(CopyStep.REFUSE, why, cause)


def _holds(wanted: Any, present: Any) -> bool:
    """Whether a content is that, beside defaults that a server has added."""
    if isinstance(wanted, dict) and isinstance(present, dict):
        return all(field in present and _holds(value, present[field]) for field, value in wanted.items())
    if isinstance(wanted, list) and isinstance(present, list):
        return len(wanted) == len(present) and all(map(_holds, wanted, present))
    return bool(wanted == present)


def copy_for(
    dependency: Dependency, wanted: Json, key: ObjectKey, mark: DependencyMark, origin: str, owners: list[Json]
) -> Json:
    """The object to create on a worker.

    Args:
        dependency: what it is.
        wanted: the manager's object.
        key: of the copy.
        mark: of its namespace.
        origin: the value of our label.
        owners: the references of what it goes with.
    """
    content = content_of(dependency.kind, wanted)
    return {
        "apiVersion": dependency.resource.gvk.api_version,
        "kind": dependency.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": {ORIGIN_LABEL: origin},
            "annotations": {DEPENDENCY_ANNOTATION: mark.mark(dependency, digest(content))},
            "ownerReferences": owners,
        },
        **content,
    }


def owning_patch(there: Json, owner: Json) -> Json | None:
    """Merge patch that gives a copy one more owner; None if it has it."""
    owners = dig(there, "metadata", "ownerReferences") or []
    if any(reference.get("uid") == owner["uid"] for reference in owners):
        return None
    return {"metadata": {**_precondition(there), "ownerReferences": [*owners, owner]}}


def replacing_patch(dependency: Dependency, wanted: Json, there: Json, mark: DependencyMark, owner: Json) -> Json:
    """Merge patch that gives a copy, which no job uses any more, another content, and one more owner."""
    before, after = (content_of(dependency.kind, obj) for obj in (there, wanted))
    patch: Json = {**merge_patch(before, after), **(owning_patch(there, owner) or {"metadata": _precondition(there)})}
    patch["metadata"]["annotations"] = {DEPENDENCY_ANNOTATION: mark.mark(dependency, digest(after))}
    return patch


def _precondition(there: Json) -> Json:
    return {field: there["metadata"][field] for field in ("uid", "resourceVersion")}
