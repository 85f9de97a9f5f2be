"""Asking the manager about the kinds at start."""

from __future__ import annotations

import attrs
import pytest

from multikueue.adapters import BUILTIN
from multikueue.adapters.declaration import Declaration
from multikueue.adapters.declared import declared_kind
from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import ApiError, NotFound, ServerFault, Unreachable
from multikueue.kube.served_kinds import ServedKind
from multikueued.run.kinds import PATIENCE, RETRY, known_kinds
from multikueued.settings.file import parse_settings
from multikueued.settings.kinds import chosen_kinds

pytestmark = pytest.mark.looptime

BUS = declared_kind(Declaration(name="Bus.v1.example.com"), "externalFrameworks[0]")


@attrs.define
class Manager:
    """A manager that does not answer about one group for some attempts."""

    error: ApiError
    attempts: float
    asked: int = 0

    async def discover(self, gvk: GVK) -> ServedKind | None:
        if gvk == JOB.gvk:
            return ServedKind("jobs", True, frozenset(("status",)))
        self.asked += 1
        if self.asked <= self.attempts:
            raise self.error
        return ServedKind("busses", True, frozenset())

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        raise NotFound("there is no definition", status=404)


async def test_a_manager_that_is_down_is_waited_for(looptime: float) -> None:
    """It may be restarted together with us, and guessing would be wrong for as long as we run."""
    manager = Manager(Unreachable("refused"), attempts=20)
    registry = await known_kinds([*BUILTIN, BUS], manager)

    assert [str(kind.resource) for kind in registry] == ["jobs.batch", "busses.example.com"]
    assert looptime == 20 * RETRY


async def test_a_group_that_stays_down_does_not_hold_up_the_other_kinds(looptime: float) -> None:
    manager = Manager(ServerFault("unable to handle the request", status=503), attempts=float("inf"))
    registry = await known_kinds([*BUILTIN, BUS], manager)

    assert [str(kind.resource) for kind in registry] == ["jobs.batch", "buses.example.com"]
    assert looptime == (PATIENCE - 1) * RETRY


@pytest.mark.parametrize("shown", [True, False])
def test_addresses_are_shown_where_the_settings_say_that_the_networks_are_one(shown: bool) -> None:
    """Also of the kinds that `auto` adds."""
    settings = parse_settings(
        f"{{integrations: {{frameworks: [auto, pod]}}, pods: {{copyAddresses: {str(shown).lower()}}}}}"
    )
    rows = {kind.resource.gvk.kind: kind for kind in chosen_kinds(settings)}
    assert [bool(rows[name].status.addresses) for name in ("Pod", "RayCluster", "RayJob")] == [not shown] * 3


def test_jobs_are_deleted_only_where_the_settings_say_so() -> None:
    """Of those whose own controllers would: also of the kinds that `auto` adds."""
    said = "{integrations: {frameworks: [kubeflow.org/tfjob, auto]}%s}"
    rows = chosen_kinds(parse_settings(said % ", retention: {deleteExpiredJobs: true}"))
    assert all(kind.deletes_expired for kind in rows)
    assert not any(kind.deletes_expired for kind in chosen_kinds(parse_settings(said % "")))
