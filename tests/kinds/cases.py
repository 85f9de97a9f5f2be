"""The kinds under test: each adapter row with the sandbox's row for it."""

from __future__ import annotations

from functools import cache

import attrs

from multikueue.adapters import AVAILABLE, JobKind
from multikueue.adapters.declared import declared_kind
from multikueue.adapters.profiles import PROFILES
from multikueue.core.model.names import Json
from multikueue.sandbox import kinds
from multikueue.sandbox.kinds import SandboxKind, definition
from multikueue.sandbox.kinds.pods import POD_RESOURCE
from multikueue.sandbox.kinds.sets import DEPLOYMENT
from tests.controlplane.crds import read
from tests.data.files import JOB_CRDS


@attrs.frozen(eq=False)
class Case:
    """One job kind."""

    adapter: JobKind
    kind: SandboxKind

    @property
    def name(self) -> str:
        """As part of the names of objects, and of the test."""
        return self.kind.name

    @property
    def is_copied(self) -> bool:
        """Whether its objects are: all but Deployments, whose pods are."""
        return self.adapter.resource == self.kind.resource


def of_each_sort(case: Case) -> bool:
    """Of a kind of Kubernetes, of a CRD, and of several pods: what follows is our code alone, the same for all."""
    return case.name in ("job", "jobset", "podgroup")


@cache
def _upstream() -> dict[tuple[str, str], Json]:
    """By group and kind; reading them takes a second."""
    return {(crd["spec"]["group"], crd["spec"]["names"]["kind"]): crd for crd in read(JOB_CRDS)}


def cases() -> list[Case]:
    """Every kind of the sandbox, with the library's row or the ready-made profile that dispatches it."""
    rows = {row.resource: row for row in (*AVAILABLE, *(declared_kind(profile) for profile in PROFILES.values()))}
    return [Case(rows[POD_RESOURCE if kind is DEPLOYMENT else kind.resource], kind) for kind in kinds.AVAILABLE]


def definitions(rows: list[Case]) -> list[Json]:
    """The CustomResourceDefinitions of these kinds: the projects' own, or else the sandbox's."""
    upstream = _upstream()
    gvks = [(case.kind, case.kind.resource.gvk) for case in rows]
    return [upstream.get((gvk.group, gvk.kind)) or definition(kind) for kind, gvk in gvks if "." in gvk.group]
