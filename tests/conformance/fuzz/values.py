"""Random parts of objects: mostly valid, now and then not."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from multikueue.core.model.names import Json

TIME = "2026-01-01T00:00:00Z"


def maybe(dice: Random, chance: float, fields: Json, key: str, *values: Any) -> None:
    """Set a field to one of some values, with a chance."""
    if dice.random() < chance:
        fields[key] = dice.choice(values)


def some(dice: Random, values: Sequence[Any]) -> list[Any]:
    """Some of the values, in any order."""
    return dice.sample(values, dice.randint(0, len(values)))


def metadata(dice: Random, *, patch: bool = False) -> Json:
    """Labels, annotations and finalizers; nulls too if it is for a patch."""
    meta: Json = {}
    maybe(dice, 0.4, meta, "labels", {"x": "1"}, {"x": "2"}, {"x": "1", "y": "3"}, *([None, {"x": None}] * patch))
    maybe(dice, 0.15, meta, "annotations", {"an": "1"}, {"an": "2", "b": ""}, *([{"an": None}] * patch))
    maybe(dice, 0.15, meta, "finalizers", ["e.com/f"], ["e.com/f", "e.com/g"], ["e.com/g", "e.com/f"], [])
    if dice.random() < 0.02:
        meta["labels"] = dice.choice([{"x": "a b"}, {"": "1"}, {"x": 1}, {"a/b/c": "1"}])
    return meta


def widget_spec(dice: Random) -> Json:
    """Scalars, defaults, an immutable field, lists of all kinds, free-form maps."""
    spec: Json = {}
    maybe(dice, 0.6, spec, "size", 1, 2, 3, 3, 5)
    maybe(dice, 0.08, spec, "size", 99, "x", None, 1.5)
    maybe(dice, 0.3, spec, "mode", "a", "b", "a", "b", "zz", None)
    maybe(dice, 0.3, spec, "cluster", "c1", "c2")
    if dice.random() < 0.4:
        spec["entries"] = [
            {"name": name, **({"value": dice.choice("xy")} if dice.random() < 0.7 else {})}
            for name in some(dice, ["n1", "n2", "n3"])
        ]
    maybe(dice, 0.3, spec, "tags", *(some(dice, ["t1", "t2", "t3"]) for _ in range(3)))
    maybe(dice, 0.3, spec, "plain", *(dice.choices(["p", "q"], k=dice.randint(0, 3)) for _ in range(3)))
    maybe(dice, 0.3, spec, "free", {}, {"k": {"v": 1}}, {"z": [1, 2]}, {"k": {"w": "s"}, "z": []}, {"n": None})
    maybe(dice, 0.3, spec, "labels", {}, {"l": "1"}, {"m": "2", "l": "3"}, {"l": None})
    maybe(dice, 0.04, spec, "entries", [{"name": "n1"}, {"name": "n1"}], [{"value": "x"}], None, "x")
    maybe(dice, 0.03, spec, "tags", ["t1", "t1"], [1], None)
    maybe(dice, 0.08, spec, "junk", 1, {"a": 1})
    return spec


def widget_status(dice: Random) -> Json:
    """A phase and conditions."""
    status: Json = {}
    maybe(dice, 0.6, status, "phase", "P", "Q", "P", "Q", 7, None)
    if dice.random() < 0.7:
        kinds = some(dice, ["A", "B", "C"])
        status["conditions"] = [{"type": kind, "status": dice.choice(["True", "False"])} for kind in kinds]
    return status


def container(dice: Random, name: str) -> Json:
    """A container."""
    made: Json = {"name": name, "image": dice.choice(["x", "y", "z:1"])}
    maybe(dice, 0.3, made, "env", [{"name": "E", "value": "1"}], [{"name": "F"}, {"name": "E", "value": "2"}])
    maybe(dice, 0.2, made, "ports", [{"containerPort": 80}], [{"containerPort": 80, "protocol": "UDP"}])
    requests = [{"cpu": "1"}, {"cpu": "500m", "memory": "1Gi"}, {"cpu": "0.5"}]
    maybe(dice, 0.3, made, "resources", *({"requests": item} for item in requests), {"limits": {"cpu": 2}})
    maybe(dice, 0.1, made, "command", ["run"], ["sh", "-c", "x"])
    maybe(dice, 0.03, made, "imagePullPolicy", "Never", "Sometimes")
    return made


def pod_spec(dice: Random, *restart: str) -> Json:
    """A pod's spec."""
    names = dice.choice([["a"], ["a"], ["a", "b"], ["b", "a"]])
    spec: Json = {"automountServiceAccountToken": False, "containers": [container(dice, name) for name in names]}
    maybe(dice, 0.9 if restart else 0.3, spec, "restartPolicy", *(restart or ("Never", "OnFailure", "Always")))
    maybe(dice, 0.03, spec, "restartPolicy", "Bogus")
    maybe(dice, 0.2, spec, "nodeSelector", {"n": "1"}, {"n": "2", "m": "3"})
    maybe(dice, 0.15, spec, "tolerations", [{"key": "k", "operator": "Exists"}], [{"key": "k", "value": "v"}])
    maybe(dice, 0.1, spec, "activeDeadlineSeconds", 10, 20, 0)
    maybe(dice, 0.1, spec, "terminationGracePeriodSeconds", 0, 5)
    maybe(dice, 0.1, spec, "schedulingGates", [{"name": "e.com/g"}], [{"name": "e.com/h"}, {"name": "e.com/g"}])
    maybe(dice, 0.1, spec, "volumes", [{"name": "v", "emptyDir": {}}], [{"name": "w", "secret": {"secretName": "s"}}])
    maybe(dice, 0.05, spec, "junk", 1)
    maybe(dice, 0.02, spec, "containers", [], "x", [{"name": "A_", "image": "x"}], [{"name": "a"}])
    return spec


