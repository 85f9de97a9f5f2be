"""What a run's result file says."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.controlplane.binaries import KUBERNETES
from tests.operators import results
from tests.operators.results import Done, Results, Walk
from tests.operators.table import KUBERAY

_NOW = datetime(2026, 1, 2, tzinfo=UTC)


def test_each_way_is_told_with_the_controller_that_ran_it() -> None:
    """A kind that comes with Kubernetes was run by what runs it there."""
    walks = [
        Walk("rayjob", "finishes", 3.04),
        Walk("rayjob", "fails", 2.0, "AssertionError: a"),
        Walk("job", "under load", 90.0, details={"jobs": 300}),
    ]
    results = Results(walks=walks, tests=[Done("a", "passed", 9.6), Done("b", "failed", 1.0)]).written(_NOW, {})
    assert results["date"] == "2026-01-02"
    assert results["passed"] == 1
    assert [test["name"] for test in results["not_passed"]] == ["b"]
    assert results["controllers"] == [
        {
            "name": "kuberay",
            "module": KUBERAY.module,
            "version": KUBERAY.version,
            "kinds": {"rayjob": {"finishes": 3.0, "fails": {"seconds": 2.0, "error": "AssertionError: a"}}},
        },
        {
            "name": "kube-controller-manager",
            "module": "k8s.io/kubernetes",
            "version": KUBERNETES,
            "kinds": {"job": {"under load": {"jobs": 300, "seconds": 90.0}}},
        },
    ]


def test_the_machine_and_the_commit_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no git repository, that is told too."""
    assert results.machine()["cores"]
    monkeypatch.setattr(results, "ROOT", tmp_path)
    assert results.commit() == "unknown"
    Results().write(tmp_path / "new" / "file.json")
    assert '"passed": 0' in (tmp_path / "new" / "file.json").read_text()
