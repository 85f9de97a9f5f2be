"""Single flight: work that runs once for all callers."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from multikueue.errors import NotSent
from multikueue.kube.http.single_flight import Flight, SingleFlight


async def six_seconds() -> str:
    """Longer than the callers wait."""
    await anyio.sleep(6)
    return "done"


@pytest.mark.looptime
async def test_a_flight_goes_on_when_nobody_waits_for_it() -> None:
    """Otherwise work that takes longer than any caller waits would never end."""
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
async def test_closing_the_client_cancels_its_flights() -> None:
    """Callers that still wait get an error at once."""
    results: list[str] = []

    async def wait(flight: Flight[str]) -> None:
        with pytest.raises(NotSent) as caught:
            await flight.result()
        results.append(str(caught.value))

    async with anyio.create_task_group() as waiting, SingleFlight() as flights:
        for _ in range(2):
            waiting.start_soon(wait, flights.begin(six_seconds))
        await anyio.sleep(1)
    assert results == ["the client is closed"] * 2
    assert anyio.current_time() == 1
    with pytest.raises(NotSent, match="the client is closed"):
        flights.begin(six_seconds)


@pytest.mark.looptime
async def test_a_flight_runs_while_its_client_is_being_cancelled() -> None:
    """A shielded request releases the Lease, and may need a name or a token."""
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


async def test_an_error_of_a_flight_reaches_those_who_wait_and_nobody_else() -> None:
    """Any exception."""

    async def fails() -> str:
        raise ZeroDivisionError

    async with SingleFlight() as flights:
        flight = flights.begin(fails)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await flight.result()


async def test_an_error_beside_flights_is_not_wrapped() -> None:
    """Callers that open a client expect its errors, and no exception group."""

    async def fails() -> None:
        async with SingleFlight() as flights:
            flights.begin(anyio.sleep_forever)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fails()
