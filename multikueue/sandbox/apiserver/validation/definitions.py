"""CustomResourceDefinitions: names filled in, accepted and established at once."""

from __future__ import annotations

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.status_errors import Cause


def create_definition(definition: Json) -> list[Cause]:
    """Default a new CRD and write the status its controllers would."""
    causes = _check(definition)
    if causes:
        return causes
    spec, metadata = definition["spec"], definition["metadata"]
    names = spec["names"]
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", names["kind"] + "List")
    spec.setdefault("conversion", {"strategy": "None"})
    definition["status"] = {
        "acceptedNames": names,
        "storedVersions": [version["name"] for version in spec["versions"] if version.get("storage")],
        "conditions": [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", metadata["creationTimestamp"]),
            _condition(
                "Established",
                "InitialNamesAccepted",
                "the initial names have been accepted",
                metadata["creationTimestamp"],
            ),
        ],
    }
    if metadata["name"] != f"{names['plural']}.{spec['group']}":
        message = 'Invalid value: must be spec.names.plural+"."+spec.group'
        return [Cause("FieldValueInvalid", "metadata.name", message)]
    return []


def update_definition(_old: Json, new: Json) -> list[Cause]:
    """Check the parts the server itself reads."""
    return _check(new)


def _check(definition: Json) -> list[Cause]:
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    missing = [f"spec.{field}" for field in ("group", "scope", "versions") if not spec.get(field)]
    missing += [f"spec.names.{field}" for field in ("plural", "kind") if not names.get(field)]
    if missing:
        return [Cause("FieldValueRequired", field, "Required value") for field in missing]
    if sum(bool(version.get("storage")) for version in spec["versions"]) != 1:
        message = "Invalid value: must have exactly one version marked as storage version"
        return [Cause("FieldValueInvalid", "spec.versions", message)]
    return []


def _condition(kind: str, reason: str, message: str, now: str) -> Json:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": now,
    }
