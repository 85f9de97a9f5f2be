"""Which dispatcher the settings choose, by our names and by Kueue's, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from multikueue.adapters import BUILTIN, AdapterRegistry
from multikueue.core.dispatchers.dispatcher import SCORED, AllAtOnce, Dispatcher, External
from multikueue.core.dispatchers.incremental import Incremental
from multikueue.core.dispatchers.scored.profile import Hold, Profile
from multikueue.errors import SettingsError
from multikueue.kube import ClusterConfig, KubeClient
from multikueue.runtime.scored.dispatcher import ScoredDispatcher
from multikueued.cli import main
from multikueued.metrics.hooks import Metrics
from multikueued.rbac.rules import on_worker
from multikueued.run.daemon import build_manager, work
from multikueued.settings.dispatcher import chosen_dispatcher
from multikueued.settings.file import parse, parse_settings

ALL_AT_ONCE = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once"
KUEUES = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
INCREMENTAL = "kueue.x-k8s.io/multikueue-dispatcher-incremental"


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("", AllAtOnce()),
        ("dispatcher:\n", AllAtOnce()),
        (f"dispatcher: {{name: {ALL_AT_ONCE}}}", AllAtOnce()),
        (f"dispatcher: {{name: {INCREMENTAL}}}", Incremental(3, round=timedelta(minutes=5))),
        (f"dispatcher: {{name: {INCREMENTAL}, incremental: }}", Incremental()),
        (
            f"dispatcher: {{name: {INCREMENTAL}, incremental: {{stepSize: 1, round: 1m30s}}}}",
            Incremental(1, round=timedelta(seconds=90)),
        ),
        (
            f"{KUEUES}multiKueue: {{dispatcherName: {INCREMENTAL}, incrementalDispatcherConfig: {{stepSize: 5}}}}",
            Incremental(step=5),
        ),
        (
            f"{KUEUES}multiKueue: {{dispatcherName: {INCREMENTAL}}}\ndispatcher: {{incremental: {{round: 10m}}}}",
            Incremental(round=timedelta(minutes=10)),
        ),
        (f"dispatcher: {{name: {SCORED}}}", ScoredDispatcher()),
        (
            f"dispatcher: {{name: {SCORED}, profiles: {{gangs: {{hold: never}}}}}}\npreemption: {{timeout: 1m}}",
            ScoredDispatcher({"default": Profile(), "gangs": Profile(hold=Hold.NEVER)}, timedelta(minutes=1)),
        ),
        ("dispatcher: {name: example.com/cheapest-first}", External()),
        ("dispatcher: {name: acme}", External()),
        (f"{KUEUES}multiKueue: {{dispatcherName: example.com/cheapest-first}}", External()),
    ],
)
def test_the_settings_choose_the_dispatcher(text: str, chosen: Dispatcher) -> None:
    """A section copied from Kueue's configuration means what it means there."""
    assert chosen_dispatcher(parse_settings(text)) == chosen


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            f"dispatcher: {{name: {SCORED}, profiles: {{default: {{offer: {{retry: 5s}}}}}}}}",
            "dispatcher.profiles: profiles.default.offer.retry is 5s: at least 15s",
        ),
        (
            f"{KUEUES}multiKueue: {{dispatcherName: {INCREMENTAL}}}\ndispatcher: {{name: {INCREMENTAL}}}",
            "multiKueue.dispatcherName: dispatcher.name says it already: keep one of the two",
        ),
        (
            f"dispatcherName: {INCREMENTAL}",
            'dispatcherName: there is no such setting: did you mean "dispatcher"?',
        ),
        (
            "dispatcher: {name: incremental}",
            'dispatcher.name: "incremental" cannot be a dispatcher\'s name: use kueue',
        ),
        ("dispatcher: {name: 5}", "dispatcher.name: 5 cannot be a dispatcher's name"),
        (f"dispatcher: {{name: example.com/{'x' * 60}}}", 'dispatcher.name: "example.com/xxxx'),
        (
            "dispatcher: {name: kueue.x-k8s.io/multikueue-dispatcher-incr}",
            'dispatcher.name: there is no dispatcher "kueue.x-k8s.io/multikueue-dispatcher-incr": did you mean '
            f'"{INCREMENTAL}"?',
        ),
        ("dispatcher: {name: kueue.x-k8s.io/x}", 'dispatcher.name: there is no dispatcher "kueue.x-k8s.io/x": there'),
        (f"dispatcher: {INCREMENTAL}", f'dispatcher: "{INCREMENTAL}" is not a group of settings'),
        (
            f"{KUEUES}multiKueue: {{incrementalDispatcherConfig: {{stepSize: 0}}}}",
            "multiKueue.incrementalDispatcherConfig.stepSize: 0 is not a number of",
        ),
        (
            "dispatcher: {incremental: {stepSize: true}}",
            "dispatcher.incremental.stepSize: true is not a number of workers: use 1 or more",
        ),
        ("dispatcher: {incremental: {round: 0}}", "dispatcher.incremental.round: 0 is too short for a round: use 1s"),
        ("dispatcher: {incremental: {round: 5}}", "dispatcher.incremental.round: 5 lacks a unit"),
        ("dispatcher: {incremental: {step: 5}}", "dispatcher.incremental.step: there is no such setting: did you mean"),
    ],
)
def test_contradicting_settings_are_refused_with_place_reason_and_remedy(text: str, complaint: str) -> None:
    """With a mistyped name of a dispatcher every job would wait for a controller that does not exist."""
    with pytest.raises(SettingsError) as caught:
        parse_settings(text, source="config.yaml")

    assert str(caught.value).startswith(f"config.yaml: {complaint}")
    assert "\n" not in str(caught.value)


