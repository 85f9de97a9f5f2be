"""The tables of the settings page, made of the settings: `python -m tests.docs.settings_table` writes them."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import attrs

from multikueued.settings.config import Settings
from multikueued.settings.value_types import ByteSize
from multikueued.settings.values import camel
from tests.docs.marked import replaced

PAGE: Final = Path(__file__).parents[2] / "docs" / "settings.md"
_CODE: Final = re.compile(r"[;:,]? ?(?:[Ss]ee|see also) `multikueued?\.[\w.]+`")
_UNITS: Final = ((timedelta(hours=1), "h"), (timedelta(minutes=1), "m"), (timedelta(seconds=1), "s"))


@attrs.frozen
class Setting:
    """A row."""

    path: tuple[str, ...]
    """As in YAML: `("webhook", "port")`."""
    default: Any
    """As YAML reads it; None: there is none."""
    text: str

    @property
    def row(self) -> str:
        """As Markdown."""
        default = "" if self.default is None else f"`{shown(self.default)}`"
        return f"| `{'.'.join(self.path)}` | {default} | {self.text} |"


def settings(owner: type = Settings, path: tuple[str, ...] = ()) -> Iterator[Setting]:
    """All settings of a class, those of its sections behind its own."""
    texts, hints = documented(owner), get_type_hints(owner, include_extras=True)
    fields: tuple[Any, ...] = attrs.fields(owner)
    sections = []
    for field in fields:
        kind, here = hints[field.name], (*path, camel(field.name))
        inner = section(kind)
        if inner is not None:
            sections.append((inner, here))
        else:
            yield Setting(here, written(getattr(owner(), field.name), kind), cell(texts[field.name]) + choices(kind))
    for inner, here in sections:
        yield from settings(inner, here)


def section(kind: Any) -> type | None:
    """The class of a section, also of one that may be left out."""
    options = get_args(kind) or (kind,)
    classes = [option for option in options if isinstance(option, type) and attrs.has(option)]
    return classes[0] if classes and get_origin(kind) is not tuple else None


def choices(kind: Any) -> str:
    """The values that a setting may have, if there are few."""
    values = get_args(kind) if get_origin(kind) is Literal else ()
    return f" One of {', '.join(f'`{value}`' for value in values)}." if values else ""


def written(value: Any, kind: Any) -> Any:
    """A value as YAML has it."""
    if isinstance(value, timedelta):
        unit, letter = next(((unit, letter) for unit, letter in _UNITS if value and not value % unit), _UNITS[-1])
        return f"{value // unit}{letter}"
    if kind is ByteSize:
        return f"{value // 2**20}Mi"
    return list(value) if isinstance(value, tuple) else value


def shown(value: Any) -> str:
    """A value as somebody would write it."""
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value) if value != "" else '""'


def documented(owner: type) -> dict[str, str]:
    """The text below each field of a class; empty if there is none."""
    body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    assert isinstance(body, ast.ClassDef), owner
    texts: dict[str, str] = {}
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            texts[node.target.id] = ""
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and texts:
            texts[list(texts)[-1]] = str(node.value.value)
    return texts


def cell(text: str) -> str:
    """A text as a cell, without what is for readers of the code."""
    plain = _CODE.sub("", " ".join(text.split())).replace("|", "\\|")
    return plain.replace("see docs/operating.md", "see [operating](operating.md#beside-a-kueue-you-have)")


def tables() -> str:
    """All settings, a table for each section."""
    parts: dict[str, list[str]] = {}
    for setting in settings():
        parts.setdefault(".".join(setting.path[:-1]), []).append(setting.row)
    head = "| setting | default | what it does |\n|---|---|---|"
    titles = {name: f"## {name}" if name else "## At the top" for name in parts}
    return "\n\n".join(f"{titles[name]}\n\n{head}\n" + "\n".join(rows) for name, rows in parts.items())


def defaults() -> dict[str, Any]:
    """All defaults as one document."""
    made: dict[str, Any] = {}
    for setting in settings():
        if setting.default is None:
            continue
        inner = made
        for name in setting.path[:-1]:
            inner = inner.setdefault(name, {})
        inner[setting.path[-1]] = setting.default
    return made


if __name__ == "__main__":
    PAGE.write_text(replaced(PAGE.read_text(), "tests/docs/settings_table.py", tables()))
