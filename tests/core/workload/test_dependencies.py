"""What is done about the dependencies of a job, and at which of a plan's steps."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from multikueue.core.model.dependencies import Dependency
from multikueue.core.model.labels import NAMESPACES_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import uid
from tests.core.building import ADAPTER, KEY, NAMESPACE, copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import (
    MANAGER,
    SETTINGS,
    CheckDependencies,
    CreateDependencies,
    Effect,
    OwnDependencies,
    Plan,
    Snapshot,
    Worker,
    decide,
    only,
)
from tests.core.workload.test_places import noted

MAP, SECRET = Dependency("ConfigMap", "settings"), Dependency("Secret", "token")
TEMPLATE = Dependency("ResourceClaimTemplate", "gpu")
SPEC: Json = {
    "containers": [{"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": "token"}}]}],
    "volumes": [{"name": "v", "configMap": {"name": "settings"}}],
    "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "gpu"}],
}
PODS: Json = {"podSets": [{"name": "main", "count": 1, "template": {"spec": SPEC}}]}
OFFERED, PLACED = workload(nominated=("w1",), spec=PODS), workload(cluster="w1", spec=PODS)
ON = attrs.evolve(
    SETTINGS, dependencies={"workers": frozenset(("ConfigMap", "ResourceClaimTemplate", "Secret"))}, mark_key=b""
)


def of(local: Json, *there: Worker, settings: Any = ON, config: str = "workers") -> Plan:
    return decide(seen(local, *there, config=config), settings=settings)


def seen(local: Json, *there: Worker, config: str = "workers") -> Snapshot:
    return attrs.evolve(snapshot(local, *there), config=config)


def on_workers(decided: Plan) -> list[Effect]:
    return [effect for effect in decided.effects if effect.cluster != MANAGER]


def names(decided: Plan) -> list[str]:
    return [type(worker).__name__ for worker in on_workers(decided)]


def test_a_worker_is_asked_first_and_claim_templates_are_made_with_the_copy() -> None:
    decided = of(OFFERED, worker("w1"))
    assert names(decided) == ["CheckDependencies", "CreateWorkload", "CreateDependencies"]
    asked, _, made = on_workers(decided)
    assert isinstance(asked, CheckDependencies)
    assert asked.dependencies == (MAP, TEMPLATE, SECRET)
    assert isinstance(made, CreateDependencies)
    assert (made.namespace, made.workload, made.dependencies) == (KEY.namespace, KEY.name, (TEMPLATE,))


def test_what_is_copied_is_there_before_the_job() -> None:
    decided = of(PLACED, worker("w1", copy_of(PLACED, admitted=True)))
    assert names(decided) == ["CreateDependencies", "CreateJob"]
    made = on_workers(decided)[0]
    assert isinstance(made, CreateDependencies)
    assert made.dependencies == (MAP, TEMPLATE)


def test_claim_templates_that_an_earlier_plan_did_not_get_made_are_made_now() -> None:
    copy = copy_of(OFFERED)
    assert names(of(OFFERED, worker("w1", copy))) == ["CreateDependencies"]
    assert not on_workers(of(OFFERED, worker("w1", copy, supplied=(uid(copy),))))
    assert not on_workers(of(OFFERED, worker("w1", copy_of(OFFERED, deleting=True))))


def test_the_job_owns_them_too_once_it_is_seen() -> None:
    placed = workload(cluster="w1", check="Ready", spec=PODS)
    made, copy = job_copy_of(placed), copy_of(placed, admitted=True, owned=True)
    owned = only(OwnDependencies, of(placed, worker("w1", copy, made)).effects)
    assert owned.owner == {"apiVersion": "batch/v1", "kind": "Job", "name": job()["metadata"]["name"], "uid": uid(made)}
    assert owned.dependencies == (MAP, TEMPLATE)
    after = of(placed, worker("w1", copy, made, supplied=(uid(copy), uid(made))))
    assert not [effect for effect in after.effects if isinstance(effect, OwnDependencies | CreateDependencies)]


@pytest.mark.parametrize(
    ("local", "there"),
    [
        (workload(quota=False, spec=PODS), worker("w1")),
        (workload(cluster="w1", evicted="gone", spec=PODS), worker("w1", copy_of(PLACED, admitted=True))),
        (workload(cluster="w1", finished="Done", spec=PODS), worker("w1", copy_of(PLACED, admitted=True))),
        (workload(nominated=("w1",)), worker("w1")),
    ],
)
def test_nothing_is_made_for_what_does_not_run_or_needs_nothing(local: Json, there: Worker) -> None:
    supplying = (CheckDependencies, CreateDependencies, OwnDependencies)
    assert not [effect for effect in of(local, there).effects if isinstance(effect, supplying)]


def test_it_is_off_for_configs_that_the_settings_do_not_name() -> None:
    for decided in (of(OFFERED, worker("w1"), settings=SETTINGS), of(OFFERED, worker("w1"), config="others")):
        assert names(decided) == ["CreateWorkload"]


def test_kinds_that_the_settings_do_not_name_are_neither_copied_nor_looked_for() -> None:
    maps = attrs.evolve(SETTINGS, dependencies={"workers": frozenset(("ConfigMap",))})
    decided = of(OFFERED, worker("w1"), settings=maps)
    assert names(decided) == ["CheckDependencies", "CreateWorkload"]


def test_a_kind_of_ones_own_names_more_in_its_jobs() -> None:
    made = attrs.evolve(ADAPTER, copies=attrs.evolve(ADAPTER.copies, config_maps=(("spec", "settings"),)))
    naming = job()
    naming["spec"]["settings"] = "of-the-job"
    shown = attrs.evolve(snapshot(OFFERED, worker("w1"), job=naming, adapter=made), config="workers")
    asked = on_workers(decide(shown, settings=ON))[0]
    assert isinstance(asked, CheckDependencies)
    assert asked.dependencies == (Dependency("ConfigMap", "of-the-job"), MAP, TEMPLATE, SECRET)


def test_they_are_made_where_the_copies_are() -> None:
    mapped = {NAMESPACES_ANNOTATION: '{"*": "mk-*"}'}
    there = attrs.evolve(worker("w1"), annotations=mapped, namespace=f"mk-{NAMESPACE}")
    asked, _, made = on_workers(of(noted(OFFERED, {"w1": f"mk-{NAMESPACE}"}), there))
    here = on_workers(of(OFFERED, worker("w1")))[0]
    assert isinstance(asked, CheckDependencies)
    assert asked.namespace == f"mk-{NAMESPACE}"
    assert isinstance(made, CreateDependencies)
    assert (made.namespace, made.workload) == (f"mk-{NAMESPACE}", KEY.name)
    assert isinstance(here, CheckDependencies)
    assert (made.mark == asked.mark, made.mark == here.mark) == (True, False)


def test_a_slice_joins_a_job_with_what_that_has() -> None:
    """The ConfigMap may have another content by now; the job keeps what it was started with."""
    grown = workload(cluster="w1", name="grown", elastic=True, replaces=KEY.name, spec=PODS)
    before = workload(cluster="w1", elastic=True, finished="WorkloadSliceReplaced", spec=PODS)
    there = worker("w1", shared=job_copy_of(before))
    shown = attrs.evolve(seen(grown, there), key=ObjectKey.of(grown), siblings=(before,))
    made = names(decide(shown, settings=ON))
    assert "CheckDependencies" not in made
    assert "CreateWorkload" in made
