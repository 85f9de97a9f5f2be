"""Where the page is served: the handlers of our API in this process, over a sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson

from multikueue.kube import KubeClient, parse_worker_kubeconfig
from multikueued.commands.options import CLIENT
from multikueued.dashboard.command import in_process
from multikueued.page.port import Source
from multikueued.reading.asked import ReportTarget
from tests.remote.test_on_servers import Fleet


@asynccontextmanager
async def handlers_of(here: Fleet) -> AsyncIterator[Source]:
    """Those of a manager without our API, with the rights of its admin."""
    config = parse_worker_kubeconfig(orjson.dumps(here.person.server.kubeconfig("admin")))
    target = ReportTarget(config, "default", "kueue-system")
    async with KubeClient(config, name="manager", options=CLIENT) as client, in_process(client, target, "") as source:
        yield source
