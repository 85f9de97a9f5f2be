"""
Tokens that a service account asks for, as `kubectl create token` does: they are bound, and they end.

A token is a JWT, signed by this cluster with HMAC. Nothing is stored: a token is good as long as it is not over, it is
meant for this API server, and its account, and what it is bound to, are still those it was issued for.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import attrs

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import decode, encode
from multikueue.sandbox.apiserver.identity.users import User, account_user, of_type, struct, texts, user_named
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.status_errors import Cause, conflict, invalid, not_found
from multikueue.sandbox.apiserver.storage.cluster import Cluster

AUDIENCE: Final = "https://kubernetes.default.svc.cluster.local"
"""The API server itself."""
ACCOUNTS: Final = ("", "serviceaccounts")
HOUR: Final = 3600
SHORTEST: Final = 600
"""Seconds."""
LONGEST: Final = 1 << 32
_CLAIM: Final = "kubernetes.io"
_HEAD: Final = {"alg": "HS256", "typ": "JWT"}
_BOUND: Final[Mapping[str, str]] = {"Pod": "pods", "Secret": "secrets"}
_REQUEST: Final = ResourceType(group="authentication.k8s.io", plural="tokenrequests", kind="TokenRequest")


@attrs.define(eq=False)
class TokenIssuer:
    """Issues and reads tokens of one cluster."""

    cluster: Cluster
    _key: bytes = attrs.field(factory=lambda: secrets.token_bytes(32), repr=False)

    def issue(self, namespace: str, name: str, request: Any) -> Json:
        """Answer a TokenRequest.

        Raises:
            StatusError: 400, it does not fit the kind; 404, no such account or object to bind to; 409, the object is
                another one of that name; 422, the duration is refused.
        """
        account = self.cluster.entry(self.cluster.type_of("", "v1", "serviceaccounts"), namespace, name).obj
        spec = struct(request or {}, "spec")
        seconds = of_type(spec, "expirationSeconds", int)
        seconds = HOUR if seconds is None else seconds
        _check_seconds(seconds)
        now = self.cluster.moment()
        until = now + timedelta(seconds=seconds)
        about: Json = {"namespace": namespace, "serviceaccount": _reference(account)}
        if bound := struct(spec, "boundObjectRef"):
            about[str(bound.get("kind")).lower()] = _reference(self._bound_object(namespace, bound))
        audiences = texts(spec, "audiences") or [AUDIENCE]
        claims = {
            "aud": audiences,
            "exp": int(until.timestamp()),
            "iat": int(now.timestamp()),
            "iss": AUDIENCE,
            "jti": secrets.token_hex(16),
            _CLAIM: about,
            "nbf": int(now.timestamp()),
            "sub": account_user(namespace, name),
        }
        status = {"token": self._signed(claims), "expirationTimestamp": timestamp(until)}
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": timestamp(now)},
            "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
            "status": status,
        }

    def read(self, token: str, audiences: Sequence[str] = (AUDIENCE,)) -> tuple[User, list[str]] | None:
        """Whose a token is, and which of the audiences it is meant for; None if it is not, or no longer, good."""
        claims = self._claims(token)
        if claims is None or not claims["nbf"] <= self.cluster.moment().timestamp() < claims["exp"]:
            return None
        meant = [audience for audience in audiences if audience in claims["aud"]]
        about = claims[_CLAIM]
        plurals = {"serviceaccount": ACCOUNTS[1], **{kind.lower(): plural for kind, plural in _BOUND.items()}}
        for kind, plural in plurals.items():
            if kind in about and not self._is_there(plural, about["namespace"], about[kind]):
                return None
        return (user_named(claims["sub"], about["serviceaccount"]["uid"]), meant) if meant else None

    def _bound_object(self, namespace: str, bound: Json) -> Json:
        kind = str(bound.get("kind") or "")
        plural = _BOUND.get(kind)
        if plural is None:
            message = f'Unsupported value: "{kind}": supported values: "Pod", "Secret"'
            raise invalid(_REQUEST, "", [Cause("FieldValueNotSupported", "spec.boundObjectRef.kind", message)])
        row = self.cluster.type_of("", "v1", plural)
        entry = self.cluster.store.get(("", plural), (namespace, bound.get("name") or ""))
        if entry is None:
            raise not_found(row, bound.get("name") or "")
        if bound.get("uid") not in (None, "", entry.obj["metadata"]["uid"]):
            why = f"the UID in the bound object reference ({bound['uid']}) does not match the UID in record"
            raise conflict(row, bound["name"], why)
        return entry.obj

    def _is_there(self, plural: str, namespace: str, reference: Json) -> bool:
        entry = self.cluster.store.get(("", plural), (namespace, reference["name"]))
        return entry is not None and entry.obj["metadata"]["uid"] == reference["uid"]

    def _signed(self, claims: Json) -> str:
        text = f"{_packed(encode(_HEAD))}.{_packed(encode(claims))}"
        return f"{text}.{self._signature(text)}"

    def _signature(self, text: str) -> str:
        return _packed(hmac.new(self._key, text.encode(), hashlib.sha256).digest())

    def _claims(self, token: str) -> Json | None:
        text, _, signature = token.rpartition(".")
        if (
            not text
            or not token.isascii()
            or not hmac.compare_digest(self._signature(text).encode(), signature.encode())
        ):
            return None
        body = text.partition(".")[2]
        claims: Json = decode(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return claims


def _check_seconds(seconds: int) -> None:
    why = ""
    if seconds < SHORTEST:
        why = "may not specify a duration less than 10 minutes"
    elif seconds > LONGEST:
        why = "may not specify a duration larger than 2^32 seconds"
    if why:
        cause = Cause("FieldValueInvalid", "spec.expirationSeconds", f"Invalid value: {seconds}: {why}")
        raise invalid(_REQUEST, "", [cause])


def _reference(obj: Json) -> Json:
    return {"name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}


def _packed(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
