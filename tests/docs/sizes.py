"""The figures of the page that compares us with others: `python -m tests.docs.sizes` writes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests.core.door import TABLE

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs/design/side-by-side.md"
LIBRARY: Final = ROOT / "multikueue"
DECISION: Final = "core/workload"
OF_KUEUE: Final = 50_404
"""Characters of its `workload.go`."""
FOLDERS: Final = (
    DECISION,
    f"{DECISION}/seen",
    "core/machinery",
    "kube",
    "kube/informers",
    "runtime",
    "runtime/workers",
    "adapters",
)
"""Where the modules of the table are; the first that has one of the name counts."""

_ROW: Final = re.compile(r"^\| (?:decision|pool|informer|work queue|adapter) \| .+ \| (?P<ours>.+) \|$", re.MULTILINE)
_SIZE: Final = re.compile(r"`(\w+)` \d[\d,]*\d")
_REST: Final = re.compile(r"with \d+ more modules \d[\d,]*\d")
_TIMES: Final = re.compile(r"about [\w. ]+ times as long")


def with_sizes(page: str) -> str:
    """The page with the sizes that our modules have."""
    named: list[str] = []

    def sized(match: re.Match[str]) -> str:
        named.append(match[1])
        return f"`{match[1]}` {_size(match[1]):,}"

    for row in _ROW.finditer(page):
        page = page.replace(row["ours"], _SIZE.sub(sized, row["ours"]))
    files = sorted((LIBRARY / DECISION).rglob("*.py"))
    total = sum(len(file.read_text()) for file in files)
    more = sum(file.stem not in named for file in files)
    page = _REST.sub(f"with {more} more modules {total:,}", page)
    page = _TIMES.sub(f"about {total / OF_KUEUE:.1f} times as long", page)
    return re.sub(r"a table of \d+ rows", f"a table of {len(TABLE)} rows", page)


def _size(module: str) -> int:
    files = (LIBRARY / folder / f"{module}.py" for folder in FOLDERS)
    return len(next(file for file in files if file.exists()).read_text())


if __name__ == "__main__":
    PAGE.write_text(with_sizes(PAGE.read_text()))
