"""Kueue's own Configuration as settings: what is not for us is passed over, with a line in the log for each.

The fields are those of `config.kueue.x-k8s.io`, v1beta1 and v1beta2, of Kueue v0.19. What both have is read as ours:
`namespace`, `leaderElection.leaseDuration`, the section `multiKueue`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

API_GROUP: Final = "config.kueue.x-k8s.io"
KIND: Final = "Configuration"
_OWN: Final = "Kueue's own setting: passed over"

_PASSED_OVER: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            *("apiVersion", "kind", "health", "metrics", "controller", "clientConnection", "pprofBindAddress", "tls"),
            *("manageJobsWithoutQueueName", "managedJobsNamespaceSelector", "internalCertManagement", "featureGates"),
            *("waitForPodsReady", "fairSharing", "admissionFairSharing", "resources", "objectRetentionPolicies"),
            *("visibilityServer", "queueVisibility", "webhook.host"),
            *("integrations.podOptions", "integrations.labelKeysToCopy"),
        ),
        _OWN,
    ),
    "leaderElection.leaderElect": f"{_OWN}; ours is leaderElection.enabled",
    **dict.fromkeys(
        ("leaderElection.resourceName", "leaderElection.resourceNamespace", "leaderElection.resourceLock"),
        f"{_OWN}; ours is leaderElection.leaseName, in the namespace",
    ),
}
PROFILES: Final = "clusterProfile"
"""In the section `multiKueue`: how workers are reached that ClusterProfiles describe."""
PROFILES_GATE: Final = "MultiKueueClusterProfile"
"""Of `featureGates`: whether Kueue reaches any. The only gate that is read: it says what the section means."""


@attrs.frozen
class Remark:
    """Something in the settings file that is passed over, for the log."""

    setting: str
    told: str
    important: bool = False
    """Whether it may be missed: a warning."""


def without_kueues(document: Mapping[Any, Any]) -> tuple[dict[Any, Any], list[Remark]]:
    """The settings without what only Kueue has, and a remark on each thing that was left out."""
    left, remarks = _gated(document)
    for path, told in _PASSED_OVER.items():
        group, _, name = path.rpartition(".")
        section = left.get(group) if group else left
        if not isinstance(section, dict) or name not in section:
            continue
        rest = {key: value for key, value in section.items() if key != name}
        left = {**left, group: rest} if group else rest
        remarks.append(Remark(path, told))
    return left, remarks


def _gated(document: Mapping[Any, Any]) -> tuple[dict[Any, Any], list[Remark]]:
    """With the section that Kueue's gate for ClusterProfiles turns on, or without the one that it turns off."""
    gates, section = document.get("featureGates"), document.get("multiKueue") or {}
    gate = gates.get(PROFILES_GATE) if isinstance(gates, dict) else None
    if not isinstance(section, dict) or not isinstance(gate, bool) or gate == (section.get(PROFILES) is not None):
        return dict(document), []
    rest = {key: value for key, value in section.items() if key != PROFILES}
    if gate:
        return {**document, "multiKueue": {**rest, PROFILES: {}}}, []
    told = f"the gate {PROFILES_GATE} is off: remove featureGates to use the section"
    return {**document, "multiKueue": rest}, [Remark(f"multiKueue.{PROFILES}", told, important=True)]


def kind_complaint(document: Mapping[Any, Any]) -> str | None:
    """Why a file that says of which kind it is cannot hold settings; None if it can."""
    said, version = document.get("kind", KIND), document.get("apiVersion", API_GROUP)
    if said == KIND and str(version).partition("/")[0] == API_GROUP:
        return None
    mend = ": write what stands under its data as the file, with multiKueue at the top" if said == "ConfigMap" else ""
    return f"kind: {said} of {version} holds no settings: only Kueue's {KIND} of {API_GROUP} does{mend}"
