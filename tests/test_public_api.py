"""The public surface: what `import multikueue` gives, and what it does not drag in."""

from __future__ import annotations

import importlib.metadata
import inspect
import subprocess
import sys

import pytest

import multikueue
from multikueue import errors, protocols


def test_all_is_sorted_and_complete() -> None:
    """A name somebody may rely on is in `__all__`; everything else may change."""
    public = {
        name
        for name, value in vars(multikueue).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name != "annotations"
    }

    assert set(multikueue.__all__) == public
    assert multikueue.__all__ == sorted(multikueue.__all__, key=_ruffs_order)


def test_every_error_and_every_seam_is_public() -> None:
    raised = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    seams = {name for name, value in vars(protocols).items() if getattr(value, "_is_protocol", False)} - {"Protocol"}

    assert raised | seams <= set(multikueue.__all__)


def test_the_version_is_the_installed_one() -> None:
    assert multikueue.__version__ == importlib.metadata.version("multikueue")


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = multikueue.nonsense


@pytest.mark.parametrize(
    ("imported", "unwanted"),
    [
        ("multikueue", ("multikueue.sandbox", "multikueue.runtime", "multikueued", "kubernetes_asyncio", "aiohttp")),
        ("multikueue.adapters", ("cel", "jsonpatch")),
        ("multikueue.runtime.manager", ("multikueue.sandbox", "multikueued", "kubernetes_asyncio")),
        ("multikueued.cli", ("multikueue.kube", "multikueue.runtime", "aiohttp", "anyio")),
        ("multikueued.running", ("multikueue.sandbox", "multikueued.demo", "kubernetes_asyncio", "cryptography")),
    ],
)
def test_an_import_brings_only_what_it_needs(imported: str, unwanted: tuple[str, ...]) -> None:
    """The sandbox is for tests and the demo; kubernetes-asyncio costs 0.3 s and 65 MiB, CEL 0.3 s."""
    program = f"import sys, {imported}; print(*(name for name in {unwanted!r} if name in sys.modules))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=20)

    assert result.stdout.strip() == ""


def _ruffs_order(name: str) -> tuple[int, str]:
    """Constants, then classes, each by name: what ruff's RUF022 keeps `__all__` in."""
    return (0 if name.isupper() else 1, name)
