"""What API servers ask a kubelet, and what the worker's API server is asked for it: a row for each."""

from __future__ import annotations

import pytest

from multikueue.core.model.names import ObjectKey
from multikueued.mirrors.endpoint.heads import request_head
from multikueued.mirrors.endpoint.routes import Asked, asked_in
from multikueued.serving.refusal import RefusedError

THERE = ObjectKey("team-on-w1", "train-x")
POD = "/api/v1/namespaces/team-on-w1/pods/train-x"


def asked(line: str, *headers: str) -> Asked:
    return asked_in(request_head("\r\n".join([f"{line} HTTP/1.1", *headers, "", ""]).encode()))


@pytest.mark.parametrize(
    ("line", "there"),
    [
        ("GET /containerLogs/team/train-x/main", f"{POD}/log?container=main"),
        (
            "GET /containerLogs/team/train-x/main?follow=true&tailLines=2&sinceSeconds=3"
            "&sinceTime=2026-11-28T10%3A00%3A00Z&timestamps=true&previous=true&limitBytes=10&stream=All",
            f"{POD}/log?container=main&follow=true&tailLines=2&sinceSeconds=3&sinceTime=2026-11-28T10%3A00%3A00Z"
            "&timestamps=true&previous=true&limitBytes=10&stream=All",
        ),
        (
            "GET /containerLogs/team/train-x/main?insecureSkipTLSVerifyBackend=true&container=other&pretty=1",
            f"{POD}/log?container=main",
        ),
        (
            "POST /exec/team/train-x/main?command=sh&command=-c&command=a%26b+c&input=1&output=1&error=0&tty=",
            f"{POD}/exec?container=main&command=sh&command=-c&command=a%26b+c&stdin=true&stdout=true&stderr=false&tty=false",
        ),
        (
            "GET /exec/team/train-x/main?command=sh&stdout=1&output=1",
            f"{POD}/exec?container=main&command=sh&stdout=true",
        ),
        ("POST /attach/team/train-x/main?command=sh&output=1", f"{POD}/attach?container=main&stdout=true"),
        ("POST /portForward/team/train-x", f"{POD}/portforward"),
        ("GET /portForward/team/train-x?port=80&port=8080&ports=1", f"{POD}/portforward?ports=80&ports=8080"),
    ],
)
def test_requests_are_mapped(line: str, there: str) -> None:
    request = asked(line, "Upgrade: SPDY/3.1")
    assert request.mirror == ObjectKey("team", "train-x")
    assert request.path_on_worker(THERE) == there


def test_to_enter_takes_create_whatever_the_method() -> None:
    for line, verb in (
        ("GET /containerLogs/a/b/c", "get"),
        ("GET /exec/a/b/c", "create"),
        ("POST /attach/a/b/c", "create"),
        ("GET /portForward/a/b", "create"),
    ):
        assert asked(line, "Upgrade: websocket").route.verb == verb


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("GET /", 404),
        ("GET /run/a/b/c", 404),
        ("GET /pods", 404),
        ("GET /runningpods/", 404),
        ("GET /stats/summary", 404),
        ("GET /metrics", 404),
        ("GET /configz", 404),
        ("GET /logs/", 404),
        ("POST /checkpoint/a/b/c", 404),
        ("GET /containerLogs/a/b", 404),
        ("GET /containerLogs/a/b/c/", 404),
        ("GET /containerLogs/a/b/c/d", 404),
        ("GET //containerLogs/a/b/c", 404),
        ("POST /exec/a/b/uid/c", 404),
        ("POST /containerLogs/a/b/c", 405),
        ("PUT /exec/a/b/c", 405),
        ("GET /containerLogs/a/../c", 400),
        ("GET /containerLogs/a/%2e%2e/c", 400),
        ("GET /containerLogs/a/b%2Fc/c", 400),
        ("GET /containerLogs/A/b/c", 400),
        ("GET /containerLogs/a/b/c%0d%0a", 400),
        (f"GET /containerLogs/a/{'b' * 254}/c", 400),
        (f"GET /containerLogs/{'a' * 64}/b/c", 400),
        ("GET /containerLogs/a/b/c?" + "&".join(["x=1"] * 1_025), 400),
        ("GET /containerLogs/a/b/c?follow=%ff", 400),
    ],
)
def test_all_else_is_refused(line: str, code: int) -> None:
    with pytest.raises(RefusedError) as refused:
        asked(line, "Upgrade: SPDY/3.1")
    assert refused.value.code == code


def test_nobody_enters_without_an_upgrade() -> None:
    with pytest.raises(RefusedError) as refused:
        asked("POST /exec/a/b/c", "Upgrade: h2c")
    assert refused.value.code == 400
