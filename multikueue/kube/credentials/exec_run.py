"""Runs exec plugins: commands that print credentials (client.authentication.k8s.io).

kubernetes-asyncio parses the section of the kubeconfig. The command runs here, because it must stop with the client,
may write any amount to stderr, and must not prompt.
"""

from __future__ import annotations

import json
import os
from typing import Final

import anyio

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.errors import Unauthorized
from multikueue.kube.credentials.credential import Credential
from multikueue.kube.credentials.exec_plugin import EXEC_INFO, ExecPlugin
from multikueue.kube.kubeconfig_document import is_token

PLUGIN_DEADLINE: Final = 25.0
"""Seconds that a plugin may take. Less than a call's deadline, so that the call's error can name the plugin."""


async def run_plugin(plugin: ExecPlugin) -> Credential:
    """Run the command and read the credential it prints.

    Raises:
        Unauthorized: it failed, took too long, or printed no token. The message never quotes the output, which may hold
            secrets also after a failure.
    """
    where = f"credential plugin {plugin.command}"
    if plugin.problem:
        raise Unauthorized(plugin.problem)
    try:
        with anyio.fail_after(PLUGIN_DEADLINE):
            done = await anyio.run_process(
                [plugin.command, *plugin.args], input=b"", env=_environment(plugin), check=False
            )
    except TimeoutError:
        raise Unauthorized(f"{where} did not answer within {PLUGIN_DEADLINE:.0f} s") from None
    except OSError as error:
        raise Unauthorized(f"{where} cannot be run: {error.strerror}") from None
    if done.returncode:
        raise Unauthorized(f"{where} failed with exit code {done.returncode}: run it by hand to see why")
    return _credential(done.stdout, plugin.api_version, where)


def _environment(plugin: ExecPlugin) -> dict[str, str]:
    spec: Json = {"interactive": False}
    if plugin.cluster:
        spec["cluster"] = json.loads(plugin.cluster)
    exec_info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    return {**os.environ, **dict(plugin.env), EXEC_INFO: json.dumps(exec_info)}


def _credential(printed: bytes, api_version: str, where: str) -> Credential:
    try:
        answer = json.loads(printed)
    except (ValueError, RecursionError):
        raise Unauthorized(f"{where} printed something that is not JSON") from None
    if dig(answer, "kind") != "ExecCredential" or dig(answer, "apiVersion") != api_version:
        raise Unauthorized(f"{where} did not print an ExecCredential of {api_version}")
    token = str(dig(answer, "status", "token") or "").strip()
    if not token and dig(answer, "status", "clientCertificateData"):
        raise Unauthorized(f"{where} printed a client certificate; only tokens are supported")
    if not token or not is_token(token):
        raise Unauthorized(f"{where} printed no token")
    return Credential(token, None, parse_timestamp(str(dig(answer, "status", "expirationTimestamp") or "")))
