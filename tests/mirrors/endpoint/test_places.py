"""Whoever opens streams without end leaves others their logs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import attrs
import pytest

from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import NotFound
from multikueue.testing import until
from multikueued.mirrors.endpoint import relay
from multikueued.mirrors.endpoint.places import TOO_MANY_WAIT, Places
from multikueued.mirrors.endpoint.relay import BEGUN, LOOKED_UP
from multikueued.serving.refusal import RefusedError
from tests.mirrors.endpoint.test_relay import LOGS, mirror, rest, stage

KUBECTL = "kubectl/v1.36.3 (linux/amd64) kubernetes/1e2c1f9"


def flooded(places: Places, stack: ExitStack, *namespaces: str, program: str = KUBECTL) -> int:
    """Open streams of as many pods as it takes to be refused; return how many are open."""
    number = 0
    for namespace in namespaces:
        while True:
            try:
                stack.enter_context(places.taken(f"{namespace}/{number}", namespace, program))
            except RefusedError:
                break
            number += 1
    return number


def test_a_tenant_of_two_namespaces_leaves_others_with_the_same_program_their_logs() -> None:
    """Everybody's is called kubectl."""
    places = Places()
    with ExitStack() as stack:
        assert flooded(places, stack, "theirs-1", "theirs-2") == 256
        for number in range(places.few):
            stack.enter_context(places.taken("mirror", f"ours-{number}", KUBECTL))


def test_a_tenant_of_many_namespaces_leaves_others_some_places() -> None:
    places = Places()
    with ExitStack() as stack:
        opened = flooded(places, stack, *(f"theirs-{number}" for number in range(8)))
        assert places.of_a_program <= opened < places.most
        for number in range(20):
            stack.enter_context(places.taken(f"ours-{number}", f"ours-{number}", KUBECTL))


def test_a_tenant_of_many_programs_leaves_others_some_places() -> None:
    places = Places()
    with ExitStack() as stack:
        for number in range(8):
            flooded(places, stack, f"theirs-{number}", program=f"program {number}")
        for number in range(20):
            stack.enter_context(places.taken(f"ours-{number}", f"ours-{number}", KUBECTL))


def test_all_together_are_bounded() -> None:
    places = Places(most=100, kept_for_few=20)
    with ExitStack() as stack:
        assert flooded(places, stack, *(f"of-{number}" for number in range(200))) == 100
        with pytest.raises(RefusedError, match="100 streams of all pods are open already"):
            stack.enter_context(places.taken("one more", "ours", KUBECTL))
    with places.taken("one more", "ours", KUBECTL):
        pass


async def test_a_followed_log_of_another_namespace_is_served_while_a_tenant_floods() -> None:
    """By the bytes: those of the others come, and who floods is told why not in words that kubectl prints."""
    places = Places(most=16, of_a_namespace=6, of_a_program=8, few=2, kept_for_few=6)
    async with stage(places=places) as here, anyio.create_task_group() as tasks:
        here.worker.more = anyio.Event()
        follow = LOGS.replace("main ", "main?follow=true ")
        with ExitStack() as stack:
            flooded(places, stack, "theirs-1", "theirs-2")
            async with here.asking(follow, f"User-Agent: {KUBECTL}") as stream:
                head = await stream.receive()
                assert head.startswith(b"HTTP/1.1 200 OK\r\n")
                here.worker.more.set()
                assert (await rest(stream)).endswith(b"more\n\r\n0\r\n\r\n")
        tasks.cancel_scope.cancel()


async def test_a_namespace_with_many_requests_delays_those_of_another_by_a_turn() -> None:
    """All logs that an API server asks for are one caller's, whoever wants them."""
    async with stage() as here, anyio.create_task_group() as tasks:
        here.manager.held = anyio.Event()
        for _ in range(10 * LOOKED_UP):
            tasks.start_soon(here.ask, LOGS.replace("default", "theirs"))
        await until(lambda: here.manager.asking == LOOKED_UP)
        for _ in range(200):
            await anyio.lowlevel.checkpoint()
        tasks.start_soon(here.ask, LOGS)
        for _ in range(200):
            await anyio.lowlevel.checkpoint()
        here.manager.held.set()
        ours = ObjectKey("default", "train-x")
        await until(lambda: ours in here.manager.read)
        assert here.manager.read.index(ours) <= LOOKED_UP + 1


