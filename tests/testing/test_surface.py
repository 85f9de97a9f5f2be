"""What `multikueue.testing` offers, and who imports it."""

from __future__ import annotations

import inspect
import subprocess
import sys

import multikueue.testing
from tests.test_public_api import ruffs_order


def test_all_is_exact_and_sorted() -> None:
    public = {
        name
        for name, value in vars(multikueue.testing).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name != "annotations"
    }

    assert set(multikueue.testing.__all__) == public
    assert multikueue.testing.__all__ == sorted(multikueue.testing.__all__, key=ruffs_order)


def test_the_library_and_the_daemon_do_without_it() -> None:
    """Import-linter holds the library to it; the daemon's start must not pay for it either."""
    program = (
        "import sys, multikueue.runtime.manager, multikueued.run.command; print('multikueue.testing' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=20)

    assert result.stdout.strip() == "False"
