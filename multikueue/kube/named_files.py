"""Files that somebody names, in a kubeconfig or on a command line: their contents, bounded."""

from __future__ import annotations

import errno
from pathlib import Path

from multikueue.kube.kubernetes_yaml import MAX_SIZE


def named_bytes(path: Path) -> bytes:
    """The content of a file.

    Raises:
        OSError: it cannot be read, or is larger than `MAX_SIZE`.
    """
    with path.open("rb") as file:
        content = file.read(MAX_SIZE + 1)
    if len(content) > MAX_SIZE:
        raise OSError(errno.EFBIG, f"it is larger than {MAX_SIZE} bytes", str(path))
    return content


def named_text(path: Path) -> str:
    """The text of a file.

    Raises:
        OSError: see `named_bytes`.
        UnicodeDecodeError: it is no text.
    """
    return named_bytes(path).decode()