@attrs.define(eq=False)
class HeldWorkers:
    """Workers that show no pod before they are let, and have none."""

    let: anyio.Event = attrs.field(factory=anyio.Event)
    asked: list[str] = attrs.field(factory=list)
    """Namespaces of the pods that are looked at, in order."""

    @asynccontextmanager
    async def open(self, _worker: str) -> AsyncIterator[Any]:
        yield self

    async def get(self, _resource: Resource, key: ObjectKey) -> Json:
        self.asked.append(key.namespace)
        await self.let.wait()
        raise NotFound("not found")


async def test_it_delays_them_by_a_turn_on_the_worker_as_well() -> None:
    """The connection there is most of what a request costs: of 300 at once all were made first."""
    workers, many = HeldWorkers(), 4 * BEGUN
    async with stage(places=Places(of_a_mirror=many + 1)) as here, anyio.create_task_group() as tasks:
        here.relay.workers, here.manager.mirror = workers, mirror(namespace="theirs")
        for _ in range(many):
            tasks.start_soon(here.ask, LOGS.replace("default", "theirs"))
        await until(lambda: here.relay.places.held("namespace", "theirs") == many)
        here.manager.mirror = mirror()
        tasks.start_soon(here.ask, LOGS)
        await until(lambda: here.relay.places.held("namespace", "default") == 1)
        workers.let.set()
    assert len(workers.asked) == many + 1
    assert workers.asked.index("default") <= BEGUN + 1


async def test_who_waits_too_long_for_a_worker_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of another worker have their own turns."""
    workers = HeldWorkers()
    async with stage() as here, anyio.create_task_group() as tasks:
        here.relay.workers = workers
        for _ in range(BEGUN):
            tasks.start_soon(here.ask, LOGS)
        await until(lambda: len(workers.asked) == BEGUN)
        monkeypatch.setattr(relay, "PATIENCE", 0.1)
        assert TOO_MANY_WAIT.encode() in await here.ask(LOGS)
        here.manager.mirror = mirror(worker="w2")
        tasks.start_soon(here.ask, LOGS)
        await until(lambda: len(workers.asked) == 9)
        workers.let.set()


async def test_a_kubelet_that_hangs_takes_nobody_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods of one namespace may be on a node that is dead: others of that worker are served."""
    monkeypatch.setattr(relay, "BEGUN", 1)
    async with stage() as here, anyio.create_task_group() as tasks:
        here.worker.uids["theirs/train-x"] = "uid"
        node = here.worker.hung["theirs"] = anyio.Event()
        here.manager.mirror = mirror(namespace="theirs")
        tasks.start_soon(here.ask, LOGS.replace("default", "theirs"))
        await until(lambda: len(here.worker.streams()) == 1)
        here.manager.mirror = mirror()
        assert (await here.ask(LOGS)).startswith(b"HTTP/1.1 200")
        node.set()


async def test_a_namespace_that_asks_without_end_is_refused_before_it_costs_much() -> None:
    """And another one with the same caller is not."""
    async with stage(places=Places(asking=2)) as here, anyio.create_task_group() as tasks:
        here.manager.held = anyio.Event()
        for _ in range(2):
            tasks.start_soon(here.ask, LOGS.replace("default", "theirs"))
        await until(lambda: here.manager.asking == 2)
        refused = await here.ask(LOGS.replace("default", "theirs"))
        assert (refused[:12], TOO_MANY_WAIT.encode() in refused) == (b"HTTP/1.1 502", True)
        async with here.asking(LOGS) as stream:
            await until(lambda: here.manager.asking == 3)
            here.manager.held.set()
            assert (await rest(stream)).startswith(b"HTTP/1.1 200")
