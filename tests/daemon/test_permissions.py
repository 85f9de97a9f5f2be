"""What the daemon asks of the API servers is no more than what the chart and the page for operators grant."""

from __future__ import annotations

import re
from pathlib import Path

import anyio
import pytest

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.labels import LAST_WORKER_ANNOTATION
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import annotations_of
from multikueue.sandbox.apiserver import DirectClient, Fault, Refuse
from multikueue.sandbox.apiserver.faults import Call
from multikueue.sandbox.kueue import evict
from multikueued.settings.config import Settings
from tests.integration.permissions import WORKER_RULES, NotGranted, chart_objects, chart_rules, granted
from tests.runtime.fleet import Fleet, until
from tests.runtime.test_recording import create_unseen, hold, lose, offer_to_both

USER = "multikueue"
TEMPLATES = Path(__file__).parents[2] / "charts" / "multikueued" / "templates"


def enforce(fleet: Fleet) -> list[Fault]:
    """Refuse what is not granted, as RBAC does."""
    rules = {fleet.manager: chart_rules(), **dict.fromkeys(fleet.workers.values(), WORKER_RULES)}
    return [
        server.faults.add(Refuse(403), on=NotGranted(user=USER, granted=granted(of))) for server, of in rules.items()
    ]


def test_a_subresource_is_granted_by_itself() -> None:
    """RBAC has it so: `workloads/status` is no part of `workloads`."""
    rules = granted([{"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads"], "verbs": ["list", "patch"]}])
    refused = NotGranted(user=USER, granted=rules)
    assert not refused.fits(Call(USER, "patch", str(WORKLOAD)))
    assert refused.fits(Call(USER, "create", str(WORKLOAD)))
    assert refused.fits(Call(USER, "patch", str(WORKLOAD), subresource="status"))
    assert refused.fits(Call(USER, "list", "jobs.batch"))
    assert not refused.fits(Call("admin", "create", str(WORKLOAD)))


def test_only_our_lease_may_be_read_and_changed() -> None:
    """Other controllers have theirs in the same namespace: whoever may change them decides who leads there."""
    rules = [rule for rule in chart_rules() if "leases" in rule["resources"]]
    assert [(rule["verbs"], rule.get("resourceNames")) for rule in rules] == [
        (["create"], None),
        (["get", "update"], [Settings().name]),
    ]


def test_of_secrets_only_that_with_the_key_of_marks_may_be_changed() -> None:
    """The chart makes it, empty: whoever may create Secrets gets tokens of the namespace's service accounts."""
    rules = [rule for rule in chart_rules() if "secrets" in rule["resources"]]
    (secret,) = chart_objects("marks.yaml")
    name = Settings().marks_secret
    assert [(rule["verbs"], rule.get("resourceNames")) for rule in rules] == [
        (["list", "watch"], None),
        (["get", "patch"], [name]),
    ]
    assert (secret["kind"], secret["metadata"]["name"], "data" in secret) == ("Secret", name, False)


def test_quota_automation_is_granted_what_it_asks_for_and_no_more() -> None:
    role = chart_objects("rbac-quota.yaml")[0]
    kueue = "kueue.x-k8s.io"
    assert granted(role["rules"]) == {
        (kueue, "clusterqueues"): {"list", "watch", "patch"},
        (kueue, "localqueues"): {"list", "watch"},
        (kueue, "clusterqueues/status"): {"patch"},
    }


def test_the_network_policy_names_the_ports_of_the_pod() -> None:
    (policy,) = chart_objects("networkpolicy.yaml")
    deployment = (TEMPLATES / "deployment.yaml").read_text()
    ports = [port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]]
    assert ports == ["http", "webhook"]
    assert re.findall(r"- name: (\w+)\n +containerPort", deployment) == ["http", "metrics", "webhook"]
    assert all(rule["from"] for rule in policy["spec"]["ingress"])
    assert policy["spec"]["policyTypes"] == ["Ingress"]


@pytest.mark.looptime
async def test_the_permissions_are_enough_from_the_offer_to_the_next_worker() -> None:
    """Offer, record, create, lose the worker, note it on the Workload, and take the note away again."""
    fleet = Fleet.of("worker1", "worker2")
    refusals = enforce(fleet)
    create_unseen(fleet, "worker1")

    async def noted() -> str | None:
        return annotations_of(await fleet.workload()).get(LAST_WORKER_ANNOTATION)

    async with fleet.kueues(), fleet.running(fleet.build(lost_timeout=300)):
        await offer_to_both(fleet)
        await hold(fleet, "worker1", on=False)
        await until(fleet.running_on)
        lose(fleet, "worker1")
        await hold(fleet, "worker2", on=False)
        await anyio.sleep(100)  # until the silence is noticed
        await evict(fleet.admin, ObjectKey.of(await fleet.workload()))
        await until(noted)

        async def runs_on_both() -> bool:  # worker1 is lost for good, and its job with it
            return [*await fleet.running_on()] == ["worker1", "worker2"]

        await until(runs_on_both, within=400)
        assert await noted() is None
        await DirectClient(fleet.manager).delete(WORKLOAD, ObjectKey.of(await fleet.workload()))
        await anyio.sleep(60)
    assert [fault.hits for fault in refusals] == [0, 1, 1], "a worker's version of Kueue need not be known"
