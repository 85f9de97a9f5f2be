"""Kueue's own Configuration as settings: Kueue's spelling becomes ours, the rest is passed over and logged.

The fields are those of `config.kueue.x-k8s.io`, v1beta1 and v1beta2, of Kueue v0.19. A file is one if it says so by its
`apiVersion` and `kind`, as each does that Kueue reads; our settings may stand in it, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from multikueue.core.model.objects import dig, with_value, without

API_GROUP: Final = "config.kueue.x-k8s.io"
KIND: Final = "Configuration"
_OWN: Final = "Kueue's own setting: passed over"

PASSED_OVER: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            *("apiVersion", "kind", "health", "metrics", "controller", "clientConnection", "pprofBindAddress", "tls"),
            *("manageJobsWithoutQueueName", "managedJobsNamespaceSelector", "internalCertManagement", "featureGates"),
            *("waitForPodsReady", "fairSharing", "admissionFairSharing", "resources", "objectRetentionPolicies"),
            *("visibilityServer", "queueVisibility", "webhook.host"),
            *("integrations.podOptions", "integrations.labelKeysToCopy", "leaderElection.retryPeriod"),
        ),
        _OWN,
    ),
    "leaderElection.leaderElect": f"{_OWN}; ours is leaderElection.enabled",
    **dict.fromkeys(
        ("leaderElection.resourceName", "leaderElection.resourceNamespace", "leaderElection.resourceLock"),
        f"{_OWN}; ours is the Lease that has the daemon's name, in the namespace",
    ),
}
"""What only Kueue has, and what is told of it."""
SECTION: Final = "multiKueue"
PROFILES: Final = "clusterProfile"
"""In the section: how workers are reached that ClusterProfiles describe."""
SPELLINGS: Final[Mapping[str, str]] = {
    "multiKueue.clusterProfile.credentialsProviders": "multiKueue.clusterProfile.accessProviders",
    "multiKueue.origin": "origin",
    "multiKueue.gcInterval": "gcInterval",
    "multiKueue.workerLostTimeout": "workerLostTimeout",
    "multiKueue.dispatcherName": "dispatcher.name",
    "multiKueue.incrementalDispatcherConfig": "dispatcher.incremental",
    "multiKueue.externalFrameworks": "externalFrameworks",
    "multiKueue.clusterProfile": "clusterProfile",
    "integrations.externalFrameworks": "externalFrameworks",
}
"""Where Kueue's Configuration has what we have in another place. Read in this order."""
_KINDS: Final = "externalFrameworks"
PROFILES_GATE: Final = "MultiKueueClusterProfile"
"""Of `featureGates`: whether Kueue reaches any. The only gate that is read: it says what the section means."""


@attrs.frozen
class Remark:
    """Something in the settings file that is passed over, for the log."""

    setting: str
    why: str
    important: bool = False
    """Whether it may be missed: a warning."""


@attrs.frozen
class Translated:
    """A settings file in our spelling."""

    document: Mapping[Any, Any]
    remarks: tuple[Remark, ...] = ()
    spellings: Mapping[str, str] = attrs.Factory(dict)
    """What the file has in Kueue's spelling: its place there, by ours."""
    complaints: tuple[str, ...] = ()

    def as_written(self, complaint: str) -> str:
        """A complaint that begins with our place of a setting, with its place in the file."""
        for ours, theirs in self.spellings.items():
            rest = complaint.removeprefix(ours)
            if rest != complaint and rest[:1] in ("", ".", "[", ":"):
                return f"{theirs}{rest}"
        return complaint


def translated(document: Mapping[Any, Any]) -> Translated:
    """The settings in our spelling: of Kueue's Configuration what it has, of another file all as it is."""
    if complaint := _kind_complaint(document) or _values_complaint(document):
        return Translated(document, complaints=(complaint,))
    if not {"apiVersion", "kind"} & document.keys():
        return Translated(document, complaints=tuple(_kueues_settings(document)))
    gated, gate_remarks = _gated(document)
    respelt = _respelt(gated)
    left, remarks = _without_kueues(respelt.document)
    return attrs.evolve(respelt, document=left, remarks=(*gate_remarks, *remarks))


