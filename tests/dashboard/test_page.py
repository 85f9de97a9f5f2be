"""The page in a real browser: Debian's Chromium. A machine without it skips, and says so."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import pytest_asyncio
from anyio.streams.buffered import BufferedByteReceiveStream

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.sandbox.kueue.statuses import finished
from multikueue.testing import NOW
from multikueued.dashboard.command import dashboard_of
from multikueued.dashboard.local_port import LocalPort
from multikueued.page import signed_in
from multikueued.page.port import FILES, Source
from multikueued.remoteapi.job_page import ROWS
from tests.commands.people import people
from tests.commands.test_people import with_a_job
from tests.dashboard import questions
from tests.dashboard.fleet_api import HOSTILE, FleetApi, job, many
from tests.dashboard.fleet_api import NOW as NOW_SHOWN
from tests.dashboard.real_handlers import handlers_of
from tests.dashboard.test_hosted import hosted
from tests.dashboard.test_in_process import target_as
from tests.remote.test_on_servers import fleet as remote_fleet

CHROMIUM = shutil.which("chromium")
playwright = pytest.importorskip("playwright.async_api", reason="the browser's tests need playwright: nox -s dashboard")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="the browser's tests need chromium: apt-get install chromium"),
    pytest.mark.timeout(60),
]
PICTURES = os.environ.get("PICTURES")
"""The folder to which the pictures of the docs are written; none: they are not."""
SIZES = {"small": (390, 844), "large": (1400, 900)}
ROUTES = {
    "overview": "#/overview",
    "fleet": "#/fleet",
    "worker": "#/workers/w1",
    "queue": "#/queues/cq",
    "jobs": "#/jobs",
    "job": "#/jobs/team-a/job.moved",
    "time": "#/time",
}
"""Each view."""


def is_fault(line: Any) -> bool:
    """Whether a line of the console tells of a fault of the page: that an answer was no 200 is none."""
    return line.type in ("error", "warning") and "Failed to load resource" not in line.text


@asynccontextmanager
async def opened(api: Source, route: str = "", *, faults_told: bool = False, **context: Any) -> AsyncIterator[Any]:
    """The page of a port, in a browser of its own. Its console tells of no fault, unless that is what is looked for."""
    local = LocalPort(api, "secret")
    async with local.serving(0), browser_page(**context) as page:
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda line: faults.append(line.text) if is_fault(line) else None)
        await page.goto(local.address)
        await page.wait_for_function("!location.hash.includes('token')")
        if route:
            await page.evaluate("route => { location.hash = route; }", route)
        yield page
        assert bool(faults) == faults_told, faults
        assert await page.evaluate("window.hacked") is None


@asynccontextmanager
async def browser_page(**context: Any) -> AsyncIterator[Any]:
    """A page of a browser of its own."""
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
    async with playwright.async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        try:
            page = await (await browser.new_context(locale="en-US", **context)).new_page()
            page.set_default_timeout(15_000)
            yield page
        finally:
            await browser.close()


@pytest_asyncio.fixture
async def api() -> FleetApi:
    made = FleetApi()
    for added in many(12):
        made.put(added)
    return made


async def test_the_overview_begins_with_what_needs_somebody_and_its_address_has_no_token(api: FleetApi) -> None:
    """Findings with a remedy to copy, the jobs that need somebody, figures with their trend, and how full it is."""
    api.put(job("lost", state="Lost", cluster="w2", reason="w2 does not answer"))
    async with opened(api, permissions=["clipboard-read", "clipboard-write"]) as page:
        needs = page.locator("ul.needs li")
        await needs.first.wait_for()
        texts = [" ".join(text.split()) for text in await needs.all_inner_texts()]
        assert "w2 w2 cannot be reached" in texts[0]
        assert "Lost job/lost team-a" in texts[1]
        assert await page.locator("h2").first.inner_text() == "Needs somebody"
        for name, copied in (("multikueue doctor w2", 0), ("multikueue explain job/lost -n team-a", 1)):
            await needs.nth(copied).get_by_role("button", name=f"Copy: {name}").click()
            assert await page.evaluate("navigator.clipboard.readText()") == name
        tiles = [" ".join(text.split()) for text in await page.locator(".tile").all_inner_texts()]
        assert tiles == ["4 running", "5 waiting", "0 held: quota, no room", "2 failed in the last hour"]
        assert await page.locator(".tile polyline").count() == 4
        assert (
            await page.get_by_role("img", name="nvidia.com/gpu: 4 ours, 2 others', of 8").locator("rect").count() == 2
        )
        assert "secret" not in page.url
        await page.reload()
        await needs.first.wait_for()
        await page.locator(".tile").first.click()
        await page.get_by_text("4 / 13 jobs").wait_for()


async def test_the_fleet_has_bars(api: FleetApi) -> None:
    async with opened(api, "#/fleet") as page:
        await page.get_by_text("nvidia.com/gpu 4 + 2 of 8").wait_for()
        assert await page.locator("svg.bar rect").count() == 2
        first = page.locator("table").first.locator("tbody tr").first
        assert "cannot be reached" in await first.inner_text(), "what needs somebody stands first"
        names = page.locator("table").first.locator("tbody td.name")
        assert await names.all_inner_texts() == ["w2", "w3", "w1", "w0"], "then those that are fullest"


async def test_ways_lead_from_a_worker_and_a_queue_to_jobs_and_from_a_job_to_both(api: FleetApi) -> None:
    """And an address holds what was chosen, so that it can be sent to somebody."""
    api.reads_all = True
    api.put(job("first", state="Queued", cluster="", clusterQueue="other"))
    api.put(job("second", state="Queued", cluster="", clusterQueue="other"))
    api.places = [
        {"namespace": "team-a", "name": f"job.{name}", "place": at} for name, at in (("second", 1), ("first", 2))
    ]
    async with opened(api, "#/fleet") as page:
        await page.get_by_role("link", name="w1", exact=True).first.click()
        await page.get_by_text("12 / 14 jobs").wait_for()
        await page.locator("svg.time rect").first.wait_for()
        await page.locator("table.two").get_by_role("link", name="job/train-00001").click()
        await page.locator("h1", has_text="job/train-00001").wait_for()
        await page.get_by_role("button", name="Copy: multikueue logs job/train-00001 -n team-a").wait_for()
        await page.get_by_role("link", name="cq", exact=True).click()
        await page.get_by_text("12 / 14 jobs").wait_for()
        await page.evaluate("location.hash = '#/queues/other'")
        await page.get_by_text("2 / 14 jobs").wait_for()
        await page.get_by_role("columnheader", name="Place").wait_for()
        names = page.locator("table.two td.name")
        assert await names.all_inner_texts() == ["job/second", "job/first"], "the next one first"
        await page.evaluate("location.hash = '#/jobs?worker=w1'")
        await page.get_by_text("12 / 14 jobs").wait_for()
        await page.get_by_label("State").select_option("Failed")
        await page.get_by_role("button", name="Job", exact=True).click()
        await page.get_by_text("2 / 14 jobs").wait_for()
        assert page.url.endswith("#/jobs?state=Failed&worker=w1&sort=job")
        await page.reload()
        await page.get_by_text("2 / 14 jobs").wait_for()
        assert await names.all_inner_texts() == ["job/train-00003", "job/train-00008"]
        await page.get_by_role("button", name="Job", exact=True).click()
        await page.locator("table.two tbody tr:first-child", has_text="job/train-00008").wait_for()


async def test_a_move_is_seen_as_a_move(api: FleetApi) -> None:
    """A bar on the worker that it left, one on the next, an arrow between them; over the span that is chosen."""
    api.reads_all = True
    places = [
        {"cluster": "w2", "since": "2026-11-25T10:01:00Z", "until": "2026-11-25T10:04:00Z", "reason": "lost"},
        {"cluster": "w1", "since": "2026-11-25T10:05:00Z"},
    ]
    api.put(job("moved", placements=places))
    async with opened(api, "#/time") as page:
        await page.locator("path.line-moved").first.wait_for()
        bars = page.get_by_role("link", name="job/moved team-a")
        assert [await bars.nth(at).get_attribute("aria-label") for at in range(await bars.count())] == [
            "job/moved team-a: queued · 1 min",
            "job/moved team-a: moved away · w2 · 3 min · lost",
            "job/moved team-a: queued · 1 min",
            "job/moved team-a: on a worker · w1 · 25 min",
        ]
        await page.get_by_role("button", name="5 min", exact=True).click()
        await page.locator("path.line-moved").first.wait_for(state="detached")
        assert "seconds=300" in page.url
        await page.get_by_role("link", name="job/moved").first.click()
        await page.locator("svg.time path.line-moved").first.wait_for()


async def test_a_span_is_chosen_by_dragging_over_it(api: FleetApi) -> None:
    """And a bar that is only clicked is still a link; what was dragged stands in the address, and goes back."""
    api.reads_all = True
    async with opened(api, "#/time?seconds=3600") as page:
        bar = page.get_by_role("link", name="job/train-00001").first
        await bar.wait_for()
        box = await page.locator("svg.time").bounding_box()
        assert box is not None
        first, last = (box["x"] + 92 + share * (box["width"] - 96) for share in (0.5, 0.75))
        await page.mouse.move(last, box["y"] + box["height"] / 2)
        await page.mouse.down()
        await page.mouse.move(first, box["y"] + box["height"] / 2, steps=5)
        await page.locator("rect.chosen").wait_for()
        await page.wait_for_timeout(1_200)  # it is not drawn anew meanwhile
        assert await page.locator("rect.chosen").count() == 1
        await page.mouse.up()
        await page.wait_for_url(re.compile("seconds=9"))
        seconds, until = (int(re.findall(f"{name}=([0-9]+)", page.url)[0]) for name in ("seconds", "until"))
        assert abs(seconds - 900) < 15
        assert abs(until - (NOW_SHOWN.timestamp() - 900)) < 15
        await page.locator("rect.chosen").wait_for(state="detached")
        await page.get_by_role("button", name="1 h", exact=True).click()
        await page.get_by_role("button", name="Now").click()
        await bar.click()
        await page.locator("h1", has_text="job/train-00001").wait_for()


async def test_two_fingers_choose_a_span(api: FleetApi) -> None:
    """What is under each stays under it: drawn apart, the span is smaller; moved along, it is another. One finger
    still opens a bar."""
    api.reads_all = True
    screen: Any = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    async with opened(api, "#/time?seconds=3600", **screen) as page:
        bar = page.get_by_role("link", name="job/train-00001").first
        await bar.wait_for()
        box = await page.locator("svg.time").bounding_box()
        assert box is not None
        touch = await page.context.new_cdp_session(page)
        middle = box["y"] + box["height"] / 2

        async def fingers(kind: str, *shares: float) -> None:
            points = [{"x": box["x"] + 92 + share * (box["width"] - 96), "y": middle} for share in shares]
            await touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        async def gesture(*steps: tuple[float, float]) -> tuple[int, int]:
            before = page.url
            await fingers("touchStart", *steps[0])
            for step in steps[1:]:
                await fingers("touchMove", *step)
            await fingers("touchEnd")
            await page.wait_for_url(lambda url: url != before)
            seconds, until = (int(re.findall(f"{name}=([0-9]+)", page.url)[0]) for name in ("seconds", "until"))
            return seconds, until

        seconds, until = await gesture((0.5, 0.6), (0.4, 0.65), (0.3, 0.7))
        assert abs(seconds - 900) < 20, "what was a tenth is four tenths"
        assert abs(until - (NOW_SHOWN.timestamp() - 3600 + 0.5 * 3600 + 0.7 * 900)) < 20
        end = until
        seconds, until = await gesture((0.2, 0.4), (0.35, 0.55), (0.5, 0.7))
        assert abs(seconds - 900) < 20
        assert abs(until - (end - 0.3 * 900)) < 20
        await page.get_by_role("button", name="1 h", exact=True).tap()
        await page.get_by_role("button", name="Now").tap()
        await bar.tap()
        await page.locator("h1", has_text="job/train-00001").wait_for()


async def test_everything_is_fetched_at_once() -> None:
    """Modules name each other: a browser that reads them one after the other waits for each."""
    named = set(re.findall(r'href="(\w[\w.]*\.js)"', (FILES / "index.html").read_text()))
    assert named == {file.name for file in FILES.glob("*.js")} - {"page.js"}


async def test_what_is_chosen_stays_while_the_page_goes_on(api: FleetApi) -> None:
    """The focus, and words that are marked to be copied."""
    async with opened(api) as page:
        await page.get_by_role("link", name="cq").focus()
        await page.evaluate("document.querySelector('table').dataset.old = 'yes'")
        await page.locator("table[data-old]").wait_for(state="detached")
        assert await page.evaluate("document.activeElement.textContent") == "cq"
        await page.evaluate("getSelection().selectAllChildren(document.querySelector('ul.needs'))")
        await page.evaluate("document.querySelector('table').dataset.old = 'yes'")
        await page.wait_for_timeout(1_500)
        assert await page.evaluate("document.querySelector('table').dataset.old") == "yes"


async def test_jobs_are_filtered_and_change_while_they_are_seen(api: FleetApi) -> None:
    async with opened(api, "#/jobs") as page:
        await page.get_by_role("link", name="job/train-00003").wait_for()
        await page.get_by_label("Filter").fill("00003")
        await page.get_by_text("1 / 12 jobs").wait_for()
        await page.get_by_label("Filter").fill("")
        api.put(job("train-00003", state="Lost", cluster="w9"))
        await page.locator("table.two tbody tr:first-child", has_text="w9").wait_for()  # it needs somebody
        await page.get_by_label("Filter").fill("nobody")
        await page.get_by_text("No job matches.").wait_for()


async def test_a_job_has_its_line_reasons_and_logs(api: FleetApi) -> None:
    placed = [{"cluster": "w2", "since": "2026-11-25T10:01:00Z", "until": "2026-11-25T10:04:00Z", "reason": "lost"}]
    api.put(job("moved", placements=placed))
    async with opened(api, "#/jobs/team-a/job.moved") as page:
        points = page.locator("ol.line li")
        await points.nth(3).wait_for()
        texts = [" ".join(text.split()) for text in await points.all_inner_texts()]
        assert ["Submitted" in texts[0], "Given to w2" in texts[1], "Taken from w2: lost" in texts[2]] == [True] * 3
        await page.get_by_role("button", name="Show logs").click()
        await page.get_by_text("first line").wait_for()


async def test_names_and_words_are_texts_only(api: FleetApi) -> None:
    """Nothing that is named by others becomes HTML, wherever it is shown."""
    api.words = HOSTILE
    api.put(job(HOSTILE, reason=HOSTILE, cluster=HOSTILE, state=HOSTILE))
    async with opened(api) as page:
        await page.get_by_text(HOSTILE).first.wait_for()
        await page.get_by_role("link", name="Jobs").click()
        await page.get_by_role("link", name=f"job/{HOSTILE}").wait_for()
        await page.evaluate("location.hash = '#/jobs/team-a/job.train-00001'")
        await page.get_by_role("button", name="Show logs").click()
        await page.locator("pre", has_text=HOSTILE).wait_for()
        assert await page.locator("img").count() == 0


async def test_no_command_has_a_name_that_a_shell_would_read(api: FleetApi) -> None:
    """Whoever creates Workloads chooses the name, and somebody else pastes the command."""
    api.put(job("x;reboot", state="Lost", job="job/x;reboot"))
    async with opened(api) as page:
        await page.get_by_text("job/x;reboot").wait_for()
        await page.get_by_role("link", name="job/x;reboot").click()
        await page.locator("h1", has_text="job/x;reboot").wait_for()
        await page.get_by_text("Time line").wait_for()
        assert await page.locator("code").count() == 0


async def test_no_other_page_frames_it(api: FleetApi) -> None:
    async with opened(api) as page:
        await page.locator(".tile").first.wait_for()
        other = await page.context.new_page()
        await other.set_content(f"<iframe src='{page.url.partition('#')[0]}'></iframe>")
        await other.frames[1].wait_for_load_state()
        assert await other.frames[1].locator("main").count() == 0


async def test_what_is_written_into_the_page_does_not_run(api: FleetApi) -> None:
    """The policy has no `unsafe-inline`: should a text ever become HTML, its scripts and styles are refused."""
    async with opened(api, faults_told=True) as page:
        await page.locator(".tile").first.wait_for()
        made = "Object.assign(document.createElement('script'), {textContent: 'window.hacked = 1'})"
        await page.evaluate(f"document.body.append({made})")
        await page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hacked=1\">')")
        await page.evaluate("document.body.insertAdjacentHTML('beforeend', '<p id=it style=\"color: red\">x</p>')")
        assert await page.evaluate("getComputedStyle(document.getElementById('it')).color") != "rgb(255, 0, 0)"


async def test_a_tenant_sees_only_what_is_theirs(api: FleetApi) -> None:
    api.sees_fleet = False
    api.put(job("secret", "team-b"))
    async with opened(api) as page:
        await page.get_by_text("Jobs of namespace team-a.").wait_for()
        assert await page.locator("svg.bar").count() == 0
        await page.get_by_role("link", name="Fleet").click()
        await page.get_by_text("You may not see the fleet.").first.wait_for()
        await page.get_by_role("link", name="Jobs").first.click()
        await page.get_by_role("link", name="job/train-00001").wait_for()
        assert await page.get_by_text("job/secret").count() == 0
        await page.evaluate("location.hash = '#/jobs?namespace=team-b'")
        await page.get_by_text("You may not read this").wait_for()


async def test_who_may_see_nothing_is_told_that_and_nothing_more(api: FleetApi) -> None:
    api.sees_fleet, api.readable = False, ()
    async with opened(api) as page:
        for route in ("overview", "fleet", "jobs/team-b/job.secret", "workers/w1", "queues/cpu"):
            await page.evaluate(f"location.hash = '#/{route}'")
            await page.reload()
            await page.get_by_text("You may not").first.wait_for()
            assert await page.get_by_text("Reading …").is_visible() is False, route


@pytest.mark.parametrize(
    ("route", "shown"), [("#/overview", ".tile"), ("#/fleet", "table"), ("#/jobs", "table.two"), ("#/time", "svg.time")]
)
async def test_the_api_goes_away_and_comes_back(api: FleetApi, route: str, shown: str) -> None:
    """What was shown stays, with a line above it; it goes on by itself."""
    api.reads_all = True
    async with opened(api, route) as page:
        await page.locator(shown).first.wait_for()
        api.away = True
        await page.get_by_text("This does not work just now").wait_for()
        assert await page.locator(shown).count() >= 1
        api.away = False
        for job in many(14):
            api.put(job)
        await page.locator("#notice:empty").wait_for(state="attached")
        await page.evaluate("shown => { document.querySelector(shown).dataset.old = 'yes'; }", shown)
        await page.locator(f"{shown}[data-old]").wait_for(state="detached")


async def test_both_languages_have_the_same_words() -> None:
    """A text that one lacks would be English, or its key."""
    en, zh = ((FILES / f"texts.{language}.js").read_text() for language in ("en", "zh"))
    keys = [set(re.findall(r'"([a-zA-Z0-9.]+)": "', text)) for text in (en, zh)]
    assert {key for key in keys[1] if not key.startswith("state.")} == keys[0]
    used = {key for file in FILES.glob("*.js") for key in re.findall(r'\bt\("([a-zA-Z0-9.]+)"', file.read_text())}
    assert used <= keys[0]


async def test_an_older_api_is_told_apart_from_a_broken_one(api: FleetApi) -> None:
    api.serves_sums = False
    async with opened(api) as page:
        await page.get_by_text("it has no overview").wait_for()
        await page.get_by_role("link", name="Fleet").click()
        await page.get_by_role("link", name="w1", exact=True).first.wait_for()


async def test_a_new_token_is_taken_in_an_open_tab(api: FleetApi) -> None:
    async with opened(api) as page:
        await page.evaluate("location.hash = '#token=other'")
        await page.get_by_text("The token is not valid").wait_for()
        assert "other" not in page.url


async def test_a_wrong_token_shows_nothing(api: FleetApi) -> None:
    async with opened(api) as page:
        await page.evaluate("sessionStorage.setItem('multikueue-token', 'wrong')")
        await page.reload()
        await page.get_by_text("The token is not valid").wait_for()
        assert await page.locator("table").count() == 0


async def test_it_is_used_by_keyboard_and_in_chinese(api: FleetApi) -> None:
    async with opened(api) as page:
        await page.locator("h1").wait_for()
        for expected in ("Skip to content", "Overview", "Fleet", "Jobs", "Time", "zh"):
            await page.keyboard.press("Tab")
            assert await page.evaluate("document.activeElement.textContent") == expected
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="概览").wait_for()
        await page.get_by_role("link", name="作业").press("Enter")
        await page.get_by_role("link", name="job/train-00001").press("Enter")
        await page.get_by_text("时间线").wait_for()
        assert await page.evaluate("document.documentElement.lang") == "zh"


async def test_nothing_that_is_seen_moves_while_the_page_goes_on(api: FleetApi) -> None:
    """What Chromium counts as layout shift, from the first picture over some refreshes."""
    shifts = """() => new Promise((resolve) => {
        let sum = 0;
        new PerformanceObserver((list) => { for (const one of list.getEntries()) sum += one.value; })
            .observe({type: "layout-shift", buffered: true});
        setTimeout(() => resolve(sum), 1800);
    })"""
    async with opened(api) as page:
        await page.locator(".tile").first.wait_for()
        assert await page.evaluate(shifts) < 0.05


async def test_of_many_jobs_a_page_is_sent_and_nothing_while_it_is_as_it_was() -> None:
    """Whatever is chosen, sorted and turned: less than 100 kB, however many jobs there are."""
    api, sizes = FleetApi(reads_all=True), list[int]()
    for added in many(5_000):
        api.put(added)

    async def count(answer: Any) -> None:
        if "jobpage" in answer.url:
            sizes.append(len(await answer.body()))

    async with opened(api) as page:
        page.on("response", count)
        await page.evaluate("location.hash = '#/jobs'")
        await page.get_by_text("5000 / 5000 jobs").wait_for()
        assert await page.locator("tbody tr").count() == ROWS
        async with page.expect_response(lambda answer: "seen=" in answer.url) as again:
            pass
        assert len(await (await again.value).body()) < 200, "as it was"
        await page.get_by_role("button", name="Next").click()
        await page.get_by_text("2 / 25").wait_for()
        for number in range(50):
            api.put(job(f"train-{number:05}", state="Finished"))
        await page.get_by_label("State").select_option("Finished")
        await page.get_by_text("1040 / 5000 jobs").wait_for()
        await page.get_by_label("Filter").fill("04999")
        await page.get_by_text("0 / 5000 jobs").wait_for()
    assert 0 < max(sizes) < 100_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
async def test_it_fits_its_screen_and_can_be_read(api: FleetApi, scheme: str, size: str) -> None:
    """No sideways scrolling, and nothing that axe finds: names, contrasts, landmarks."""
    axe = pytest.importorskip("axe_playwright_python.async_playwright")
    width, height = SIZES[size]
    api.reads_all = True
    api.put(job("moved", placements=[{"cluster": "w2", "since": "2026-11-25T10:01:00Z"}]))
    async with opened(api, viewport={"width": width, "height": height}, color_scheme=scheme) as page:
        for name, route in ROUTES.items():
            await page.evaluate("route => { location.hash = route; }", route)
            await page.locator("svg.time" if name == "time" else "table").first.wait_for()
            assert await page.evaluate("document.documentElement.scrollWidth") <= width, name
            results = await axe.Axe().run(page)
            assert results.violations_count == 0, results.generate_report()


@asynccontextmanager
async def demo(*arguments: str) -> AsyncIterator[str]:
    """`multikueue demo --dashboard`, and the address that it prints; it ends with the context."""
    command = [sys.executable, "-m", "multikueued", "demo", "--dashboard", *arguments]
    async with await anyio.open_process(command, stderr=None) as process:
        assert process.stdout is not None
        lines, line = BufferedByteReceiveStream(process.stdout), ""
        try:
            while not line.startswith("Open "):
                line = (await lines.receive_until(b"\n", 4096)).decode()
            yield line.split()[1]
        finally:
            process.kill()


@pytest.mark.timeout(120)
async def test_three_questions_of_a_person_are_answered_in_a_few_clicks() -> None:
    """What is wrong, where is my job and why, which worker is full: as the page about the design says."""
    async with demo(*questions.FLEET) as address, browser_page() as page:
        answers = await questions.asked(page, address)
    assert {question: answer["clicks"] for question, answer in answers.items()} == {
        "what is wrong?": 0,
        "where is my job, and why?": 3,
        "which worker is full?": 1,
    }
    wrong, mine, full = (answer["answer"] for answer in answers.values())
    assert "worker1 cannot be reached" in wrong
    assert "namespace" in mine.lower()
    assert full.startswith(("worker2: ", "worker3: "))


@pytest.mark.timeout(120)
async def test_pictures_of_a_fleet_with_a_lost_worker() -> None:
    """Those of the docs, and the way from one view to the next."""
    async with demo(*questions.FLEET) as address, browser_page() as page:
        await page.goto(address)

        async def picture(name: str, size: str = "large", *schemes: str) -> None:
            for scheme in schemes or ("light",) if PICTURES else ():
                width, height = SIZES[size]
                await page.set_viewport_size({"width": width, "height": height})
                await page.emulate_media(color_scheme=scheme)
                await page.wait_for_timeout(1_100)  # once it has been drawn anew
                await page.screenshot(path=Path(str(PICTURES)) / f"dashboard-{name}-{size}-{scheme}.png")

        await page.locator("ul.needs li", has_text="worker1 cannot be reached").wait_for()
        if PICTURES:
            await page.locator(".uses .use").first.wait_for()
        await picture("overview", "large", "dark", "light")
        await page.get_by_role("link", name="Fleet").click()
        first = page.locator("table").first.locator("tbody tr").first
        await first.get_by_text("out of reach").wait_for()
        await page.get_by_role("link", name="Time").click()
        await page.locator("path.line-moved").first.wait_for(timeout=40_000)  # once one has found room elsewhere
        await picture("time", "large", "light")
        await page.get_by_role("link", name="Jobs").click()
        await page.get_by_label("Filter").fill("worker2")
        await picture("jobs", "small", "light")
        await page.get_by_role("link", name="Time").click()
        await page.get_by_role("link", name="moved away").first.click()
        await page.get_by_text("Taken from worker1").wait_for()
        await page.locator("path.line-moved").first.wait_for()
        await picture("job", "small", "dark")
        await page.locator("td", has_text="worker2").get_by_role("link").first.click()
        await page.locator("table.two tbody tr").first.wait_for()
        await page.locator("svg.bar").first.wait_for(timeout=40_000)  # once the daemon has looked at all workers
        await picture("worker", "large", "light")


@pytest.mark.timeout(90)
async def test_a_submitter_sees_their_namespace_through_the_managers_api_server(tmp_path: Path) -> None:
    """With `multikueue-submitter` in it and nothing beside: the overview, the jobs, the picture of time and the job."""
    async with people(tmp_path) as here, browser_page() as page:
        await with_a_job(here)
        async with dashboard_of(target_as(here, tmp_path, "submitter"), "default") as local:
            await page.goto(local.address)
            await page.get_by_text("Jobs of namespace default.").wait_for()
            await page.locator(".tile").first.wait_for()
            await page.get_by_role("link", name="Time").click()
            await page.locator("svg.time rect").first.wait_for()
            await page.get_by_role("link", name="Jobs").click()
            await page.get_by_role("link", name="job/train").click()
            await page.get_by_text("Given to worker1").first.wait_for()
            await page.get_by_role("link", name="Fleet").click()
            await page.get_by_text("You may not see the fleet.").first.wait_for()


@pytest.mark.timeout(90)
async def test_people_sign_in_at_a_server_and_their_token_stays_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a wrong token first; who may see one namespace sees that. Nothing is stored, a reload asks again, a token
    that is revoked shows nothing any more."""
    monkeypatch.setattr(signed_in, "KEPT", 0.3)
    async with hosted(tmp_path) as here, browser_page(ignore_https_errors=True) as page:
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda line: faults.append(line.text) if is_fault(line) else None)
        await page.goto(f"{here.address}#/overview")
        token, button = page.get_by_label("Token of the manager cluster"), page.get_by_role("button", name="Sign in")
        await token.fill("invented-token")
        await token.press("Enter")
        await page.get_by_text("does not know this token").wait_for()
        await token.fill(" submitter-token\n")
        await button.click()
        await page.get_by_text("Jobs of namespace default.").wait_for()
        assert await page.locator("#notice").inner_text() == ""
        await page.get_by_role("link", name="Jobs").first.click()
        await page.get_by_role("link", name="job/train").click()
        await page.get_by_text("Given to worker1").first.wait_for()
        kept = "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href, history.state])"
        assert "submitter-token" not in await page.evaluate(kept)
        assert "submitter-token" not in await page.content()
        await page.reload()
        await token.fill("submitter-token")
        await button.click()
        await page.get_by_text("Given to worker1").first.wait_for()
        access = here.people.stage.fleet.person.server.access
        assert access.tokens is not None
        del access.tokens["submitter-token"]
        await page.get_by_text("not any more").wait_for()
        assert await page.get_by_text("Given to worker1").count() == 0
        await token.fill("admins-token")
        await button.click()
        await page.get_by_role("link", name="Fleet").click()
        await page.get_by_role("link", name="worker1").first.wait_for()
        await page.get_by_role("button", name="Sign out").click()
        await token.wait_for()
        assert await page.get_by_text("worker1").count() == 0
        await page.goto(f"{here.address}#token=admins-token")
        await token.wait_for()
        assert "admins-token" not in page.url
        assert faults == []


