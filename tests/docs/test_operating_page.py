"""The pages for operators: settings to paste, permissions that the tests run with, metrics that exist."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from multikueue.core.dispatchers.dispatcher import AllAtOnce, Candidate, Candidates
from multikueue.core.dispatchers.guarded import Guarded
from multikueue.core.dispatchers.scored.penalties import FAILURES_ANNOTATION
from multikueue.core.inventory.names import WRITTEN_ANNOTATION
from multikueue.core.model.labels import (
    DETACHED_ANNOTATION,
    LAST_WORKER_ANNOTATION,
    PLACEMENTS_ANNOTATION,
    RETRY_ANNOTATION,
)
from multikueue.core.model.names import ClusterName, Json
from multikueue.errors import AlreadyExists, Forbidden, Invalid, NotFound, ServerFault, TooManyRequests
from multikueue.runtime.create_conflicts import REFUSAL_BACKOFF, patience
from multikueued.metrics.hooks import Metrics
from multikueued.settings.config import DispatcherSettings, Settings
from multikueued.settings.dispatcher import chosen_dispatcher
from multikueued.settings.file import parse_settings
from multikueued.settings.values import camel
from tests.core.door import NOBODY_TAKES_IT
from tests.integration.permissions import WORKER_RULES, chart_rules, granted

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join((DOCS / page).read_text() for page in ("settings.md", "operating.md", "webhook.md", "monitoring.md"))
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
OBJECTS = [text for text in BLOCKS if "apiVersion:" in text]
CHART_VALUES = [text for text in BLOCKS if "jobKindRules:" in text]
SETTINGS = [text for text in BLOCKS if text not in [*OBJECTS, *CHART_VALUES]]
RULE = re.compile(
    r"^\| (`[a-z/, `]+`)(, in `namespace`)? \| (?:`([a-z0-9.-]+)`|the core group) \| (.*) \|$", re.MULTILINE
)


@pytest.mark.parametrize("text", SETTINGS)
def test_the_settings_can_be_pasted(text: str) -> None:
    parse_settings(text)


def test_the_first_of_them_are_the_defaults() -> None:
    """Whoever pastes them changes nothing."""
    settings = parse_settings(SETTINGS[0])
    assert chosen_dispatcher(settings) == AllAtOnce()
    assert attrs.evolve(settings, dispatcher=DispatcherSettings()) == Settings()


def test_so_are_those_of_the_webhook_once_it_is_on() -> None:
    settings = parse_settings(next(text for text in SETTINGS if "configurationName" in text))
    assert attrs.evolve(settings.webhook, enabled=False) == Settings().webhook


def test_the_dispatcher_it_shows_tries_the_cheapest_first() -> None:
    guide = (DOCS / "guides" / "dispatcher.md").read_text()
    _, _, code, _ = re.findall(r"^```python\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE)
    shown: dict[str, Any] = {}
    exec(code, shown)
    dispatcher = Guarded(shown["CheapestFirst"]())

    def offered(*nominated: str, reserved: str = "True") -> tuple[str, ...]:
        reserved_condition: Json = {"type": "QuotaReserved", "status": reserved}
        workers = tuple(
            Candidate(
                ClusterName(name),
                labels={"acme.example.com/price": price},
                nominated=name in nominated,
                conditions=(reserved_condition,) if name in nominated else (),
            )
            for name, price in (("oslo", "3"), ("rome", "2"), ("bern", "5"))
        )
        return dispatcher.nominate({}, Candidates(workers, nominated), datetime.now(UTC)).names

    assert offered() == ("rome",)
    assert offered("rome") == ("rome",)
    assert offered("rome", reserved="False") == ("rome", "oslo")


def test_the_charts_values_hold_settings() -> None:
    (values,) = map(yaml.safe_load, CHART_VALUES)
    parse_settings(yaml.safe_dump(values["settings"]))


def test_the_workers_permissions_are_those_the_tests_on_real_servers_run_with() -> None:
    (role,) = [obj for text in OBJECTS if (obj := yaml.safe_load(text))["kind"] == "ClusterRole"]
    assert role["rules"] == WORKER_RULES


def test_the_managers_permissions_are_the_charts() -> None:
    """The chart's are those that the tests on real servers run with."""
    on_page: dict[tuple[str, str], frozenset[str]] = {}
    for names, _, group, verbs in RULE.findall(PAGE):
        for name in re.findall(r"`([^`]+)`", names):
            on_page[group, name] = frozenset(re.findall(r"`([^`]+)`", verbs))
    assert on_page.items() >= granted(chart_rules()).items()


