"""Every row against API servers with the real CRDs: what is copied is accepted there and stored as it was sent.

The servers check schemas, prune unknown fields and fill in defaults as real ones do.
"""

from __future__ import annotations

import pytest

from multikueue.adapters import AVAILABLE, JobKind
from multikueue.sandbox.apiserver import ApiServer, DirectClient
from tests.adapters.kinds import OURS
from tests.adapters.trials import (
    BUILT_IN,
    NAMESPACE,
    a_worker_takes_the_copy,
    definition,
    submitted,
    the_manager_takes_the_status,
)

rows = pytest.mark.parametrize("kind", AVAILABLE, ids=lambda kind: kind.resource.gvk.kind)


def server(name: str, kind: JobKind) -> DirectClient:
    """A cluster that serves the kind."""
    cluster = ApiServer(name)
    if kind.resource.gvk.group not in BUILT_IN:
        cluster.registry.create_object(definition(kind))
    cluster.registry.create_object(NAMESPACE)
    return DirectClient(cluster)


@rows
async def test_a_worker_takes_the_copy_and_keeps_all_of_it(kind: JobKind) -> None:
    """Neither a field that its schema does not have, nor one that only the manager's server may fill in."""
    await a_worker_takes_the_copy(server("manager", kind), server("worker", kind), kind)


@rows
async def test_the_manager_takes_the_status(kind: JobKind) -> None:
    """A rule of its schema or of its API would refuse it for ever."""
    manager = server("manager", kind)
    await the_manager_takes_the_status(manager, kind, await submitted(manager, kind))


@rows
async def test_a_server_with_the_kind_says_who_runs_it_where_the_row_looks(kind: JobKind) -> None:
    """A path that the schema does not have would be pruned, and every job be refused."""
    if kind.delegation.path is not None:
        assert kind.not_delegated(await submitted(server("manager", kind), kind), OURS) is None
