"""Tokens and roles of a server that runs; what a real one does as well is in `tests/conformance/test_identities.py`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import aiohttp
import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import Forbidden
from multikueue.sandbox.apiserver import ApiServer, DirectClient, Registry, StatusError
from multikueue.sandbox.apiserver.identity.access import Access
from multikueue.sandbox.apiserver.identity.rbac import Attributes
from multikueue.sandbox.apiserver.identity.tokens import AUDIENCE
from multikueue.sandbox.apiserver.identity.users import user_named
from tests.sandbox.apiserver.objects import job

ACCOUNT = Resource(GVK("", "v1", "ServiceAccount"), "serviceaccounts")
ROBOT = "system:serviceaccount:default:robot"
NOBODY = "system:serviceaccount:default:nobody"


class Clock:
    """A wall clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def account(name: str = "robot") -> Json:
    """A service account."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}


def secret(name: str = "holder") -> Json:
    """A Secret to bind a token to."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}}


def issued(access: Access, **spec: object) -> str:
    """A token of the service account."""
    token: str = access.issuer.issue("default", "robot", {"spec": spec})["status"]["token"]
    return token


@pytest.fixture
def clock() -> Clock:
    """Of the cluster."""
    return Clock()


@pytest.fixture
def registry(clock: Clock) -> Registry:
    """A cluster with a service account."""
    cluster = Registry(clock=clock)
    cluster.create_object(account())
    return cluster


@pytest.fixture
def access(registry: Registry) -> Access:
    """Nobody else has a token."""
    return Access(registry, {})


def test_a_token_ends_when_its_time_is_over(access: Access, clock: Clock) -> None:
    """To the second; the answer says when."""
    answer = access.issuer.issue("default", "robot", {"spec": {"expirationSeconds": 600}})
    token = answer["status"]["token"]
    assert answer["status"]["expirationTimestamp"] == "2026-01-01T00:10:00Z"
    clock.now += timedelta(seconds=599)
    assert access.user_of(token) == ROBOT
    clock.now += timedelta(seconds=1)
    assert access.user_of(token) is None


def test_a_token_ends_with_its_account(access: Access, registry: Registry) -> None:
    """Another account of the same name has nothing of it."""
    token = issued(access)
    client_row = registry.type_of(ACCOUNT)
    registry.cluster.remove(client_row, ("default", "robot"))
    assert access.user_of(token) is None
    registry.create_object(account())
    assert access.user_of(token) is None


def test_a_token_ends_with_what_it_is_bound_to(access: Access, registry: Registry) -> None:
    """A Secret or a Pod; one that is not there, or is another one, is refused."""
    registry.create_object(secret())
    bound = {"kind": "Secret", "apiVersion": "v1", "name": "holder"}
    token = issued(access, boundObjectRef=bound)
    assert access.user_of(token) == ROBOT
    registry.cluster.remove(registry.cluster.type_of("", "v1", "secrets"), ("default", "holder"))
    assert access.user_of(token) is None
    for reference, code in ((bound, 404), ({**bound, "kind": "Node"}, 422)):
        with pytest.raises(StatusError) as refused:
            issued(access, boundObjectRef=reference)
        assert refused.value.code == code
    registry.create_object(secret())
    with pytest.raises(StatusError, match="does not match the UID in record"):
        issued(access, boundObjectRef={**bound, "uid": "other"})


def test_a_token_for_others_is_none_for_the_server(access: Access) -> None:
    """It is good for its audiences only."""
    token = issued(access, audiences=["vault"])
    assert access.user_of(token) is None
    identity = access.identify(token, ("vault", AUDIENCE))
    assert identity is not None
    assert identity[1] == ["vault"]


def test_a_token_that_was_changed_or_made_elsewhere_is_nobodys(access: Access, registry: Registry) -> None:
    """Its signature is this server's."""
    token = issued(access)
    head, claims, signature = token.split(".")
    for forged in (
        f"{head}.{claims}.",
        f"{head}.{claims}",
        f"{head}.{claims[:-1]}.{signature}",
        ".",
        "..",
        "ü.ü.ü",
        "\udcff.a.b",
    ):
        assert access.user_of(forged) is None
    assert Access(registry, {}).user_of(token) is None


def test_roles_have_no_effect_until_they_are_enforced(registry: Registry) -> None:
    """A sandbox's default: whoever has a token may do everything."""
    access = Access(registry, {})
    asked = Attributes("list", "batch", "jobs", namespace="default")
    access.authorize(user_named(ROBOT), asked)
    access.enforce_roles()
    with pytest.raises(StatusError) as refused:
        access.authorize(user_named(ROBOT), asked)
    assert refused.value.code == 403
    access.authorize(user_named("admin"), asked)


@pytest.mark.parametrize(
    ("path", "spec"),
    [
        ("/api/v1/namespaces/default/serviceaccounts/robot/token", "x"),
        ("/api/v1/namespaces/default/serviceaccounts/robot/token", {"expirationSeconds": "x"}),
        ("/api/v1/namespaces/default/serviceaccounts/robot/token", {"expirationSeconds": True}),
        ("/api/v1/namespaces/default/serviceaccounts/robot/token", {"audiences": [1]}),
        ("/api/v1/namespaces/default/serviceaccounts/robot/token", {"boundObjectRef": []}),
        ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", []),
        ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"resourceAttributes": "x"}),
        ("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"groups": "x"}),
        ("/apis/authentication.k8s.io/v1/tokenreviews", {"token": 1}),
    ],
)
async def test_bodies_that_do_not_fit_are_refused(path: str, spec: object) -> None:
    """With a 400, as by every typed decoder; nothing fails inside."""
    async with ApiServer("a", tls=False) as server, aiohttp.ClientSession(server.url) as session:
        server.registry.create_object(account())
        async with session.post(path, json={"spec": spec}) as response:
            assert (response.status, (await response.json())["reason"]) == (400, "BadRequest")


async def test_a_client_in_memory_needs_roles_too() -> None:
    """As one over HTTP."""
    server = ApiServer("a", tls=False, tokens={"a": "admin", "b": NOBODY})
    server.access.enforce_roles()
    await DirectClient(server).create(JOB, job())
    with pytest.raises(Forbidden, match='cannot get resource "jobs" in API group "batch" in the namespace "default"'):
        await DirectClient(server, user=NOBODY).get(JOB, ObjectKey("default", "j"))
    binding = {"metadata": {"name": "view"}, "subjects": [{"kind": "User", "name": NOBODY}]}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}
    server.registry.create_object({**head, **binding, "roleRef": role})
    assert await DirectClient(server, user=NOBODY).get(JOB, ObjectKey("default", "j"))