def test_its_times_of_refusals_are_the_codes() -> None:
    """How long a creation is tried again in place, by the answer; then the back-off."""
    section = PAGE[PAGE.index("**A worker that refuses.**") :]
    times = re.findall(r"^\| (?!answer)(.*) \| (not at all|\d+ s) \|$", section, re.MULTILINE)
    on_page = [seconds.replace("not at all", "0 s") for _, seconds in times]
    answers = [
        (Invalid("spec.template: Invalid value"), Forbidden("admission webhook denied the request")),
        (AlreadyExists("taken"), Forbidden('User "multikueue" cannot create resource "jobs"')),
        (Forbidden("exceeded quota: small"), NotFound("no namespace"), TooManyRequests("later"), ServerFault("no")),
    ]
    assert on_page == [f"{seconds:g} s" for row in answers for seconds in {patience(error) for error in row}]
    assert (REFUSAL_BACKOFF.delay(1), REFUSAL_BACKOFF.delay(2), REFUSAL_BACKOFF.delay(9)) == (300, 600, 3600)


@pytest.mark.parametrize(
    "name",
    [
        NOBODY_TAKES_IT,
        LAST_WORKER_ANNOTATION,
        PLACEMENTS_ANNOTATION,
        RETRY_ANNOTATION,
        "its job is being created there",
        "not nominated yet",
        "unreachable since",
        "refuses it, is asked again at",
        "may not preempt there yet",
        "may run an earlier attempt: no other gets it before",
        "answers with more than may be read",
    ],
)
def test_it_tells_what_an_operator_meets_on_a_workload(name: str) -> None:
    """Whoever searches the page for it finds what it means."""
    assert name in PAGE


def test_the_metrics_it_names_are_all_there_are() -> None:
    on_page = set(re.findall(r"`((?:kueue_)?multikueue_[a-z_]+)`", PAGE))
    metrics = Metrics("leader")
    assert metrics.mirrors is not None, "these come once they are asked for"
    served = {
        metric.name + ("_total" if metric.type == "counter" else "")
        for metric in metrics.snapshot().collect()
        if not metric.name.startswith("process_")
    }
    assert on_page == served


_SPAN = re.compile(r"^\| [^|]+ \| (\d+) (min|h)[^|]*\(`(?:core|runtime)/([\w/]+)\.py:([\w.]+)`\)", re.MULTILINE)


def test_the_spans_that_the_page_promises_are_those_of_the_code() -> None:
    """With where each is kept; that a restart makes none of them shorter has a test beside each."""
    rows = _SPAN.findall((DOCS / "operating.md").read_text())
    assert len(rows) == 5
    for number, unit, path, name in rows:
        layer = "runtime" if path.startswith("inventory/spoke") else "core"
        value: Any = importlib.import_module(f"multikueue.{layer}.{path.replace('/', '.')}")
        for part in name.split("."):
            value = getattr(value() if isinstance(value, type) else value, part)
        seconds = value.total_seconds() if isinstance(value, timedelta) else value
        assert seconds == int(number) * {"min": 60, "h": 3600}[unit], name


def test_what_such_a_span_is_noted_in_has_the_name_that_the_page_tells() -> None:
    page = (DOCS / "operating.md").read_text()
    for annotation in (DETACHED_ANNOTATION, FAILURES_ANNOTATION, WRITTEN_ANNOTATION):
        assert f"annotation `{annotation}`" in page


PERIODS = {
    "gcInterval": "how often it is looked",
    "leaderElection.leaseDuration": "of the Lease, which has it",
    "leaderElection.renewDeadline": "of the process that leads",
    "ocm.clusters.tokenValidity": "of a token, which ends by itself",
}
"""Settings that are durations, and that nobody waits for."""


def durations(cls: type[Any], *path: str) -> Iterator[str]:
    """Where settings have a duration."""
    for field in attrs.fields(attrs.resolve_types(cls, include_extras=False)):
        place, kind = (*path, camel(field.name)), field.type
        if attrs.has(kind):
            yield from durations(kind, *place)
        elif kind is timedelta:
            yield ".".join(place)


def test_each_duration_that_can_be_set_is_among_the_promised_spans() -> None:
    """Two were not in the list, so nobody knew whether a restart forgets them: a turn to preempt, and giving up."""
    _, _, section = (DOCS / "operating.md").read_text().partition("### Spans that are promised\n")
    rows, _, _ = section.partition("\n### ")
    settable = {*durations(Settings)}
    assert {"workerLostTimeout", "preemption.timeout", "ocm.minDwell", "retention.failed"} <= settable
    unsaid = [name for name in settable - PERIODS.keys() if f"`{name}`" not in rows]
    assert [name for name in unsaid if f"`{name.removeprefix('dispatcher.')}`" not in rows] == []
