"""Exec plugins for tests: scripts that really run, and fakes on a virtual clock."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import attrs

from multikueue.errors import Unauthorized
from multikueue.kube.credentials.authenticator import Authenticators
from multikueue.kube.credentials.credential import Credential
from multikueue.kube.credentials.exec_plugin import ExecPlugin
from multikueue.kube.credentials.sources import PluginCredential
from multikueue.kube.http.single_flight import SingleFlight

API = "client.authentication.k8s.io/v1"
CANARY = "s3cr3t-canary"


SCRIPT = """
import json, os, sys, time
folder = sys.argv[1]
runs = os.path.join(folder, "runs")
with open(runs, "a") as file:
    file.write(".")
with open(os.path.join(folder, "environment"), "w") as file:
    json.dump(dict(os.environ), file)
"""


@attrs.frozen
class FakePlugin:
    """A script that records each run."""

    folder: Path
    body: str

    def config(self, cluster: str = "", **env: str) -> ExecPlugin:
        """What runs it."""
        script = self.folder / "plugin.py"
        script.write_text(SCRIPT + self.body)
        return ExecPlugin(sys.executable, [str(script), str(self.folder)], env, cluster=cluster)

    @asynccontextmanager
    async def source(self) -> AsyncIterator[PluginCredential]:
        """The credentials that it gives one client."""
        async with SingleFlight() as flights:
            yield PluginCredential(Authenticators().get(self.config()), flights)

    @property
    def runs(self) -> int:
        file = self.folder / "runs"
        return len(file.read_text()) if file.exists() else 0

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the last run got."""
        return dict(json.loads((self.folder / "environment").read_text()))


def prints(folder: Path, token: str = "'t%d' % os.path.getsize(runs)", **status: str) -> FakePlugin:
    """A plugin that prints a token, by default another one each time."""
    body = f"status = {{**{status!r}, 'token': {token}}}\n"
    return FakePlugin(
        folder, body + f"print(json.dumps(dict(apiVersion={API!r}, kind='ExecCredential', status=status)))"
    )


@attrs.define
class Planned:
    """A fake plugin on a virtual clock: it takes some seconds, and then prints a token or fails."""

    life: float = 900
    takes: float = 0
    fails: bool = False
    always: str = ""
    runs: int = 0

    async def run(self, plugin: ExecPlugin) -> Credential:
        self.runs += 1
        await anyio.sleep(self.takes)
        if self.fails:
            raise Unauthorized(f"{plugin.command} failed")
        expires = self.now() + timedelta(seconds=self.life) if self.life < float("inf") else None
        return Credential(self.always or f"t{self.runs}", expires=expires)

    def now(self) -> datetime:
        """The wall clock."""
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=anyio.current_time())

    @asynccontextmanager
    async def source(self) -> AsyncIterator[PluginCredential]:
        """Tokens of this plugin."""
        async with SingleFlight() as flights:
            yield PluginCredential(self.shared().get(ExecPlugin("/planned")), flights)

    def shared(self, max_age: float = float("inf"), **options: Any) -> Authenticators:
        """The authenticators of a process whose plugins are all like this one."""
        return Authenticators(max_age, run=self.run, clock=self.now, fraction=lambda: 0.0, **options)
