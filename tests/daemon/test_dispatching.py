"""Which dispatcher the settings choose, in our words and in Kueue's, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from multikueue.adapters import BUILTIN, AdapterRegistry
from multikueue.core.dispatchers.dispatcher import AllAtOnce, Dispatcher, External
from multikueue.core.dispatchers.incremental import Incremental, Order
from multikueue.errors import SettingsError
from multikueue.kube import ClusterConfig, KubeClient
from multikueued.cli import main
from multikueued.loading import parse_settings
from multikueued.metrics import Metrics
from multikueued.wiring import build_manager

ALL_AT_ONCE = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once"
INCREMENTAL = "kueue.x-k8s.io/multikueue-dispatcher-incremental"


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("", AllAtOnce()),
        ("dispatcher:\ndispatcherName:\nincrementalDispatcherConfig:\n", AllAtOnce()),
        (f"dispatcher: {{name: {ALL_AT_ONCE}}}", AllAtOnce()),
        (f"dispatcherName: {ALL_AT_ONCE}", AllAtOnce()),
        (f"dispatcher: {{name: {INCREMENTAL}}}", Incremental(3, Order.CONFIG, timedelta(minutes=5))),
        (f"dispatcher: {{name: {INCREMENTAL}, incremental: }}", Incremental()),
        (
            f"dispatcher: {{name: {INCREMENTAL}, incremental: {{stepSize: 1, order: alphabetical, round: 1m30s}}}}",
            Incremental(1, Order.ALPHABETICAL, timedelta(seconds=90)),
        ),
        (f"dispatcherName: {INCREMENTAL}", Incremental()),
        (f"dispatcherName: {INCREMENTAL}\nincrementalDispatcherConfig: {{stepSize: 5}}", Incremental(step=5)),
        (
            f"dispatcherName: {INCREMENTAL}\ndispatcher: {{incremental: {{round: 10m}}}}",
            Incremental(round=timedelta(minutes=10)),
        ),
        ("dispatcher: {name: example.com/cheapest-first}", External()),
        ("dispatcherName: example.com/cheapest-first", External()),
    ],
)
def test_the_settings_choose_the_dispatcher(text: str, chosen: Dispatcher) -> None:
    """A section copied from Kueue's configuration means what it means there."""
    assert parse_settings(text).choice.dispatcher() == chosen


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "dispatcher: {incremental: {stepSize: 2}}",
            f"dispatcher.incremental: {ALL_AT_ONCE} does not use it: remove it, or set dispatcher.name",
        ),
        (
            "incrementalDispatcherConfig: {stepSize: 2}",
            f"incrementalDispatcherConfig: {ALL_AT_ONCE} does not use it: remove it, or set dispatcher.name to",
        ),
        (
            "dispatcherName: example.com/mine\nincrementalDispatcherConfig: {stepSize: 2}",
            "incrementalDispatcherConfig: example.com/mine does not use it: remove it, or set dispatcherName to",
        ),
        (
            f"dispatcherName: {INCREMENTAL}\ndispatcher: {{name: {INCREMENTAL}}}",
            "dispatcherName: dispatcher.name says it already: keep one of the two",
        ),
        (
            f"dispatcher: {{name: {INCREMENTAL}, incremental: {{stepSize: 1}}}}\nincrementalDispatcherConfig: {{}}",
            "incrementalDispatcherConfig: dispatcher.incremental says it already: keep one of the two",
        ),
        (
            "dispatcherName: incremental",
            'dispatcherName: "incremental" cannot be a dispatcher\'s name: use kueue',
        ),
        ("dispatcher: {name: 5}", "dispatcher.name: 5 cannot be a dispatcher's name"),
        (f"dispatcher: {{name: example.com/{'x' * 60}}}", 'dispatcher.name: "example.com/xxxx'),
        (
            "dispatcher: {name: kueue.x-k8s.io/multikueue-dispatcher-incr}",
            'dispatcher.name: Kueue has no dispatcher "kueue.x-k8s.io/multikueue-dispatcher-incr": did you mean '
            f'"{INCREMENTAL}"?',
        ),
        ("dispatcher: {name: kueue.x-k8s.io/x}", 'dispatcher.name: Kueue has no dispatcher "kueue.x-k8s.io/x": there'),
        (f"dispatcher: {INCREMENTAL}", f'dispatcher: "{INCREMENTAL}" is not a group of settings'),
        ("incrementalDispatcherConfig: {stepSize: 0}", "incrementalDispatcherConfig.stepSize: 0 is not a number of"),
        (
            "dispatcher: {incremental: {stepSize: true}}",
            "dispatcher.incremental.stepSize: true is not a number of workers: use 1 or more",
        ),
        ("dispatcher: {incremental: {order: random}}", 'dispatcher.incremental.order: "random" is not one of config,'),
        ("dispatcher: {incremental: {round: 0}}", "dispatcher.incremental.round: 0 is too short for a round: use 1s"),
        ("dispatcher: {incremental: {round: 5}}", "dispatcher.incremental.round: 5 lacks a unit"),
        ("dispatcher: {incremental: {step: 5}}", "dispatcher.incremental.step: there is no such setting: did you mean"),
    ],
)
def test_what_does_not_go_together_is_refused_by_place_reason_and_remedy(text: str, told: str) -> None:
    """A dispatcher's name that is only mistyped would leave every job waiting for somebody who does not exist."""
    with pytest.raises(SettingsError) as caught:
        parse_settings(text, source="config.yaml")

    assert str(caught.value).startswith(f"config.yaml: {told}")
    assert "\n" not in str(caught.value)


def test_all_contradictions_are_told_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings("leaderElection: {renewDeadline: 1m}\ndispatcher: {incremental: {}}", source="config.yaml")

    head, *rest = str(caught.value).splitlines()
    assert head == "config.yaml: 2 settings cannot be used"
    assert [line.split(":")[0].strip() for line in rest] == ["leaderElection", "dispatcher.incremental"]


def test_the_command_line_tells_it_before_anything_starts(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("incrementalDispatcherConfig: {stepSize: 2}\n")
    result = CliRunner().invoke(main, ["run", "--config", str(config)])

    assert result.exit_code == 2
    assert result.stderr == (
        f"multikueue: error: {config}: incrementalDispatcherConfig: {ALL_AT_ONCE} does not use it: remove it, or set "
        f"dispatcher.name to {INCREMENTAL}\n"
    )


async def test_the_daemon_uses_it() -> None:
    settings = parse_settings(f"dispatcher: {{name: {INCREMENTAL}, incremental: {{stepSize: 2}}}}")
    client = KubeClient(ClusterConfig("https://manager.example.com"), name="manager")

    manager = build_manager(settings, client, Metrics("standalone"), AdapterRegistry(BUILTIN))

    assert manager.dispatcher == Incremental(step=2)
