"""Runs exec plugins: commands that print credentials (client.authentication.k8s.io).

kubernetes-asyncio parses the section of the kubeconfig. The command runs here, because it must stop with the client,
may write any amount to stderr, and must not prompt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import anyio
import attrs

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.errors import Unauthorized
from multikueue.kube.config import ExecPlugin
from multikueue.kube.kubeconfig_document import is_token

PLUGIN_DEADLINE: Final = 25.0
"""Seconds that a plugin may take. Less than a call's deadline, so that the call's error can name the plugin."""


@attrs.frozen
class Credential:
    """What a plugin printed."""

    token: str = attrs.field(repr=False)
    expires: datetime | None = None


async def run_plugin(plugin: ExecPlugin) -> Credential:
    """Run the command and read the credential it prints.

    Raises:
        Unauthorized: it failed, took too long, or printed no token. The message never quotes the output, which may hold
            secrets also after a failure.
    """
    where = f"credential plugin {plugin.command}"
    arguments, environment = _command(plugin, where)
    try:
        with anyio.fail_after(PLUGIN_DEADLINE):
            done = await anyio.run_process(arguments, input=b"", env=environment, check=False)
    except TimeoutError:
        raise Unauthorized(f"{where} did not answer within {PLUGIN_DEADLINE:.0f} s") from None
    except OSError as error:
        raise Unauthorized(f"{where} cannot be run: {error.strerror}") from None
    if done.returncode:
        raise Unauthorized(f"{where} failed with exit code {done.returncode}: run it by hand to see why")
    return _credential(done.stdout, json.loads(plugin.section)["apiVersion"], where)


def _command(plugin: ExecPlugin, where: str) -> tuple[list[str], Mapping[str, str]]:
    # Imported here because the import takes 0.3 s and only plugins need it.
    from kubernetes_asyncio.config.config_exception import ConfigException
    from kubernetes_asyncio.config.exec_provider import ExecProvider
    from kubernetes_asyncio.config.kube_config import ConfigNode

    section = json.loads(plugin.section)
    try:
        provider = ExecProvider(ConfigNode("exec", section))
        arguments = [str(argument) for argument in provider.args]
        environment = {name: str(value) for name, value in provider.env.items()}
    except (ConfigException, KeyError, TypeError, AttributeError):
        raise Unauthorized(f"{where}: args must be a list, and env a list of names and values") from None
    spec: Json = {"interactive": False}
    if plugin.cluster:
        spec["cluster"] = json.loads(plugin.cluster)
    exec_info = {"apiVersion": section["apiVersion"], "kind": "ExecCredential", "spec": spec}
    return arguments, {**environment, "KUBERNETES_EXEC_INFO": json.dumps(exec_info)}


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
    return Credential(token, parse_timestamp(str(dig(answer, "status", "expirationTimestamp") or "")))
