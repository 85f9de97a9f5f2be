"""What the daemon publishes of workers, and what is read of it: by values alone."""

from __future__ import annotations

import json
from datetime import timedelta

import attrs
import pytest

from multikueue.core.model.names import GVK, Json, ObjectKey
from multikueue.core.model.worker_kueue import GATES, WorkerKueue
from multikueue.testing import NOW
from multikueued.reports.ending_copies import EndingCopy, LatePod
from multikueued.reports.published import MOST, Published, config_map, published_in, seen, slim, written
from multikueued.reports.quotas import NOBODY_SAW, quota_of
from multikueued.reports.worker_facts import ClockBound, KubeconfigFacts, NotChecked, Permission, WorkerFacts
from multikueued.reports.worker_queues import QueuesOnWorker
from multikueued.tokens.bound import Bound

KEY = ObjectKey("default", "user-queue")


def cluster_queue(name: str, cpu: str, used: str) -> Json:
    flavor = {
        "name": "f",
        "resources": [{"name": "cpu", "nominalQuota": cpu}, {"name": "memory", "nominalQuota": "1Gi"}],
    }
    usage = [{"name": "f", "resources": [{"name": "cpu", "total": used, "borrowed": "0"}]}]
    spec = {
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
        "namespaceSelector": {"secret": "x"},
    }
    metadata = {"name": name, "annotations": {"secret": "x"}}
    return {
        "metadata": metadata,
        "spec": spec,
        "status": {"flavorsUsage": usage, "conditions": [{"message": "secret"}]},
    }


QUEUES = QueuesOnWorker(
    {KEY: "a", ObjectKey("team", "user-queue"): "b", ObjectKey("team", "other"): "b"},
    {
        "a": cluster_queue("a", "4", "1500m"),
        "b": cluster_queue("b", "2", "2"),
        "hidden": cluster_queue("hidden", "9", "9"),
    },
)
FACTS = WorkerFacts(
    "worker1",
    latency=0.0421,
    clock=ClockBound(-1.0, 1.5),
    permissions=(
        Permission("list", "pods", "", "", "", allowed=True),
        Permission("create", "jobs", "batch", "", "", allowed=False),
    ),
    lacking=frozenset({GVK("ray.io", "v1", "RayJob")}),
    namespaces=frozenset({"default", "team"}),
    queues=slim(QUEUES),
    kueue=WorkerKueue((0, 16), frozenset({GATES}), read=True),
)
SEEN = Published(seen(FACTS, ClockBound(0.0, 1.0)), NOW, (NotChecked("pods of worker1", "why", "who"),), NOW)


def through(published: Published, limit: int = MOST) -> Published:
    stored = config_map("kueue-system", "multikueue-findings", {"worker1": written(published, limit)})
    return published_in(json.loads(json.dumps(stored)))["worker1"]


def test_what_is_published_is_read_again() -> None:
    read = through(SEEN)
    assert read.facts.queues is not None
    assert read.facts.queues.local == QUEUES.local
    without = attrs.evolve(read, facts=attrs.evolve(read.facts, queues=None))
    assert without == attrs.evolve(SEEN, facts=attrs.evolve(SEEN.facts, queues=None))


def test_which_job_copies_do_not_end_is_told_as_far_as_there_is_room() -> None:
    pods = (LatePod("a-1", "n1", NOW),)
    ending = EndingCopy("Job", ObjectKey("team", "a"), "u", NOW, NOW, NOW, ("x.y/z",), ObjectKey("team", "w"), pods)
    assert through(SEEN).facts.overdue is None, "nobody has looked: an older daemon says nothing of it"
    for overdue in ((), (ending,)):
        published = attrs.evolve(SEEN, facts=attrs.evolve(SEEN.facts, overdue=overdue))
        assert through(published).facts.overdue == overdue
    less = through(attrs.evolve(SEEN, facts=attrs.evolve(SEEN.facts, overdue=(ending,) * 999)))
    assert less.facts.overdue is None
    assert less.facts.queues is not None
    assert "which job copies do not end of worker1" in [gap.what for gap in less.not_checked]


def test_when_credentials_expire_is_told_and_nothing_else_of_them() -> None:
    bound = Bound(ObjectKey("kueue-system", "multikueue")).with_life(NOW, timedelta(days=1))
    held = KubeconfigFacts("worker1-kubeconfig", "", bound.expires, NOW, bound)
    assert through(attrs.evolve(SEEN, credentials=held)).credentials == held
    plain = KubeconfigFacts("worker1-kubeconfig")
    assert through(attrs.evolve(SEEN, credentials=plain)).credentials == plain


