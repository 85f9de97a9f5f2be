"""A port that cannot be opened: what users are told, whatever the version of Python says."""

from __future__ import annotations

import errno
import re
import socket

import pytest
from aiohttp import web

from multikueue.errors import SettingsError
from multikueued.serving.port import listening


@pytest.mark.parametrize(
    ("raised", "why"),
    [
        (OSError(errno.EADDRNOTAVAIL, "error while attempting to bind"), "Cannot assign requested address"),
        (OSError(errno.EACCES, "error while attempting to bind"), "Permission denied"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known"),
    ],
)
async def test_it_says_why_and_what_to_set(raised: OSError, why: str, monkeypatch: pytest.MonkeyPatch) -> None:

    async def bind(_address: str, _port: int) -> list[socket.socket]:
        raise raised

    monkeypatch.setattr("multikueued.serving.port.bind", bind)
    message = f"cannot listen on 203.0.113.1:9443: {why}; set webhook.bindAddress and webhook.port to"
    with pytest.raises(SettingsError, match=re.escape(message)):
        async with listening(web.Application(), "203.0.113.1", 9443, settings="webhook"):
            pass


@pytest.mark.parametrize(
    ("settings", "used", "away"),
    [
        ("serving.metrics", "serving.metrics.port", "serving.bindAddress and serving.metrics.port"),
        ("", "--port", "--bind-address and --port"),
    ],
)
async def test_what_is_to_be_set_exists(settings: str, used: str, away: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, named in ((errno.EADDRINUSE, used), (errno.EACCES, away)):

        async def bind(_address: str, _port: int, number: int = number) -> list[socket.socket]:
            raise OSError(number, "error while attempting to bind")

        monkeypatch.setattr("multikueued.serving.port.bind", bind)
        with pytest.raises(SettingsError, match=f"set {named} to "):
            async with listening(web.Application(), "", 8443, settings=settings):
                pass