async def test_a_proxy_signs_people_in(tmp_path: Path) -> None:
    """It adds the header, so nobody is asked, and the page has no token that could be left."""
    headers = {"Authorization": "Bearer submitter-token"}
    async with (
        hosted(tmp_path) as here,
        browser_page(ignore_https_errors=True, extra_http_headers=headers) as page,
    ):
        await page.goto(here.address)
        await page.get_by_text("Jobs of namespace default.").wait_for()
        assert await page.get_by_role("button", name="Sign out").count() == 0


async def test_a_proxy_whose_token_nobody_knows_and_one_whose_session_has_ended_are_told_apart(tmp_path: Path) -> None:
    """Another client's token, or an old one; and a proxy that answers itself, as it does to who takes JSON."""
    headers = {"Authorization": "Bearer invented-token"}
    async with (
        hosted(tmp_path) as here,
        browser_page(ignore_https_errors=True, extra_http_headers=headers) as page,
    ):
        await page.goto(here.address)
        await page.get_by_text("The manager does not know this token").wait_for()
        await page.get_by_label("Token of the manager cluster").wait_for()
        taken: list[str] = []

        async def ended(route: Any) -> None:
            taken.append(route.request.headers["accept"])
            await route.fulfill(status=401, content_type="application/json", body="{}")

        await page.route("**/apis/**", ended)
        await page.reload()
        await page.get_by_text("does not know you any more: reload the page").wait_for()
        assert "application/json" in taken[0].split(", ")


