"""Who asks, by what the front proxy says; and whose certificates count."""

from __future__ import annotations

import json
import ssl
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest
import trustme
from multidict import CIMultiDict

from multikueue.errors import Forbidden
from multikueue.webhook.errors import UnusableError
from multikueued.logserver.access import FrontTls
from multikueued.logserver.frontproxy import FrontProxy
from multikueued.serving.caller_tls import RETRY, follow_authorities, peer_of
from multikueued.serving.users import User
from tests.logserver.stage import PROXY, config_map

AUTHORITY = trustme.CA()
FRONT = FrontProxy.read(config_map(AUTHORITY))
CERTIFICATE: dict[str, Any] = {"subject": ((("organizationName", "x"),), (("commonName", PROXY),))}


def headers(**said: str) -> CIMultiDict[str]:
    return CIMultiDict({"X-Remote-User": "ann", **{name.replace("_", "-"): value for name, value in said.items()}})


def test_user_groups_and_extra_are_read() -> None:
    given = headers(X_Remote_Uid="u1")
    given.extend([("x-remote-group", "a"), ("X-Remote-Group", "b"), ("X-Remote-Extra-Example.com%2fScope", "s1")])
    given.add("X-Remote-Extra-Example.com%2fScope", "s2")
    user = FRONT.user(CERTIFICATE, given)
    assert user == User("ann", ("a", "b"), "u1", {"example.com/scope": ("s1", "s2")})
    assert user.spec == {"user": "ann", "groups": ["a", "b"], "uid": "u1", "extra": {"example.com/scope": ["s1", "s2"]}}


@pytest.mark.parametrize(
    "certificate",
    [
        None,
        {},
        {"subject": ()},
        {"subject": ((("commonName", "kubelet"),),)},
        {"subject": ((("commonName", PROXY),), (("commonName", "kubelet"),))},
        {"subject": ((("organizationName", PROXY),),)},
    ],
)
def test_without_the_right_certificate_headers_are_worth_nothing(certificate: dict[str, Any] | None) -> None:
    assert FRONT.user(certificate, headers()) is None


@pytest.mark.parametrize("name", ["", "\udcff"])
def test_a_name_that_is_none_is_nobodys(name: str) -> None:
    assert FRONT.user(CERTIFICATE, CIMultiDict({"X-Remote-User": name})) is None
    assert FRONT.user(CERTIFICATE, headers(X_Remote_Group="\udcff")) is None


def test_an_empty_list_of_names_allows_any_as_in_kubernetes() -> None:
    front = FrontProxy.read(config_map(AUTHORITY, **{"requestheader-allowed-names": "[]"}))
    assert front.user({"subject": ((("commonName", "any"),),)}, headers()) == User("ann")


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"requestheader-client-ca-file": ""}, "the API server's aggregation layer is not on"),
        ({"requestheader-client-ca-file": "nonsense"}, "PEM"),
        ({"requestheader-allowed-names": "front-proxy"}, "its requestheader-allowed-names is no list"),
        ({"requestheader-username-headers": "[]"}, "it names no requestheader-username-headers"),
    ],
)
def test_what_cannot_be_used_believes_nobody(changed: dict[str, str], complaint: str) -> None:
    with pytest.raises(UnusableError, match=complaint):
        FrontProxy.read(config_map(AUTHORITY, **changed))


def test_connections_of_earlier_authorities_do_not_count_and_a_renewed_certificate_ends_none() -> None:
    tls, serving = FrontTls(), trustme.CA().issue_cert("logs")
    pair = serving.cert_chain_pems[0].bytes().decode(), serving.private_key_pem.bytes().decode()
    assert tls.why_not_ready is not None
    tls.load(*pair)
    tls.believe(FRONT)
    assert tls.why_not_ready is None
    before = tls.context
    assert before.verify_mode is ssl.CERT_OPTIONAL
    tls.load(*pair)
    assert tls.context is not before
    assert tls.is_current(before)
    tls.believe(FrontProxy.read(config_map(trustme.CA())))
    assert (tls.is_current(before), tls.is_current(tls.context)) == (False, True)


def test_a_certificate_that_has_expired_meanwhile_is_nobodys() -> None:
    class Connection:
        def getpeercert(self) -> dict[str, str]:
            return {"notAfter": "Jan  1 00:00:00 2026 GMT"}

    assert peer_of(Connection(), datetime(2025, 12, 31, tzinfo=UTC)) is not None
    assert peer_of(Connection(), datetime(2026, 1, 1, tzinfo=UTC)) is None
    assert peer_of(None, datetime(2025, 1, 1, tzinfo=UTC)) is None


@pytest.mark.looptime
async def test_what_was_believed_stays_while_the_config_map_cannot_be_read() -> None:
    tls, answers = FrontTls(), [Forbidden("no"), config_map(AUTHORITY), {"data": {}}, Forbidden("no")]
    asked = []

    async def get(*about: object) -> Any:
        asked.append(anyio.current_time())
        config_map = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(config_map, Forbidden):
            raise config_map
        return config_map

    with anyio.move_on_after(120):
        await follow_authorities(get, tls)
    assert tls.front == FRONT
    assert asked[1] - asked[0] == pytest.approx(RETRY)
    assert len(asked) > 3


def test_the_repr_shows_no_certificate() -> None:
    assert "CERTIFICATE" not in repr(FRONT)
    assert json.dumps(sorted(FRONT.names)) == f'["{PROXY}"]'
