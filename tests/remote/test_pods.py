"""What is printed of pods, and whose log is meant."""

from __future__ import annotations

import pytest

from multikueue.core.model.names import Json
from multikueue.core.model.objects import name_of
from multikueue.testing import NOW
from multikueued.exits import CommandError
from multikueued.reading.pods import PodList, container_of, in_order, next_shown, pod_report
from multikueued.remote.command import pods_table
from tests.remote.objects import pod


def test_the_one_that_runs_the_longest_comes_first() -> None:
    pods = [
        pod("waits", phase="Pending"),
        pod("ended", phase="Failed", at=1),
        pod("new", at=3),
        pod("old", at=2),
    ]
    assert [name_of(pod) for pod in in_order(pods)] == ["old", "new", "ended", "waits"]


def test_one_pod_and_then_the_one_made_after_it() -> None:
    first, beside, after = pod("a", at=1), pod("b", at=1), pod("c", at=2)
    assert next_shown([first, beside], [], all_pods=False) == [first]
    assert next_shown([first, beside], [first], all_pods=False) == []
    assert next_shown([first, beside, after], [first], all_pods=False) == [after]
    assert next_shown([first, beside, after], [first], all_pods=True) == [beside, after]


def test_the_container_that_is_meant() -> None:
    annotated = pod("a", annotations={"kubectl.kubernetes.io/default-container": "train"})
    annotated["spec"]["containers"].append({"name": "train"})
    assert container_of(annotated, "") == "train"
    assert container_of(annotated, "main") == "main"
    assert container_of(pod("a"), "") == "main"
    with pytest.raises(CommandError, match='pod a has no container "other", but main, train'):
        container_of(annotated, "other")


def test_the_table_tells_why_a_pod_waits() -> None:
    waits = pod("train-1", phase="Pending")
    waits["status"]["containerStatuses"] = [
        {"name": "main", "restartCount": 2, "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    ]
    listed = PodList("job/train", "default", "worker1", (pod_report(waits),), ("jobs.batch may not be listed there",))
    lines = pods_table(listed, NOW, 80, wide=False)
    assert lines[0] == 'job/train in namespace default is on worker cluster "worker1".'
    assert lines[3].split() == ["train-1", "Pending", "0/1", "2", "0s", "ImagePullBackOff"]
    assert lines[4] == "There may be more pods: jobs.batch may not be listed there."
    assert all(len(line) <= 80 for line in lines)


def status(name: str, **state: object) -> Json:
    """Of a container."""
    return {"name": name, "state": state}


@pytest.mark.parametrize(
    ("shown", "reason", "code"),
    [
        (
            {"containerStatuses": [status("main", terminated={"reason": "OOMKilled", "exitCode": 137})]},
            "OOMKilled",
            137,
        ),
        (
            {"containerStatuses": [status("main", terminated={"reason": "StartError", "exitCode": 128})]},
            "StartError",
            128,
        ),
        ({"containerStatuses": [status("main", terminated={"exitCode": 7})]}, "Error", 7),
        ({"containerStatuses": [status("main", running={})]}, "", None),
        ({"reason": "Evicted", "message": "low on memory"}, "Evicted", None),
        (
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
                ]
            },
            "0/1 nodes",
            None,
        ),
        (
            {
                "initContainerStatuses": [status("setup", terminated={"reason": "Error", "exitCode": 1})],
                "containerStatuses": [status("main", waiting={"reason": "PodInitializing"})],
            },
            "init container setup: Error, exit code 1",
            1,
        ),
    ],
)
def test_why_a_pod_does_not_run(shown: Json, reason: str, code: int | None) -> None:
    report = pod_report({**pod("a"), "status": {"phase": "Failed", **shown}})

    assert (report.reason, report.why.exit_code) == (reason, code)


def test_restarts_of_init_containers_count() -> None:
    """One that fails again and again is all that its pod does: it had no restarts."""
    made = pod("a")
    made["status"]["initContainerStatuses"] = [{"name": "setup", "restartCount": 4}]
    made["status"]["containerStatuses"] = [{"name": "main", "restartCount": 0}]
    assert pod_report(made).restarts == 4


def test_a_container_that_is_not_there_is_told_with_those_that_are() -> None:
    made = pod("a")
    made["spec"]["initContainers"] = [{"name": "setup"}]
    with pytest.raises(CommandError, match=r'no container "man", but main, setup \(init\)'):
        container_of(made, "man")
