"""Heads of requests and answers, as bytes, and what of them is passed on. Pure.

Who asks is an API server, but what it passes on is a user's. So a head is refused unless it is exactly what HTTP/1.1
allows, and of its headers only those of `PASSED` go on, written anew: never credentials, never `Impersonate-*`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final, TypeAlias

import attrs
import orjson

from multikueued.serving.refusal import RefusedError

MAX_HEAD: Final = 64 << 10
"""Bytes of a head: a command with its arguments is in the path of its request."""
END: Final = b"\r\n\r\n"
UPGRADES: Final = ("spdy/3.1", "websocket")
"""What a connection may become, in lower case."""
PASSED: Final = ("accept", "user-agent", "x-stream-protocol-version")
ANSWERED: Final = ("content-type", "content-length", "transfer-encoding", "x-stream-protocol-version")
"""Of a worker's answer."""
WEBSOCKET: Final = "sec-websocket-"
BEARER: Final = "base64url.bearer.authorization.k8s.io."
"""What the name of a WebSocket's protocol begins with that is a token: API servers take it in place of a header."""

Headers: TypeAlias = tuple[tuple[str, str], ...]
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*").fullmatch
_TARGET: Final = re.compile(r"/[\x21-\x7e]*").fullmatch
_REQUEST: Final = re.compile(r"([A-Z]{3,10}) (\S+) HTTP/1\.1").fullmatch
_ANSWER: Final = re.compile(r"HTTP/1\.[01] ([1-5]\d\d)(?: .*)?").fullmatch


@attrs.frozen
class Head:
    """The headers of a message, with its first line."""

    headers: Headers
    """Names in lower case, in order."""

    def all(self, name: str) -> list[str]:
        """The values of a header; its name in lower case."""
        return [value for known, value in self.headers if known == name]

    def first(self, name: str) -> str:
        """The first value of a header; empty: there is none."""
        return next(iter(self.all(name)), "")

    @property
    def upgrade(self) -> str:
        """What the connection shall become, or becomes, as it is written; empty: nothing that we know."""
        wanted = self.first("upgrade")
        return wanted if wanted.lower() in UPGRADES else ""


@attrs.frozen
class RequestHead(Head):
    """What is asked for."""

    method: str
    path: str
    """As it came: nothing of it is decoded."""
    query: str


@attrs.frozen
class AnswerHead(Head):
    """What a worker answers."""

    code: int


def request_head(raw: bytes) -> RequestHead:
    """Read the head of a request, with the empty line that ends it.

    Raises:
        RefusedError: it is none.
    """
    first, headers = _lines(raw)
    request_line = _REQUEST(first)
    if request_line is None or _TARGET(request_line[2]) is None:
        raise RefusedError(400, "this is no request of HTTP/1.1")
    path, _, query = request_line[2].partition("?")
    return RequestHead(headers, request_line[1], path, query)


def answer_head(raw: bytes) -> AnswerHead:
    """Read the head of an answer, with the empty line that ends it.

    Raises:
        RefusedError: it is none.
    """
    first, headers = _lines(raw)
    status_line = _ANSWER(first)
    if status_line is None:
        raise RefusedError(502, "the worker's answer is no HTTP")
    return AnswerHead(headers, int(status_line[1]))


def _lines(raw: bytes) -> tuple[str, Headers]:
    first, *lines = raw.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    headers = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or _TOKEN(name) is None or _VALUE(value) is None:  # a line that is continued, too
            raise RefusedError(400, "a header of this request cannot be read")
        headers.append((name.lower(), value.strip(" \t")))
    return first, tuple(headers)


def passed_on(head: RequestHead, *, upgrade: bool) -> Headers:
    """Of a request: what the worker gets. A body never follows.

    Args:
        head: the request's.
        upgrade: whether its connection may become another one.
    """
    kept = [(name, value) for name, value in head.headers if name in PASSED]
    if not (upgrade and head.upgrade):
        return (*kept, ("connection", "close"))
    kept += [(name, said) for name, value in head.headers if name.startswith(WEBSOCKET) and (said := _tokenless(value))]
    return (*kept, ("connection", "Upgrade"), ("upgrade", head.upgrade))


def _tokenless(value: str) -> str:
    """Of a WebSocket's header all but tokens."""
    return ",".join(word for word in value.split(",") if not word.strip(" \t").lower().startswith(BEARER)).strip(" \t")


def passed_back(head: AnswerHead) -> Headers:
    """Of an answer: what the API server gets."""
    kept = [(name, value) for name, value in head.headers if name in ANSWERED or name.startswith(WEBSOCKET)]
    if head.code != HTTPStatus.SWITCHING_PROTOCOLS:
        return (*kept, ("connection", "close"))
    return (*kept, ("connection", "Upgrade"), ("upgrade", head.upgrade))


def written(first: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """A head as bytes."""
    return "\r\n".join([first, *(f"{name.title()}: {value}" for name, value in headers), "", ""]).encode("latin-1")


def answer(code: int, headers: Iterable[tuple[str, str]] = (), body: bytes = b"") -> bytes:
    """A whole answer, or the head of one that goes on."""
    return written(f"HTTP/1.1 {code} {HTTPStatus(code).phrase}", headers) + body


def text(code: int, words: str) -> bytes:
    """An answer in plain text, as kubelets refuse: clients show it as it is."""
    return _last_answer(code, "text/plain; charset=utf-8", words.encode(errors="replace"))


def status(code: int, words: str) -> bytes:
    """A refusal as API servers refuse, where the connection was to become another one: what clients and API servers up
    to 1.35 get then, they take for YAML, and a text with a colon for a refusal without words."""
    said = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": words.strip(), "code": code}
    return _last_answer(code, "application/json", orjson.dumps(said))


def _last_answer(code: int, content_type: str, body: bytes) -> bytes:
    """An answer behind which the connection ends."""
    headers = {
        "content-type": content_type,
        "x-content-type-options": "nosniff",
        "content-length": str(len(body)),
        "connection": "close",
    }
    return answer(code, headers.items(), body)
