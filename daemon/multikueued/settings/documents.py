"""Reads YAML that people write. An error is one message that names the place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from multikueue.errors import SettingsError
from multikueue.kube.named_files import named_text


@contextmanager
def reading(source: str) -> Iterator[None]:
    """Turn YAML errors of a `KubernetesLoader` into a `SettingsError`.

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
        SettingsError: it cannot be read, or is too large.
    """
    try:
        return named_text(path)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SettingsError(f"cannot read {path}: {why}") from error
