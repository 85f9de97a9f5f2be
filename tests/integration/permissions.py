"""The least a daemon may do: the chart's rules on the manager, these few on a worker."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import attrs
import yaml

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.direct import OPENAPI
from multikueue.sandbox.apiserver.faults import Call, Match
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE, namespace
from multikueued.rbac.rules import on_worker
from multikueued.settings.config import Settings
from tests.controlplane.credentials import kubeconfig
from tests.controlplane.interface import Cluster
from tests.controlplane.polling import poll_until

Granted: TypeAlias = Mapping[tuple[str, str], frozenset[str]]
"""Verbs by API group and resource."""

TEMPLATES = Path(__file__).parents[2] / "charts" / "multikueued" / "templates"
_NAMESPACE = "multikueue"
WEBHOOK: Final = "release-multikueued-webhook"
"""The chart's name of the webhook's Secret."""
WEBHOOK_CONFIGURATION: Final = "multikueued-release"
LOGS: Final = "release-multikueued-logs"
"""The chart's name of what the logs server has."""
LOGS_SECRET: Final = "logs-worker1"
"""The Secret with its kubeconfig for a worker."""
_VALUES = {
    ".Release.Name": "release",
    ".Release.Namespace": _NAMESPACE,
    ".Values.kueueNamespace": KUEUE_NAMESPACE,
    '.Values.settings.name | default "multikueue"': "multikueue",
    'include "multikueued.metricsPort" .': "http",
    "toJson .Values.networkPolicy.metricsFrom": '[{"namespaceSelector": {}}]',
    "toJson .Values.networkPolicy.webhookFrom": '[{"ipBlock": {"cidr": "10.0.0.0/28"}}]',
    "toJson .Values.serviceAccount.annotations": "{}",
    "toJson .Values.settings.boundTokens.secretNames": '["worker1-kubeconfig"]',
    'include "multikueued.webhook" .': WEBHOOK,
    'include "multikueued.logs" .': LOGS,
    "$secret": LOGS_SECRET,
    'include "multikueued.webhookConfiguration" .': WEBHOOK_CONFIGURATION,
}
_ACCOUNT = "release-multikueued"

WORKER_RULES: Final[list[Json]] = on_worker(Settings())
"""What the user of a worker's kubeconfig needs."""


def chart_objects(template: str = "rbac.yaml", frameworks: Collection[str] = ("batch/job",)) -> list[Json]:
    """What one of the chart's templates makes for these frameworks, and all else that a value turns on."""

    def chosen(block: re.Match[str]) -> str:
        return block[2] if any(f'(has "{name}" $frameworks)' in block[1] for name in frameworks) else ""

    text = re.sub(r"(?ms)^({{- if or \(has [^\n]*)\n(.*?)^{{- end }}\n", chosen, (TEMPLATES / template).read_text())
    text = re.sub(r"^ *{{- (if .*|range .*|end|\$\w+ := .*) }}\n", "", text, flags=re.MULTILINE)
    for name, value in _VALUES.items():
        text = text.replace("{{ " + name + " }}", value)
    assert "{{" not in text, f"{template} uses a value that is not in _VALUES: {text}"
    return [obj for obj in yaml.safe_load_all(text) if obj is not None]


def granted(rules: Iterable[Json]) -> Granted:
    """The verbs by API group and resource, with the subresource."""
    granted_verbs: dict[tuple[str, str], frozenset[str]] = {}
    for rule in rules:
        for group, resource in itertools.product(rule["apiGroups"], rule["resources"]):
            granted_verbs[group, resource] = granted_verbs.get((group, resource), frozenset()) | frozenset(
                rule["verbs"]
            )
    return granted_verbs


def chart_rules() -> list[Json]:
    """What the chart grants the daemon on the manager, in the cluster and in Kueue's namespace."""
    return [rule for obj in chart_objects() for rule in obj.get("rules", ())]


@attrs.frozen
class NotGranted(Match):
    """The calls of a user that these rules do not allow, for a fault that refuses them. It ignores namespaces.

    The published schemas may be read by every authenticated identity (`system:discovery`).
    """

    granted: Granted = attrs.field(factory=dict, kw_only=True)

    def fits(self, call: Call) -> bool:
        """See `Match`."""
        plural, _, group = call.resource.partition(".")
        resource = f"{plural}/{call.subresource}" if call.subresource else plural
        allowed = call.resource == OPENAPI or call.verb in self.granted.get((group, resource), ())
        return super().fits(call) and not allowed


async def install_chart_permissions(manager: Cluster) -> Json:
    """Create the daemon's service account as the chart does; return a kubeconfig for it once its rules are in force."""
    for name in (_NAMESPACE, KUEUE_NAMESPACE):
        await manager.admin.apply(namespace(name))
    for obj in chart_objects():
        await manager.admin.apply(obj)
    await make_marks_secret(manager)
    path = f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts/{_ACCOUNT}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400}}
    token = str((await manager.admin.call("POST", path, request))["status"]["token"])
    await _wait_in_force(manager)
    return kubeconfig(manager.name, url=manager.url, ca_pem=manager.ca_pem, user=_ACCOUNT, token=token)


async def make_marks_secret(manager: Cluster) -> None:
    """Create the Secret that the daemon puts the key of its marks in, empty as the chart does."""
    for obj in chart_objects("marks.yaml"):
        await manager.admin.apply(obj)


async def grant_daemon(manager: Cluster, rules: Iterable[Json]) -> None:
    """Let the daemon's service account do more on the manager: what its operator grants for more kinds."""
    name = "tests:daemon-kinds"
    subject = {"kind": "ServiceAccount", "namespace": _NAMESPACE, "name": _ACCOUNT}
    api = "rbac.authorization.k8s.io"
    version = f"{api}/v1"
    metadata = {"name": name}
    role = {"apiGroup": api, "kind": "ClusterRole", "name": name}
    await manager.admin.apply({"apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": [*rules]})
    await manager.admin.apply(
        {
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": role,
            "subjects": [subject],
        }
    )


async def withdraw_optional_permissions(manager: Cluster) -> None:
    """Take back what the chart grants a daemon that serves the webhook, or that reaches workers by ClusterProfiles;
    applying its objects grants it again."""
    for obj in (*chart_objects("rbac-webhook.yaml"), *chart_objects("rbac-profiles.yaml")):
        if "rules" in obj:
            await manager.admin.apply({**obj, "rules": []})


async def _wait_in_force(manager: Cluster) -> None:
    """Wait for the cluster's and the namespace's rules: the API server reads them from a watch of its own."""
    asked = (
        {"group": "events.k8s.io", "resource": "events", "verb": "create", "namespace": "default"},
        {"group": "", "resource": "secrets", "verb": "list", "namespace": KUEUE_NAMESPACE},
    )

    async def allowed() -> bool:
        for attributes in asked:
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {
                    "user": f"system:serviceaccount:{_NAMESPACE}:{_ACCOUNT}",
                    "resourceAttributes": attributes,
                },
            }
            answer = await manager.admin.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
            if not answer["status"]["allowed"]:
                return False
        return True

    await poll_until(allowed, seconds=20, otherwise="the chart's permissions were not in force after 20 s")
