"""What `kubectl get` shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.kinds.resources import CustomKind, ResourceType, builtin_types
from multikueue.sandbox.apiserver.serving.jsonpaths import find
from multikueue.sandbox.apiserver.serving.printing import age, human_duration
from multikueue.sandbox.apiserver.serving.tables import table

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
ROWS = {row.plural: row for row in builtin_types() if row.group != "events.k8s.io"}


def stamp(**ago: int) -> str:
    return (NOW - timedelta(**ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


def shown(row: ResourceType, obj: Json) -> dict[str, Any]:
    """The cells of one object by the head of their column, without those of `-o wide`."""
    made = table(row, [obj], {}, NOW)
    cells = zip(made["columnDefinitions"], made["rows"][0]["cells"], strict=True)
    return {column["name"]: cell for column, cell in cells if column["priority"] == 0}


def named(**parts: Any) -> Json:
    return {"metadata": {"name": "x", "creationTimestamp": stamp(minutes=5)}, **parts}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (3600, "60m"),
        (4 * 3600 + 120, "4h2m"),
        (24 * 3600, "24h"),
        (3 * 86400 + 7200, "3d2h"),
        (100 * 86400, "100d"),
        (3 * 31536000, "3y"),
        (9 * 31536000 + 86400, "9y"),
    ],
)
def test_durations_are_short(seconds: float, text: str) -> None:
    """As kubectl users know them."""
    assert human_duration(seconds) == text


def test_ages_that_are_none() -> None:
    """A missing time and a wrong one are told apart."""
    assert (age(None, NOW), age("yesterday", NOW)) == ("<unknown>", "<invalid>")


@pytest.mark.parametrize(
    ("condition", "status"),
    [("Complete", "Complete"), ("Failed", "Failed"), ("Suspended", "Suspended"), ("Other", "Running")],
)
def test_jobs(condition: str, status: str) -> None:
    """Status, completions, duration and age."""
    conditions = [{"type": condition, "status": "True"}]
    times = {"startTime": stamp(seconds=200), "completionTime": stamp(seconds=0)}
    obj = named(spec={"completions": 3}, status={"succeeded": 1, "conditions": conditions, **times})
    assert shown(ROWS["jobs"], obj) == {
        "Name": "x",
        "Status": status,
        "Completions": "1/3",
        "Duration": "3m20s",
        "Age": "5m",
    }


def test_pods() -> None:
    """Ready containers, what they wait for, restarts and age."""
    waiting = {"state": {"waiting": {"reason": "ErrImagePull"}}, "restartCount": 2}
    spec = {"containers": [{"name": "a"}, {"name": "b"}]}
    obj = named(spec=spec, status={"phase": "Pending", "containerStatuses": [{"ready": True}, waiting]})
    cells = shown(ROWS["pods"], obj)
    assert cells == {"Name": "x", "Ready": "1/2", "Status": "ErrImagePull", "Restarts": "2", "Age": "5m"}


def test_other_builtin_kinds() -> None:
    """Namespaces, secrets, nodes and events."""
    assert shown(ROWS["namespaces"], named(status={"phase": "Active"}))["Status"] == "Active"
    assert shown(ROWS["secrets"], named(type="Opaque", data={"a": "b"}))["Data"] == 1
    node = named(spec={"unschedulable": True}, status={"conditions": [{"type": "Ready", "status": "True"}]})
    assert shown(ROWS["nodes"], node)["Status"] == "Ready,SchedulingDisabled"
    event = named(involvedObject={"kind": "Pod", "name": "p"}, reason="R", message="m\n", lastTimestamp=stamp(hours=4))
    assert shown(ROWS["events"], event) == {
        "Last Seen": "4h",
        "Type": "",
        "Reason": "R",
        "Object": "pod/p",
        "Message": "m",
    }


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.b", [1]),
        ("{.a.b}", [1]),
        ('.list[?(@.type=="Y")].status', ["True"]),
        ("['list'][?(@.type=='X')].status", ["False"]),
        (".list[*].type", ["X", "Y"]),
        (".list[0].type", ["X"]),
        (".list[-1:].type", ["Y"]),
        (".list[9].type", []),
        (r".labels.kueue\.x-k8s\.io/name", ["n"]),
        (".a.missing", []),
        (".list[", []),
    ],
)
def test_json_paths(path: str, found: list[Any]) -> None:
    """The forms that printer columns of real CRDs use."""
    conditions = [{"type": "X", "status": "False"}, {"type": "Y", "status": "True"}]
    assert find({"a": {"b": 1}, "list": conditions, "labels": {"kueue.x-k8s.io/name": "n"}}, path) == found


def test_custom_columns_are_shown_by_their_type() -> None:
    """Dates as ages, and nothing where the value is missing or does not fit."""
    columns = [
        {"name": "When", "type": "date", "jsonPath": ".status.at"},
        {"name": "Text", "type": "string", "jsonPath": ".spec.n"},
        {"name": "Count", "type": "integer", "jsonPath": ".spec.n"},
        {"name": "Odd", "type": "integer", "jsonPath": ".status.at"},
        {"name": "Gone", "type": "string", "jsonPath": ".spec.gone"},
    ]
    custom = CustomKind("things.g", {}, "v1", columns)
    row = ResourceType(group="g", plural="things", kind="Thing", custom=custom)
    obj = named(spec={"n": 3}, status={"at": stamp(minutes=5)})
    assert shown(row, obj) == {"Name": "x", "When": "5m", "Text": "3", "Count": 3, "Odd": None, "Gone": None}
