"""An OpenID Connect provider: discovery, keys, the code flow with a secret, refresh tokens.

Everybody who asks is signed in at once, as whoever `next_person` names.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs
import orjson
import trustme
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from yarl import URL

from multikueue.runtime.loop import utc_now

HOST: Final = "localhost"
_KEY: Final = "key-1"


@attrs.define(eq=False)
class Issuer:
    """It signs what it is asked to."""

    port: int = 0
    next_person: str = "ann@example.com"
    lifetime: float = 600.0
    """Seconds for which the tokens that it gives are good."""
    audience: str = ""
    """For whom they are; empty: for the client that asks."""
    refreshes: int = 0
    """How many tokens were asked for with a refresh token."""
    _key: rsa.RSAPrivateKey = attrs.field(factory=lambda: rsa.generate_private_key(65_537, 2048), repr=False)
    _codes: dict[str, dict[str, str]] = attrs.field(factory=dict, repr=False)
    """What each code, or refresh token, stands for: claims."""

    @property
    def url(self) -> str:
        """What stands in tokens as `iss`."""
        return f"https://{HOST}:{self.port}"

    def token(self, email: str, audience: str, *, lifetime: float | None = None, **claims: Any) -> str:
        """A signed token of somebody; with a lifetime below 0 it is good no more."""
        now = utc_now().timestamp()
        until = now + (self.lifetime if lifetime is None else lifetime)
        said = {"iss": self.url, "sub": email, "aud": audience, "iat": int(now) - 900, "exp": int(until)}
        said |= {"email": email, "email_verified": True, **claims}
        text = f"{_encoded({'alg': 'RS256', 'typ': 'JWT', 'kid': _KEY})}.{_encoded(said)}"
        return f"{text}.{_base64(self._key.sign(text.encode(), padding.PKCS1v15(), SHA256()))}"

    async def discovery(self, _request: web.Request) -> web.Response:
        """Where all else is."""
        places = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
        said: dict[str, Any] = {f"{name}_endpoint": f"{self.url}/{path}" for name, path in places.items()}
        said |= {"issuer": self.url, "jwks_uri": f"{self.url}/keys", "response_types_supported": ["code"]}
        return web.json_response(
            {**said, "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["RS256"]}
        )

    async def keys(self, _request: web.Request) -> web.Response:
        """With which tokens are checked."""
        numbers = self._key.public_key().public_numbers()
        exponent, modulus = (
            _base64(number.to_bytes((number.bit_length() + 7) // 8, "big")) for number in (numbers.e, numbers.n)
        )
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": _KEY, "e": exponent, "n": modulus}
        return web.json_response({"keys": [key]})

    async def authorize(self, request: web.Request) -> web.Response:
        """Sign the next person in."""
        code = f"code-{len(self._codes)}"
        nonce = {"nonce": request.query["nonce"]} if "nonce" in request.query else {}
        self._codes[code] = {"email": self.next_person, **nonce}
        back = URL(request.query["redirect_uri"]).update_query(code=code, state=request.query["state"])
        return web.Response(status=302, headers={"Location": str(back)})

    async def userinfo(self, request: web.Request) -> web.Response:
        """What a token does not say, as groups: nothing more."""
        email = request.headers["Authorization"].removeprefix("Bearer access-of-")
        return web.json_response({"sub": email, "email": email, "email_verified": True})

    async def tokens(self, request: web.Request) -> web.Response:
        """Tokens for a code, or for a refresh token."""
        form = await request.post()
        is_refresh = form["grant_type"] == "refresh_token"
        self.refreshes += is_refresh
        person = self._codes.pop(str(form["refresh_token" if is_refresh else "code"]), None)
        if person is None:
            return web.json_response({"error": "invalid_grant"}, status=400)
        basic = base64.b64decode(request.headers.get("Authorization", "").removeprefix("Basic ")).decode()
        client = str(form.get("client_id") or basic.partition(":")[0])
        again = f"refresh-{len(self._codes)}"
        self._codes[again] = person
        claims: dict[str, Any] = {name: value for name, value in person.items() if name != "email"}
        token = self.token(person["email"], self.audience or client, **claims)
        said = {"access_token": f"access-of-{person['email']}", "token_type": "Bearer", "id_token": token}
        return web.json_response({**said, "refresh_token": again, "expires_in": max(1, int(self.lifetime))})


@asynccontextmanager
async def issuing(authority: trustme.CA) -> AsyncIterator[Issuer]:
    """A provider, with a certificate for this machine, while the context lasts."""
    made, tls = Issuer(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(HOST).configure_cert(tls)
    application = web.Application()
    application.router.add_get("/.well-known/openid-configuration", made.discovery)
    application.router.add_get("/keys", made.keys)
    application.router.add_get("/authorize", made.authorize)
    application.router.add_get("/userinfo", made.userinfo)
    application.router.add_post("/token", made.tokens)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, 0, ssl_context=tls).start()
        made.port = runner.addresses[0][1]
        yield made
    finally:
        await runner.cleanup()


def _encoded(value: Any) -> str:
    return _base64(orjson.dumps(value))


def _base64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
