"""What a pod's spec must be, and what may not change in a pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from multikueue.core.model.names import Json
from multikueue.core.model.quantities import exact
from multikueue.sandbox.apiserver.status_errors import Cause
from multikueue.sandbox.apiserver.validation.rules import (
    check_annotations,
    check_labels,
    duplicate,
    forbidden_field,
    invalid_value,
    is_dns_label,
    is_qualified,
    not_negative,
    required,
    unchanged,
    unsupported,
)
from multikueue.sandbox.objects import with_claims

_STANDARD = ("cpu", "memory", "ephemeral-storage", "hugepages-")
_LONGEST = 2**31 - 1
_LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"
_EQUAL, _EXISTS = ("Equal", ""), "Exists"
_REPLACEABLE = frozenset(("activeDeadlineSeconds", "tolerations", "schedulingGates", "containers", "initContainers"))


def check_pod(pod: Json) -> list[Cause]:
    """What is wrong with a new pod."""
    spec = pod["spec"]
    causes = list(check_pod_spec(spec, "spec"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        causes.append(forbidden_field("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return causes


def check_template(template: Json) -> Iterator[Cause]:
    """What is wrong with the pod template of a Job or a set."""
    metadata = template.get("metadata") or {}
    yield from check_labels(metadata.get("labels") or {}, "spec.template.labels")
    yield from check_annotations(metadata.get("annotations") or {}, "spec.template.annotations")
    yield from check_pod_spec(template["spec"], "spec.template.spec")


def check_pod_spec(spec: Json, path: str) -> Iterator[Cause]:
    """What is wrong with the spec of a pod or a pod template."""
    yield from _check_volumes(spec.get("volumes") or [], f"{path}.volumes")
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    volumes = {volume.get("name") for volume in spec.get("volumes") or []}
    for field in ("containers", "initContainers"):
        yield from _check_containers(spec.get(field) or [], f"{path}.{field}")
        for index, container in enumerate(spec.get(field) or []):
            for number, mount in enumerate(container.get("volumeMounts") or []):
                if mount.get("name") not in volumes:
                    where = f"{path}.{field}[{index}].volumeMounts[{number}].name"
                    yield Cause("FieldValueNotFound", where, f'Not found: "{mount.get("name")}"')
    policies = ("Always", "OnFailure", "Never")
    if spec.get("restartPolicy") not in policies:
        yield unsupported(f"{path}.restartPolicy", spec.get("restartPolicy"), policies)
    yield from _check_gates(spec.get("schedulingGates") or [], f"{path}.schedulingGates")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LONGEST:
        yield invalid_value(f"{path}.activeDeadlineSeconds", f"must be between 1 and {_LONGEST}, inclusive", deadline)
    yield from _check_tolerations(spec.get("tolerations") or [], f"{path}.tolerations")


def _check_volumes(volumes: list[Json], path: str) -> Iterator[Cause]:
    seen = set()
    for index, volume in enumerate(volumes):
        name, field = volume.get("name") or "", f"{path}[{index}].name"
        if not name:
            yield required(field)
        elif not is_dns_label(name):
            yield invalid_value(field, _LABEL, name)
        elif name in seen:
            yield duplicate(field, name)
        seen.add(name)


def _check_containers(containers: list[Json], path: str) -> Iterator[Cause]:
    seen = set()
    for index, container in enumerate(containers):
        here, name = f"{path}[{index}]", container.get("name") or ""
        if not name:
            yield required(f"{here}.name")
        elif not is_dns_label(name):
            yield invalid_value(f"{here}.name", _LABEL, name)
        if not container.get("image"):
            yield required(f"{here}.image")
        policies = ("Always", "IfNotPresent", "Never")
        if container.get("imagePullPolicy") not in policies:
            yield unsupported(f"{here}.imagePullPolicy", container.get("imagePullPolicy"), policies)
        yield from _check_ports(container.get("ports") or [], f"{here}.ports")
        yield from _check_resources(container.get("resources") or {}, f"{here}.resources")
        if name in seen:
            yield duplicate(f"{here}.name", name)
        seen.add(name)


def _check_ports(ports: list[Json], path: str) -> Iterator[Cause]:
    for index, port in enumerate(ports):
        number, field = port.get("containerPort"), f"{path}[{index}].containerPort"
        if not number:
            yield required(field)
        elif not 1 <= number <= 65535:
            yield invalid_value(field, "must be between 1 and 65535, inclusive", number)


def _check_resources(resources: Json, path: str) -> Iterator[Cause]:
    limits = resources.get("limits") or {}
    for kind in ("limits", "requests"):
        for name, quantity in (resources.get(kind) or {}).items():
            number, here = exact(quantity)[0], f"{path}.{kind}[{name}]"
            if not is_qualified(name) or not ("/" in name or name.startswith(_STANDARD)):
                yield invalid_value(here, "must be a standard resource type or fully qualified", name)
            if number < 0:
                yield invalid_value(here, "must be greater than or equal to 0", f'"{quantity}"')
            if kind == "requests" and "/" in name and name not in limits:
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
            if kind == "requests" and name in limits and number > exact(limits[name])[0]:
                why = f"must be less than or equal to {name} limit of {limits[name]}"
                yield invalid_value(f"{path}.requests", why, f'"{quantity}"')


def _check_gates(gates: list[Json], path: str) -> Iterator[Cause]:
    seen = set()
    for index, gate in enumerate(gates):
        name = gate.get("name") or ""
        if not is_qualified(name):
            yield invalid_value(f"{path}[{index}]", "name part must consist of alphanumeric characters", f'"{name}"')
        if name in seen:
            yield duplicate(f"{path}[{index}]", name)
        seen.add(name)


def _check_tolerations(tolerations: list[Json], path: str) -> Iterator[Cause]:
    for index, toleration in enumerate(tolerations):
        field, operator = f"{path}[{index}].operator", toleration.get("operator") or ""
        if not toleration.get("key") and operator != _EXISTS:
            yield invalid_value(field, "operator must be Exists when `key` is empty", f'"{operator}"')
        if operator == _EXISTS and toleration.get("value"):
            yield invalid_value(field, "value must be empty when `operator` is 'Exists'", toleration["value"])
        if operator not in (*_EQUAL, _EXISTS):
            yield unsupported(field, operator, ("Equal", "Exists"))
        if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid_value(f"{path}[{index}].effect", why, f'"{toleration.get("effect", "")}"')


def check_set(obj: Json) -> list[Cause]:
    """What is wrong with a Deployment or a StatefulSet: its pods are those that it selects."""
    spec, template = obj["spec"], obj["spec"]["template"]
    wanted = (spec.get("selector") or {}).get("matchLabels") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    causes = list(not_negative(spec, "spec", "replicas"))
    if not wanted.items() <= labels.items():
        why = "`selector` does not match template `labels`"
        causes.append(invalid_value("spec.template.metadata.labels", why, labels))
    return causes + list(check_template({**template, "spec": with_claims(template["spec"], obj)}))


def check_set_update(old: Json, new: Json) -> list[Cause]:
    """The pods that it selects stay its own."""
    return [*unchanged(old["spec"], new["spec"], "spec", "selector"), *check_set(new)]


def check_pod_update(old: Json, new: Json) -> list[Cause]:
    """What is wrong with a pod that replaces another; most of a pod's spec is fixed."""
    before, after = old["spec"], new["spec"]
    causes = list(check_pod_spec(after, "spec"))
    for field in ("containers", "initContainers"):
        given = after.get(field) or []
        if len(given) != len(before.get(field) or []):
            return [*causes, forbidden_field(f"spec.{field}", "pod updates may not add or remove containers")]
        causes += [required(f"spec.{field}[{n}].image") for n, item in enumerate(given) if not item.get("image")]
    fixed, stop = _check_deadline(before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds"))
    causes += fixed
    if stop:
        return causes
    causes += _check_tolerations_kept(before, after) + _check_gates_kept(before, after)
    return causes + _check_rest(before, after)


def _check_deadline(old: int | None, new: int | None) -> tuple[list[Cause], bool]:
    field = "spec.activeDeadlineSeconds"
    if new is None:
        why = "must not update from a positive integer to nil value"
        return ([invalid_value(field, why, "null")] if old is not None else []), False
    if not 0 <= new <= _LONGEST:
        return [invalid_value(field, f"must be between 0 and {_LONGEST}, inclusive", new)], True
    if old is not None and old < new:
        return [invalid_value(field, "must be less than or equal to previous value", new)], True
    return [], False


def _check_tolerations_kept(old: Json, new: Json) -> list[Cause]:
    given = [_timeless(item) for item in new.get("tolerations") or []]
    if any(_timeless(item) not in given for item in old.get("tolerations") or []):
        why = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden_field("spec.tolerations", why)]
    return list(_check_tolerations(new.get("tolerations") or [], "spec.tolerations"))


