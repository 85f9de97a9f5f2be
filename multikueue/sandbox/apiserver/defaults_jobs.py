"""What the server fills in for Jobs, and what may not change in one."""

from __future__ import annotations

from multikueue.core.names import Json
from multikueue.sandbox.apiserver.defaults_pods import fill_pod_spec
from multikueue.sandbox.apiserver.selectors import field_value
from multikueue.sandbox.apiserver.statuses import Cause

_IMMUTABLE = ("completions", "selector", "completionMode", "managedBy")


def create_job(job: Json) -> list[Cause]:
    """Default a new Job: counts, policies, the selector and the labels of its pods."""
    spec = job.setdefault("spec", {})
    template = spec.setdefault("template", {})
    pod_spec = template.setdefault("spec", {})
    causes = _check_template(pod_spec)
    _fill_spec(spec)
    fill_pod_spec(pod_spec)
    if not spec.get("manualSelector"):
        _select_own_pods(job)
    job["status"] = {}
    return causes


def _fill_spec(spec: Json) -> None:
    # A work queue (parallelism without completions) keeps completions unset.
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)


def _check_template(pod_spec: Json) -> list[Cause]:
    causes = []
    if not pod_spec.get("containers"):
        causes.append(Cause("FieldValueRequired", "spec.template.spec.containers", "Required value"))
    if pod_spec.get("restartPolicy") not in ("Never", "OnFailure"):
        message = 'Required value: valid values: "OnFailure", "Never"'
        causes.append(Cause("FieldValueRequired", "spec.template.spec.restartPolicy", message))
    return causes


def _select_own_pods(job: Json) -> None:
    spec, metadata = job["spec"], job["metadata"]
    uid, name = metadata["uid"], metadata.get("name") or ""
    labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
    labels["batch.kubernetes.io/controller-uid"] = labels["controller-uid"] = uid
    labels["batch.kubernetes.io/job-name"] = labels["job-name"] = name
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}


def update_job(old: Json, new: Json) -> list[Cause]:
    """Refuse changes of what is fixed once a Job exists; the template is free until it first starts."""
    before, after = old["spec"], new.get("spec") or {}
    causes = [
        Cause("FieldValueInvalid", f"spec.{field}", "Invalid value: field is immutable")
        for field in _IMMUTABLE
        if before.get(field) != after.get(field) and not _elastic(field, before)
    ]
    never_ran = before.get("suspend") and not field_value(old, "status.startTime")
    if before.get("template") != after.get("template") and not never_ran:
        causes.append(Cause("FieldValueInvalid", "spec.template", "Invalid value: field is immutable"))
    return causes


def _elastic(field: str, spec: Json) -> bool:
    return field == "completions" and spec.get("completionMode") == "Indexed"
