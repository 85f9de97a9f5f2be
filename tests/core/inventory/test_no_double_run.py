"""Beside Kueue's own controller nothing runs twice, whatever OCM decides and in whatever order things are seen."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multikueue.core.inventory.settings import Policy
from tests.core.inventory.ground import FOREIGN, Hub, hub, set_condition, workload
from tests.examples import examples

CLUSTERS = ["a", "b", "c", "d"]
NAMES = ["w1", "w2", "w3"]


@attrs.define
class Rival:
    """Kueue's MultiKueue as far as configs go, played: it follows what is in the config, and nothing else."""

    ground: Hub
    running: dict[str, set[str]] = attrs.field(factory=dict)
    """By Workload, the clusters where its job runs."""

    def act(self, name: str, cluster: str) -> None:
        """It looks at one Workload; `cluster` is the one that would admit it."""
        workload, listed = self.ground.workloads[name], self.ground.listed() or []
        status, jobs = workload["status"], self.running.setdefault(name, set())
        state = {entry["name"]: entry["state"] for entry in status["admissionChecks"]}["placed"]
        if state == "Retry" or status.get("evicting"):
            self._evict(name)
            jobs -= set(listed)  # it removes copies only where the config tells it to look
        elif status.get("clusterName"):
            if status["clusterName"] not in listed:
                self._evict(name)
        elif state == "Ready" and not status.get("nominatedClusterNames"):
            status["nominatedClusterNames"] = list(listed)
        elif cluster in status.get("nominatedClusterNames", ()):
            status["clusterName"] = cluster
            status.pop("nominatedClusterNames")
            jobs.add(cluster)
        assert len(jobs) <= 1, f"{name} runs on {sorted(jobs)}"
        self._changed(name)

    def end(self, name: str) -> None:
        """The job of a Workload ends, and another Workload of that name is created."""
        self.running[name] = set()
        set_condition(self.ground.workloads[name], "Finished", True)
        version = self.ground.workloads[name]["metadata"]["resourceVersion"]
        self.ground.workloads[name] = workload(name)
        self.ground.workloads[name]["metadata"]["resourceVersion"] = version
        self._changed(name)

    def _evict(self, name: str) -> None:
        version = self.ground.workloads[name]["metadata"]["resourceVersion"]
        self.ground.workloads[name] = workload(name)
        self.ground.workloads[name]["metadata"]["resourceVersion"] = version

    def _changed(self, name: str) -> None:
        metadata = self.ground.workloads[name]["metadata"]
        metadata["resourceVersion"] = f"{metadata['resourceVersion']}."


STEPS = st.one_of(
    st.tuples(st.just("decide"), st.lists(st.sampled_from(CLUSTERS), max_size=4)),
    st.tuples(st.just("look"), st.none()),
    st.tuples(st.just("time"), st.sampled_from([1, 30, 61, 400])),
    st.tuples(st.just("rival"), st.tuples(st.sampled_from(NAMES), st.sampled_from(CLUSTERS))),
    st.tuples(st.just("end"), st.sampled_from(NAMES)),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("tamper"), st.lists(st.sampled_from(CLUSTERS), min_size=1, max_size=2, unique=True)),
)


def play(policy: Policy, steps: list[tuple[str, Any]], *, tampering: bool = False) -> Hub:
    """Play steps.

    Raises:
        AssertionError: a job runs on two clusters.
    """
    ground = hub(*CLUSTERS, controller=FOREIGN, policy=policy)
    ground.workloads = {name: workload(name) for name in NAMES}
    ground.settle()
    rival = Rival(ground)
    for step, value in steps:
        if step == "decide":
            ground.decide(*sorted(set(value)))
        elif step == "look":
            ground.step()
        elif step == "time":
            ground.later(value)
        elif step == "rival":
            rival.act(*value)
        elif step == "end":
            rival.end(value)
        elif step == "restart":
            ground.memory.clear()
        elif tampering:
            ground.configs["p"]["spec"]["clusters"] = value
            ground.configs["p"]["metadata"]["resourceVersion"] += "."
        for name, jobs in rival.running.items():
            placed = ground.workloads[name]["status"].get("clusterName")
            if placed and not tampering and policy is not Policy.IMMEDIATE:
                assert placed in (ground.listed() or []), f"{placed} was dropped under {name}"
            assert len(jobs) <= 1
    return ground


@settings(max_examples=examples(300))
@given(st.sampled_from([Policy.DRAIN, Policy.EVICT]), st.lists(STEPS, max_size=60))
def test_a_cluster_with_work_is_never_dropped(policy: Policy, steps: list[tuple[str, Any]]) -> None:
    """W2."""
    play(policy, steps)


def test_the_upstream_way_does_run_twice() -> None:
    """The property can fail: this is what OCM's addon does."""
    flip: list[tuple[str, Any]] = [
        ("decide", ["a"]), ("look", None), ("look", None), ("time", 61), ("look", None), ("time", 5), ("look", None),
        ("rival", ("w1", "a")), ("rival", ("w1", "a")), ("decide", ["b"]), ("look", None),
        ("rival", ("w1", "b")), ("time", 61), ("look", None), ("look", None),
        ("rival", ("w1", "b")), ("rival", ("w1", "b")),
    ]  # fmt: skip
    with pytest.raises(AssertionError, match="w1 runs on"):
        play(Policy.IMMEDIATE, flip)
    play(Policy.DRAIN, flip)


@settings(max_examples=examples(100))
@given(st.lists(STEPS, max_size=60))
def test_it_comes_to_rest(steps: list[tuple[str, Any]]) -> None:
    """Whatever has happened, once the jobs have ended the config lists what is selected."""
    ground = play(Policy.DRAIN, steps, tampering=True)
    ground.decide("a", "b")
    ground.workloads = {}
    for _ in range(3):
        ground.settle()
        ground.later(61)
    ground.after(301)
    assert ground.listed() == ["a", "b"]
    assert ground.said()[0] == "True"
