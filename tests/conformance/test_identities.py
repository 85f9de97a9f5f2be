"""Service accounts: their tokens, and what roles let them do."""

from __future__ import annotations

from multikueue.core.model.names import Json
from multikueue.testing import until
from tests.conformance.client import ConformanceClient, Open
from tests.conformance.objects import config_map

REVIEWS = "/apis/authorization.k8s.io/v1"
ME = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
RBAC = "rbac.authorization.k8s.io"


async def account(cluster: ConformanceClient) -> tuple[str, str, dict[str, str]]:
    """A service account in a new namespace: the namespace, the user name, and headers with a token of it."""
    namespace = await cluster.namespace()
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await cluster.post(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})
    code, body = await cluster.post(f"{accounts}/robot/token", token_request(3600))
    assert code == 201, body
    headers = {"Authorization": f"Bearer {body['status']['token']}"}
    return namespace, f"system:serviceaccount:{namespace}:robot", headers


def token_request(seconds: int) -> Json:
    """A TokenRequest."""
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}}


def role(namespace: str) -> Json:
    """Lets one list jobs, and look at one ConfigMap."""
    rules = [
        {"verbs": ["list"], "apiGroups": ["batch"], "resources": ["jobs"]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"]},
    ]
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role",
        "metadata": {"name": "r", "namespace": namespace},
        "rules": rules,
    }


def binding(namespace: str) -> Json:
    """Gives it to the service account."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "r", "namespace": namespace},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": namespace}],
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "r"},
    }


async def test_j3_a_token_of_a_service_account(control_plane: Open) -> None:
    """`serviceaccounts/NAME/token` gives a token, which is known as the account with its groups."""
    async with control_plane() as cluster:
        namespace, user, headers = await account(cluster)
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        code, body = await cluster.post(ME, review, headers=headers)

    assert code == 201, body
    assert body["status"]["userInfo"]["username"] == user
    assert set(body["status"]["userInfo"]["groups"]) == {
        "system:serviceaccounts",
        f"system:serviceaccounts:{namespace}",
        "system:authenticated",
    }


async def test_j4_tokens_that_are_refused(control_plane: Open) -> None:
    """A token for less than ten minutes is a 422, for a missing account a 404; a token cannot be read."""
    async with control_plane() as cluster:
        namespace, _, _ = await account(cluster)
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        short = await cluster.post(f"{path}/robot/token", token_request(599))
        missing = await cluster.post(f"{path}/nobody/token", token_request(600))
        read = await cluster.get(f"{path}/robot/token")

    assert (short[0], missing[0], read[0]) == (422, 404, 405)
    assert short[1]["message"] == (
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: '
        "may not specify a duration less than 10 minutes"
    )


async def test_j5_roles_are_needed_and_suffice(control_plane: Open) -> None:
    """A service account may do what its roles allow, and gets a 403 for everything else."""
    async with control_plane() as cluster:
        namespace, user, headers = await account(cluster)
        jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        code, before = await cluster.get(jobs, headers=headers)
        assert (code, before["reason"]) == (403, "Forbidden")
        await cluster.post(f"/apis/{RBAC}/v1/namespaces/{namespace}/roles", role(namespace))
        await cluster.post(f"/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings", binding(namespace))

        async def allowed() -> bool:
            return (await cluster.get(jobs, headers=headers))[0] == 200

        await until(allowed)
        maps = f"/api/v1/namespaces/{namespace}/configmaps"
        codes = [(await cluster.get(f"{maps}/{name}", headers=headers))[0] for name in ("mine", "other")]
        _, elsewhere = await cluster.get("/apis/batch/v1/jobs", headers=headers)

    assert before["message"] == (
        f'jobs.batch is forbidden: User "{user}" cannot list resource "jobs" in API group "batch" '
        f'in the namespace "{namespace}"'
    )
    assert before["details"] == {"group": "batch", "kind": "jobs"}
    assert codes == [404, 403]
    assert elsewhere["message"].endswith('cannot list resource "jobs" in API group "batch" at the cluster scope')


async def test_j6_reviews_answer_from_roles(control_plane: Open) -> None:
    """Access reviews, of oneself as another user too, and the list of one's rules."""
    async with control_plane() as cluster:
        namespace, user, _ = await account(cluster)
        await cluster.post(f"/apis/{RBAC}/v1/namespaces/{namespace}/roles", role(namespace))
        await cluster.post(f"/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings", binding(namespace))

        async def may(verb: str) -> tuple[bool, bool]:
            asked = {"verb": verb, "group": "batch", "resource": "jobs", "namespace": namespace}
            head = {"apiVersion": "authorization.k8s.io/v1"}
            own = {**head, "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": asked}}
            theirs = {**head, "kind": "SubjectAccessReview", "spec": {"resourceAttributes": asked, "user": user}}
            path = f"{REVIEWS}/selfsubjectaccessreviews"
            _, first = await cluster.post(path, own, headers={"Impersonate-User": user})
            _, second = await cluster.post(f"{REVIEWS}/subjectaccessreviews", theirs)
            return first["status"]["allowed"], second["status"]["allowed"]

        async def known() -> bool:
            return await may("list") == (True, True)

        await until(known)
        assert await may("create") == (False, False)
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": namespace},
        }
        path = f"{REVIEWS}/selfsubjectrulesreviews"
        _, listed = await cluster.post(path, review, headers={"Impersonate-User": user})

    for rule in role(namespace)["rules"]:
        assert rule in listed["status"]["resourceRules"]


async def test_j8_what_else_a_role_must_say(control_plane: Open) -> None:
    """An apply that creates needs the verb create; the name in a field selector is what `resourceNames` must allow."""
    async with control_plane() as cluster:
        namespace, _, headers = await account(cluster)
        given = role(namespace)
        given["rules"] = [
            {"verbs": ["patch"], "apiGroups": [""], "resources": ["configmaps"]},
            {"verbs": ["list"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"]},
        ]
        await cluster.post(f"/apis/{RBAC}/v1/namespaces/{namespace}/roles", given)
        await cluster.post(f"/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings", binding(namespace))
        secrets = f"/api/v1/namespaces/{namespace}/secrets"

        async def listed(selector: str) -> int:
            return (await cluster.get(secrets, headers=headers, params={"fieldSelector": selector}))[0]

        async def allowed() -> bool:
            return await listed("metadata.name=mine") == 200

        await until(allowed)
        assert await listed("type=Opaque,metadata.name==mine") == 200
        for refused in ("metadata.name=other", "metadata.name!=mine", "type=Opaque", ""):
            assert await listed(refused) == 403
        path, obj = f"/api/v1/namespaces/{namespace}/configmaps/a", config_map("a")
        options: Json = {"content_type": "application/apply-patch+yaml", "params": {"fieldManager": "m"}}
        code, body = await cluster.request("PATCH", path, obj, headers=headers, **options)
        assert code == 403
        assert 'cannot create resource "configmaps"' in body["message"]
        assert (await cluster.request("PATCH", path, obj, **options))[0] == 201
        assert (await cluster.request("PATCH", path, obj, headers=headers, **options))[0] == 200


async def test_j7_only_who_may_impersonate_does(control_plane: Open) -> None:
    """A service account that acts as another user gets a 403."""
    async with control_plane() as cluster:
        _, user, headers = await account(cluster)
        code, body = await cluster.get("/version", headers={**headers, "Impersonate-User": "jane"})

    assert (code, body["reason"]) == (403, "Forbidden")
    assert f'User "{user}" cannot impersonate' in body["message"]
