"""People with the roles that `multikueue rbac user` prints, at a manager that serves the API, as an aggregator does."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp
import anyio.to_thread
import attrs
import yaml
from aiohttp import web
from click.testing import CliRunner, Result
from structlog.testing import capture_logs
from yarl import URL

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.identity.rbac import Attributes
from multikueue.sandbox.apiserver.identity.users import account_groups
from multikueue.sandbox.apiserver.status_errors import StatusError
from multikueued.api_answers import GROUP, VERSION
from multikueued.cli import main
from multikueued.logserver.answering import status
from multikueued.rbac.objects import CLUSTER_ROLE, ROLE_BINDING, SERVICE_ACCOUNT
from tests.logserver.stage import HOST, Stage, pem, stage

ROLES: Final = {"submitter": "multikueue-submitter", "viewer": "multikueue-viewer", "view": "view", "nobody": ""}
"""By person: the role in the namespace `default`. `view` is Kubernetes' own and shows no Workloads."""


@attrs.define(eq=False)
class People:
    """Those who use the manager."""

    stage: Stage
    folder: Path
    port: int
    serves: bool = True
    """Whether the manager serves the API."""
    broken: bool = False
    """Whether nobody answers for it."""

    async def run(self, who: str, *arguments: str, **environment: str) -> Result:
        """Run `multikueue` as one of them."""
        file = self.folder / f"kubeconfig-{who}"
        file.write_text(json.dumps(self.kubeconfig(who)))
        env = {"KUBECONFIG": str(file), **environment}
        return await anyio.to_thread.run_sync(partial(CliRunner().invoke, main, [*arguments], env=env))

    def kubeconfig(self, who: str) -> Json:
        """How one of them reaches the manager."""
        authority = base64.b64encode(pem(self.stage.serving).encode()).decode()
        server = f"https://{HOST}:{self.port}"
        token = "admins-token" if who == "admin" else f"{who}-token"
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "manager",
            "clusters": [{"name": "manager", "cluster": {"server": server, "certificate-authority-data": authority}}],
            "users": [{"name": who, "user": {"token": token}}],
            "contexts": [{"name": "manager", "context": {"cluster": "manager", "user": who, "namespace": "default"}}],
        }

    async def forward(self, request: web.Request) -> web.StreamResponse:
        """Pass a request on: to our server if it is for its API, else to the manager."""
        manager = self.stage.fleet.person.server
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        user = manager.access.user_of(token) or ""
        if self.broken and request.path.startswith(f"/apis/{GROUP}/{VERSION}/"):
            return web.json_response(status(503, "the service is away"), status=503)
        kept = [(name, request.headers[name]) for name in ("Accept", "Content-Type") if name in request.headers]
        to, headers = manager.url, [*kept, ("Authorization", f"Bearer {token}")]
        tls = ssl.create_default_context(cadata=manager.ca_pem)
        if self.serves and request.path.startswith(f"/apis/{GROUP}"):
            if why := self._refusal(token, request):
                return web.json_response(status(403, why), status=403)
            groups = account_groups(user) or ("system:masters", "system:authenticated")
            to, tls = f"https://{HOST}:{self.stage.port}", self.stage.tls()
            headers = [*kept, ("X-Remote-User", user), *(("X-Remote-Group", group) for group in groups)]
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                request.method,
                URL(to + request.raw_path, encoded=True),
                headers=headers,
                data=await request.read(),
                ssl=tls,
            ) as response,
        ):
            answer = web.StreamResponse(status=response.status)
            answer.content_type = response.content_type
            await answer.prepare(request)
            async for chunk in response.content.iter_any():
                await answer.write(chunk)
            return answer

    def _refusal(self, token: str, request: web.Request) -> str:
        """Why an API server does not pass a request on: it looks at the caller's roles first. Empty: it does."""
        access = self.stage.fleet.person.server.access
        known, rest = access.identify(token), request.path.split("/")[4:]
        if known is None or not rest:
            return ""
        namespace, rest = (rest[1], rest[2:]) if rest[0] == "namespaces" else ("", rest)
        resource, name, part = [*rest, "", ""][:3]
        verb = "get" if name else "watch" if request.query.get("watch") else "list"
        try:
            access.authorize(known[0], Attributes(verb, GROUP, resource, part, namespace, name))
        except StatusError as error:
            return str(error)
        return ""


@asynccontextmanager
async def people(folder: Path, **options: Any) -> AsyncIterator[People]:
    """The stage, with roles in force, and an account for each person; `options` are the server's."""
    with capture_logs():  # those of the server would stand among what a command prints
        async with stage(folder, **options) as here:
            for who, role in ROLES.items():
                await _account(here, who, role)
            made = People(here, folder, 0)
            application = web.Application()
            application.router.add_route("*", "/{path:.*}", made.forward)
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            here.serving.issue_cert(HOST).configure_cert(context)
            runner = web.AppRunner(application, access_log=None, handler_cancellation=True)
            await runner.setup()
            try:
                site = web.TCPSite(runner, HOST, 0, ssl_context=context)
                await site.start()
                made.port = runner.addresses[0][1]
                yield made
            finally:
                await runner.cleanup()


async def _account(here: Stage, who: str, role: str) -> None:
    access = here.fleet.person.server.access
    assert access.tokens is not None
    access.tokens[f"{who}-token"] = f"system:serviceaccount:default:{who}"
    account: Json = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": who, "namespace": "default"}}
    await here.admin.create(SERVICE_ACCOUNT, account)
    printed = CliRunner().invoke(main, ["rbac", "user"]).stdout
    for printed_role in yaml.safe_load_all(printed):
        if printed_role["metadata"]["name"] == role:
            await here.admin.create(CLUSTER_ROLE, printed_role)
    if role:
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        binding: Json = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": who, "namespace": "default"},
            "roleRef": reference,
            "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": who}],
        }
        await here.admin.create(ROLE_BINDING, binding)
