"""From dice to operations."""

from __future__ import annotations

from random import Random
from typing import Any

from multikueue.core.model.names import Json
from tests.conformance.fuzz import values
from tests.conformance.fuzz.operations import JOBS, KINDS, PODS, SECRETS, WIDGETS, Kind, Operation

_NAMES = ("a", "a", "b")
_VERBS = {
    "create": 16,
    "put": 12,
    "merge": 18,
    "json": 7,
    "strategic": 10,
    "apply": 24,
    "delete": 6,
    "get": 3,
    "list": 6,
    "collection": 1,
}
_WEIGHTS = {WIDGETS: 45, PODS: 18, JOBS: 22, SECRETS: 15}
_SELECTORS: tuple[dict[str, str], ...] = (
    {},
    {"labelSelector": "x=1"},
    {"labelSelector": "x notin (1),y"},
    {"labelSelector": "!x"},
    {"labelSelector": "x in ("},
    {"fieldSelector": "metadata.name!=a"},
    {"fieldSelector": "spec.nowhere=1"},
    {"limit": "1"},
)
_FIELDS = {
    WIDGETS: {"fieldSelector": "spec.mode=a"},
    PODS: {"fieldSelector": "status.phase=Pending"},
    JOBS: {"fieldSelector": "status.successful=1"},
    SECRETS: {"fieldSelector": "type!=Opaque"},
}
_DELETIONS: tuple[Json | None, ...] = (
    *(None,) * 4,
    {"propagationPolicy": "Background"},
    {"propagationPolicy": "Foreground"},
    {"propagationPolicy": "Orphan"},
    {"propagationPolicy": "Sometimes"},
    {"gracePeriodSeconds": 0},
    {"preconditions": {"uid": "nope"}},
    {"preconditions": {"resourceVersion": "1"}},
)


