"""
A Kubernetes API server in this process: lists and watches with revisions, optimistic locking, patches of all four
kinds, CRDs with validation, finalizers, garbage collection, and faults on request.

Every rule in it was checked against a real kube-apiserver; `tests/conformance` holds the checks. Not in it:
admission and conversion webhooks, WebSockets that a kubelet does not know, controllers other than the garbage
collector's and the namespace's, and builtin kinds beyond those of `builtin_kinds.yaml`. `managedFields` work, but are
not byte for byte what the real server writes. RBAC is an option: without it a token may do everything.

Imports point down this list; import-linter checks it: `direct` (a client without HTTP), `serving`, `identity`, `verbs`,
`storage`, `apply` and `validation`, `faults`, `status_errors`, `kinds`, `protobuf`, `encoding`.
"""

from __future__ import annotations

from multikueue.sandbox.apiserver.direct import DirectClient
from multikueue.sandbox.apiserver.faults import (
    CutWatch,
    Delay,
    ExpireWatch,
    Fault,
    Faults,
    Hang,
    Match,
    Refuse,
    Reset,
    SilenceWatch,
)
from multikueue.sandbox.apiserver.serving.server import ApiServer
from multikueue.sandbox.apiserver.status_errors import StatusError
from multikueue.sandbox.apiserver.verbs.registry import Registry

__all__ = [
    "ApiServer",
    "CutWatch",
    "Delay",
    "DirectClient",
    "ExpireWatch",
    "Fault",
    "Faults",
    "Hang",
    "Match",
    "Refuse",
    "Registry",
    "Reset",
    "SilenceWatch",
    "StatusError",
]
