"""Label selectors as kubectl takes them: a wrong one is refused before anything is read."""

from __future__ import annotations

import re
from typing import Final

import click

_VALUE: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?"
_KEY: Final = r"(?:[A-Za-z0-9.-]+/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?"
_SET: Final = rf"\s+(?:not)?in\s*\(\s*{_VALUE}(?:\s*,\s*{_VALUE})*\s*\)"
_REQUIREMENT: Final = rf"\s*(?:!\s*{_KEY}|{_KEY}(?:\s*(?:==?|!=)\s*{_VALUE}|{_SET})?)\s*"
_SELECTOR: Final = re.compile(rf"{_REQUIREMENT}(?:,{_REQUIREMENT})*")
MOST: Final = 1_000
"""Characters of a selector."""


def checked_selector(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    """The selector of an option.

    Raises:
        click.BadParameter: it is none.
    """
    if text and (len(text) > MOST or _SELECTOR.fullmatch(text) is None):
        known = "KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY or !KEY, with commas between them"
        raise click.BadParameter(f"{text[:MOST]!r} is no label selector: write {known}")
    return text
