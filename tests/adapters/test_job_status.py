"""What is written of a Job's copy is taken by the manager's API server, whatever stands on the manager's Job already.

Its rules are those of `rules_job_status`, which a real server calibrates. The shown moments are those of a run that is
taken away (ending.md), and of people and programs that set a condition themselves (Argo CD's "Terminate").
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multikueue.core.model.adapter import Outcome
from multikueue.core.model.conditions import is_true, timestamp
from multikueue.core.model.labels import STOPPING_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.sandbox.apiserver.validation.rules_job_status import check_job_status
from tests.core.applying import merged
from tests.core.building import ADAPTER, job
from tests.core.door import NOW
from tests.examples import examples

START, LATER, END = "2026-11-21T11:00:00Z", "2026-11-21T11:10:00Z", "2026-11-21T11:20:00Z"
TERMINAL = ("SuccessCriteriaMet", "Complete", "FailureTarget", "Failed")
TERMINATED: Json = {"type": "FailureTarget", "status": "True", "reason": "ManuallyTerminated", "message": "by hand"}
MET: Json = {**TERMINATED, "type": "SuccessCriteriaMet"}


def true(*kinds: str, reason: str = "Said", message: str = "") -> list[Json]:
    return [
        {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": END}
        for kind in kinds
    ]


RUNNING: Json = {"active": 2, "ready": 2, "terminating": 0, "startTime": START}
COMPLETE: Json = {
    "succeeded": 2,
    "startTime": START,
    "completionTime": END,
    "conditions": true("SuccessCriteriaMet", "Complete", reason="CompletionsReached"),
}
FAILED: Json = {"failed": 1, "startTime": START, "conditions": true("FailureTarget", "Failed", reason="BackoffLimit")}


def shown(local: Json, remote: Json) -> Json:
    """The manager's Job after what is written of the copy, which its API server has taken."""
    return taken(local, ADAPTER.status_patch(local, remote, NOW))


def taken(local: Json, patch: Json | None) -> Json:
    if patch is None:
        return local
    after = {**local, "status": merged(local.get("status") or {}, patch["status"] or {})}
    assert check_job_status(local, after) == []
    return after


def counts(obj: Json) -> dict[str, Any]:
    return {field: dig(obj, "status", field) for field in ("active", "ready", "terminating")}


class TestPodsThatEnd:
    """F1: a copy says `terminating` from its stop until its last pod has gone."""

    def test_each_moment_of_a_stop(self) -> None:
        local = job(suspended=False, status=RUNNING)
        stopped = job(suspended=True, status={**RUNNING, "startTime": None})
        moments = [
            (job(suspended=False, status=RUNNING), {"active": 2, "ready": 2, "terminating": 0}),
            (job(suspended=True, status={"ready": 0, "terminating": 2}), {"active": 2, "ready": 0, "terminating": 2}),
            (job(suspended=True, status={"ready": 0, "terminating": 1}), {"active": 1, "ready": 0, "terminating": 1}),
            (
                job(suspended=True, status={"ready": 0, "terminating": 0}),
                {"active": None, "ready": 0, "terminating": 0},
            ),
        ]
        seen = {**stopped, "spec": {**local["spec"], "suspend": True}}
        for remote, expected in moments:
            seen = shown(seen, remote)
            assert counts(seen) == expected

    def test_a_copy_that_goes_with_its_pods_leaves_none(self) -> None:
        """The last that was seen of it is that they end."""
        local = shown(job(suspended=True, status=RUNNING), job(suspended=True, status={"ready": 0, "terminating": 1}))
        assert counts(local) == {"active": 1, "ready": 0, "terminating": 1}
        local = taken(local, ADAPTER.release_patch(local))
        assert counts(local) == {"active": 0, "ready": 0, "terminating": 0}
        assert ADAPTER.release_patch(local) is None

    @pytest.mark.parametrize("end", [COMPLETE, FAILED])
    def test_an_end_replaces_the_whole_status(self, end: Json) -> None:
        """A server refuses an end beside active pods, and older workers tell one while pods still end."""
        local = job(suspended=False, status={**RUNNING, "uncountedTerminatedPods": {"failed": ["a"]}})
        ended = shown(local, job(status={**end, "terminating": 1, "uncountedTerminatedPods": {"failed": ["a"]}}))
        assert ended["status"] == {**end, "terminating": 0}

    def test_no_more_pods_are_ready_than_active(self) -> None:
        remote = job(suspended=False, status={"active": 1, "ready": 2, "startTime": START})
        assert counts(shown(job(suspended=False), remote))["ready"] == 1


