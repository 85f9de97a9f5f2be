"""Which versions of a kind's own controller leave a delegated job alone, and what is told where an older one is."""

from __future__ import annotations

from typing import Any, Final

import pytest

from multikueue.adapters import AVAILABLE, JobKind
from multikueue.adapters.declared import declared_kind
from multikueue.adapters.profiles import PROFILES
from multikueue.core.model.names import Json
from multikueue.core.model.objects import clone, with_value, without
from multikueue.sandbox.apiserver import ApiServer, DirectClient
from tests.adapters.kinds import OURS, a_job
from tests.adapters.trials import BUILT_IN, NAMESPACE, definition, submitted

SAYING: Final = [kind for kind in AVAILABLE if kind.delegation.path is not None]
"""The kinds that say who runs a job."""
saying = pytest.mark.parametrize("kind", SAYING, ids=lambda kind: kind.resource.gvk.kind)
defined = pytest.mark.parametrize(
    "kind",
    [kind for kind in SAYING if kind.resource.gvk.group not in BUILT_IN],
    ids=lambda kind: kind.resource.gvk.kind,
)


def without_field(crd: Json, path: tuple[str, ...]) -> Json:
    """The definition of an older version, which does not have a field."""
    made: Json = clone(crd)
    for version in made["spec"]["versions"]:
        schema: Any = version["schema"]["openAPIV3Schema"]
        for step in path[:-1]:
            schema = schema["properties"][step]
        del schema["properties"][path[-1]]
    return made


def written_by(job: Json, *managers: str) -> Json:
    entries = [{"manager": manager, "subresource": "status"} for manager in managers]
    return with_value(job, ("metadata", "managedFields"), entries)


@saying
def test_a_job_without_the_field_is_refused_with_the_version_that_has_it(kind: JobKind) -> None:
    """Its API may be older and have dropped it, whatever the user or a webhook has written."""
    path, heeding = kind.delegation.path, kind.delegation.heeding
    assert path is not None
    assert heeding is not None
    refusal = kind.not_delegated(without(a_job(kind), [path]), OURS) or ""
    assert refusal.startswith(f'Expecting {".".join(path)} to be "{OURS}" not "" (')
    assert f"{heeding.project} before {heeding.field_since or heeding.since} drops the field" in refusal
    assert heeding.since in refusal


@defined
async def test_a_server_with_an_older_definition_drops_the_field_and_the_job_is_refused(kind: JobKind) -> None:
    """What a job says for itself is enough: nobody need be allowed to read definitions."""
    path, heeding = kind.delegation.path, kind.delegation.heeding
    assert path is not None
    assert heeding is not None
    cluster = ApiServer("manager")
    cluster.registry.create_object(without_field(definition(kind), path))
    cluster.registry.create_object(NAMESPACE)
    refusal = kind.not_delegated(await submitted(DirectClient(cluster), kind), OURS) or ""
    assert f"{heeding.project} before {heeding.field_since or heeding.since} drops the field" in refusal


@saying
def test_a_job_whose_status_its_own_controller_writes_is_refused_with_the_version_that_would_not(kind: JobKind) -> None:
    """The API has the field, and the controller runs the job all the same."""
    path, heeding = kind.delegation.path, kind.delegation.heeding
    assert path is not None
    assert heeding is not None
    writer = kind.acted_on(written_by(a_job(kind), "multikueue", "kueue", "manager"))
    assert f'"manager" has written its status although {".".join(path)} is "{OURS}"' in writer
    wanted = f"{heeding.project} {heeding.since} is the first" if heeding.since else f"up to {heeding.looked_at} heeds"
    assert wanted in writer


@pytest.mark.parametrize("kind", AVAILABLE, ids=lambda kind: kind.resource.gvk.kind)
def test_a_job_whose_status_no_controller_of_jobs_writes_is_not(kind: JobKind) -> None:
    """Nor a pod or a set, whose status the manager's own controllers write."""
    assert kind.acted_on(a_job(kind)) == ""
    assert kind.acted_on(written_by(a_job(kind), "multikueue", "kueue", "kueue-admission", "my-own-client")) == ""
    if kind.delegation.path is None:
        assert kind.acted_on(written_by(a_job(kind), "kube-controller-manager")) == ""


def test_a_pipelinerun_is_told_of_tektons_version_only_where_the_field_is_tektons() -> None:
    """What writes the status of a declared kind, and what for, is not known."""
    profile = PROFILES["tekton.dev", "PipelineRun"]
    kind = declared_kind(profile)
    run: Json = {"metadata": {"name": "r"}, "spec": {}}
    assert "(Tekton before v1.5.0 drops the field)" in (kind.not_delegated(run, OURS) or "")
    assert kind.acted_on(written_by(run, "controller")) == ""
    argo = declared_kind(PROFILES["argoproj.io", "Workflow"])
    assert (argo.not_delegated(run, OURS) or "").endswith('not ""')
