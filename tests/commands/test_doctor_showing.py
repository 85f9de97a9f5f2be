"""A diagnosis as text: what a terminal has room for."""

from __future__ import annotations

import click
import pytest

from multikueued.diagnosis.findings import Diagnosis, Measured
from multikueued.doctor.cluster_reader import needed, permissions
from multikueued.doctor.command import ALIKE, diagnosis_lines
from multikueued.rbac.role_rule import merged
from multikueued.rbac.rules import ON_WORKER, kind_rules_on_worker
from multikueued.reports.remedies.remedy import Finding, Severity
from multikueued.reports.worker_facts import NotChecked
from tests.reports.doctor.healthy import JOB_KIND, RAY_KIND


def finding(number: int, severity: Severity = Severity.WARNING) -> Finding:
    where = f"worker1, LocalQueue team-{number}/{'long-' * 6}queue"
    matters = "it " * 40 + "waits"
    return Finding("worker-local-queue-missing", where, "gone", "", "make it", severity, matters=matters, side="worker")


def test_many_findings_of_one_kind_are_folded_but_for_wide() -> None:
    diagnosis = Diagnosis(tuple(map(finding, range(ALIKE + 32))), (NotChecked("a", "b", "c"),), ())
    short, wide = diagnosis_lines(diagnosis, 80, wide=False), diagnosis_lines(diagnosis, 200, wide=True)

    assert "And 32 more of worker-local-queue-missing: -o wide or --json shows them." in short
    assert sum("LocalQueue team-" in line for line in short) == ALIKE
    assert sum("LocalQueue team-" in line for line in wide) == ALIKE + 32
    assert short[-1] == "0 errors, 42 warnings; 1 not checked"
    assert max(len(click.unstyle(line)) for line in short) <= 80


def test_a_clock_that_was_not_measured_is_not_checked() -> None:
    lines = diagnosis_lines(Diagnosis((), (), (Measured("worker1", 0.02, None, None),)), 80, wide=False)
    assert lines[1].split() == ["worker1", "unknown", "20", "ms", "not", "checked"]


@pytest.mark.parametrize(
    ("bound", "words"),
    [((-0.5, 0.6), "within 0.6 s of"), ((-600.1, -599.0), "599.0 s behind"), ((599.0, 600.1), "599.0 s ahead of")],
)
def test_a_clock_that_is_off_is_not_told_as_within(bound: tuple[float, float], words: str) -> None:
    lines = diagnosis_lines(Diagnosis((), (), (Measured("worker1", 0.02, *bound),)), 80, wide=False)
    assert lines[1].endswith(f"{words} this machine's")


def test_verbs_of_kinds_that_nobody_serves_are_not_asked_for() -> None:
    rules = merged([*ON_WORKER["worker"], *kind_rules_on_worker(JOB_KIND), *kind_rules_on_worker(RAY_KIND)])
    asked = needed(permissions(rules), (JOB_KIND, RAY_KIND), {RAY_KIND.resource.gvk})
    assert {permission.resource for permission in asked} == {"workloads", "workloads/status", "namespaces", "jobs"}


def test_a_right_without_which_all_works_is_not_asked_for() -> None:
    rules = [*ON_WORKER["figures"]]
    assert {permission.resource for permission in needed(permissions(rules), (), ())} == {
        "clusterqueues",
        "localqueues",
    }


def test_what_one_right_would_show_is_one_entry() -> None:
    """`worker add --least` was three times the same advice."""
    grant = "grant it (multikueue rbac worker --diagnose)"
    kinds = ("namespaces", "LocalQueues", "quotas")
    gaps = [NotChecked(f"{kind} of worker1", f"may not list {kind}", grant) for kind in kinds]
    other = NotChecked("the manager's clock", "it did not say the time", "compare the clocks there")
    lines = diagnosis_lines(Diagnosis((), (gaps[0], other, *gaps[1:]), ()), 80, wide=False)
    assert lines == [
        "Not checked:",
        "- namespaces of worker1: may not list namespaces",
        "  LocalQueues of worker1: may not list LocalQueues",
        "  quotas of worker1: may not list quotas",
        f"  → {grant}",
        "- the manager's clock: it did not say the time",
        "  → compare the clocks there",
        "",
        "no findings; 2 not checked",
    ]
