"""Kinds that settings declare, played by the sandbox: their statuses are such that the declaration understands them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from multikueue.adapters import JobKind, Stamp
from multikueue.adapters.declaration import Declaration
from multikueue.adapters.declared import declared_kind
from multikueue.core.model.names import Json
from multikueue.errors import SandboxError
from multikueue.sandbox.apiserver import Registry
from multikueue.sandbox.jobs.deciding import decide_run
from multikueue.sandbox.kinds import SandboxKind, definition
from multikueue.sandbox.kinds.course import Fate, Run
from multikueue.sandbox.kinds.declared import kind_of_row
from multikueue.sandbox.kinds.injecting import Injection

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAME = "Render.v1.studio.example.com"
TEMPLATE: Json = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}
READY = "object.status.conditions.exists(c, c.type == 'Ready' && c.status == '%s' && c.reason == 'Over')"


def made(**said: Any) -> tuple[JobKind, SandboxKind]:
    row = declared_kind(Declaration(name=NAME, **said), "externalFrameworks[0]")
    return row, kind_of_row(row)


def statuses(kind: SandboxKind, *, fails: bool = False) -> list[Json]:
    """What a copy's status says while it waits, while it runs, and at its end."""
    job, run, seen = kind.example("mine", TEMPLATE, queue="lq", delegated=False), None, list[Json]()
    for time, suspended in ((0, True), (1, False), (20, False)):
        job = kind.with_suspend(job, suspended)
        if not suspended:
            kind.pods.inject(job, {pod_set["name"]: Injection(annotations=NOTED) for pod_set in kind.pods.read(job)})
        job, run = turn(kind, job, run, time, fails=fails)
        seen.append(job["status"])
    return seen


NOTED = {"kueue.x-k8s.io/workload": "wl"}


def turn(kind: SandboxKind, job: Json, run: Run | None, time: float, *, fails: bool) -> tuple[Json, Run | None]:
    decided = decide_run(kind, job, run, time=time, now=NOW, startup=0, draw=lambda: Fate(10, fails))
    return (job if decided.status is None else {**job, "status": decided.status}), decided.run


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(
            {"finished": "object.status.state in ['Done', 'Burnt']", "failed": "object.status.state == 'Burnt'"}
        ),
        pytest.param({"finished": "has(object.status.completionTime)", "failed": "object.status.exitCode != 0"}),
        pytest.param({"finished": READY % "True", "failed": READY % "False"}),
        pytest.param({"finished": "object.status.result.frames > 249", "failed": "object.status.result.lost >= 1"}),
        pytest.param(
            {
                "finished": "object.status.steps.all(s, has(s.state.exitCode))",
                "failed": "object.status.steps.exists(s, s.state.exitCode != 0)",
            }
        ),
        pytest.param({"finished": "object.status.phase == 'Over' && object.status.settled == true"}),
        pytest.param({"finished": "timestamp(object.status.endedAt) > timestamp('2020-01-01T00:00:00Z')"}),
        pytest.param({"finished": "object.status.phase != ''"}),
        pytest.param({"failed": "object.status.state == 'Burnt'"}),
        pytest.param({}),
    ],
    ids=lambda said: said.get("finished", said.get("failed", "nothing said")),
)
def test_a_job_ends_when_its_declaration_says_so_and_not_before(said: dict[str, str]) -> None:
    row, kind = made(**said)
    for fails in (False, True):
        *before, end = statuses(kind, fails=fails)
        _, running = before
        assert [row.outcome({"status": status}) for status in before] == [None, None]
        assert [kind.course.is_active({"status": status}) for status in (*before, end)] == [False, True, False]
        assert kind.course.pods_ready({"status": running})
        ending, outcome = kind.ending({"status": end}), row.outcome({"status": end})
        assert ending is not None
        assert ending.reason == ("Failed" if fails and ("failed" in said or not said) else "Succeeded")
        if "finished" in said or (fails and said):
            assert outcome is not None
            assert outcome.reason == ending.reason


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            {"finished": "object.status.frames >= object.spec.frames"},
            "finished: object.status.frames >= object.spec.frames: no status was found that tells an end",
        ),
        (
            {"finished": "object.status.state == 'Done'", "failed": "object.status.score > object.spec.limit"},
            "failed: object.status.score > object.spec.limit: no status was found that tells an end",
        ),
        ({"finished": "!has(object.status.active)"}, "finished: !has(object.status.active): no status was found that"),
        (
            {"finished": "object.status.phase == 'Done'", "status_paths": (".status.note",)},
            "statusPaths: by them the manager's job does not show that it has ended",
        ),
        ({"workload_only": True}, "workloadOnly: somebody else's controller moves these jobs"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value.partition(":")[0],
)
def test_what_cannot_be_played_is_refused_with_the_setting(said: dict[str, Any], words: str) -> None:
    with pytest.raises(SandboxError) as caught:
        made(**said)
    assert str(caught.value).startswith(f"externalFrameworks[0].{words}")


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({}, id="nothing said"),
        pytest.param({"managed_by_path": ".spec.runBy", "suspend_path": ".spec.paused"}, id="paths"),
        pytest.param({"managed_by_label": "studio.example.com/by=us"}, id="a label of another value"),
        pytest.param({"always_delegated": True}, id="always delegated"),
        pytest.param({"suspend_path": ".spec.run", "suspend_value": False}, id="held by false"),
        pytest.param({"suspend_path": ".spec.stages", "suspend_value": []}, id="held by a list"),
        pytest.param(
            {"template_paths": (".spec.head.template", ".spec.groups[*].workers[*].template", ".spec.more[*]")},
            id="templates in lists",
        ),
    ],
)
def test_a_job_is_delegated_and_held_and_its_copy_runs(said: dict[str, Any]) -> None:
    """As the row makes it, on a server with the definition that the sandbox makes."""
    row, kind = made(**said)
    registry = Registry()
    registry.create_object(definition(kind))
    job = registry.create_object(kind.example("mine", TEMPLATE, queue="lq"))
    copy = row.copy(job, Stamp(origin="multikueue", workload="w", attempt="1"))

    assert row.not_delegated(job, "kueue.x-k8s.io/multikueue") is None
    assert kind.is_delegated(job)
    assert not kind.is_delegated(copy)
    assert kind.is_held(job)
    assert kind.is_held(copy)
    assert not kind.is_held(kind.with_suspend(copy, False))
    sets = kind.pods.read(job)
    assert len({pod_set["name"] for pod_set in sets}) == len(sets) == len(said.get("template_paths", ("",)))
    assert all(pod_set["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1" for pod_set in sets)


def test_replicas_beside_a_template_say_how_many_pods() -> None:
    _, kind = made(template_paths=(".spec.workers[*].template",))
    job = {"spec": {"workers": [{"template": TEMPLATE, "replicas": 3}, {"template": TEMPLATE}]}}
    assert [pod_set["count"] for pod_set in kind.pods.read(job)] == [3, 1]
