"""What an exec plugin gets, and what it answers: texts in and values out (client.authentication.k8s.io)."""

from __future__ import annotations

import json
import re
import ssl
from typing import Any, Final, NoReturn

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.kube.credentials.credential import Credential, KeyPair
from multikueue.kube.credentials.exec_plugin import ExecPlugin
from multikueue.kube.kubeconfigs.kubeconfig_document import is_token

_VERSION: Final = re.compile(r"([a-z0-9.-]{1,60}/)?v[0-9]{1,2}((alpha|beta)[0-9]{1,2})?")
"""What may be quoted of an answer: no secret looks like this."""


class BadAnswer(Exception):
    """What is wrong with an answer. It quotes nothing that may be a secret; `wrote` is as in `Unauthorized`."""

    def __init__(self, message: str, wrote: str = "") -> None:
        super().__init__(message)
        self.wrote = wrote


def exec_info(plugin: ExecPlugin) -> str:
    """What `KUBERNETES_EXEC_INFO` holds for a plugin: as client-go writes it, in its order."""
    cluster = f'"cluster":{plugin.cluster},' if plugin.cluster else ""
    version = json.dumps(plugin.api_version)
    return f'{{"kind":"ExecCredential","apiVersion":{version},"spec":{{{cluster}"interactive":false}}}}'


def read_answer(printed: bytes, api_version: str) -> Credential:
    """The credential that a plugin has printed. A pair of certificate and key is not looked into: see `loaded`.

    Args:
        printed: all that it wrote to stdout.
        api_version: what it was asked for.

    Raises:
        BadAnswer: in client-go's words, as far as these quote nothing.
    """
    answer = _decoded(printed)
    returned = answer.get("apiVersion")
    if returned != api_version:
        shown = returned if isinstance(returned, str) and _VERSION.fullmatch(returned) else "(not a version)"
        _bad(f"exec plugin is configured to use API version {api_version}, plugin returned version {shown}")
    status = answer.get("status")
    if status is None:
        _bad("exec plugin didn't return a status field")
    token = _text(status, "token").strip()
    certificate, key = _text(status, "clientCertificateData"), _text(status, "clientKeyData")
    if not token and not certificate and not key:
        _bad("exec plugin didn't return a token or cert/key pair")
    if bool(certificate) != bool(key):
        _bad("exec plugin returned only certificate or key, not both")
    if not is_token(token):
        _bad("decoding stdout: status.token is not one word of plain characters")
    expiry = _text(status, "expirationTimestamp")
    expires = parse_timestamp(expiry)
    if expiry and expires is None:
        _bad("decoding stdout: status.expirationTimestamp is not a time of RFC 3339")
    return Credential(token, KeyPair(certificate, key) if certificate else None, expires)


def why_unusable(error: OSError | ValueError) -> str:
    """Why a pair cannot be loaded, in client-go's words as far as these quote nothing.

    Args:
        error: what `transport.load_key_pair` raised.
    """
    if isinstance(error, ssl.SSLError):
        why = (error.reason or "not PEM").replace("_", " ").lower()
        return f"failed parsing client key/certificate: {why}"
    if isinstance(error, OSError):
        return f"client key/certificate cannot be loaded: the temporary file: {error.strerror}"
    return "failed parsing client key/certificate: not PEM"


def _decoded(printed: bytes) -> Json:
    try:
        answer: Any = json.loads(printed)
    except (ValueError, RecursionError):
        _bad("decoding stdout: it is not JSON")
    if dig(answer, "kind") != "ExecCredential":
        _bad("decoding stdout: its kind is not ExecCredential")
    assert isinstance(answer, dict)
    return answer


def _text(status: Any, field: str) -> str:
    value = status.get(field) if isinstance(status, dict) else _bad("decoding stdout: status is not an object")
    if value is not None and not isinstance(value, str):
        _bad(f"decoding stdout: status.{field} is not a text")
    return value or ""


def _bad(message: str) -> NoReturn:
    """Raise without a cause: a parser's error quotes what it could not read."""
    raise BadAnswer(message) from None
