"""Metrics over HTTPS: who may read them is the manager cluster's to say."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

import aiohttp
import anyio
import attrs
import orjson
import pytest

from multikueue.core.model.names import Json, Resource
from multikueue.errors import ApiError, ServerFault, SettingsError
from multikueue.kube import KubeClient, parse_worker_kubeconfig
from multikueue.sandbox.apiserver import ApiServer
from multikueue.webhook.certificates import pem
from multikueue.webhook.rotation import renewed
from multikueued.metrics.hooks import Metrics
from multikueued.serving.health import serving
from multikueued.serving.kept_answers import ALLOWED_FOR, REFUSED_FOR
from multikueued.serving.reviews import ACCESS_REVIEW, MAX_TOKEN, TOKEN_REVIEW
from multikueued.serving.secure_metrics import (
    TOKENS,
    Readers,
    serving_securely,
)
from multikueued.settings.config import MetricsSettings, ServingSettings
from multikueued.settings.file import parse_settings

HOST = "127.0.0.1"


@attrs.define(eq=False)
class Manager:
    """The manager's API server: whose a token is, and who may read metrics."""

    users: dict[str, str] = attrs.field(factory=lambda: {"good": "prometheus", "other": "somebody"})
    asked: list[Json] = attrs.field(factory=list)
    broken: ApiError | None = None

    async def create(self, resource: Resource, obj: Json) -> Json:
        self.asked.append(obj)
        if self.broken is not None:
            raise self.broken
        spec = obj["spec"]
        if resource == TOKEN_REVIEW:
            user = self.users.get(spec["token"])
            status = {"authenticated": True, "user": {"username": user, "groups": ["g"], "extra": {"a": ["b"]}}}
            return {**obj, "status": status if user else {"authenticated": False}}
        assert resource == ACCESS_REVIEW
        assert spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
        assert (spec["groups"], spec["extra"]) == (["g"], {"a": ["b"]})
        return {**obj, "status": {"allowed": spec["user"] == "prometheus"}}


@pytest.mark.parametrize(
    ("header", "verdict"),
    [
        ("Bearer good", HTTPStatus.OK),
        ("bearer  good", HTTPStatus.OK),
        ("Bearer other", HTTPStatus.FORBIDDEN),
        ("Bearer wrong", HTTPStatus.UNAUTHORIZED),
        ("Basic good", HTTPStatus.UNAUTHORIZED),
        ("Bearer ", HTTPStatus.UNAUTHORIZED),
        ("", HTTPStatus.UNAUTHORIZED),
        ("Bearer " + "x" * (MAX_TOKEN + 1), HTTPStatus.UNAUTHORIZED),
    ],
)
async def test_the_manager_says_who_may_read(header: str, verdict: HTTPStatus) -> None:
    assert await Readers(Manager().create).verdict(header) is verdict


async def test_a_header_of_odd_bytes_is_nobodys() -> None:
    """aiohttp gives them as lone surrogates."""
    assert await Readers(Manager().create).verdict("Bearer \udcff") is HTTPStatus.UNAUTHORIZED


@pytest.mark.looptime
async def test_an_answer_is_kept_for_a_while() -> None:
    """A scrape every few seconds costs two requests a minute; a revoked token is noticed within one."""
    manager = Manager()
    readers = Readers(manager.create)
    for _ in range(10):
        assert await readers.verdict("Bearer good") is HTTPStatus.OK
    assert len(manager.asked) == 2
    manager.users.clear()
    await anyio.sleep(ALLOWED_FOR)
    assert await readers.verdict("Bearer good") is HTTPStatus.UNAUTHORIZED
    manager.users["good"] = "prometheus"
    await anyio.sleep(REFUSED_FOR)
    assert await readers.verdict("Bearer good") is HTTPStatus.OK


async def test_a_stranger_with_many_tokens_fills_no_memory() -> None:
    readers = Readers(Manager().create)
    for number in range(3 * TOKENS):
        await readers.verdict(f"Bearer {number}")
    assert len(readers._verdicts) == TOKENS
    assert "Bearer" not in repr(readers)


