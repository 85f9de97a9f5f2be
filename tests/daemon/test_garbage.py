"""When a daemon looks for garbage: not while its caches are filled, which is all that it makes then."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import anyio
import pytest
from click.testing import CliRunner

from multikueue import ClusterConfig
from multikueued.cli import main
from multikueued.run import command
from multikueued.run.leadership import LONG, freeze, postponed


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    """With Python's own thresholds meanwhile: those of the tests are for millions."""
    thresholds = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.unfreeze()
    gc.enable()
    gc.set_threshold(*thresholds)


def test_a_daemon_that_has_ended_leaves_the_thresholds_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """They stayed in the process that it was run in."""
    seen: list[tuple[int, int, int]] = []
    monkeypatch.setattr(command, "load_incluster", lambda _: ClusterConfig("https://manager"))
    monkeypatch.setattr(command, "configure_logging", lambda *_: None)
    monkeypatch.setattr(anyio, "run", lambda *_, **__: seen.append(gc.get_threshold()))
    assert CliRunner().invoke(main, ["run"], env={"KUBECONFIG": ""}).exit_code == 0
    assert (seen, gc.get_threshold()) == ([(50_000, 20, 100)], (700, 10, 10))


def collections() -> int:
    """How many there were once much was made that lasts."""
    seen: list[str] = []

    def note(phase: str, _facts: dict[str, int]) -> None:
        seen.append(phase)

    gc.callbacks.append(note)
    made = [dict[str, object](itself=seen) for _ in range(100 * gc.get_threshold()[0])]
    gc.callbacks.remove(note)
    assert made
    return seen.count("stop")


@pytest.mark.looptime
async def test_nothing_is_collected_until_the_caches_are_full() -> None:
    with postponed():
        assert collections() == 0
        freeze()
        assert collections() > 0
        assert gc.get_freeze_count()


@pytest.mark.looptime
async def test_a_manager_that_does_not_answer_puts_it_off_for_a_minute() -> None:
    with postponed():
        await anyio.sleep(LONG - 1)
        assert collections() == 0
        await anyio.sleep(2)
        assert collections() > 0


@pytest.mark.looptime
async def test_a_term_that_ends_before_leaves_it_on() -> None:
    with pytest.raises(ZeroDivisionError), postponed():
        raise ZeroDivisionError
    assert collections() > 0
