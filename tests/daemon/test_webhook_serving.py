"""The webhook's port, as API servers and others see it."""

from __future__ import annotations

import io
import json
import ssl
from datetime import UTC, datetime

import aiohttp
import anyio
import pytest

from multikueue.core.admission.registration import PATH
from multikueue.errors import SettingsError
from multikueue.webhook.certificates import pem
from multikueue.webhook.errors import UnusableError
from multikueue.webhook.reviewer import ReviewAnswer
from multikueue.webhook.rotation import WebhookCredentials, renewed
from multikueued.serving.serving_tls import ServingTls
from multikueued.settings.config import WebhookSettings
from multikueued.webhook.server import MAX_BODY, reviewing

HOST = "127.0.0.1"
ANY = WebhookSettings(enabled=True, bind_address=HOST, port=0)


def credentials() -> WebhookCredentials:
    made = renewed(None, HOST, datetime.now(UTC))
    assert made is not None
    return made


def serving_tls(made: WebhookCredentials) -> ServingTls:
    tls = ServingTls()
    load(tls, made)
    return tls


def load(tls: ServingTls, made: WebhookCredentials) -> None:
    tls.load(pem(made.serving.certificate), made.serving.key_pem)


def echo(body: bytes) -> ReviewAnswer:
    return ReviewAnswer(200, body)


async def ask(
    port: int,
    trusted: WebhookCredentials,
    body: bytes = b"{}",
    *,
    path: str = PATH,
    media_type: str = "application/json",
) -> tuple[int, str]:
    tls = ssl.create_default_context(cadata=trusted.bundle)
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"https://{HOST}:{port}{path}?timeout=3s",
            data=io.BytesIO(body),
            headers={"Content-Type": media_type},
            ssl=tls,
        ) as response,
    ):
        return response.status, await response.text()


async def test_a_review_is_answered_over_tls() -> None:
    made = credentials()
    async with reviewing(ANY, serving_tls(made), echo) as port:
        assert await ask(port, made, b'{"a": 1}') == (200, '{"a": 1}')


async def test_a_refusal_is_plain_text() -> None:
    made = credentials()
    async with reviewing(ANY, serving_tls(made), lambda _: ReviewAnswer(400, b"not a review\n")) as port:
        assert await ask(port, made) == (400, "not a review\n")


async def test_nothing_else_is_on_that_port() -> None:
    made = credentials()
    async with reviewing(ANY, serving_tls(made), echo) as port:
        assert (await ask(port, made, path="/"))[0] == 404
        assert (await ask(port, made, path="/metrics"))[0] == 404
        assert await ask(port, made, media_type="text/plain") == (415, "send an AdmissionReview as application/json\n")
        tls = ssl.create_default_context(cadata=made.bundle)
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"https://{HOST}:{port}{PATH}", ssl=tls) as response,
        ):
            assert response.status == 405


async def test_a_body_may_be_as_long_as_api_servers_make_them_and_no_longer() -> None:
    made = credentials()
    async with reviewing(ANY, serving_tls(made), lambda body: ReviewAnswer(200, str(len(body)).encode())) as port:
        assert await ask(port, made, b"x" * (6 << 20)) == (200, str(6 << 20))
        assert (await ask(port, made, b"x" * (MAX_BODY + 1)))[0] == 413


async def test_a_body_that_does_not_arrive_is_not_waited_for() -> None:
    made = credentials()
    async with reviewing(ANY, serving_tls(made), echo, read_timeout=0.05) as port:
        tls = ssl.create_default_context(cadata=made.bundle)
        stream = await anyio.connect_tcp(HOST, port, ssl_context=tls, tls_standard_compatible=False)
        async with stream:
            head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{"
            await stream.send(head.encode())
            with anyio.fail_after(5):
                assert b" 408 " in await stream.receive()


async def test_a_new_certificate_is_served_without_a_restart() -> None:
    first, second = credentials(), credentials()
    tls = serving_tls(first)
    async with reviewing(ANY, tls, echo) as port:
        assert (await ask(port, first))[0] == 200
        load(tls, second)
        assert (await ask(port, second))[0] == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await ask(port, first)


async def test_without_a_certificate_there_is_no_connection_and_later_there_is() -> None:
    """A replica listens before the leader has made the certificate."""
    made, tls = credentials(), ServingTls()
    async with reviewing(ANY, tls, echo) as port:
        with pytest.raises(aiohttp.ClientError):
            await ask(port, made)
        load(tls, made)
        assert (await ask(port, made))[0] == 200


async def test_a_pair_that_cannot_be_used_changes_nothing_and_is_not_quoted() -> None:
    made, other = credentials(), credentials()
    tls = serving_tls(made)
    async with reviewing(ANY, tls, echo) as port:
        for certificate, key in (
            (pem(made.serving.certificate), other.serving.key_pem),
            (pem(other.serving.certificate), "garbage"),
            ("", ""),
        ):
            with pytest.raises(UnusableError, match="not a PEM certificate and its key") as caught:
                tls.load(certificate, key)
            assert "BEGIN" not in str(caught.value)
            assert (await ask(port, made))[0] == 200


async def test_old_protocols_are_refused() -> None:
    made = credentials()
    async with reviewing(ANY, serving_tls(made), echo) as port:
        tls = ssl.create_default_context(cadata=made.bundle)
        tls.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        tls.set_ciphers("DEFAULT:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            tls.maximum_version = ssl.TLSVersion.TLSv1_1
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientError):
                await session.post(f"https://{HOST}:{port}{PATH}", data=b"{}", ssl=tls)


async def test_a_port_in_use_is_reported_with_the_setting_to_change() -> None:
    tls = serving_tls(credentials())
    async with reviewing(ANY, tls, echo) as port:
        taken = WebhookSettings(enabled=True, bind_address=HOST, port=port)
        with pytest.raises(SettingsError, match=rf"127\.0\.0\.1:{port}: it is in use; set webhook\.port"):
            async with reviewing(taken, tls, echo):
                pytest.fail("served on a port in use")


async def test_a_bug_in_a_review_is_a_500() -> None:
    """It gets a 500 and does as its `failurePolicy` says; the daemon goes on."""

    def broken(body: bytes) -> ReviewAnswer:
        return ReviewAnswer(200, json.loads(body)["missing"])

    made = credentials()
    async with reviewing(ANY, serving_tls(made), broken) as port:
        assert (await ask(port, made))[0] == 500
        assert (await ask(port, made))[0] == 500


async def test_an_address_that_is_no_name_is_reported_with_the_setting_to_change() -> None:
    nowhere = WebhookSettings(enabled=True, bind_address="no such host", port=0)
    with pytest.raises(SettingsError, match=r"cannot listen on no such host:0: .*; set webhook\.bindAddress") as caught:
        async with reviewing(nowhere, ServingTls(), echo):
            pytest.fail("served nowhere")
    assert "Unknown error" not in str(caught.value)
