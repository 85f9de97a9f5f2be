"""The columns that `kubectl get` shows for builtin kinds, and how it shows times, as kube-apiserver's printers do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeAlias

import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.kinds.resources import DEFINITIONS, NAMESPACES, PODS, GroupResource
from multikueue.sandbox.apiserver.storage.selectors import field_value

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 31_536_000
# Below this many seconds: the unit, and the smaller unit that is shown beside it.
_SCALES = (
    (120, "s", 1, "", 0),
    (10 * _MINUTE, "m", _MINUTE, "s", 1),
    (180 * _MINUTE, "m", _MINUTE, "", 0),
    (8 * _HOUR, "h", _HOUR, "m", _MINUTE),
    (48 * _HOUR, "h", _HOUR, "", 0),
    (8 * _DAY, "d", _DAY, "h", _HOUR),
    (2 * _YEAR, "d", _DAY, "", 0),
    (8 * _YEAR, "y", _YEAR, "d", _DAY),
)


def human_duration(seconds: float) -> str:
    """Two or three significant figures; a clock up to two seconds ahead counts as now."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(whole, 0)
    for limit, unit, size, minor, minor_size in _SCALES:
        if whole < limit:
            rest = whole % size // minor_size if minor_size else 0
            return f"{whole // size}{unit}" + (f"{rest}{minor}" if rest else "")
    return f"{whole // _YEAR}y"


