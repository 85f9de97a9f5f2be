"""The page about the sandbox, and the README's example of it: the code runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from multikueue.sandbox.kinds import SandboxKind
from tests.examples import shared

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sandbox.md").read_text()
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README + PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("number", shared(range(len(BLOCKS))))
def test_the_code_runs(tmp_path: Path, number: int) -> None:
    """As somebody would try it: pasted into a file, in an empty folder, with the library installed."""
    script = tmp_path / "sandbox.py"
    script.write_text(BLOCKS[number])
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'daemon'}", "PATH": ""}
    command = [sys.executable, "-W", "error", str(script)]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=28, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout


def test_the_fields_it_names_exist() -> None:
    """The table is what people write rows from."""
    for row in re.findall(r"^\| (`[a-z_`, or]+`) \|", PAGE, re.MULTILINE):
        for field in re.findall(r"`([a-z_]+)`", row):
            assert hasattr(SandboxKind, field)