class TestSettledEnds:
    """What says how a Job ends stays, whoever has put it there."""

    @pytest.mark.parametrize(
        ("mark", "end", "outcome"),
        [(TERMINATED, "Failed", Outcome("Failed", "by hand")), (MET, "Complete", Outcome("Succeeded", "by hand"))],
        ids=["failure", "success"],
    )
    @pytest.mark.parametrize("copied", [RUNNING, COMPLETE, FAILED], ids=["runs", "completes", "fails"])
    def test_a_mark_by_hand_decides_the_end(self, mark: Json, end: str, outcome: Outcome, copied: Json) -> None:
        """Also where the copy has ended otherwise meanwhile. The counters are the copy's."""
        local = job(suspended=False, status={**RUNNING, "conditions": [mark]})
        assert ADAPTER.settled_end(local) == outcome
        after = shown(local, job(suspended=False, status=copied))
        assert mark in after["status"]["conditions"]
        assert after["status"].get("succeeded") == copied.get("succeeded")
        assert ADAPTER.outcome(after) == (None if copied is RUNNING else outcome)

        after = taken(after, ADAPTER.settled_patch(after, NOW))
        assert ADAPTER.outcome(after) == ADAPTER.settled_end(after) == outcome
        (ended,) = (condition for condition in after["status"]["conditions"] if condition["type"] == end)
        assert ended["reason"] == mark["reason"]
        assert not any(counts(after).values())
        assert ("completionTime" in after["status"]) == (end == "Complete")
        assert ADAPTER.settled_patch(after, NOW) is None

    def test_a_copy_that_fails_by_itself_is_settled_as_well(self) -> None:
        """Nobody asks for anything then: both have the mark."""
        failing = job(suspended=False, status={**RUNNING, "conditions": true("FailureTarget")})
        assert ADAPTER.settled_end(failing) == Outcome("Failed", "Job failed")
        assert ADAPTER.settled_end(job(status=RUNNING)) is None
        assert ADAPTER.settled_patch(job(status=RUNNING), NOW) is None

    def test_one_that_never_started_ends_with_a_start(self) -> None:
        """A server wants one of each Job that has ended."""
        local = job(suspended=True, status={"conditions": [TERMINATED]})
        after = taken(local, ADAPTER.settled_patch(local, NOW))
        assert after["status"]["startTime"] == timestamp(NOW)
        assert ADAPTER.outcome(after) == Outcome("Failed", "by hand")

    @pytest.mark.parametrize("end", [COMPLETE, FAILED])
    @pytest.mark.parametrize("copied", [RUNNING, COMPLETE, FAILED, {}], ids=["runs", "completes", "fails", "new"])
    def test_an_end_by_hand_stays(self, end: Json, copied: Json) -> None:
        local = job(suspended=False, status=end)
        assert ADAPTER.status_patch(local, job(suspended=False, status=copied), NOW) is None

    @pytest.mark.parametrize("end", ["Complete", "Failed"])
    def test_the_end_of_an_older_worker_is_announced_here(self, end: str) -> None:
        """Before Kubernetes 1.31 a Job ended without; the manager's server refuses that."""
        remote = job(suspended=False, status={"startTime": START, "completionTime": END, "conditions": true(end)})
        after = shown(job(suspended=False, status=RUNNING), remote)
        assert ADAPTER.outcome(after) == ADAPTER.outcome(remote)

    def test_counters_and_the_first_start_stay(self) -> None:
        local = job(suspended=False, status={"failed": 3, "succeeded": 1, "startTime": START})
        after = shown(local, job(suspended=False, status={"failed": 1, "active": 1, "startTime": LATER}))
        assert after["status"] == {"failed": 3, "succeeded": 1, "active": 1, "startTime": START}


counters = st.fixed_dictionaries(
    {},
    optional={
        field: st.none() | st.integers(0, 3) for field in ("active", "ready", "terminating", "succeeded", "failed")
    },
)
times = st.fixed_dictionaries(
    {},
    optional={field: st.none() | st.sampled_from((START, LATER, END)) for field in ("startTime", "completionTime")},
)
listed = st.lists(
    st.builds(
        lambda kind, status, reason: {"type": kind, "status": status, "reason": reason, "message": reason},
        st.sampled_from((*TERMINAL, "Suspended")),
        st.sampled_from(("True", "False")),
        st.sampled_from(("A", "B")),
    ),
    unique_by=lambda condition: str(condition["type"]),
    max_size=4,
)
statuses = st.builds(
    lambda counted, at, conditions, uncounted: {
        **counted,
        **at,
        "conditions": conditions,
        "uncountedTerminatedPods": {"failed": ["a"]} if uncounted else {},
    },
    counters,
    times,
    listed,
    st.booleans(),
)
steps = st.tuples(
    st.sampled_from(("copy", "copy", "by hand", "started", "suspended", "stopping", "released", "settled")),
    statuses,
    st.booleans(),
)


@settings(max_examples=examples(300))
@given(st.lists(steps, min_size=1, max_size=6))
def test_whatever_a_copy_says_its_server_takes_what_is_written(drawn: list[tuple[str, Json, bool]]) -> None:
    """Of copies of several attempts, with what people set by hand and the manager's Kueue does in between."""
    local = job(suspended=True, status={})
    for what, status, suspended in drawn:
        before = local
        if what == "copy":
            local = _synced(local, job(suspended=suspended, status=status))
        elif what == "by hand":
            changed = {**local, "status": status}
            local = local if check_job_status(local, changed) else changed
        elif what == "released":
            local = taken(local, ADAPTER.release_patch(local))
        elif what == "settled":
            local = taken(local, ADAPTER.settled_patch(local, NOW))
        else:
            local = _of_kueue(local, what)
        if what != "by hand":
            assert [kind for kind in TERMINAL if is_true(before, kind) and not is_true(local, kind)] == []


def _synced(local: Json, remote: Json) -> Json:
    after = shown(local, remote)
    assert ADAPTER.status_patch(after, remote, NOW) is None, "written once"
    if ADAPTER.outcome(after) is None and dig(local, "spec", "suspend"):
        assert dig(after, "status", "startTime") in (None, dig(local, "status", "startTime"))
    return after


def _of_kueue(local: Json, what: str) -> Json:
    """What the manager's Kueue does with a Job: it starts it, or stops it in two steps and takes its start away."""
    status = {key: value for key, value in local["status"].items() if what != "suspended" or key != "startTime"}
    if ADAPTER.outcome(local) is not None:
        return local
    note = {STOPPING_ANNOTATION: "true"} if what == "stopping" else {}
    spec = {**local["spec"], "suspend": what != "started"}
    return {**local, "metadata": {**local["metadata"], "annotations": note}, "spec": spec, "status": status}
