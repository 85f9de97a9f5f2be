"""What to do about pods that do not run, or have failed, by the reason that their kubelet gives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

import attrs

from multikueue.core.model.conditions import UNSCHEDULABLE
from multikueue.core.model.outside_text import plain
from multikueued.reports.pod_reasons import PodReason
from multikueued.reports.remedies.remedy import Finding, Remedy

_AGAIN: Final = "then create the job again"
_LOGS: Final = "multikueue logs {job} -n {namespace} -c {container}"
IMAGE: Final = Remedy(
    "image-not-pulled",
    "the image of {what} cannot be pulled on {worker}",
    f"correct the image's name, or give the pods' ServiceAccount there a Secret for its registry; {_AGAIN}",
)
CRASHES: Final = Remedy(
    "container-crashes",
    "{what} ends again and again on {worker}",
    f"{_LOGS} has its words, with --previous those before its last restart; correct it, {_AGAIN}",
)
_CREATE: Final = (
    "create it there, in the job's namespace, and its pods start by themselves; Secrets are never copied, ConfigMaps "
    "where dependencies of the daemon's settings says so"
)
NEEDS: Final = Remedy("dependency-missing", "{what} names what is not on {worker}", _CREATE)
NEED_MISSING: Final = Remedy("dependency-missing", "its pods name {kind} {name}, which is not on {worker}", _CREATE)
NOT_STARTED: Final = Remedy(
    "container-not-started",
    "{what} cannot be started on {worker}",
    f"correct its command, user or mounts as it says; {_AGAIN}",
)
MEMORY: Final = Remedy(
    "out-of-memory",
    "{what} has used more memory than its limit, on {worker}",
    f"raise resources.limits.memory of the container, {_AGAIN}",
)
ENDED_BADLY: Final = Remedy(
    "container-failed",
    "{what} has failed on {worker}",
    f"{_LOGS} has its words",
)
NO_NODE: Final = Remedy(
    "no-node",
    "no node of {worker} has room for it",
    "nothing, if nodes are added there by themselves; else the quota there is larger than its nodes, or the pods ask "
    "for a node that there is none of",
    blocking=False,
)
STARTS: Final = Remedy(
    "pod-starts",
    "{what} waits on {worker} for its image or its volumes",
    "nothing, if the image is large; a Secret, ConfigMap or volume claim that is not there holds it up, too: the pod's "
    "events on {worker} say so",
    blocking=False,
)

BY_REASON: Final[Mapping[str, Remedy]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"), IMAGE
        ),
        **dict.fromkeys(("ImageInspectError", "SignatureValidationFailed"), IMAGE),
        "CrashLoopBackOff": CRASHES,
        "CreateContainerConfigError": NEEDS,
        **dict.fromkeys(
            ("CreateContainerError", "RunContainerError", "StartError", "ContainerCannotRun", "PostStartHookError"),
            NOT_STARTED,
        ),
        "OOMKilled": MEMORY,
        "Error": ENDED_BADLY,
        UNSCHEDULABLE: NO_NODE,
        **dict.fromkeys(("ContainerCreating", "PodInitializing"), STARTS),
    }
)
"""By reason; of others only their words are told."""
MOST: Final = 3
"""Findings about pods: they have one cause as a rule."""


@attrs.frozen
class TroubledPod:
    """A pod that does not run, or has failed."""

    name: str
    why: PodReason


def pod_findings(pods: Iterable[TroubledPod], context: Mapping[str, str]) -> Iterator[Finding]:
    """What keeps a job's pods from running; one finding for one cause.

    Args:
        pods: those that are not ready, and have not succeeded.
        context: `worker`, `job`, `namespace`.
    """
    found: dict[tuple[str, str], list[TroubledPod]] = defaultdict(list)
    for pod in pods:
        remedy = BY_REASON.get(pod.why.reason)
        if remedy is not None:
            found[remedy.id, pod.why.container].append(pod)
    for (_, container), alike in [*found.items()][:MOST]:
        first = alike[0]
        what = f"{'init container' if first.why.is_init else 'container'} {container}" if container else "a container"
        words = {**context, "what": what, "container": container}
        more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        yield BY_REASON[first.why.reason].about(f"pod {plain(first.name)}{more}", plain(first.why.told), words)
