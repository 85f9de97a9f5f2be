"""Which paths a MultiKueueCluster may name: Kueue's rules and words. Links are resolved by whoever reads the file."""

from __future__ import annotations

import posixpath
from typing import Final

KUBECONFIG_PREFIX: Final = "/etc/multikueue/kubeconfigs"
"""Kueue's: the only folder kubeconfig files are read from. A MultiKueueCluster must not make us read other files."""

_OUTSIDE: Final = "kubeconfig path is not under the allowed prefix: "


def cleaned(path: str) -> str:
    """The path without `.`, `..` and double slashes, as far as that can be told without looking at links."""
    return posixpath.normpath("/" + path.lstrip("/") if path.startswith("/") else path)


def path_problem(path: str) -> str:
    """What is wrong with a path as it is written; empty if nothing is."""
    if not path:
        return "kubeconfig path must not be empty"
    clean = cleaned(path)
    if ".." in clean.split("/"):
        return f'{_OUTSIDE}path contains ".."'
    if not clean.startswith("/"):
        return f"{_OUTSIDE}path must be absolute"
    return ""


def is_below(path: str, prefix: str) -> bool:
    """Whether a path leads below a folder, both with their links resolved."""
    return path.startswith(prefix.rstrip("/") + "/")


def outside(path: str, prefix: str) -> str:
    """What to say of a path that does not lead below the allowed folder."""
    return f'{_OUTSIDE}"{path}" is not under "{prefix}"'