def generate(dice: Random, step: int) -> Operation:
    """One random operation; the first ones of a seed make objects, so that the others find some."""
    if step < 2 * len(KINDS):
        return _create(dice, KINDS[step // 2], _NAMES[step % 2 + 1])
    kind = dice.choices(KINDS, [_WEIGHTS[kind] for kind in KINDS])[0]
    verb = dice.choices(list(_VERBS), list(_VERBS.values()))[0]
    name = dice.choice(_NAMES)
    subresource = "status" if kind is not SECRETS and dice.random() < 0.35 else ""
    match verb:
        case "create":
            return _create(dice, kind, name)
        case "get":
            return Operation(verb, kind, name, subresource)
        case "list":
            return Operation(verb, kind, params=dict(dice.choice([*_SELECTORS, _FIELDS[kind]])))
        case "collection":
            return Operation(verb, kind, params={"labelSelector": "x=1"})
        case "delete":
            return Operation(verb, kind, name, body=dice.choice(_DELETIONS), params=_write_params(dice))
        case "json":
            return Operation(verb, kind, name, subresource, _json_patch(dice, kind, subresource))
        case "apply":
            return _apply(dice, kind, name, subresource)
        case "put":
            return _put(dice, kind, name, subresource)
    params = _write_params(dice)
    return Operation(verb, kind, name, subresource, _patch(dice, kind, subresource), params)


def _write_params(dice: Random) -> dict[str, str]:
    params = {"fieldManager": "fuzz"}
    if dice.random() < 0.04:
        params["dryRun"] = "All"
    if dice.random() < 0.03:
        params["fieldValidation"] = "Strict"
    return params


def _create(dice: Random, kind: Kind, name: str) -> Operation:
    meta = values.metadata(dice)
    if dice.random() < 0.02:
        meta["name"] = dice.choice(["Bad_Name", "", "a" * 260])
    manifest = kind.manifest(name, _body(dice, kind), meta)
    if kind is not SECRETS and dice.random() < 0.15:
        manifest["status"] = _status(dice, kind)
    return Operation("create", kind, name, body=manifest, params=_write_params(dice))


def _body(dice: Random, kind: Kind) -> Json:
    """Everything of a whole object but its metadata and status."""
    if kind is SECRETS:
        return values.secret_body(dice)
    make = {WIDGETS: values.widget_spec, PODS: values.pod_spec, JOBS: values.job_spec}[kind]
    return {"spec": make(dice)}


def _status(dice: Random, kind: Kind) -> Json:
    make = {WIDGETS: values.widget_status, PODS: values.pod_status, JOBS: values.job_status}[kind]
    return make(dice)


def _change(dice: Random, kind: Kind) -> Json:
    """A part of an object, as patches and applies send it."""
    if kind is SECRETS:
        return values.secret_body(dice)
    if kind is WIDGETS:
        return {"spec": values.widget_spec(dice)}
    if kind is JOBS and dice.random() < 0.7:
        return {"spec": values.job_knobs(dice)}
    spec = values.pod_spec(dice) if kind is PODS else values.job_spec(dice)
    if kind is PODS:
        keys = [key for key in spec if key not in ("automountServiceAccountToken", "restartPolicy")]
        spec = {key: spec[key] for key in dice.sample(keys, min(len(keys), 2))}
    return {"spec": spec}


def _patch(dice: Random, kind: Kind, subresource: str) -> Json:
    body: Json = {}
    if subresource:
        body["status"] = _status(dice, kind)
        if dice.random() < 0.1:
            body |= _change(dice, kind)
    elif dice.random() < 0.8:
        body |= _change(dice, kind)
    if dice.random() < (0.1 if subresource else 0.5):
        body["metadata"] = values.metadata(dice, patch=True)
    if kind is not SECRETS and dice.random() < 0.05:
        body["status"] = _status(dice, kind)
    return body


def _put(dice: Random, kind: Kind, name: str, subresource: str) -> Operation:
    body: Json = {}
    if not subresource or dice.random() < 0.1:
        body |= _body(dice, kind) if kind in (WIDGETS, SECRETS) else {"spec": _change(dice, kind)["spec"]}
    if kind is not SECRETS:
        body["status"] = _status(dice, kind)
    meta = values.metadata(dice)
    if dice.random() < 0.04:
        meta["uid"] = "11111111-1111-1111-1111-111111111111"
    body["metadata"] = meta
    version = dice.choice(["current"] * 6 + ["stale", "none"])
    return Operation("put", kind, name, subresource, body, _write_params(dice), version)


def _apply(dice: Random, kind: Kind, name: str, subresource: str) -> Operation:
    meta = {key: value for key, value in values.metadata(dice).items() if value}
    if subresource:
        body: Json = {"status": _status(dice, kind)}
        meta = meta if dice.random() < 0.1 else {}
    elif kind is PODS or (kind is JOBS and dice.random() < 0.5):
        body = _body(dice, kind)
    else:
        body = _change(dice, kind)
    params = {"fieldManager": dice.choice(["m1", "m2"])}
    if dice.random() < 0.55:
        params["force"] = "true"
    return Operation("apply", kind, name, subresource, kind.manifest(name, body, meta), params)


def _json_patch(dice: Random, kind: Kind, subresource: str) -> list[Json]:
    steps: dict[Kind, list[Any]] = {
        WIDGETS: [
            {"op": "replace", "path": "/spec/size", "value": 4},
            {"op": "test", "path": "/spec/size", "value": 3},
            {"op": "add", "path": "/spec/plain", "value": ["j"]},
            {"op": "add", "path": "/spec/entries/-", "value": {"name": "n4"}},
            {"op": "remove", "path": "/spec/mode"},
            {"op": "copy", "from": "/spec/size", "path": "/spec/replicas"},
        ],
        PODS: [
            {"op": "replace", "path": "/spec/containers/0/image", "value": "j"},
            {"op": "add", "path": "/spec/nodeSelector", "value": {"j": "1"}},
            {"op": "test", "path": "/spec/restartPolicy", "value": "Always"},
        ],
        JOBS: [
            {"op": "replace", "path": "/spec/suspend", "value": False},
            {"op": "replace", "path": "/spec/suspend", "value": True},
            {"op": "replace", "path": "/spec/parallelism", "value": 5},
            {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "j"},
        ],
        SECRETS: [
            {"op": "add", "path": "/data", "value": {"j": "dg=="}},
            {"op": "add", "path": "/data/k", "value": "dw=="},
            {"op": "remove", "path": "/data/k"},
        ],
    }
    general: list[Json] = [
        {"op": "add", "path": "/metadata/labels", "value": {"x": "2"}},
        {"op": "remove", "path": "/metadata/finalizers"},
        {"op": "bogus", "path": "/metadata/labels"},
    ]
    if subresource:
        return [dice.choice([{"op": "add", "path": "/status", "value": _status(dice, kind)}, general[0]])]
    weights = [3] * len(steps[kind]) + [2, 2, 1]
    return dice.choices([*steps[kind], *general], weights, k=dice.randint(1, 2))