def _kueues_settings(document: Mapping[Any, Any]) -> Iterator[str]:
    """What only Kueue's Configuration has, in a file that does not say that it is one."""
    for path in (*SPELLINGS, *PASSED_OVER):
        if _at(document, path) is not None:
            instead = f"write {SPELLINGS[path]}" if path in SPELLINGS else "leave it out"
            yield f"{path}: it is of Kueue's {KIND}: {instead}, or give the file the apiVersion and kind of one"


def _respelt(document: dict[Any, Any]) -> Translated:
    """The document with each setting in our place, and what it says in two places."""
    spellings: dict[str, str] = {}
    complaints: list[str] = []
    for theirs, ours in SPELLINGS.items():
        value, there = _at(document, theirs), _at(document, ours)
        document = without(document, [tuple(theirs.split("."))])
        if value is None or not isinstance(_at(document, ours.rpartition(".")[0]) or {}, dict):
            continue  # it says nothing; or what we have there is no group, which is told
        if ours == _KINDS and isinstance(value, list) and isinstance(there, list):
            value = _joined(there, value)
        elif there is not None:
            complaints.append(f"{theirs}: {spellings.get(ours, ours)} says it already: keep one of the two")
            continue
        spellings.setdefault(ours, theirs)
        document = with_value(_without_empty(document, ours), tuple(ours.split(".")), value)
    if not document.get(SECTION):
        document = without(document, [(SECTION,)])
    return Translated(document, (), spellings, tuple(complaints))


def _joined(kinds: list[Any], more: list[Any]) -> list[Any]:
    """Kueue wants a declared kind in both of its lists: a name alone repeats the declaration in the other one."""
    names = [kind.get("name") if isinstance(kind, dict) else kind for kind in kinds]
    return [*kinds, *(kind for kind in more if kind not in names)]


def _without_empty(document: dict[Any, Any], path: str) -> dict[Any, Any]:
    """Without the group of that setting if every line of it is commented out."""
    group = path.rpartition(".")[0]
    return document if _at(document, group) is not None else without(document, [tuple(group.split("."))])


def _at(document: Mapping[Any, Any], path: str) -> Any:
    return dig(document, *path.split(".")) if path else document


def _without_kueues(document: Mapping[Any, Any]) -> tuple[dict[Any, Any], list[Remark]]:
    """The settings without what only Kueue has, and a remark on each thing that was left out."""
    left, remarks = dict(document), list[Remark]()
    for path, why in PASSED_OVER.items():
        group, _, name = path.rpartition(".")
        section = left.get(group) if group else left
        if not isinstance(section, dict) or name not in section:
            continue
        rest = {key: value for key, value in section.items() if key != name}
        left = {**left, group: rest} if group else rest
        remarks.append(Remark(path, why))
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
    why = f"the gate {PROFILES_GATE} is off: remove featureGates to use the section"
    return {**document, "multiKueue": rest}, [Remark(f"multiKueue.{PROFILES}", why, important=True)]


def _kind_complaint(document: Mapping[Any, Any]) -> str | None:
    """Why a file that says of which kind it is cannot hold settings; None if it can."""
    said, version = document.get("kind", KIND), document.get("apiVersion", API_GROUP)
    if said == KIND and str(version).partition("/")[0] == API_GROUP:
        return None
    mend = ": write what stands under its data as the file, with multiKueue at the top" if said == "ConfigMap" else ""
    return f"kind: {said} of {version} holds no settings: only Kueue's {KIND} of {API_GROUP} does{mend}"


def _values_complaint(document: Mapping[Any, Any]) -> str | None:
    """Why the values of our chart are no settings; None if it is another file."""
    if not isinstance(document.get("settings"), dict):
        return None
    return "settings: these are the chart's values: write what stands below settings as the file, at the top"
