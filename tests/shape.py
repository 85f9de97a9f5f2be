"""`python -m tests.shape`: how large the code is that a reader meets, how far one decision goes, and one explanation.

Code lines are lines without blanks, comments and docstrings. A decision, or an explanation, is followed while it is
made, as a debugger would: which functions of ours it enters, and in how many files they stand.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

import attrs
import click

import multikueued
from multikueued.reports.explanation import explain
from multikueued.reports.seen import Seen
from tests.core.building import copy_of, job_copy_of, snapshot, worker, workload
from tests.core.door import Snapshot, decide
from tests.reports.objects import CHECK, NOW, fleet, job, saying, stored
from tests.reports.objects import workload as placed

LIBRARY: Final = Path(__file__).parents[1] / "multikueue"
DAEMON: Final = Path(__file__).parents[1] / "daemon/multikueued"
RINGS: Final = frozenset(
    {"api_server", "dashboard", "demo", "logserver", "mirrors", "page", "queues", "remoteapi", "sandbox_command"}
)
"""Folders of the daemon that nobody needs who runs a manager: the API server with its page, the demo, the sandbox,
mirrors, quota automation."""
MOST_OF_DECISIONS: Final = 2913
"""Code lines of `core/workload`: it grows by a decision, not by the way."""
_NO_CODE: Final = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)


def code_lines(source: str) -> int:
    """How many lines of a module's source are code."""
    prose = {line for node in ast.walk(ast.parse(source)) if _is_prose(node) for line in _lines(node)}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    code = {line for token in tokens if token.type not in _NO_CODE for line in range(token.start[0], token.end[0] + 1)}
    return len(code - prose)


def _is_prose(node: ast.AST) -> bool:
    """Whether it documents something: a text that nothing is done with."""
    text = node.value if isinstance(node, ast.Expr) else None
    return isinstance(text, ast.Constant) and isinstance(text.value, str)


def _lines(node: ast.AST) -> range:
    first = int(getattr(node, "lineno", 0))
    return range(first, int(getattr(node, "end_lineno", first)) + 1)


def lines_of(*parts: str) -> int:
    """The code lines of folders and modules of the library."""
    places = (LIBRARY / part for part in parts)
    files = (file for place in places for file in (place.rglob("*.py") if place.is_dir() else (place,)))
    return sum(code_lines(file.read_text(encoding="utf-8")) for file in files)


@attrs.frozen
class Walk:
    """Which functions something enters."""

    functions: frozenset[tuple[str, str]]
    """Files of the library and of the daemon, and the names of functions in them."""

    @property
    def files(self) -> frozenset[str]:
        """Where they stand."""
        return frozenset(file for file, _ in self.functions)


def walk(action: Callable[[], object]) -> Walk:
    """Follow an action through our code; what is made of attrs' and Python's own counts for nothing."""
    entered: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        file, name = frame.f_code.co_filename, frame.f_code.co_qualname
        root = next((folder for folder in (LIBRARY, DAEMON) if file.startswith(f"{folder}/")), None)
        if event == "call" and root is not None and "<" not in name:
            entered.add((file.removeprefix(f"{root}/"), name))

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return Walk(frozenset(entered))


def seen() -> dict[str, Snapshot]:
    """What is seen when decisions are made that each job needs, by what is decided."""
    waits, runs = workload(), workload(cluster="w1", check="Ready")
    offered = workload(nominated=("w1", "w2"))
    asked = (worker("w1", copy_of(offered, admitted=True)), worker("w2", copy_of(offered)))
    goes_on = worker("w1", copy_of(runs, admitted=True, owned=True), job_copy_of(runs, status={"active": 1}))
    return {
        "it is offered to two workers": snapshot(waits, worker("w1"), worker("w2")),
        "the first that has admitted it is recorded": snapshot(offered, *asked),
        "its status is synced": snapshot(runs, goes_on),
    }


def explanations() -> dict[str, Seen]:
    """What `explain` is asked about most, by what it tells."""
    train = stored(job("train"))
    offered = placed(train, nominated=("worker1", "worker2"))
    refused = "insufficient quota for cpu in flavor default-flavor (3 > 1)"
    waits = saying(offered, f"Offered to worker1, worker2 — worker1: {refused} · worker2: {refused}")
    runs = placed(train, cluster="worker1", checks={CHECK: "Ready"})
    return {
        "explain: two workers refuse it": Seen(waits, train, fleet(waits), (), NOW),
        "explain: it runs": Seen(runs, train, fleet(runs), (), NOW),
    }


@click.command()
def main() -> None:
    """Print the sizes."""
    if Path(multikueued.__file__).parent != DAEMON:
        raise click.UsageError(f"the daemon of another checkout is imported: name {DAEMON.parent} in PYTHONPATH")
    parts = {
        "core/workload": ("core/workload",),
        "core/dispatchers/scored": ("core/dispatchers/scored",),
        "core": ("core",),
        "adapters": ("adapters",),
        "kube": ("kube",),
        "runtime": ("runtime",),
        "all but the sandbox": tuple(place.name for place in LIBRARY.iterdir() if _is_ours(place)),
    }
    for name, places in parts.items():
        click.echo(f"{lines_of(*places):7,} code lines: {name}")
    own = tuple(str(place) for place in DAEMON.iterdir() if place.name not in RINGS and _is_code(place))
    click.echo(f"{lines_of(*own):7,} code lines: the daemon without rings")
    for name, snapshot_of in seen().items():
        made = walk(partial(decide, snapshot_of))
        click.echo(f"{len(made.functions):7,} functions in {len(made.files)} files: {name}")
    for name, asked in explanations().items():
        made = walk(partial(explain, asked))
        click.echo(f"{len(made.functions):7,} functions in {len(made.files)} files: {name}")


def _is_code(place: Path) -> bool:
    return place.is_dir() or place.suffix == ".py"


def _is_ours(place: Path) -> bool:
    """Whether it is code of the library, and not what stands in for clusters in tests and in the demo."""
    return place.suffix == ".py" or (place.is_dir() and place.name not in ("__pycache__", "sandbox", "testing"))


if __name__ == "__main__":
    main()
