"""
The schemas of builtin kinds with their descriptions, for `kubectl explain`; read when they are first asked for.

`tests/conformance/openapi_documents.py` writes the file. What the server itself goes by is in `builtin_schemas`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import encode, packaged

_REFERENCE = re.compile(rb'"#/components/schemas/([^"]+)"')


@cache
def _document() -> Json:
    document: Json = packaged(__package__, "builtin_openapi.json.gz")
    return document


def schema_name(group: str, version: str, kind: str) -> str:
    """What the schema of a builtin kind is called; empty: there is none of it."""
    name: str = _document()["roots"].get(f"{group}/{version}/{kind}", "")
    return name


def schemas(names: Iterable[str]) -> Json:
    """The schemas of these names and all that they refer to."""
    result: Json = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in result:
            result[name] = _document()["schemas"][name]
            waiting += _references(name)
    return result


@cache
def _references(name: str) -> tuple[str, ...]:
    """The names that a schema refers to."""
    return tuple(match.decode() for match in _REFERENCE.findall(encode(_document()["schemas"][name])))
