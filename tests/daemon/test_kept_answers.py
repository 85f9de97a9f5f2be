"""What is kept of an API server's word: good answers longer than bad ones, and nobody waits for strangers."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from multikueued.serving.kept_answers import TIMEOUT, KeptAnswers


def kept(turns: int = 2) -> KeptAnswers[str, bool]:
    return KeptAnswers(60, 10, 4, anyio.CapacityLimiter(turns))


@pytest.mark.looptime
async def test_a_bad_answer_is_asked_again_sooner_than_a_good_one() -> None:
    answers, asked = kept(), list[str]()

    async def ask(key: str) -> bool:
        async def said() -> bool:
            asked.append(key)
            return key == "good"

        return await answers.of(key, said)

    for _ in range(3):
        await ask("good")
        await ask("bad")
    await anyio.sleep(11)
    assert [await ask("good"), await ask("bad")] == [True, False]
    assert asked == ["good", "bad", "bad"]


@pytest.mark.looptime
async def test_who_is_known_does_not_wait_for_strangers_who_take_all_turns() -> None:
    """And a stranger who waits for a turn is given up after a while, as one that nobody answers."""
    answers = kept(turns=1)

    async def at_once() -> bool:
        return True

    assert await answers.of("known", at_once)
    async with anyio.create_task_group() as tasks:

        async def stranger(name: str) -> None:
            with pytest.raises(TimeoutError):
                await answers.of(name, anyio.sleep_forever)  # type: ignore[arg-type]

        tasks.start_soon(stranger, "first")
        tasks.start_soon(stranger, "second")
        await anyio.sleep(1)
        began = anyio.current_time()
        assert await answers.of("known", anyio.sleep_forever)  # type: ignore[arg-type]
        assert anyio.current_time() == began
    assert anyio.current_time() - began <= TIMEOUT
    assert len(answers) == 1, "what nobody has said is not kept"


async def test_one_question_that_several_ask_is_asked_once() -> None:
    answers, asked = kept(turns=1), list[str]()

    async def said() -> bool:
        asked.append("once")
        await anyio.lowlevel.checkpoint()
        return True

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(answers.of, "same", said)
    assert asked == ["once"]
