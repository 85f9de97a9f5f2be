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
    told = f"cannot listen on 203.0.113.1:9443: {why}; set webhook.bindAddress and webhook.port to"
    with pytest.raises(SettingsError, match=re.escape(told)):
        async with listening(web.Application(), "203.0.113.1", 9443, settings="webhook"):
            pass
