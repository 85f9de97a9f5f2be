"""What a Job's spec must be, and what may not change in one."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.status_errors import Cause
from multikueue.sandbox.apiserver.validation.rules import (
    invalid_value,
    is_dns_label,
    not_negative,
    required,
    unchanged,
    unsupported,
)
from multikueue.sandbox.apiserver.validation.rules_job_status import is_true
from multikueue.sandbox.apiserver.validation.rules_pods import check_template

_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_FIXED_BEFORE_MANAGED_BY = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_PATH = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/\S+")
_MODES = ("NonIndexed", "Indexed")


def check_job(job: Json) -> list[Cause]:
    """What is wrong with a new Job."""
    causes = [*_check_own_labels(job), *_check_spec(job["spec"])]
    spec, name = job["spec"], job["metadata"].get("name") or ""
    if spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 0:
        host = f"{name}-{spec['completions'] - 1}"
        if not is_dns_label(host):
            why = f"will not able to create pod with invalid DNS label: {host}"
            causes.append(invalid_value("metadata.name", why, f'"{name}"'))
    return causes


def _check_own_labels(job: Json) -> Iterator[Cause]:
    """The generated selector and labels are still there."""
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector") or not spec.get("selector"):
        return
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    wanted = {"controller-uid": metadata["uid"], "job-name": metadata.get("name") or ""}
    for prefix in ("", "batch.kubernetes.io/"):
        for key, value in wanted.items():
            field = f"spec.template.metadata.labels[{prefix}{key}]"
            if prefix + key not in labels:
                yield required(field, f"must be '{value}'")
            elif labels[prefix + key] != value:
                yield invalid_value(field, f"must be '{value}'", labels)
    own = {prefix + key: value for prefix in ("", "batch.kubernetes.io/") for key, value in wanted.items()}
    if not _selects(spec["selector"], own):
        yield invalid_value("spec.selector", "`selector` not auto-generated")


def _selects(selector: Json, labels: Json) -> bool:
    return all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())


def _check_spec(spec: Json) -> list[Cause]:
    causes = list(not_negative(spec, "spec", *_COUNTS))
    manager, mode = spec.get("managedBy"), spec.get("completionMode")
    if manager is not None and (not _PATH.fullmatch(manager) or len(manager) > 63):
        causes.append(invalid_value("spec.managedBy", "must be a domain-prefixed path (such as acme.io/foo)", manager))
    if mode not in _MODES:
        causes.append(unsupported("spec.completionMode", mode, _MODES))
    if mode == "Indexed" and "completions" not in spec:
        causes.append(required("spec.completions", "when completion mode is Indexed"))
    if mode == "NonIndexed":
        causes += [
            invalid_value(f"spec.{field}", "requires indexed completion mode", spec[field])
            for field in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")
            if field in spec
        ]
    causes += _check_replacement(spec)
    causes += check_template(spec["template"])
    causes += _check_restart(spec["template"]["spec"].get("restartPolicy"))
    return causes + _check_selector(spec)


def _check_replacement(spec: Json) -> Iterator[Cause]:
    policy, field = spec.get("podReplacementPolicy"), "spec.podReplacementPolicy"
    supported = ("Failed",) if spec.get("podFailurePolicy") else ("Failed", "TerminatingOrFailed")
    if policy is not None and policy not in supported:
        yield unsupported(field, policy, supported)


def _check_restart(policy: str | None) -> Iterator[Cause]:
    field = "spec.template.spec.restartPolicy"
    if policy in ("Always", "", None):
        yield required(field, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield unsupported(field, policy, ("OnFailure", "Never"))


def _check_selector(spec: Json) -> list[Cause]:
    if not spec.get("selector"):
        return [required("spec.selector")]
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    if _selects(spec["selector"], labels):
        return []
    return [invalid_value("spec.template.metadata.labels", "`selector` does not match template `labels`", labels)]


def check_job_update(old: Json, new: Json) -> list[Cause]:
    """What is wrong with a Job that replaces another."""
    before, after = old["spec"], new["spec"]
    causes = check_job(new) + _check_spec(after) + _check_completions(before, after)
    causes += unchanged(before, after, "spec", "selector")
    causes += _check_template(old, before, after)
    return causes + list(unchanged(before, after, "spec", *_FIXED_BEFORE_MANAGED_BY))


def _check_completions(before: Json, after: Json) -> list[Cause]:
    if after.get("completionMode") != "Indexed":
        return list(unchanged(before, after, "spec", "completions"))
    wanted = after.get("completions")
    if wanted in (None, before.get("completions")) or wanted == after.get("parallelism"):
        return []
    return [invalid_value("spec.completions", "can only be modified in tandem with spec.parallelism", wanted)]


def _check_template(old: Json, before: Json, after: Json) -> list[Cause]:
    """The template is fixed, but a suspended Job without pods is free in where its pods go and what they get."""
    status = old.get("status") or {}
    idle = "startTime" not in status or is_true(status, "Suspended")
    free = bool(before.get("suspend")) and idle and not status.get("active")
    kept, given = copy.deepcopy(before["template"]), after["template"]
    if not free:
        return list(unchanged({"template": kept}, {"template": given}, "spec", "template"))
    _take_scheduling(kept, given)
    _take_resources(kept["spec"], given["spec"])
    return list(unchanged({"spec": kept["spec"]}, {"spec": given["spec"]}, "spec.template", "spec"))


def _take_scheduling(kept: Json, given: Json) -> None:
    for field in ("nodeSelector", "tolerations", "schedulingGates"):
        kept["spec"].pop(field, None)
        if field in given["spec"]:
            kept["spec"][field] = given["spec"][field]
    affinity = dict(kept["spec"].pop("affinity", None) or {})
    affinity.pop("nodeAffinity", None)
    wanted = given["spec"].get("affinity")
    if wanted is not None and wanted.get("nodeAffinity") is not None:
        affinity["nodeAffinity"] = wanted["nodeAffinity"]
    if affinity or wanted is not None:  # an empty one is one
        kept["spec"]["affinity"] = affinity


def _take_resources(kept: Json, given: Json) -> None:
    for field in ("containers", "initContainers"):
        own, other = kept.get(field) or [], given.get(field) or []
        if len(own) == len(other):
            for mine, theirs in zip(own, other, strict=True):
                if mine["name"] == theirs["name"]:
                    mine["resources"] = theirs["resources"]