async def test_a_link_of_another_site_opens_the_page(tmp_path: Path) -> None:
    """So somebody comes from a mail, or back from where they have signed in; what the page asks then is its own."""
    headers = {"Authorization": "Bearer submitter-token"}
    async with (
        hosted(tmp_path) as here,
        browser_page(ignore_https_errors=True, extra_http_headers=headers) as page,
    ):
        link = f'<a href="{here.address}#/jobs/default/job.train">link</a>'
        await page.route(
            "https://issuer.example.com/", lambda route: route.fulfill(content_type="text/html", body=link)
        )
        await page.goto("https://issuer.example.com/")
        await page.get_by_role("link", name="link").click()
        await page.get_by_text("Given to worker1").first.wait_for()


async def test_the_way_in_fits_its_screen_and_can_be_read(tmp_path: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.async_playwright")
    async with hosted(tmp_path) as here:
        for size, scheme in (("small", "dark"), ("large", "light")):
            width, height = SIZES[size]
            screen: Any = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
            async with browser_page(ignore_https_errors=True, **screen) as page:
                await page.goto(here.address)
                await page.get_by_label("Token of the manager cluster").wait_for()
                assert await page.evaluate("document.activeElement.id") == "token"
                assert await page.evaluate("document.documentElement.scrollWidth") <= width
                results = await axe.Axe().run(page)
                assert results.violations_count == 0, results.generate_report()


async def test_a_journey_over_the_real_handlers(tmp_path: Path) -> None:
    """A manager without our API: fleet, jobs, and a job that ends while it is seen, with its log from the worker."""
    async with remote_fleet(tmp_path) as here:
        local, _ = await here.run_with_pod()
        async with handlers_of(here) as source, opened(source, "#/fleet") as page:
            await page.get_by_text("worker2", exact=True).first.wait_for()
            await page.evaluate("location.hash = '#/jobs'")
            await page.get_by_text("train").first.click()
            await page.get_by_text("Given to worker1").first.wait_for()
            await page.get_by_role("button", name="Show logs").click()
            await page.get_by_text("ended with exit code 0").first.wait_for()
            await page.evaluate("location.hash = '#/jobs'")
            ended = finished(local, "Succeeded", "done", NOW)
            key = ObjectKey.of(local)
            await here.person.admin.merge_patch(WORKLOAD, key, {"status": ended["status"]}, subresource="status")
            await page.locator("span.state", has_text="Finished").first.wait_for()
