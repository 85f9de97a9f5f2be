"""What mirrors and their nodes are called, and what is written on them. Pure."""

from __future__ import annotations

import hashlib
from typing import Final

from multikueue.core.model.labels import MAX_LABEL_VALUE, OWN_PREFIX

NODE_PREFIX: Final = "multikueue-"
"""How the names of our nodes begin: policies and roles know them by it."""
VIRTUAL_KUBELET: Final = {"type": "virtual-kubelet"}
"""Label of our nodes: others pass over nodes that have it."""
WORKER: Final = f"{OWN_PREFIX}worker"
"""On a mirror, as an annotation: the MultiKueueCluster that its pod runs on. On a Node the same as an annotation, and
as a label (see `worker_label`)."""
WORKER_POD: Final = f"{OWN_PREFIX}worker-pod"
"""Annotation of a mirror: NAMESPACE/NAME of the pod there, where the namespace may have another name."""
WORKER_POD_UID: Final = f"{OWN_PREFIX}worker-pod-uid"
"""Annotation of a mirror: the UID of that pod."""
PROOF: Final = f"{OWN_PREFIX}mirror-proof"
"""Annotation of a mirror: that we have made it for that pod; see `multikueued.mirrors.proof`."""
MIRROR: Final = f"{OWN_PREFIX}mirror"
"""Label of mirrors, by which they are watched: the `origin` of whoever made them."""
_LONGEST: Final = 253
"""Characters of a Node's name."""
_DIGEST: Final = 10


def node_name(worker: str) -> str:
    """The Node of a worker, by the name of its MultiKueueCluster."""
    return _fitting(f"{NODE_PREFIX}{worker}", _LONGEST)


def worker_label(worker: str) -> str:
    """A worker's name as a label can have it."""
    return _fitting(worker, MAX_LABEL_VALUE)


def _fitting(name: str, longest: int) -> str:
    """A name that is too long ends with a digest instead: two of them stay two."""
    if len(name) <= longest:
        return name
    return f"{name[: longest - _DIGEST - 1]}-{hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]}"
