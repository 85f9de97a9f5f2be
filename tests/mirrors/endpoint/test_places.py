"""Whoever opens streams without end leaves others their logs."""

from __future__ import annotations

from contextlib import ExitStack

import anyio
import anyio.lowlevel
import pytest

from multikueue.core.model.names import ObjectKey
from multikueue.testing import until
from multikueued.mirrors.endpoint.places import TOO_MANY_WAIT, Places
from multikueued.mirrors.endpoint.relay import LOOKED_UP
from multikueued.serving.refusal import RefusedError
from tests.mirrors.endpoint.test_relay import LOGS, rest, stage

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
