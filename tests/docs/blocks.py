"""The code that pages show. As a program, it has mypy check it: `python -m tests.docs.blocks`, in `nox -s types`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ROOT: Final = Path(__file__).parents[2]
GUIDES: Final = sorted((ROOT / "docs" / "guides").glob("*.md"))
ADAPTERS: Final = ROOT / "docs" / "adapters.md"


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def program(page: Path) -> str:
    """The Python of a page from top to bottom: a block builds on those before it."""
    return "\n".join(blocks(page, "python"))


def main() -> int:
    """Have mypy check each page as a file, as strictly as our own code."""
    with TemporaryDirectory() as folder:
        for page in (*GUIDES, ADAPTERS):
            (Path(folder) / f"page_{page.stem.replace('-', '_')}.py").write_text(program(page))
        return subprocess.run([sys.executable, "-m", "mypy", "--strict", folder], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
