"""What a client does for all who use it."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from multikueue.errors import NotSent
from multikueue.kube.single_flight import Flight, SingleFlight


async def six_seconds() -> str:
    """Longer than many a caller has."""
    await anyio.sleep(6)
    return "done"


@pytest.mark.looptime
async def test_an_errand_goes_on_when_nobody_waits_for_it() -> None:
    """Else what takes longer than anybody has would be begun for ever, and never end."""
    async with SingleFlight() as flights:
        flight = flights.begin(six_seconds)
        with anyio.move_on_after(5) as scope:
            await flight.result()
        assert scope.cancelled_caught
        with anyio.fail_after(2):
            assert await flight.result() == "done"
        assert await flight.result() == "done"
        assert anyio.current_time() == 6


@pytest.mark.looptime
async def test_an_errand_ends_with_its_client_at_the_latest() -> None:
    """Whoever still waits is told so, at once."""
    told: list[str] = []

    async def wait(flight: Flight[str]) -> None:
        with pytest.raises(NotSent) as caught:
            await flight.result()
        told.append(str(caught.value))

    async with anyio.create_task_group() as waiting, SingleFlight() as flights:
        for _ in range(2):
            waiting.start_soon(wait, flights.begin(six_seconds))
        await anyio.sleep(1)
    assert told == ["the client is closed"] * 2
    assert anyio.current_time() == 1
    with pytest.raises(NotSent, match="the client is closed"):
        flights.begin(six_seconds)


@pytest.mark.looptime
async def test_an_errand_can_be_run_while_its_client_is_being_cancelled() -> None:
    """A lease is given back by a request that is shielded, and may need a name or a token."""
    got: list[str] = []
    with anyio.CancelScope() as scope:
        async with SingleFlight() as flights:
            earlier = flights.begin(six_seconds)
            await anyio.sleep(1)
            scope.cancel()
            with anyio.CancelScope(shield=True):
                got.append(await earlier.result())
                got.append(await flights.begin(six_seconds).result())
            await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert got == ["done", "done"]


async def test_what_goes_wrong_is_told_to_those_who_wait_and_ends_nothing_else() -> None:
    """Also what nobody thought of."""

    async def fails() -> str:
        raise ZeroDivisionError

    async with SingleFlight() as flights:
        flight = flights.begin(fails)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await flight.result()


async def test_an_error_beside_errands_stays_as_it_is() -> None:
    """In no group: those who open a client wait for its own errors."""

    async def fails() -> None:
        async with SingleFlight() as flights:
            flights.begin(anyio.sleep_forever)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fails()
