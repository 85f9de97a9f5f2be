"""What its options take, and that the chart takes no more: Helm refuses a value before a pod fails on it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import click
import pytest

from multikueue.core.model.names import Json
from multikueued.api_server.command import api_server

CHART: Final = Path(__file__).parents[2] / "charts" / "multikueued"
SCHEMA: Final[Json] = json.loads((CHART / "values.schema.json").read_text())
SERVER: Final[Json] = SCHEMA["definitions"]["apiServer"]["properties"]
OPTIONS: Final = {option.opts[0]: option for option in api_server.params}
SIZE, TIME, HOST = "--max-bytes", "--max-time", "--page-host"
VALUES: Final[dict[str, Json]] = {
    SIZE: SERVER["maxBytes"],
    TIME: SERVER["maxTime"],
    HOST: SCHEMA["properties"]["page"]["properties"]["hosts"]["items"],
}
"""The schemas of what the chart gives them."""


@pytest.mark.parametrize(
    ("option", "text"),
    [
        *((SIZE, text) for text in ("1", "512k", "256Mi", "1G", "1Ti")),
        *((TIME, text) for text in ("30s", "1h30m", "1h0m", "0h1m")),
        *((HOST, text) for text in ("multikueue.example.com", "LOCALHOST", "a_b", "10.0.0.7", "fd00::7")),
    ],
)
def test_what_is_right_is_taken_by_both(option: str, text: str) -> None:
    assert re.search(VALUES[option]["pattern"], text)
    OPTIONS[option].type.convert(text, None, None)


@pytest.mark.parametrize(
    ("option", "text"),
    [
        *((SIZE, text) for text in ("0", "256K", "256MB", "-1", "")),
        *((TIME, text) for text in ("0s", "0h0m", "1", "1d", "-1h", "")),
        *((HOST, text) for text in ("https://a.example.com", "a.example.com:8444", "*.example.com", "a/b", "a b")),
    ],
)
def test_what_cannot_be_right_is_refused_by_both(option: str, text: str) -> None:
    """As each answer would end at once, or no browser would ever say such a host."""
    assert not re.search(VALUES[option]["pattern"], text)
    with pytest.raises(click.BadParameter):
        OPTIONS[option].type.convert(text, None, None)