def test_all_contradictions_are_reported_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings("leaderElection: {renewDeadline: 1m}\npods: {check: Ready}", source="config.yaml")

    head, *rest = str(caught.value).splitlines()
    assert head == "config.yaml: 2 settings cannot be used"
    assert [line.split(":")[0].strip() for line in rest] == ["leaderElection", "pods.check"]


def test_the_command_line_reports_them_before_anything_starts(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("dispatcher: {name: incremental}\n")
    result = CliRunner().invoke(main, ["run", "--config", str(config)])

    assert result.exit_code == 2
    assert result.stderr.startswith(
        f'multikueue: error: {config}: dispatcher.name: "incremental" cannot be a dispatcher\'s name: use kueue'
    )


async def test_the_daemon_uses_it() -> None:
    settings = parse_settings(f"dispatcher: {{name: {INCREMENTAL}, incremental: {{stepSize: 2}}}}")
    client = KubeClient(ClusterConfig("https://manager.example.com"), name="manager")

    manager = build_manager(settings, client, Metrics("standalone"), b"", AdapterRegistry(BUILTIN))

    assert manager.dispatcher == Incremental(step=2)


POLICY = """
from multikueue.core.dispatchers.dispatcher import Nomination

class CheapestFirst:
    def nominate(self, workload, candidates, now):
        return Nomination(candidates.available[:1])

class MostFree(CheapestFirst):
    def part(self, host):
        raise NotImplementedError

class NoPolicy:
    pass
"""
BROUGHT = """
[multikueue.dispatchers]
acme.example.com/cheapest-first = acme_policy:CheapestFirst
cheapest = acme_policy:CheapestFirst
gone = acme_policy:Gone
most-free = acme_policy:MostFree
nothing = acme_policy:NoPolicy
"""


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with dispatchers, installed beside the daemon."""
    information = tmp_path / "acme_policy-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-policy\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(BROUGHT)
    (tmp_path / "acme_policy.py").write_text(POLICY)
    monkeypatch.syspath_prepend(tmp_path)
    return information


@pytest.mark.usefixtures("acme")
class TestOfAnInstalledPackage:
    @pytest.mark.parametrize(
        "text",
        [
            "dispatcher: {name: acme.example.com/cheapest-first}",
            "dispatcher: {name: cheapest}",
            f"{KUEUES}multiKueue: {{dispatcherName: acme.example.com/cheapest-first}}",
        ],
    )
    async def test_it_runs_in_the_daemon_by_its_name(self, text: str) -> None:
        client = KubeClient(ClusterConfig("https://manager.example.com"), name="manager")

        manager = build_manager(parse_settings(text), client, Metrics("standalone"), b"", AdapterRegistry(BUILTIN))

        assert type(manager.dispatcher).__name__ == "CheapestFirst"

    @pytest.mark.parametrize(("name", "wanted"), [("cheapest", False), ("most-free", True), (SCORED, True)])
    def test_one_that_brings_a_part_may_read_the_queues_of_workers(self, name: str, wanted: bool) -> None:
        rules = on_worker(parse_settings(f"dispatcher: {{name: {name}}}"))
        assert any("cohorts" in rule["resources"] for rule in rules) == wanted

    def test_an_unknown_name_is_refused_with_a_list_of_the_installed_ones(self) -> None:
        with pytest.raises(SettingsError) as caught:
            parse_settings("dispatcher: {name: cheapset}", source="config.yaml")

        assert str(caught.value).startswith(
            f'config.yaml: dispatcher.name: "cheapset" cannot be a dispatcher\'s name: use {ALL_AT_ONCE} or '
            f"{INCREMENTAL} or {SCORED}, one that an installed package brings "
            "(acme.example.com/cheapest-first, cheapest, gone, most-free, nothing), or for another controller"
        )

    def test_a_domain_and_a_path_that_no_package_has_name_another_controller(self) -> None:
        assert chosen_dispatcher(parse_settings("dispatcher: {name: acme.example.com/dearest-first}")) == External()

    @pytest.mark.parametrize(
        ("name", "why"),
        [
            ("gone", "acme_policy:Gone cannot be loaded: AttributeError: "),
            ("nothing", "acme_policy:NoPolicy gives <acme_policy.NoPolicy object at "),
        ],
    )
    async def test_one_that_cannot_be_used_ends_the_daemon_before_it_serves(self, name: str, why: str) -> None:
        settings = parse_settings(f"dispatcher: {{name: {name}}}")

        with pytest.raises(SettingsError) as caught:
            await work(settings, ClusterConfig("https://manager.example.com"))

        assert str(caught.value).startswith(f'the entry point "{name}" of the package acme-policy: {why}')

    @pytest.mark.parametrize("chosen", [ALL_AT_ONCE, INCREMENTAL])
    def test_one_with_the_name_of_a_built_in_one_is_refused(self, acme: Path, chosen: str) -> None:
        (acme / "entry_points.txt").write_text(f"[multikueue.dispatchers]\n{INCREMENTAL} = acme_policy:CheapestFirst\n")

        with pytest.raises(SettingsError, match="of the package acme-policy: a dispatcher of that name is built in"):
            chosen_dispatcher(parse_settings(f"dispatcher: {{name: {chosen}}}"))


@pytest.mark.parametrize("name", ["multikueue.dev/score", f"{ALL_AT_ONCE}s", "kueue.x-k8s.io/cheapest"])
def test_a_name_of_our_domain_or_kueues_that_there_is_not_is_refused(name: str) -> None:
    """It was taken for another controller's, which never chose a worker: no job was dispatched, and nothing said so."""
    with pytest.raises(
        SettingsError, match=f'f: dispatcher.name: there is no dispatcher "{name}": (did you mean|there are)'
    ):
        parse_settings(f"dispatcher: {{name: {name}}}", source="f")


def test_a_name_that_looks_like_a_known_one_is_told_of() -> None:
    text = "dispatcher: {name: multikueu.dev/scored}"
    (told,) = [remark.why for remark in parse(text, source="f").remarks if remark.setting == "dispatcher.name"]
    assert told.endswith('is to write status.nominatedClusterNames (did you mean "multikueue.dev/scored"?)')
    assert parse("dispatcher: {name: acme.example.com/dearest-first}", source="f").remarks == ()


def test_a_score_that_counts_no_more_is_told_of_once_a_profile() -> None:
    text = "dispatcher: {name: multikueue.dev/scored, profiles: {a: {scores: {quota: 5}}, b: {scores: {cost: 5}}}}"
    lines = [remark.setting for remark in parse(text, source="f").remarks if remark.important]

    assert lines == ["dispatcher.profiles.a.scores.quota"]
