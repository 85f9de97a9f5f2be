"""Declared kinds meet the manager's API server: what it completes, and what is told when it has them otherwise."""

from __future__ import annotations

import copy
from typing import Any

import attrs
import pytest

from multikueue.adapters import BUILTIN, AdapterRegistry, JobKind
from multikueue.adapters.declaration import Declaration
from multikueue.adapters.declared import declared_kind
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import ApiError, DeadlineExceeded, Forbidden, NotFound, ServerFault, Unreachable
from multikueue.kube.served_kinds import ServedKind
from multikueue.runtime.caches.discovery import DiscoveryFinding, newly_served, resolve

GVK_WIDGET = GVK("example.com", "v1", "Widget")
SERVED = ServedKind("widgetz", True, frozenset(("status",)))
SPEC: Json = {"type": "object", "properties": {"managedBy": {"type": "string"}, "size": {"type": "integer"}}}
DEFINITION: Json = {
    "metadata": {"name": "widgetz.example.com"},
    "spec": {
        "versions": [
            {
                "name": "v1",
                "schema": {"openAPIV3Schema": {"properties": {"spec": SPEC, "status": {"type": "object"}}}},
            }
        ]
    },
}


@attrs.define
class Server:
    """An API server with one kind."""

    kinds: dict[GVK, ServedKind] = attrs.field(factory=lambda: {GVK_WIDGET: SERVED})
    definition: Json | ApiError = attrs.field(factory=lambda: copy.deepcopy(DEFINITION))
    error: ApiError | None = None

    async def discover(self, gvk: GVK) -> ServedKind | None:
        if self.error is not None:
            raise self.error
        return self.kinds.get(gvk)

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        assert (str(resource), key.name) == (
            "customresourcedefinitions.apiextensions.k8s.io",
            "widgetz.example.com",
        )
        if isinstance(self.definition, ApiError):
            raise self.definition
        return self.definition


def widget(**said: Any) -> JobKind:
    return declared_kind(Declaration(**{"name": "Widget.v1.example.com", **said}), "externalFrameworks[0]")


async def test_the_servers_word_is_taken_for_what_is_not_said() -> None:
    """So a name is enough, whatever the plural, and wherever the status."""
    resolved = await resolve([widget()], Server())
    assert resolved.findings == ()
    assert [str(kind.resource) for kind in resolved.kinds] == ["widgetz.example.com"]
    assert resolved.kinds[0].status.subresource

    plain = Server({GVK_WIDGET: attrs.evolve(SERVED, subresources=frozenset())})
    assert not (await resolve([widget()], plain)).kinds[0].status.subresource


async def test_a_declaration_that_says_otherwise_is_told_and_not_believed() -> None:
    resolved = await resolve([widget(plural="widgets", status_subresource=False)], Server())

    assert (str(resolved.kinds[0].resource), resolved.kinds[0].status.subresource) == ("widgetz.example.com", True)
    assert resolved.findings == (
        DiscoveryFinding(
            "externalFrameworks[0].plural", "the manager calls the kind widgetz, not widgets: its word is taken"
        ),
        DiscoveryFinding(
            "externalFrameworks[0].statusSubresource",
            "the manager serves /status for widgetz.example.com: the status is written accordingly",
        ),
    )


async def test_a_kind_the_manager_does_not_serve_is_not_watched_and_asked_about_again() -> None:
    """Its CRD may be installed after us; the other kinds go on."""
    resolved = await resolve(
        [widget(), *BUILTIN], Server({GVK("batch", "v1", "Job"): ServedKind("jobs", True, frozenset())})
    )

    assert [str(kind.resource) for kind in resolved.kinds] == ["widgets.example.com", "jobs.batch"]
    assert resolved.findings == ()
    assert [str(kind.resource) for kind in AdapterRegistry(resolved.kinds).followed] == ["jobs.batch"]
    assert await newly_served(resolved.kinds, Server({})) == ()
    assert await newly_served(resolved.kinds, Server(error=ServerFault("etcd is gone", status=503))) == ()
    assert await newly_served(resolved.kinds, Server()) == (resolved.kinds[0],)


