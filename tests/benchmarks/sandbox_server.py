"""`python -m tests.benchmarks.sandbox_server`: one API server of the sandbox, over HTTPS, in a process of its own."""

from __future__ import annotations

import gc
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from multikueue.core.model.names import Json
from multikueue.sandbox import ApiServer
from multikueue.sandbox.crds import load_crds
from tests.benchmarks.answering import Answer, run
from tests.benchmarks.components import COMPONENTS


@asynccontextmanager
async def sandbox_server(config: Json) -> AsyncIterator[tuple[Json, Answer]]:
    """Serve one cluster; asked, it tells how many requests there were."""
    gc.set_threshold(50_000, 20, 100)
    tokens = {secrets.token_urlsafe(24): component for component in COMPONENTS}
    async with ApiServer(config["name"], tokens=tokens) as server:
        for definition in (*load_crds(), *config["crds"]):
            server.registry.create_object(definition)

        async def answer(request: Json) -> Json:
            del request
            return {"requests": [[*key, count] for key, count in server.requests.items()]}

        yield {"kubeconfigs": {component: server.kubeconfig(component) for component in COMPONENTS}}, answer


if __name__ == "__main__":
    run(sandbox_server)
