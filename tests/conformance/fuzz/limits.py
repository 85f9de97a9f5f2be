"""What the fuzz does not send, because the sandbox is known to be different there, and why that is left."""

from __future__ import annotations

LIMITS: dict[str, str] = {
    "pods have no `binding` subresource": "A Binding is created in its namespace, which has the same effect.",
    "fields of pods that no job uses are checked less": (
        "Probes, security contexts, affinity, DNS, ephemeral containers and most volume sources are decoded and "
        "defaulted by their types, but what their values mean is not checked."
    ),
    "builtin kinds other than Pod, Job, Secret, Namespace and CustomResourceDefinition have no rules of their own": (
        "They are decoded by their types. Defaults and checks by code (Deployments, Services, ...) are missing."
    ),
    "no admission or conversion webhooks, no quotas or limit ranges": (
        "Kueue's webhooks are what the small Kueue does itself."
    ),
    "roles are enforced on request, and anyone who may write roles may give any": (
        "A real server lets nobody give more than they have, and fills aggregated ClusterRoles."
    ),
    "protobuf is read, not written, and for builtin kinds only": (
        "Go clients that send it take JSON as well. A client that takes nothing else gets a 406."
    ),
    "the words of messages": "Codes, reasons, causes and fields are compared; prose is close, not the same.",
    "pods get no token volume": (
        "A real server mounts a service account token with a random name; the fuzz's pods say "
        "`automountServiceAccountToken: false`."
    ),
}