async def test_fields_that_the_definition_does_not_have_are_told() -> None:
    """The API server would drop them: a job could not even say that it is delegated."""
    declared = widget(
        managed_by_path=".spec.runPolicy.managedBy",
        suspend_path=".spec.suspend",
        status_paths=(".status.phase",),
        forwarded_paths=(".spec.size", ".metadata.labels", ".spec.priority"),
    )
    resolved = await resolve([declared], Server())

    assert [finding.setting.removeprefix("externalFrameworks[0].") for finding in resolved.findings] == [
        "managedByPath",
        "suspendPath",
        "statusPaths[0]",
        "forwardedPaths[2]",
    ]
    assert resolved.findings[0].problem == (
        "the CustomResourceDefinition widgetz.example.com has no field .spec.runPolicy.managedBy in version v1: "
        "the kind does not honour it, or its version here does not yet; its jobs will be rejected"
    )


@pytest.mark.parametrize("error", [Forbidden("no", status=403), NotFound("none", status=404)])
async def test_a_definition_that_cannot_be_read_is_no_reason_to_doubt(error: ApiError) -> None:
    resolved = await resolve([widget(managed_by_path=".spec.nothing")], Server(definition=error))
    assert resolved.findings == ()


async def test_a_kind_without_a_namespace_is_left_out() -> None:
    """Queues are namespaced, so jobs are."""
    resolved = await resolve([widget()], Server({GVK_WIDGET: attrs.evolve(SERVED, namespaced=False)}))
    assert resolved.kinds == ()
    assert resolved.findings == (
        DiscoveryFinding("externalFrameworks[0]", "Widget.v1.example.com is not namespaced: it cannot be a job"),
    )


async def test_rows_in_python_know_their_plural_themselves() -> None:
    row = JobKind(resource=Resource(GVK_WIDGET, "mine"), source='the entry point "acme"')
    assert (await resolve([row], Server())).kinds == (row,)


async def test_a_server_that_does_not_answer_is_asked_again_by_the_caller() -> None:
    """Guessing would be wrong for as long as we run."""
    with pytest.raises(Unreachable):
        await resolve([widget()], Server(error=Unreachable("down")))
    with pytest.raises(Unreachable):
        await resolve([widget()], Server(definition=Unreachable("down")))


async def test_one_kind_in_trouble_holds_up_the_others_for_a_while_only() -> None:
    """Its API group may be served by somebody who is down."""
    with pytest.raises(ServerFault):
        await resolve([widget()], Server(error=ServerFault("the server is currently unable", status=503)))

    server = Server(error=ServerFault("the server is currently unable", status=503))
    resolved = await resolve([widget()], server, patient=False)
    assert [str(kind.resource) for kind in resolved.kinds] == ["widgets.example.com"]
    assert "it cannot be told whether" in resolved.findings[0].problem
    with pytest.raises(Unreachable):
        await resolve([widget()], Server(error=Unreachable("down")), patient=False)


async def test_one_kind_that_is_never_answered_holds_up_the_others_for_a_while_only() -> None:
    """Whoever serves its group may hang. If no kind is answered it is the server itself that hangs."""
    silent = Server(error=DeadlineExceeded("no answer within 30 s"))
    answered = Server({GVK("batch", "v1", "Job"): ServedKind("jobs", True, frozenset())})
    with pytest.raises(DeadlineExceeded):
        await resolve([widget()], silent, patient=False)

    class Half(Server):
        async def discover(self, gvk: GVK) -> ServedKind | None:
            return await (silent if gvk == GVK_WIDGET else answered).discover(gvk)

    for kinds in ([widget(), *BUILTIN], [*BUILTIN, widget()]):
        with pytest.raises(DeadlineExceeded):
            await resolve(kinds, Half())
        resolved = await resolve(kinds, Half(), patient=False)
        assert {str(kind.resource) for kind in resolved.kinds} == {"widgets.example.com", "jobs.batch"}
        assert [finding.setting for finding in resolved.findings] == ["externalFrameworks[0]"]

    hanging = Server(definition=DeadlineExceeded("no answer within 30 s"))
    assert (await resolve([widget()], hanging, patient=False)).findings == ()


async def test_a_server_that_will_not_say_is_told_and_the_usual_is_assumed() -> None:
    resolved = await resolve([widget()], Server(error=Forbidden("not allowed", status=403)))
    assert [str(kind.resource) for kind in resolved.kinds] == ["widgets.example.com"]
    assert resolved.findings[0].problem == (
        "it cannot be told whether the manager serves Widget.v1.example.com: not allowed"
    )