def parse_time(text: object) -> datetime | None:
    """Read an RFC 3339 time; None if it is not one."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment if moment and moment.tzinfo else None


def age(text: object, now: datetime) -> str:
    """How long ago a timestamp was; `<unknown>` without one, `<invalid>` if it is none."""
    if not text:
        return "<unknown>"
    moment = parse_time(text)
    return human_duration((now - moment).total_seconds()) if moment else "<invalid>"


Cell: TypeAlias = Callable[[Json, datetime], Any]


@attrs.frozen
class Column:
    """One column: its head, how a cell is made, and whether it shows only with `-o wide`."""

    name: str
    cell: Cell
    type: str = "string"
    wide: bool = False

    def definition(self) -> Json:
        """The TableColumnDefinition."""
        form = "name" if self.name == "Name" else ""
        priority = 1 if self.wide else 0
        return {"name": self.name, "type": self.type, "format": form, "description": "", "priority": priority}


def _path(path: str, default: Any = "") -> Cell:
    def cell(obj: Json, _now: datetime) -> Any:
        value = field_value(obj, path)
        return default if value is None else value

    return cell


def _age(path: str) -> Cell:
    return lambda obj, now: age(field_value(obj, path), now)


NAME = Column("Name", _path("metadata.name"))
AGE = Column("Age", _age("metadata.creationTimestamp"))


def _conditions(obj: Json) -> dict[str, Json]:
    return {condition.get("type", ""): condition for condition in field_value(obj, "status.conditions") or ()}


def _is_true(conditions: Mapping[str, Json], kind: str) -> bool:
    return conditions.get(kind, {}).get("status") == "True"


def _pod_status(pod: Json, _now: datetime) -> str:
    status = pod.get("status") or {}
    text = status.get("reason") or status.get("phase") or ""
    if _conditions(pod).get("PodScheduled", {}).get("reason") == "SchedulingGated":
        text = "SchedulingGated"
    for container in reversed(status.get("containerStatuses") or []):
        state = container.get("state") or {}
        text = (state.get("waiting") or state.get("terminated") or {}).get("reason") or text
    return "Terminating" if pod["metadata"].get("deletionTimestamp") else text


def _pod_ready(pod: Json, _now: datetime) -> str:
    containers = field_value(pod, "status.containerStatuses") or ()
    ready = sum(1 for container in containers if container.get("ready"))
    return f"{ready}/{len(field_value(pod, 'spec.containers') or ())}"


def _pod_restarts(pod: Json, _now: datetime) -> str:
    containers = field_value(pod, "status.containerStatuses") or ()
    return str(sum(container.get("restartCount", 0) for container in containers))


_JOB_STATUSES = (("Complete", "Complete"), ("Failed", "Failed"))
_JOB_LATER = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _job_status(job: Json, _now: datetime) -> str:
    conditions = _conditions(job)
    for kind, text in _JOB_STATUSES:
        if _is_true(conditions, kind):
            return text
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((kind for kind in _JOB_LATER if _is_true(conditions, kind)), "Running")


def _job_completions(job: Json, _now: datetime) -> str:
    succeeded = field_value(job, "status.succeeded") or 0
    completions = field_value(job, "spec.completions")
    if completions is not None:
        return f"{succeeded}/{completions}"
    parallelism = field_value(job, "spec.parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(job: Json, now: datetime) -> str:
    start = parse_time(field_value(job, "status.startTime"))
    if not start:
        return ""
    end = parse_time(field_value(job, "status.completionTime")) or now
    return human_duration((end - start).total_seconds())


def _containers(field: str) -> Cell:
    def cell(obj: Json, _now: datetime) -> str:
        containers = field_value(obj, "spec.template.spec.containers") or ()
        return ",".join(container.get(field, "") for container in containers)

    return cell


def _match_labels(obj: Json, _now: datetime) -> str:
    labels = field_value(obj, "spec.selector.matchLabels") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "<none>"


def _event_seen(event: Json, now: datetime) -> str:
    series = event.get("series") or {}
    stamps = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("deprecatedLastTimestamp"))
    return age(next(filter(None, stamps), None) or event.get("firstTimestamp") or event.get("eventTime"), now)


def _event_object(event: Json, _now: datetime) -> str:
    involved = event.get("involvedObject") or event.get("regarding") or {}
    kind, name = str(involved.get("kind") or "").lower(), involved.get("name")
    return f"{kind}/{name}" if name else kind


def _event_message(event: Json, _now: datetime) -> str:
    return str(event.get("message") or event.get("note") or "").strip()


def _node_status(node: Json, _now: datetime) -> str:
    ready = _conditions(node).get("Ready")
    text = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return text + (",SchedulingDisabled" if field_value(node, "spec.unschedulable") else "")


def _node_roles(node: Json, _now: datetime) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels") or {}
    return ",".join(sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix))) or "<none>"


def _data_count(obj: Json, _now: datetime) -> int:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


_EVENTS = (
    Column("Last Seen", _event_seen),
    Column("Type", _path("type")),
    Column("Reason", _path("reason")),
    Column("Object", _event_object),
    Column("Message", _event_message),
    Column("Name", _path("metadata.name"), wide=True),
)
_BUILTIN: Mapping[GroupResource, tuple[Column, ...]] = MappingProxyType(
    {
        PODS: (
            NAME,
            Column("Ready", _pod_ready),
            Column("Status", _pod_status),
            Column("Restarts", _pod_restarts),
            AGE,
            Column("IP", _path("status.podIP", "<none>"), wide=True),
            Column("Node", _path("spec.nodeName", "<none>"), wide=True),
        ),
        ("batch", "jobs"): (
            NAME,
            Column("Status", _job_status),
            Column("Completions", _job_completions),
            Column("Duration", _job_duration),
            AGE,
            Column("Containers", _containers("name"), wide=True),
            Column("Images", _containers("image"), wide=True),
            Column("Selector", _match_labels, wide=True),
        ),
        NAMESPACES: (NAME, Column("Status", _path("status.phase")), AGE),
        ("", "secrets"): (NAME, Column("Type", _path("type")), Column("Data", _data_count, "integer"), AGE),
        ("", "configmaps"): (NAME, Column("Data", _data_count, "integer"), AGE),
        ("", "events"): _EVENTS,
        ("events.k8s.io", "events"): _EVENTS,
        ("", "nodes"): (
            NAME,
            Column("Status", _node_status),
            Column("Roles", _node_roles),
            AGE,
            Column("Version", _path("status.nodeInfo.kubeletVersion")),
        ),
        ("coordination.k8s.io", "leases"): (NAME, Column("Holder", _path("spec.holderIdentity")), AGE),
        DEFINITIONS: (NAME, Column("Created At", _path("metadata.creationTimestamp"), "date")),
    }
)


def builtin_columns(resource: GroupResource) -> tuple[Column, ...]:
    """The columns of a builtin kind; name and age for those that have none of their own."""
    return _BUILTIN.get(resource, (NAME, AGE))
