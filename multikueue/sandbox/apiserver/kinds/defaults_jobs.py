"""What the server fills in for Jobs."""

from __future__ import annotations

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.kinds.defaults_pods import fill_pod_spec


def fill_job(job: Json) -> None:
    """Set the defaults of a Job."""
    spec = job.setdefault("spec", {})
    # A work queue (parallelism without completions) keeps completions unset.
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)
    template = spec.setdefault("template", {})
    fill_pod_spec(template.setdefault("spec", {}))
    labels = (template.get("metadata") or {}).get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = labels  # the same dict: the Job gets the labels too that its template gets later


def prepare_job(job: Json) -> None:
    """Complete a new Job: the selector and the labels of its pods."""
    spec, metadata = job["spec"], job["metadata"]
    job["status"] = {}
    if spec.get("manualSelector"):
        return
    uid, name = metadata["uid"], metadata.get("name") or ""
    labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
    for key, value in (("job-name", name), ("controller-uid", uid)):
        labels.setdefault(key, value)
        labels.setdefault(f"batch.kubernetes.io/{key}", value)
    selector = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    selector.setdefault("batch.kubernetes.io/controller-uid", uid)