def _timeless(toleration: Json) -> Json:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _check_gates_kept(old: Json, new: Json) -> list[Cause]:
    known = {gate["name"] for gate in old.get("schedulingGates") or []}
    return [
        forbidden_field(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate['name']}'",
        )
        for index, gate in enumerate(new.get("schedulingGates") or [])
        if gate["name"] not in known
    ]


def _check_rest(old: Json, new: Json) -> list[Cause]:
    causes, free = [], set(_REPLACEABLE)
    if old.get("schedulingGates"):  # a gated pod's node selector may grow
        kept = new.get("nodeSelector") or {}
        if any(kept.get(key) != value for key, value in (old.get("nodeSelector") or {}).items()):
            why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            causes.append(invalid_value("spec.nodeSelector", why, kept))
        free.add("nodeSelector")
    if _fixed(old, free) != _fixed(new, free) or _without_images(old) != _without_images(new):
        fields = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,..."
        causes.append(forbidden_field("spec", f"pod updates may not change fields other than {fields}"))
    return causes


def _fixed(spec: Json, free: set[str]) -> Json:
    return {key: value for key, value in spec.items() if key not in free and value not in ({}, [])}


def _without_images(spec: Json) -> list[Any]:
    containers = (spec.get("containers") or []) + (spec.get("initContainers") or [])
    return [{key: value for key, value in container.items() if key != "image"} for container in containers]
