"""Bytes and objects: one JSON codec for the whole server, and YAML for bodies that people write."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

import orjson
import yaml

from multikueue.core.model.names import Json
from multikueue.kube.kubernetes_yaml import KubernetesLoader


def encode(value: Any) -> bytes:
    """JSON without spaces."""
    return orjson.dumps(value)


_ESCAPED = {b"<": rb"\u003c", b">": rb"\u003e", b"&": rb"\u0026"}


def encode_answer(value: Any) -> bytes:
    """JSON as Go writes it: three characters that mean something in HTML take six bytes each."""
    raw = orjson.dumps(value)
    for plain, escaped in _ESCAPED.items():  # in JSON they stand in texts only
        raw = raw.replace(plain, escaped)
    return raw


def decode(raw: bytes) -> Any:
    """Read JSON.

    Raises:
        ValueError: it is not JSON.
    """
    return orjson.loads(raw)


class _Fields(list[tuple[str, Any]]):
    """Of a JSON object, as often as each stands there."""


def repeated_fields(raw: bytes) -> list[str]:
    """The paths of fields that stand twice in a JSON object: the last one counts. Nothing where it is not JSON."""
    try:
        return list(dict.fromkeys(_repeated(json.loads(raw, object_pairs_hook=_Fields), "")))
    except (ValueError, RecursionError):
        return []


def _repeated(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Fields):
        seen = set[str]()
        for name, item in value:
            if name in seen:
                yield f"{path}.{name}".lstrip(".")
            seen.add(name)
            yield from _repeated(item, f"{path}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _repeated(item, f"{path}[{index}]")


def clone(obj: Json) -> Json:
    """A deep copy of a JSON object."""
    copied: Json = orjson.loads(orjson.dumps(obj))
    return copied


class _BodyLoader(KubernetesLoader):
    aliases = False
    max_values = max_characters = 3 << 20


def decode_yaml(raw: bytes) -> Any:
    """Read one YAML document that a client sends.

    Raises:
        ValueError: it is not YAML.
    """
    try:
        return yaml.load(raw, Loader=_BodyLoader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def packaged(package: str, name: str) -> Any:
    """What a file of ours says: JSON, packed or not, or YAML."""
    raw = resources.files(package).joinpath(name).read_bytes()
    if name.endswith(".yaml"):
        return yaml.load(raw, KubernetesLoader)
    return decode(gzip.decompress(raw) if name.endswith(".gz") else raw)
