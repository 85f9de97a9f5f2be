"""Completing declared kinds from the manager's API server, and finding what it does not serve.

Nothing here stops the start: a CRD may be installed later, and the other kinds must not wait for it. Until then the
kind is not watched, neither on the manager nor on workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Protocol

import attrs

from multikueue.adapters import JobKind
from multikueue.adapters.declaration import Declaration
from multikueue.core.model.kinds import CUSTOM_RESOURCE_DEFINITION
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import ApiError, DeadlineExceeded, Unreachable
from multikueue.kube.served_kinds import ServedKind


class Discoverer(Protocol):
    """Asks an API server about its kinds."""

    async def discover(self, gvk: GVK) -> ServedKind | None:
        """See `KubeClient.discover`."""

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        """See `multikueue.protocols.Reader`."""


@attrs.frozen
class DiscoveryFinding:
    """Something that is not as it should be, for the log."""

    setting: str
    problem: str


@attrs.frozen
class Resolved:
    """The rows to work with, and what to log."""

    kinds: tuple[JobKind, ...]
    """Those that the manager does not serve are marked as `unserved`."""
    findings: tuple[DiscoveryFinding, ...]


async def resolve(kinds: Iterable[JobKind], server: Discoverer, *, patient: bool = True) -> Resolved:
    """Ask about each kind. One that cannot be dispatched is left out; everything else is only a finding.

    Args:
        kinds: the rows.
        server: the manager.
        patient: whether to raise if the server fails for one kind, so that the caller asks again; else it is a finding.

    Raises:
        Unreachable: there is no answer.
        ApiError: the server fails for one kind, and `patient`. Ask again later.
    """
    kept: list[JobKind] = []
    findings: list[DiscoveryFinding] = []
    silent: list[DeadlineExceeded] = []
    rows = tuple(kinds)
    for kind in rows:
        served = await _found(kind, server, patient, silent)
        if isinstance(served, DiscoveryFinding):
            findings.append(served)
            kept.append(kind)
        elif served is None:
            kept.append(attrs.evolve(kind, unserved=True))
        elif not served.namespaced:
            findings.append(
                DiscoveryFinding(kind.source, f"{kind.resource.gvk.dotted} is not namespaced: it cannot be a job")
            )
        else:
            kept.append(_completed(kind, served))
            findings += await _doubts(kept[-1], served, server, patient)
    if silent and len(silent) == len(rows):
        raise silent[0]  # no request was answered, so the server itself is unavailable
    return Resolved(tuple(kept), tuple(findings))


async def newly_served(kinds: Iterable[JobKind], server: Discoverer) -> tuple[JobKind, ...]:
    """Those of the kinds marked as `unserved` that the server serves now; without an answer, not."""
    served: list[JobKind] = []
    for kind in kinds:
        if kind.unserved:
            with suppress(ApiError):
                served += [kind] if await server.discover(kind.resource.gvk) is not None else []
    return tuple(served)


async def _found(
    kind: JobKind, server: Discoverer, patient: bool, silent: list[DeadlineExceeded]
) -> ServedKind | DiscoveryFinding | None:
    name = kind.resource.gvk.dotted
    try:
        return await server.discover(kind.resource.gvk)
    except ApiError as error:
        if _may_pass(error, patient):
            raise
        if isinstance(error, DeadlineExceeded):
            silent.append(error)
        return DiscoveryFinding(kind.source, f"it cannot be told whether the manager serves {name}: {error}")


def _completed(kind: JobKind, served: ServedKind) -> JobKind:
    """The row with the plural and subresources that the manager serves."""
    if kind.declaration is None:
        return kind
    resource = attrs.evolve(kind.resource, plural=served.plural)
    status = attrs.evolve(kind.status, subresource="status" in served.subresources)
    return attrs.evolve(kind, resource=resource, status=status)


def _may_pass(error: ApiError, patient: bool) -> bool:
    """Whether to ask again: always without a connection, since then nothing else can be done either.

    A request without an answer may be for an aggregated API server, which stands behind the manager's.
    """
    gone = isinstance(error, Unreachable) and not isinstance(error, DeadlineExceeded)
    return gone or (patient and error.retryable)


async def _doubts(kind: JobKind, served: ServedKind, server: Discoverer, patient: bool) -> list[DiscoveryFinding]:
    """Where the manager's definition of the kind contradicts the declaration."""
    said = kind.declaration
    if said is None:
        return []
    doubts = list(_contradicted(kind, said, served))
    key = ObjectKey("", f"{served.plural}.{kind.resource.gvk.group}")
    try:
        definition = await server.get(CUSTOM_RESOURCE_DEFINITION, key)
    except ApiError as error:
        if _may_pass(error, patient):
            raise
        return doubts  # the kind has no definition, or we may not read it
    return [*doubts, *_unknown(kind, said, definition)]


def _contradicted(kind: JobKind, said: Declaration, served: ServedKind) -> Iterator[DiscoveryFinding]:
    if said.plural is not None and said.plural != served.plural:
        message = f"the manager calls the kind {served.plural}, not {said.plural}: its word is taken"
        yield DiscoveryFinding(f"{kind.source}.plural", message)
    if said.status_subresource is not None and said.status_subresource != ("status" in served.subresources):
        verb = "does not serve" if said.status_subresource else "serves"
        message = f"the manager {verb} /status for {kind.resource}: the status is written accordingly"
        yield DiscoveryFinding(f"{kind.source}.statusSubresource", message)


def _unknown(kind: JobKind, said: Declaration, definition: Json) -> Iterator[DiscoveryFinding]:
    name, version = definition["metadata"]["name"], kind.resource.gvk.version
    for field, text in said.unknown_paths(definition, version):
        message = f"the CustomResourceDefinition {name} has no field {text} in version {version}"
        if field == "managedByPath":
            message += ": the kind does not honour it, or its version here does not yet; its jobs will be rejected"
        yield DiscoveryFinding(f"{kind.source}.{field}", message)
