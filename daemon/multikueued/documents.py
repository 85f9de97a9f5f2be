"""Reads YAML that people write. An error is one message that names the place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from multikueue.errors import SettingsError

MAX_DEPTH: Final = 100
"""Levels of nesting. Real files have ten; a thousand would exhaust Python's stack."""


def fault(problem: str, mark: yaml.Mark) -> yaml.constructor.ConstructorError:
    """A YAML error about one place."""
    return yaml.constructor.ConstructorError(None, None, problem, mark)


class Loader(yaml.SafeLoader):
    """Raises a YAML error with its place for every fault, also for a value that does not fit its tag."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """See `yaml.composer.Composer`."""
        if parent is not None and self.depth == MAX_DEPTH:
            raise fault(f"more than {MAX_DEPTH} levels of nesting", parent.start_mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """See `yaml.constructor.BaseConstructor`."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, AttributeError, LookupError) as error:
            kind = node.tag.rpartition(":")[2]
            problem = f'"{node.value}" is no {kind}: put it in quotes if it is a text'
            raise fault(problem, node.start_mark) from error


@contextmanager
def reading(source: str) -> Iterator[None]:
    """Turn YAML errors of a `Loader` into a `SettingsError`.

    Args:
        source: the file, for the message.

    Raises:
        SettingsError: it is not YAML.
    """
    try:
        yield
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = " ".join(str(getattr(error, "problem", error)).split())
        raise SettingsError(f"{source}: not valid YAML{where}: {problem}") from error


def read_text(path: Path) -> str:
    """The text of a file that a user names.

    Raises:
        SettingsError: it cannot be read.
    """
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SettingsError(f"cannot read {path}: {why}") from error