async def test_invented_tokens_push_out_no_real_one() -> None:
    """Each scrape of Prometheus would cost two requests again."""
    manager = Manager()
    readers = Readers(manager.create)
    await readers.verdict("Bearer good")
    for number in range(2 * TOKENS):
        await readers.verdict(f"Bearer {number}")
    asked = len(manager.asked)
    assert await readers.verdict("Bearer good") is HTTPStatus.OK
    assert len(manager.asked) == asked


async def test_a_manager_that_does_not_answer_opens_nothing() -> None:
    manager = Manager(broken=ServerFault("broken", status=500))
    assert await Readers(manager.create).verdict("Bearer good") is HTTPStatus.SERVICE_UNAVAILABLE
    manager.broken = None
    assert await Readers(manager.create).verdict("Bearer good") is HTTPStatus.OK


def settings(folder: Path) -> ServingSettings:
    made = renewed(None, HOST, datetime.now(UTC))
    assert made is not None
    (folder / "tls.crt").write_text(pem(made.serving.certificate))
    (folder / "tls.key").write_text(made.serving.key_pem)
    (folder / "ca.crt").write_text(made.bundle)
    secure = MetricsSettings(secure=True, port=0, cert_dir=str(folder))
    return ServingSettings(bind_address=HOST, port=0, metrics=secure)


async def scrape(port: int, folder: Path, token: str = "", path: str = "/metrics") -> tuple[int, str]:
    tls = ssl.create_default_context(cafile=folder / "ca.crt")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"https://{HOST}:{port}{path}", headers=headers, ssl=tls) as response,
    ):
        return response.status, await response.text()


async def test_metrics_are_shown_over_https_to_those_who_may(tmp_path: Path) -> None:
    async with serving_securely(settings(tmp_path), Manager().create, Metrics("leader")) as port:
        status, text = await scrape(port, tmp_path, "good")
        assert status == 200
        assert "multikueue_leading" in text
        for token, refused in (("", 401), ("wrong", 401), ("other", 403)):
            status, text = await scrape(port, tmp_path, token)
            assert (status, "multikueue_leading" in text) == (refused, False)
        assert (await scrape(port, tmp_path, "good", "/healthz"))[0] == 404


async def test_a_real_manager_is_asked_over_http() -> None:
    """The sandbox knows its tokens, and lets everybody it knows do everything."""
    async with ApiServer("manager", tokens={"t": "admin", "p": "prometheus"}) as server:
        config = parse_worker_kubeconfig(orjson.dumps(server.kubeconfig()))
        async with KubeClient(config, name="manager") as client:
            readers = Readers(client.create)
            assert await readers.verdict("Bearer p") is HTTPStatus.OK
            assert await readers.verdict("Bearer x") is HTTPStatus.UNAUTHORIZED


async def test_then_the_plain_port_has_health_alone(tmp_path: Path) -> None:
    async with (
        serving(settings(tmp_path), Metrics("leader"), lambda: None) as port,
        aiohttp.ClientSession() as session,
    ):
        for path, status in (("/healthz", 200), ("/readyz", 200), ("/metrics", 404)):
            async with session.get(f"http://{HOST}:{port}{path}") as response:
                assert response.status == status


async def test_a_folder_without_a_certificate_is_told(tmp_path: Path) -> None:
    chosen = ServingSettings(bind_address=HOST, metrics=MetricsSettings(True, 0, str(tmp_path)))
    with pytest.raises(SettingsError, match=r"^serving\.metrics\.certDir: cannot read .*tls\.crt.*; put tls\.crt"):
        async with serving_securely(chosen, Manager().create, Metrics("leader")):
            pytest.fail("served without a certificate")


def test_https_needs_a_folder() -> None:
    with pytest.raises(SettingsError, match=r"serving\.metrics\.certDir: there is no certificate for HTTPS"):
        parse_settings("serving: {metrics: {secure: true}}")
    settings = parse_settings("serving: {metrics: {secure: true, certDir: /certs, port: 9443}}").serving.metrics
    assert settings == MetricsSettings(True, 9443, "/certs")
