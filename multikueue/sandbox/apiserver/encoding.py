"""Bytes and objects: one JSON codec for the whole server, and YAML for bodies that people write."""

from __future__ import annotations

import gzip
from importlib import resources
from typing import Any

import orjson
import yaml

from multikueue.core.model.names import Json


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


def clone(obj: Json) -> Json:
    """A deep copy of a JSON object."""
    copied: Json = orjson.loads(orjson.dumps(obj))
    return copied


class _PlainLoader(yaml.SafeLoader):
    """YAML as Kubernetes reads it: YAML 1.1, except that timestamps stay strings."""


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def decode_yaml(raw: bytes) -> Any:
    """Read one YAML document.

    Raises:
        ValueError: it is not YAML.
    """
    try:
        return yaml.load(raw, Loader=_PlainLoader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def packaged(package: str, name: str) -> Any:
    """What a file of ours says: JSON, packed or not, or YAML."""
    raw = resources.files(package).joinpath(name).read_bytes()
    if name.endswith(".yaml"):
        return decode_yaml(raw)
    return decode(gzip.decompress(raw) if name.endswith(".gz") else raw)
