"""Who submits jobs is told what they can do, or whom to ask: no commands of those who run queues and workers."""

from __future__ import annotations

import re

import attrs
import pytest

from multikueued.reports.explanation import with_findings
from multikueued.reports.remedies.audience import Audience, for_audience
from multikueued.reports.remedies.remedy import Finding
from tests.docs.symptoms import RUNNING, Row, sections
from tests.reports.test_explanation import explained

ROWS = [row for rows in sections().values() for row in rows]
OPERATORS = re.compile(
    r"--context|secrets?\b|Secret|multikueue (worker|queues|rbac|doctor)|settings|kubeconfig|get pods -A"
    r"|nominalQuota|multikueuecluster",
    re.IGNORECASE,
)
"""What only they can do."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.finding.id)
def test_no_remedy_for_a_submitter_is_an_operators(row: Row) -> None:
    finding = for_audience(row.finding, Audience.SUBMITTER)

    assert not OPERATORS.search(finding.remedy), finding.remedy
    assert finding.remedy
    assert (finding.id, finding.why, finding.where) == (row.finding.id, row.finding.why, row.finding.where)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.finding.id)
def test_an_operator_is_told_all(row: Row) -> None:
    assert for_audience(row.finding, Audience.OPERATOR) == row.finding


@pytest.mark.parametrize(
    ("finding", "remedy"),
    [
        (Finding("local-queue-missing", "worker1", "", "", "x", workers=("worker1",)), "ask whoever runs the workers"),
        (Finding("local-queue-missing", "LocalQueue a", "", "", "x"), "correct the label kueue.x-k8s.io/queue-name"),
        (Finding("queue-inactive", "ClusterQueue a", "", "", "x"), "ask whoever runs the queues"),
        (Finding("quota-too-small", "w", "", "", "x", workers=("w",)), "request less, or ask whoever runs the queues"),
    ],
)
def test_whom_to_ask(finding: Finding, remedy: str) -> None:
    assert for_audience(finding, Audience.SUBMITTER).remedy.startswith(remedy)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.finding.id)
def test_what_is_added_to_an_explanation_is_for_its_reader_too(row: Row) -> None:
    """As what a job and its pods say, which is read after it was made."""
    begun = attrs.evolve(explained(RUNNING), audience=Audience.SUBMITTER)

    assert with_findings(begun, row.finding).findings == (for_audience(row.finding, Audience.SUBMITTER),)
