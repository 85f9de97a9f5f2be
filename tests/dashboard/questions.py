"""Three questions of a person about a fleet whose first worker is lost, and what it takes to answer each.

`python -m tests.dashboard.questions docs/results/questions.json` asks them of `multikueue demo --dashboard` in Debian's
Chromium. Each begins with opening the page; the seconds are those of the machine, without those that people read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import anyio

from multikueue.core.model.names import Json
from tests.benchmarks.machine import machine

FLEET: Final = ("--jobs", "60", "--workers", "3", "--break", "worker1")
_COUNTED: Final = """
    const more = (name) => { sessionStorage[name] = 1 + Number(sessionStorage[name] || 0); };
    addEventListener("pointerdown", () => more("clicks"), true);
    addEventListener("keydown", () => more("letters"), true);
"""


async def asked(page: Any, address: str) -> Json:
    """What each question took: clicks, letters, seconds; and the answer."""
    await page.add_init_script(_COUNTED)
    await page.goto(address)
    await page.get_by_role("link", name="Time").click()
    label = await page.get_by_role("link", name="moved away").first.get_attribute("aria-label", timeout=40_000)
    mine = str(label).split()[0]
    await page.get_by_role("link", name="Fleet").click()
    await page.locator("svg.bar").first.wait_for(timeout=40_000)  # once the daemon has looked at all workers
    questions: dict[str, Callable[[], Awaitable[str]]] = {
        "what is wrong?": lambda: _what_is_wrong(page),
        "where is my job, and why?": lambda: _where_is(page, mine),
        "which worker is full?": lambda: _which_is_full(page),
    }
    answers: Json = {}
    for question, answer in questions.items():
        await page.evaluate("sessionStorage.clicks = sessionStorage.letters = 0")
        await page.goto("about:blank")
        began = anyio.current_time()
        await page.goto(address)
        said = await answer()
        seconds = round(anyio.current_time() - began, 2)
        counts = await page.evaluate("[Number(sessionStorage.clicks), Number(sessionStorage.letters)]")
        answers[question] = {"clicks": counts[0], "letters": counts[1], "seconds": seconds, "answer": said}
    return answers


async def _what_is_wrong(page: Any) -> str:
    first = page.locator("ul.needs li span").first
    await first.wait_for()
    return _plain(await first.inner_text())


async def _where_is(page: Any, mine: str) -> str:
    await page.get_by_role("link", name="Jobs").first.click()
    await page.get_by_label("Filter").click()
    await page.keyboard.type(mine.partition("/")[2])
    await page.get_by_role("link", name=mine, exact=True).click()
    await page.locator("ol.line li", has_text="Taken from worker1").wait_for()
    where, why = [_plain(await page.locator("main p").nth(number).inner_text()) for number in (0, 1)]
    return f"{where}. {why}"


async def _which_is_full(page: Any) -> str:
    await page.get_by_role("link", name="Fleet").click()
    row = page.locator("table").first.locator("tbody tr", has_text="reachable").first
    await row.locator("svg.bar").first.wait_for()
    return _plain(f"{await row.locator('td').first.inner_text()}: {await row.locator('.quota').first.inner_text()}")


def _plain(text: str) -> str:
    return " ".join(text.split())


async def _asked_of_a_demo() -> Json:
    from tests.dashboard.test_page import browser_page, demo

    async with demo(*FLEET) as address, browser_page() as page:
        return await asked(page, address)


if __name__ == "__main__":
    result = {"questions": anyio.run(_asked_of_a_demo), "machine": machine()}
    Path(sys.argv[1]).write_text(json.dumps(result, indent=2) + "\n")
