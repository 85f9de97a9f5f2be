"""Proofs: by them a mirror of our making is told from a pod that somebody else has put in its place. Pure.

Whoever may create pods can write a mirror's labels and annotations. A proof they cannot write: it is a keyed digest of
the mirror's own UID, which nobody chooses, and of the worker and the pod there that it shows. It is written after the
creation, for the UID in that answer alone, never for a pod that is merely there.
"""

from __future__ import annotations

import hmac
import json

import attrs

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, uid
from multikueued.mirror_names import PROOF, WORKER, WORKER_POD, WORKER_POD_UID


@attrs.frozen
class ProvenMirror:
    """A mirror that we have made, and the pod that it shows."""

    namespace: str
    name: str
    uid: str
    """The mirror's own."""
    worker: str
    """Name of the MultiKueueCluster."""
    worker_pod: ObjectKey
    """Namespace and name of the pod there."""
    worker_pod_uid: str


def proof(key: bytes, *, mirror_uid: str, worker: str, worker_pod: str, worker_pod_uid: str) -> str:
    """What only the key's holders can write on a mirror.

    Args:
        key: the secret of mirrors, which is no other's.
        mirror_uid: of the mirror on the manager.
        worker: name of the MultiKueueCluster.
        worker_pod: NAMESPACE/NAME of the pod there.
        worker_pod_uid: its UID.

    Returns:
        64 hexadecimal digits.
    """
    fields = json.dumps(
        ["mirror", mirror_uid, worker, worker_pod, worker_pod_uid]
    )  # a list: no field runs into another
    return hmac.digest(key, fields.encode(), "sha256").hex()


def proven(key: bytes | None, mirror: Json) -> ProvenMirror | None:
    """A pod of the manager as a mirror of our making; None: it is none, whatever it says of itself.

    Args:
        key: the secret of mirrors; None: it is not made yet. Anybody could make a proof by an empty one.
        mirror: the pod.
    """
    said, own_uid = annotations_of(mirror), uid(mirror)
    worker, worker_pod, worker_pod_uid = (said.get(name) or "" for name in (WORKER, WORKER_POD, WORKER_POD_UID))
    here, there = ObjectKey.of(mirror), ObjectKey.parsed(worker_pod)
    if not (key and own_uid and worker and there.namespace and there.name and worker_pod_uid):
        return None
    wanted = proof(key, mirror_uid=own_uid, worker=worker, worker_pod=worker_pod, worker_pod_uid=worker_pod_uid)
    if not hmac.compare_digest(wanted.encode(), (said.get(PROOF) or "").encode()):
        return None
    return ProvenMirror(here.namespace, here.name, own_uid, worker, there, worker_pod_uid)
