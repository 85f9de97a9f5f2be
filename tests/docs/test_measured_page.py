"""The pages of performance: every number in their tables comes from a result file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs
import orjson
import pytest

from tests.docs import measured
from tests.docs.aims import Aim, at
from tests.docs.marked import replaced


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (measured.PERFORMANCE, measured.tables),
        (measured.SCALE_OUT, measured.scale_out),
        (measured.API, measured.watchers),
        (measured.DISPATCH, measured.held),
        (measured.PAGE, measured.dashboard),
        (measured.MIRROR_PODS, measured.mirrors),
    ],
)
def test_the_tables_are_made_of_the_result_files(page: Path, text: Callable[[], str]) -> None:
    """`python -m tests.docs.measured` writes them."""
    written = page.read_text()
    assert replaced(written, measured.WRITER, text()) == written


def test_what_questions_take_is_as_it_was_written_down() -> None:
    written = measured.PAGE.read_text()
    assert replaced(written, measured.ASKED, measured.asked()) == written


_AIM = Aim("CPU", "runs", at("cpu", "ms"), 4, unit="ms")


@pytest.mark.parametrize(
    ("aim", "row"),
    [
        (_AIM, "| CPU | ≤ 4 ms | 5 (3 to 6) ms, `runs` | **no** |"),
        (attrs.evolve(_AIM, limit=5), "| CPU | ≤ 5 ms | 5 (3 to 6) ms, `runs` | yes |"),
        (attrs.evolve(_AIM, at_least=True), "| CPU | ≥ 4 ms | 5 (3 to 6) ms, `runs` | yes |"),
        (attrs.evolve(_AIM, runs="none"), "| CPU | ≤ 4 ms | not measured | |"),
        (
            attrs.evolve(_AIM, limit=2, times=("others", at("cpu", "ms"))),
            "| CPU | ≤ 2 times `others` (2 ms) | 5 (3 to 6) ms, `runs` | **no** |",
        ),
        (
            attrs.evolve(_AIM, limit=3, times=("others", at("cpu", "ms"))),
            "| CPU | ≤ 3 times `others` (2 ms) | 5 (3 to 6) ms, `runs` | yes |",
        ),
        (attrs.evolve(_AIM, times=("none", at("cpu", "ms"))), "| CPU | ≤ 4 times `none` | not measured | |"),
    ],
)
def test_what_was_aimed_at_is_held_against_the_median_of_the_runs(aim: Aim, row: str, tmp_path: Path) -> None:
    for folder, values in (("runs", (3, 6, 5)), ("others", (2,))):
        (tmp_path / folder).mkdir()
        for number, value in enumerate(values):
            (tmp_path / folder / f"{number}.json").write_bytes(orjson.dumps({"cpu": {"ms": value}}))
    assert aim.row(tmp_path) == row
