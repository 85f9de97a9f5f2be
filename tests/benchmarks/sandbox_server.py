"""`python -m tests.benchmarks.sandbox_server`: one API server of the sandbox, over HTTPS, in a process of its own."""

from __future__ import annotations

import gc
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import orjson

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import uid
from multikueue.sandbox import ApiServer
from multikueue.sandbox.apiserver import Registry
from multikueue.sandbox.crds import load_crds
from tests.benchmarks.answering import Answer, run
from tests.benchmarks.components import COMPONENTS


@asynccontextmanager
async def sandbox_server(config: Json) -> AsyncIterator[tuple[Json, Answer]]:
    """Serve one cluster; asked, it tells how many requests there were, or makes objects after those it has."""
    gc.set_threshold(50_000, 20, 100)
    tokens = {secrets.token_urlsafe(24): component for component in COMPONENTS}
    async with ApiServer(config["name"], tokens=tokens) as server:
        for definition in (*load_crds(), *config["crds"]):
            server.registry.create_object(definition)

        async def answer(request: Json) -> Json:
            if request.get("do") == "copy":
                copy(server.registry, request["texts"])
                return {}
            return {"requests": [[*key, count] for key, count in server.requests.items()]}

        yield {"kubeconfigs": {component: server.kubeconfig(component) for component in COMPONENTS}}, answer


def copy(registry: Registry, texts: Sequence[Sequence[str]]) -> None:
    """Store a Workload and its job once more for each further row of texts: thousands of requests take minutes.

    Args:
        registry: of the server.
        texts: first what those two objects in the namespace `default` have, the Workload's name and the job's at the
            beginning; then for each copy what it has in their place, in that order.
    """
    first, *others = texts
    for resource, name in ((WORKLOAD, first[0]), (JOB, first[1])):
        row = registry.type_of(resource)
        model = registry.get(row, "default", name)
        raw = orjson.dumps(model).decode()
        for texts_of_copy in others:
            text = raw
            for before, after in zip(first, texts_of_copy, strict=True):
                text = text.replace(before, after)
            obj = orjson.loads(text)
            if uid(obj) == uid(model):
                obj["metadata"]["uid"] = registry.cluster.new_uid()
            registry.cluster.put(row, ObjectKey.of(obj), obj, None)


if __name__ == "__main__":
    run(sandbox_server)
