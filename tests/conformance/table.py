"""
Run all checks on both backends and write what came out into `docs/testing.md`.

`python -m tests.conformance.table` needs a real control plane (tests/controlplane) and takes some two minutes.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest

from tests.conformance.fuzz.limits import LIMITS
from tests.controlplane.binaries import KUBERNETES

_HERE = Path(__file__).parent
TARGET = _HERE.parents[1] / "docs" / "testing.md"
_BEGIN, _END = "<!-- written by tests/conformance/table.py -->", "<!-- end -->"
_NAME = re.compile(r"test_(?:(?P<id>[a-z]\d+)_)?(?P<rest>\w+)(?:\[(?P<case>[\w-]+)\])?")
_GROUPS = {
    "a": "discovery",
    "b": "CustomResourceDefinitions",
    "c": "create",
    "d": "read and list",
    "e": "replace",
    "f": "patch and apply",
    "g": "delete",
    "h": "watch",
    "i": "errors, access, kinds",
    "j": "protobuf and identities",
    "k": "usual mistakes",
}


@attrs.define(eq=False)
class Results:
    """A pytest plugin: the result of every check, by check and backend."""

    words: dict[str, str] = attrs.field(factory=dict)
    rows: dict[str, dict[str, str]] = attrs.field(factory=dict)
    fuzz: str = ""

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Note what a check is about."""
        docstring = (item.obj.__doc__ or "") if isinstance(item, pytest.Function) else ""
        self.words[item.nodeid] = " ".join(docstring.split())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a check ended; a set-up that fails or skips counts too."""
        if report.when != "call" and report.passed:
            return
        match = _NAME.fullmatch(report.nodeid.rpartition("::")[2])
        if match is None:
            return
        backend, _, variant = (match["case"] or "").partition("-")
        name = (match["id"] or "").upper() or " ".join(filter(None, (match["rest"].replace("_", " "), variant)))
        row = self.rows.setdefault(name, {"what": self.words.get(report.nodeid, "")})
        row[backend or "both"] = {"passed": "pass", "failed": "FAIL"}.get(report.outcome, report.outcome)
        self.fuzz = self.fuzz or str(dict(report.user_properties).get("fuzz", ""))


def section(results: Results, now: datetime) -> str:
    """The section of the documentation."""
    from tests.conformance.fuzz.differences import KNOWN  # not before pytest has rewritten what that imports

    checks = {name: row for name, row in results.rows.items() if re.fullmatch(r"[A-Z]\d+", name)}
    others = {name: row for name, row in results.rows.items() if name not in checks}
    passed = {backend: sum(row.get(backend) == "pass" for row in checks.values()) for backend in ("real", "sandbox")}
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores shared with other work"
    head = [
        f"Measured {now:%Y-%m-%d} on {machine}, Python {platform.python_version()}, kube-apiserver {KUBERNETES}.",
        f"Of {len(checks)} checks the real server passes {passed['real']}, the sandbox {passed['sandbox']}.",
        "",
        "Fuzz: " + (results.fuzz or "not run") + ".",
        "",
        "Known differences that the fuzz meets:",
        "",
        *(f"- **{known.name}**: {known.reason}" for known in KNOWN),
        "",
        "Known differences that it does not send:",
        "",
        *(f"- **{name}**: {reason}" for name, reason in LIMITS.items()),
        "",
    ]
    return "\n".join([*head, *_table(checks), "", *_others(others)])


def _table(checks: dict[str, dict[str, str]]) -> list[str]:
    lines = ["| check | what | sandbox | real |", "|---|---|---|---|"]
    group = ""
    for name in sorted(checks, key=lambda name: (name[0], int(name[1:]))):
        if name[0] != group:
            group = name[0]
            lines.append(f"| **{group}** | **{_GROUPS[group.lower()]}** | | |")
        lines.append(_line(name, checks[name]))
    return lines


def _line(name: str, row: dict[str, str]) -> str:
    what = row["what"].rstrip(".").replace("|", "\\|")
    return f"| {name} | {what} | {row.get('sandbox', '-')} | {row.get('real', '-')} |"


def _others(others: dict[str, dict[str, str]]) -> list[str]:
    lines = ["| also | what | sandbox | real |", "|---|---|---|---|"]
    return lines + [_line(name, row) for name, row in sorted(others.items()) if "both" not in row]


def write(text: str) -> None:
    """Replace the part of the documentation between the two marks."""
    before, _, rest = TARGET.read_text().partition(_BEGIN)
    after = rest.partition(_END)[2]
    TARGET.write_text(f"{before}{_BEGIN}\n\n{text}\n\n{_END}{after}")


def main() -> None:
    """Run, write, and say with the exit code whether all passed."""
    results = Results()
    code = pytest.main([str(_HERE), "-q", "--no-header", "-m", "real or not real"], plugins=[results])
    write(section(results, datetime.now(UTC)))
    sys.exit(code)


if __name__ == "__main__":
    main()
