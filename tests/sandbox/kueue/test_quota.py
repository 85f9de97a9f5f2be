"""What fits into a ClusterQueue, and what Kueue says if it does not."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.core.model.names import Json
from multikueue.core.model.quantities import thousandths
from multikueue.sandbox.kueue.scheduling.podsets import PodSetRequest, request
from multikueue.sandbox.kueue.scheduling.quota import Assignment, NoFit, Quota, assign, used_by


def quota(*groups: tuple[list[str], list[tuple[str, list[str]]]]) -> Quota:
    """Groups of covered resources and (flavor, quotas)."""
    listed = [
        {
            "coveredResources": covered,
            "flavors": [
                {
                    "name": name,
                    "resources": [
                        {"name": resource, "nominalQuota": amount}
                        for resource, amount in zip(covered, amounts, strict=True)
                    ],
                }
                for name, amounts in flavors
            ],
        }
        for covered, flavors in groups
    ]
    return Quota.of({"spec": {"resourceGroups": listed}})


def asks(name: str = "main", count: int = 1, **amounts: str) -> PodSetRequest:
    listed = {resource.replace("gpu", "nvidia.com/gpu"): thousandths(amount) for resource, amount in amounts.items()}
    return PodSetRequest(name, count, tuple(sorted({**listed, "pods": count * 1000}.items())))


def fitting(result: Assignment | NoFit) -> Assignment:
    assert isinstance(result, Assignment), result
    return result


def message(result: Assignment | NoFit) -> str:
    assert isinstance(result, NoFit)
    return result.message


CPU = quota((["cpu"], [("default", ["2"])]))


def test_a_request_gets_the_flavor_and_is_written_as_kueue_does() -> None:
    result = fitting(assign(CPU, {}, [asks(cpu="500m")]))
    assert result.pod_sets == (
        {"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "500m"}},
    )
    assert result.usage == {("default", "cpu"): 500}


def test_pod_sets_have_to_fit_together() -> None:
    assert fitting(assign(CPU, {}, [asks("a", cpu="1"), asks("b", cpu="1")])).usage == {("default", "cpu"): 2_000}
    assert message(assign(CPU, {}, [asks("a", cpu="1"), asks("b", cpu="1500m")])) == (
        "couldn't assign flavors to pod set b: insufficient unused quota for cpu in flavor default, 500m more needed"
    )


def test_what_is_used_is_not_there() -> None:
    assert message(assign(CPU, {("default", "cpu"): 1_500}, [asks(cpu="1")])) == (
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 500m more needed"
    )


def test_what_can_never_fit_is_told_apart() -> None:
    assert message(assign(CPU, {}, [asks(cpu="3")])) == (
        "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, previously considered "
        "podsets requests (0) + current podset request (3) > maximum capacity (2)"
    )


def test_a_resource_the_queue_does_not_cover_has_no_place() -> None:
    expected = "couldn't assign flavors to pod set main: resource memory unavailable in ClusterQueue"
    assert message(assign(CPU, {}, [asks(cpu="1", memory="1Gi")])) == expected


def test_the_next_flavor_is_tried() -> None:
    both = quota((["cpu"], [("spot", ["1"]), ("reserved", ["4"])]))
    assert fitting(assign(both, {}, [asks(cpu="1")])).pod_sets[0]["flavors"] == {"cpu": "spot"}
    assert fitting(assign(both, {("spot", "cpu"): 1_000}, [asks(cpu="1")])).pod_sets[0]["flavors"] == {
        "cpu": "reserved"
    }


def test_resources_of_one_group_share_a_flavor_and_groups_choose_for_themselves() -> None:
    both = quota(
        (["cpu", "memory"], [("small", ["1", "1Gi"]), ("large", ["8", "8Gi"])]),
        (["nvidia.com/gpu"], [("a100", ["2"])]),
    )
    result = fitting(assign(both, {}, [asks(cpu="1", memory="2Gi", gpu="1")]))
    assert result.pod_sets[0]["flavors"] == {"cpu": "large", "memory": "large", "nvidia.com/gpu": "a100"}


def test_pods_are_counted_where_they_are_covered() -> None:
    pods = quota((["cpu", "pods"], [("default", ["10", "2"])]))
    assert fitting(assign(pods, {}, [asks(count=2, cpu="1")])).usage[("default", "pods")] == 2_000
    assert "insufficient quota for pods" in message(assign(pods, {}, [asks(count=3, cpu="1")]))


def test_a_job_that_asks_for_nothing_fits_anywhere() -> None:
    result = fitting(assign(CPU, {}, [asks()]))
    assert (result.pod_sets, result.usage) == (({"name": "main", "count": 1},), {})


def test_usage_is_read_back_from_an_admission() -> None:
    result = fitting(assign(CPU, {}, [asks("a", cpu="1"), asks("b", cpu="250m")]))
    workload: Json = {"status": {"admission": {"podSetAssignments": list(result.pod_sets)}}}
    assert used_by(workload) == result.usage
    empty: dict[str, Any] = {}
    assert used_by(empty) == {}


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ({"nodeSelector": {"gpu": "a100"}}, "a100"),
        ({"nodeSelector": {"gpu": "t4"}, "tolerations": [{"key": "spot", "operator": "Exists"}]}, "spot"),
        (
            {"nodeSelector": {"gpu": "t4"}},
            "untolerated taint {spot  NoSchedule <nil>} in flavor spot, flavor a100 doesn't match node affinity",
        ),
    ],
)
def test_pods_get_a_flavor_that_they_may_use(pods: Json, expected: str) -> None:
    """As its ResourceFlavor says: labels that the pods select, and taints that they tolerate."""
    spot = {"nodeLabels": {"gpu": "t4"}, "nodeTaints": [{"key": "spot", "effect": "NoSchedule"}]}
    flavors = [("spot", spot), ("a100", {"nodeLabels": {"gpu": "a100"}})]
    resources = [{"name": "cpu", "nominalQuota": "2"}]
    group = {"coveredResources": ["cpu"], "flavors": [{"name": name, "resources": resources} for name, _ in flavors]}
    both = Quota.of(
        {"spec": {"resourceGroups": [group]}}, [{"metadata": {"name": name}, "spec": spec} for name, spec in flavors]
    )
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    asked = request({"name": "main", "count": 1, "template": {"spec": {"containers": containers, **pods}}})
    result = assign(both.within(both.nominal()), {}, [asked])
    if isinstance(result, NoFit):
        assert result.message == f"couldn't assign flavors to pod set main: {expected}"
    else:
        assert result.pod_sets[0]["flavors"] == {"cpu": expected}
