"""Why a pod does not run, or has failed, by its status; and what to do, by the reason that its kubelet gives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from multikueue.core.model.conditions import UNSCHEDULABLE, condition
from multikueue.core.model.name_lists import listed
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.core.model.outside_text import plain
from multikueued.reports.remedies.remedy import REMEDIES, Finding

_PASSING: Final = ("PodInitializing", "ContainerCreating", "Completed")
"""Of a container, which say nothing if another one says more."""


@attrs.frozen
class PodReason:
    """What a pod says of itself."""

    reason: str = ""
    """As `ImagePullBackOff`; empty: nothing."""
    message: str = ""
    """The worker's words."""
    container: str = ""
    """The container that it is about; empty: the pod."""
    is_init: bool = False
    """Whether that is an init container."""
    exit_code: int | None = None
    """With which it has ended."""

    @property
    def sentence(self) -> str:
        """In words."""
        what = f"{'init container' if self.is_init else 'container'} {self.container}" if self.container else ""
        code = f"exit code {self.exit_code}" if self.exit_code is not None else ""
        return ": ".join(filter(None, (what, ", ".join(filter(None, (self.reason, code))), self.message)))


def reason_of_pod(pod: Json) -> PodReason:
    """What a pod says of why it waits or has failed: an init container that holds up the others, first."""
    said = [*_of_containers(pod)]
    telling = [reason for reason in said if reason.reason not in _PASSING]
    own = str(dig(pod, "status", "reason") or "")
    if own:
        ended = next((reason.exit_code for reason in telling if reason.exit_code), None)
        return PodReason(own, str(dig(pod, "status", "message") or ""), exit_code=ended)
    scheduled = condition(pod, "PodScheduled") or {}
    if not said and scheduled.get("status") == "False":
        return PodReason(str(scheduled.get("reason") or UNSCHEDULABLE), str(scheduled.get("message") or ""))
    return next(iter(telling or said), PodReason())


def _of_containers(pod: Json) -> Iterator[PodReason]:
    for field, is_init in (("initContainerStatuses", True), ("containerStatuses", False)):
        for status in dig(pod, "status", field) or ():
            reason = _of_container(status, is_init=is_init)
            if reason is not None:
                yield reason


def _of_container(status: Json, *, is_init: bool) -> PodReason | None:
    """What a container says; None: it runs, or an init container has done its work."""
    waits, ended = dig(status, "state", "waiting"), dig(status, "state", "terminated")
    before = dig(status, "lastState", "terminated") if waits else None
    state = waits or ended
    if not state or (is_init and ended and not ended.get("exitCode")):
        return None
    code = (ended or before or {}).get("exitCode")
    reason = str(state.get("reason") or "") or ("Error" if code else "")
    name = str(status.get("name") or "")
    # What a container that is started again and again has ended with, says more than that it waits.
    message = str(state.get("message") or "")
    if before and str(before.get("reason") or "") not in ("", "Error", "Completed"):
        message = "; ".join(filter(None, (f"before that {before['reason']}", message)))
    return PodReason(reason, message, name, is_init, code if isinstance(code, int) else None)


NEED_MISSING: Final = REMEDIES["dependency-missing"]
STARTS: Final = REMEDIES["pod-starts"]
NONE_MADE: Final = REMEDIES["pods-refused"]
BY_REASON: Final = {reason: row for row in REMEDIES.values() for reason in row.reasons}
"""By reason; of others only their words are told."""
MOST: Final = 3
"""Findings about pods: they have one cause as a rule."""


def pod_findings(pods: Mapping[str, PodReason], context: Mapping[str, str]) -> Iterator[Finding]:
    """What keeps a job's pods from running; one finding for one cause.

    Args:
        pods: by name, what those say that are not ready, and have not succeeded.
        context: `worker`, `job`, `namespace`.
    """
    by_cause: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, why in pods.items():
        if (remedy := BY_REASON.get(why.reason)) is not None:
            by_cause[remedy.id, why.container].append(name)
    for (_, container), names in [*by_cause.items()][:MOST]:
        why = pods[names[0]]
        what = f"{'init container' if why.is_init else 'container'} {container}" if container else "a container"
        words = {**context, "what": what, "container": container}
        yield BY_REASON[why.reason].about(f"pod {listed([*map(plain, names)], 1)}", plain(why.sentence), words)