def pod_status(dice: Random) -> Json:
    """What a kubelet writes."""
    status: Json = {}
    maybe(dice, 0.7, status, "phase", "Pending", "Running", "Succeeded", "Failed")
    maybe(dice, 0.3, status, "message", "m", "n")
    if dice.random() < 0.5:
        kinds = some(dice, ["Ready", "Initialized"])
        status["conditions"] = [{"type": kind, "status": dice.choice(["True", "False"])} for kind in kinds]
    return status


def job_spec(dice: Random) -> Json:
    """A Job's spec, template included."""
    template: Json = {"spec": pod_spec(dice, "Never", "OnFailure")}
    maybe(dice, 0.3, template, "metadata", {"labels": {"app": "j"}}, {"annotations": {"an": "1"}})
    return {**job_knobs(dice), "template": template}


def job_knobs(dice: Random) -> Json:
    """The fields of a Job beside its template."""
    spec: Json = {}
    maybe(dice, 0.4, spec, "suspend", True, False)
    maybe(dice, 0.4, spec, "parallelism", 1, 2, 3, 0)
    maybe(dice, 0.3, spec, "completions", 1, 2, 3)
    maybe(dice, 0.2, spec, "backoffLimit", 0, 3)
    maybe(dice, 0.15, spec, "completionMode", "Indexed", "NonIndexed")
    maybe(dice, 0.15, spec, "activeDeadlineSeconds", 10, 20)
    maybe(dice, 0.15, spec, "ttlSecondsAfterFinished", 0, 100)
    maybe(dice, 0.15, spec, "managedBy", "kueue.x-k8s.io/multikueue", "e.com/other")
    maybe(dice, 0.05, spec, "parallelism", -1, "x", None)
    maybe(dice, 0.03, spec, "completionMode", "Bogus")
    maybe(dice, 0.05, spec, "junk", 1)
    return spec


def job_status(dice: Random) -> Json:
    """What the Job controller, or MultiKueue, writes."""
    status: Json = {}
    maybe(dice, 0.5, status, "active", 0, 1, 2)
    maybe(dice, 0.3, status, "ready", 0, 1)
    maybe(dice, 0.3, status, "succeeded", 0, 1)
    maybe(dice, 0.2, status, "failed", 1)
    maybe(dice, 0.4, status, "startTime", TIME, "2026-01-01T01:00:00Z", None)
    maybe(dice, 0.2, status, "completionTime", "2026-01-01T02:00:00Z")
    if dice.random() < 0.4:
        kinds = some(dice, ["Suspended", "Complete", "SuccessCriteriaMet", "Failed", "FailureTarget"])[:2]
        status["conditions"] = [{"type": kind, "status": dice.choice(["True", "False"])} for kind in kinds]
    maybe(dice, 0.02, status, "active", -1, "x")
    return status


def secret_body(dice: Random) -> Json:
    """A Secret's fields."""
    body: Json = {}
    maybe(dice, 0.6, body, "data", {"k": "dg=="}, {"k": "dw==", "l": ""}, {}, {"l": "eHl6"})
    maybe(dice, 0.3, body, "stringData", {"k": "s"}, {"m": "t", "k": ""})
    maybe(dice, 0.2, body, "type", "Opaque", "e.com/t", "kubernetes.io/basic-auth", "kubernetes.io/tls")
    maybe(dice, 0.08, body, "immutable", True, False)
    maybe(dice, 0.03, body, "data", {"k": "not base64!"}, {"a b": "dg=="}, {"k": 1}, "x")
    maybe(dice, 0.05, body, "junk", 1)
    return body
