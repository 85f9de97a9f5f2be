"""What of a head is read, and what of it goes on."""

from __future__ import annotations

import pytest

from multikueued.mirrors.endpoint.heads import (
    answer_head,
    passed_back,
    passed_on,
    request_head,
    text,
    written,
)
from multikueued.serving.refusal import RefusedError


def raw(*lines: str) -> bytes:
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def test_credentials_and_impersonation_never_go_on() -> None:
    head = request_head(
        raw(
            "POST /exec/a/b/c?command=sh HTTP/1.1",
            "Host: node",
            "Authorization: Bearer x",
            "Impersonate-User: admin",
            "Impersonate-Group: system:masters",
            "Cookie: a=b",
            "X-Forwarded-For: 10.0.0.1",
            "Content-Length: 12",
            "Transfer-Encoding: chunked",
            "User-Agent: kubectl",
            "Upgrade: SPDY/3.1",
            "Connection: Upgrade",
            "X-Stream-Protocol-Version: v5.channel.k8s.io",
            "x-stream-protocol-version: v4.channel.k8s.io",
            "Sec-WebSocket-Key: k",
        )
    )
    assert passed_on(head, upgrade=True) == (
        ("user-agent", "kubectl"),
        ("x-stream-protocol-version", "v5.channel.k8s.io"),
        ("x-stream-protocol-version", "v4.channel.k8s.io"),
        ("sec-websocket-key", "k"),
        ("connection", "Upgrade"),
        ("upgrade", "SPDY/3.1"),
    )


def test_a_token_is_no_protocol_of_a_websocket() -> None:
    """API servers take one there from browsers. One who has shown another credential keeps it in the head."""
    token = "base64url.bearer.authorization.k8s.io.dG9rZW4"
    for said, left in (
        (f"{token}, v5.channel.k8s.io", ("v5.channel.k8s.io",)),
        (f"v4.channel.k8s.io,{token} ,v5.channel.k8s.io", ("v4.channel.k8s.io,v5.channel.k8s.io",)),
        (token.upper(), ()),
        ("v4.channel.k8s.io, base64.binary.k8s.io", ("v4.channel.k8s.io, base64.binary.k8s.io",)),
    ):
        lines = ("GET /exec/a/b/c HTTP/1.1", "Upgrade: websocket", f"Sec-WebSocket-Protocol: {said}")
        sent = passed_on(request_head(raw(*lines)), upgrade=True)
        assert tuple(value for name, value in sent if name == "sec-websocket-protocol") == left


def test_a_connection_becomes_nothing_but_what_containers_are_entered_by() -> None:
    for name, upgrades in (("h2c", False), ("websocket", True), ("WebSocket", True), ("spdy/3.1", True), ("", False)):
        head = request_head(raw("GET /exec/a/b/c HTTP/1.1", f"Upgrade: {name}"))
        assert (("upgrade", name) in passed_on(head, upgrade=True)) is upgrades
        assert ("upgrade", name) not in passed_on(head, upgrade=False)


@pytest.mark.parametrize(
    "lines",
    [
        ["GET /a HTTP/1.0"],
        ["GET /a HTTP/2.0"],
        ["GET  /a HTTP/1.1"],
        ["get /a HTTP/1.1"],
        ["GET https://node/a HTTP/1.1"],
        ["GET /a b HTTP/1.1"],
        ["GET /a HTTP/1.1", "no colon"],
        ["GET /a HTTP/1.1", "User-Agent: a", " Authorization: Bearer continued"],
        ["GET /a HTTP/1.1", "User-Agent : a"],
        ["GET /a HTTP/1.1", "User-Agent: a\nAuthorization: Bearer x"],
        ["GET /a HTTP/1.1", "User-Agent: a\rAuthorization: Bearer x"],
        ["GET /a HTTP/1.1", "User-Agent: a\0b"],
        [""],
    ],
)
def test_what_is_not_exactly_a_head_is_refused(lines: list[str]) -> None:
    with pytest.raises(RefusedError) as refused:
        request_head(raw(*lines))
    assert refused.value.code == 400


def test_of_an_answer_only_what_describes_its_bytes_goes_back() -> None:
    head = answer_head(raw("HTTP/1.1 200 OK", "Content-Type: text/plain", "Transfer-Encoding: chunked", "Audit-Id: a"))
    assert head.code == 200
    assert passed_back(head) == (
        ("content-type", "text/plain"),
        ("transfer-encoding", "chunked"),
        ("connection", "close"),
    )
    with pytest.raises(RefusedError):
        answer_head(raw("HELLO"))


def test_heads_are_written_anew() -> None:
    assert written("GET / HTTP/1.1", [("user-agent", "k")]) == b"GET / HTTP/1.1\r\nUser-Agent: k\r\n\r\n"
    assert text(400, "no\n").startswith(b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain")