def test_no_address_no_secret_and_no_queue_that_nobody_leads_to_is_published() -> None:
    facts = attrs.evolve(FACTS, error="cannot connect to 10.0.0.7:6443 at https://oslo.example.com/x ")
    gap = NotChecked("worker1 itself", "Get https://10.1.2.3/api: refused", "who")
    text = written(Published(seen(facts, None), NOW, (gap,)))
    for hidden in ("10.0.0.7", "oslo", "10.1.2.3", "secret", "hidden"):
        assert hidden not in text


def test_what_it_may_is_not_told_only_what_it_lacks() -> None:
    assert [str(permission) for permission in through(SEEN).facts.permissions] == ["create jobs.batch"]


def test_clocks_are_told_relative_to_the_managers() -> None:
    """The reader's machine is an hour behind: what it sees of both differs by the same as what the daemon saw."""
    here = ClockBound(3600.0, 3601.0)
    there = through(SEEN).on_this_machine(here)
    assert there.clock is not None
    assert there.clock.ahead_of(here) == SEEN.facts.clock
    assert through(SEEN).on_this_machine(None).clock is None


def test_what_does_not_fit_is_not_checked_and_the_rest_is_told() -> None:
    many = attrs.evolve(
        SEEN, facts=attrs.evolve(SEEN.facts, namespaces=frozenset(f"n{number}" for number in range(9_000)))
    )
    read = through(many)
    assert read.facts.namespaces is None
    assert read.facts.queues is not None
    assert "namespaces of worker1" in [gap.what for gap in read.not_checked]
    least = through(many, 600)
    assert (least.facts.queues, least.facts.namespaces) == (None, None)
    assert len(written(many, 600)) <= 600
    nothing = through(many, 10)
    assert [gap.what for gap in nothing.not_checked] == ["worker1 itself"]


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{", "1", "{}", '{"at": "2026-01-01T00:00:00Z", "localQueues": {}}', '{"facts": 1}',
        '{"facts": {"clock": 1}}', '{"facts": {"clock": ["a", "b"]}}', '{"facts": {"lacking": [["a"]]}}',
        '{"facts": {"permissions": [1]}}', '{"facts": {"queues": {"local": {"a": 1}}}}', '{"facts": {"latency": "x"}}',
        '{"facts": {"queues": {"local": {}, "cluster": {"a": 1}}}}', '{"facts": {}, "not_checked": [["a"]]}',
        '{"facts": {}, "credentials": 1}', '{"facts": {}, "credentials": {}}', '{"facts": {}, "at": 5}',
        "[" * 50_000, "x" * 1_000_001,
    ],
)  # fmt: skip
def test_a_document_that_is_none_is_left_out(text: str) -> None:
    assert published_in({"data": {"worker1.json": text, "worker2.json": '{"facts": {}}'}}).keys() == {"worker2"}


def test_nothing_is_read_of_no_config_map() -> None:
    assert published_in(None) == {}
    assert published_in({"data": None}) == {}


def test_quota_is_that_of_the_queues_that_ours_lead_to_once_each() -> None:
    quota = quota_of(
        through(SEEN), [KEY, ObjectKey("team", "user-queue"), ObjectKey("team", "other"), ObjectKey("x", "y")]
    )
    assert (quota.used, quota.total) == ({"cpu": "3500m", "memory": "0"}, {"cpu": "6", "memory": "2Gi"})
    assert quota.at == NOW
    assert quota_of(through(SEEN), [KEY]).total == {"cpu": "4", "memory": "1Gi"}
    assert quota_of(through(SEEN), []).total == {}


def test_quota_that_may_not_be_read_is_not_checked() -> None:
    assert quota_of(None, [KEY]).not_checked == NOBODY_SAW
    why = "the user of its kubeconfig may not list clusterqueues there"
    blind = Published(attrs.evolve(FACTS, queues=None, queues_unseen=why), NOW)
    quota = quota_of(through(blind), [KEY])
    assert (quota.at, quota.total, quota.not_checked) == (None, {}, why)
    untold = Published(attrs.evolve(FACTS, queues=None), NOW, (NotChecked("quotas of worker1", why, "who"),))
    assert quota_of(through(untold), [KEY]).not_checked == NOBODY_SAW, "the words of a gap tell nothing"


def test_a_later_read_of_quotas_is_told_with_its_own_time() -> None:
    later = attrs.evolve(SEEN, quota_at=NOW + timedelta(seconds=30))
    assert quota_of(through(later), [KEY]).at == NOW + timedelta(seconds=30)
