"""Tables that fit the terminal, ages as kubectl writes them, reports as JSON."""

from __future__ import annotations

import json
import unicodedata
from datetime import UTC, datetime, timedelta

import click
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from multikueued.commands.tables import age, listed, paragraph, span, table, until
from multikueued.exits import CommandError
from multikueued.reading.pod_lookup import UnplacedJob
from multikueued.reading.structured import as_json, as_yaml, read_as
from multikueued.reports.jobs import JobReport, JobState
from multikueued.settings.values import camel

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
WORDS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=120)


@given(rows=st.lists(st.lists(WORDS, min_size=5, max_size=5), max_size=5), wrapped=st.booleans())
def test_a_table_of_five_columns_fits_80_columns(rows: list[list[str]], wrapped: bool) -> None:
    lines = table(["A", "B", "C", "D", "E"], rows, 80, wrapped=wrapped)
    assert all(len(click.unstyle(line)) <= 80 for line in lines)
    assert all(line == line.rstrip() for line in map(click.unstyle, lines))


def test_what_is_cut_says_so_and_short_columns_stay_whole() -> None:
    heading, line = table(["JOB", "STATE", "REASON"], [["job/train", "Queued", "x" * 100]], 40)
    assert heading == "JOB        STATE   REASON"
    assert line == f"job/train  Queued  {'x' * 20}…"


def test_without_a_width_nothing_is_cut() -> None:
    assert table(["A", "B"], [["a" * 90, "b" * 90]], None)[1] == f"{'a' * 90}  {'b' * 90}"


def test_the_last_column_can_go_on_below() -> None:
    lines = table(["A", "SAYS"], [["a", "one two three four five"]], 15, wrapped=True)
    assert lines == ["A  SAYS", "a  one two", "   three four", "   five"]


def test_states_have_colours() -> None:
    (_, line) = table(["STATE"], [["Lost"]], 80)
    assert line == click.style("Lost", fg="red")


def test_a_paragraph_keeps_long_words_whole() -> None:
    assert paragraph("a " + "x" * 60, 50, first="- ", rest="  ") == ["- a", "  " + "x" * 60]
    assert paragraph("", 50, first="- ") == ["-"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (3600, "60m"),
        (3 * 3600, "3h"),
        (5 * 3600 + 180, "5h3m"),
        (30 * 3600, "30h"),
        (12 * 86400, "12d"),
        (-5, "0s"),
    ],
)
def test_lengths_of_time(seconds: int, text: str) -> None:
    assert span(timedelta(seconds=seconds)) == text


def test_ages_and_moments() -> None:
    assert age(None, NOW) == "-"
    assert age(NOW - timedelta(seconds=5), NOW) == "5s"
    assert until(NOW + timedelta(seconds=61), NOW) == "12:01:01Z (in 61s)"
    assert until(NOW - timedelta(seconds=61), NOW) == "11:58:59Z"


def test_amounts() -> None:
    assert listed({}) == "-"
    assert listed({"cpu": "3", "memory": "1Gi"}) == "cpu 3, memory 1Gi"
    assert listed({"cpu": "3"}, {"cpu": "8", "memory": "1Gi"}) == "cpu 3/8, memory 0/1Gi"


@pytest.mark.parametrize("text", ["\x9b31m red", "\u202egpj", "\x7f", "\U000e0041", "née — naïve"])
def test_structured_output_shows_no_terminal_what_it_would_obey(text: str) -> None:
    """C1 control characters are JSON, and `-o json` goes to terminals, too."""
    as_text, as_yaml_text = as_json({"told": text}), as_yaml({"told": text})
    assert not any(unicodedata.category(char) in ("Cc", "Cf") and char != "\n" for char in as_text + as_yaml_text)
    assert json.loads(as_text) == yaml.safe_load(as_yaml_text) == {"told": text}
    assert ("née" in as_text and "née" in as_yaml_text) is text.startswith("née")


def test_reports_as_json_and_yaml_have_the_same_fields() -> None:
    report = JobReport("job/a", "n", JobState.OFFERED, "", ("w1", "w2"), "q", "cq", "wl", "", NOW, None, "why")
    plain = json.loads(as_json(report))
    assert plain == {
        "job": "job/a",
        "namespace": "n",
        "state": "Offered",
        "worker": "",
        "offeredTo": ["w1", "w2"],
        "queue": "q",
        "clusterQueue": "cq",
        "workload": "wl",
        "user": "",
        "created": "2026-01-01T12:00:00Z",
        "since": None,
        "reason": "why",
        "place": None,
        "startEarliest": None,
        "startLatest": None,
    }
    assert yaml.safe_load(as_yaml(report)) == plain
    assert camel("next_attempt") == "nextAttempt"


@pytest.mark.parametrize("wrong", [{"job": None}, {"why": 1}, {"known": "false"}])
def test_a_report_with_a_value_of_another_type_is_not_read(wrong: dict[str, object]) -> None:
    answer = {"job": "job/a", "why": "it waits", "known": True, "ended": False}
    assert read_as(UnplacedJob, answer) == UnplacedJob("job/a", "it waits", known=True, ended=False)
    with pytest.raises(CommandError, match="a UnplacedJob that this version cannot read"):
        read_as(UnplacedJob, {**answer, **wrong})
