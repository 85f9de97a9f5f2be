"""What is shown of the status of a worker's pod, whatever its API server says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.model.names import Json
from multikueue.core.model.outside_text import has_hidden
from multikueued.mirrors.status import LONGEST, MANY, SHOWN, shown_status
from tests.mirrors.objects import shown, worker_pod

LISTS = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
ENDED: Json = {
    "exitCode": 137,
    "signal": 9,
    "reason": "OOMKilled",
    "message": '{"loss": 0.1}\n\tsaved\n',
    "startedAt": "2026-11-28T10:00:01Z",
    "finishedAt": "2026-11-28T10:00:02+01:00",
    "containerID": "containerd://1",
}
CONTAINER: Json = {
    "name": "main",
    "ready": False,
    "started": True,
    "restartCount": 2,
    "image": "registry.example.com:5000/train:1",
    "imageID": "registry.example.com:5000/train@sha256:0",
    "containerID": "containerd://2",
    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container"}},
    "lastState": {"terminated": ENDED},
    "allocatedResources": {"cpu": "4", "nvidia.com/gpu": "1"},
    "resources": {"requests": {"cpu": "4", "memory": "8Gi"}, "limits": {}},
    "allocatedResourcesStatus": [{"name": "nvidia.com/gpu", "resources": [{"resourceID": "a", "health": "Healthy"}]}],
    "stopSignal": "SIGTERM",
}


def status_of(**status: Any) -> Json:
    kept: Json = shown(worker_pod(**status))["status"]
    return kept


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(inner)


@pytest.mark.parametrize("field", LISTS)
def test_what_a_kubelet_says_of_containers_is_shown_as_it_is(field: str) -> None:
    assert status_of(**{field: [CONTAINER]})[field] == [CONTAINER]


@pytest.mark.parametrize("field", LISTS)
@pytest.mark.parametrize("state", ["waiting", "terminated"])
def test_a_message_moves_no_cursor_and_is_cut(field: str, state: str) -> None:
    """Of a debugging container, too, and of one that ended before."""
    said = {
        "name": "main",
        "lastState": {state: {"reason": "\x1b[2J", "message": "\x1b]0;mine\a\u202e" + "x" * 50_000}},
    }
    (container,) = status_of(**{field: [said]})[field]
    shown_state = container["lastState"][state]
    assert shown_state["reason"] == "�[2J"
    assert shown_state["message"].startswith("�]0;mine��xxx")
    assert (len(shown_state["message"].encode()), shown_state["message"][-4:]) == (LONGEST, " ...")


@pytest.mark.parametrize(
    ("status", "left"),
    [
        ({"example": {"a": [1]}, "podIP": "10.0.0.1"}, {}),
        ({"startTime": "yesterday"}, {}),
        ({"startTime": "2026-13-01T00:00:00Z"}, {}),
        ({"startTime": None}, {"startTime": None}),
        ({"phase": "x" * 9_000}, {"phase": "x" * 249 + " ..."}),
        (
            {"conditions": [{"type": "Ready", "status": "True", "more": [[]], "lastProbeTime": None}]},
            {"conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None}]},
        ),
        ({"conditions": [None, "Ready", {"type": 1}]}, {"conditions": [{}]}),
        ({"containerStatuses": {"main": {"ready": True}}}, {}),
        (
            {"containerStatuses": [{"name": "main", "ready": "yes", "restartCount": 1 << 62, "state": []}]},
            {"containerStatuses": [{"name": "main"}]},
        ),
        (
            {"containerStatuses": [{"restartCount": True, "state": {"running": {"startedAt": 7}, "odd": {}}}]},
            {"containerStatuses": [{"state": {"running": {}}}]},
        ),
        (
            {
                "containerStatuses": [
                    {"allocatedResources": {"cpu": "4", "gpu": "1e99999999", "x": 1, "": "", "y" * 300: "1"}}
                ]
            },
            {"containerStatuses": [{"allocatedResources": {"cpu": "4"}}]},
        ),
    ],
)
def test_what_has_another_form_is_left_out(status: Json, left: Json) -> None:
    """One field that the manager's API server refuses has it refuse all of them."""
    assert shown_status(status) == left


def test_lists_and_maps_have_a_bound() -> None:
    many: Json = {"conditions": [{"type": f"T{n}"} for n in range(5_000)]}
    many["containerStatuses"] = [{"name": "m", "allocatedResources": {f"r{n}": "1" for n in range(5_000)}}]
    kept = shown_status(many)
    assert len(kept["conditions"]) == len(kept["containerStatuses"][0]["allocatedResources"]) == MANY


def test_a_pod_is_shown_whose_messages_are_too_large() -> None:
    """It was taken for one of which nothing can be shown but its phase."""
    kept = shown(worker_pod(message="x" * 70_000))
    assert kept["spec"]["containers"]
    assert len(kept["status"]["message"]) == LONGEST


def test_what_a_pod_runs_moves_no_cursor_either() -> None:
    pod = worker_pod()
    pod["spec"]["containers"][0] |= {"image": "a\x1b[2J", "command": ["sh", "-c", "one\n\ttwo\r"], "args": None}
    pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"] = "main\x1b" + "x" * 300
    kept = shown(pod)
    assert kept["spec"]["containers"][0]["image"] == "a�[2J"
    assert kept["spec"]["containers"][0]["command"] == ["sh", "-c", "one\n\ttwo�"]
    assert not any(map(has_hidden, texts(kept)))


def _fields_of(form: Any) -> st.SearchStrategy[str]:
    found: set[str] = set()

    def look(inner: Any) -> None:
        if isinstance(inner, dict):
            found.update(inner)
            for value in inner.values():
                look(value)
        elif isinstance(inner, list):
            look(inner[0])

    look(form)
    return st.sampled_from(sorted(found))


NAMES = st.sampled_from(["main", "\x00", "€" * 2_000, "x" * 5_000, "a\nb\x1b", "2026-11-28T10:00:00Z", "4", ""])
VALUES = st.recursive(
    NAMES | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | _fields_of(SHOWN), inner, max_size=5),
    max_leaves=20,
)


@given(st.dictionaries(_fields_of(SHOWN), VALUES))
def test_whatever_a_worker_says_is_within_its_bound_and_stays_as_it_is(status: Json) -> None:
    kept = shown_status(status)
    assert kept.keys() <= SHOWN.keys()
    assert all(len(text.encode()) <= LONGEST and not has_hidden(text) for text in texts(kept))
    assert shown_status(kept) == kept
