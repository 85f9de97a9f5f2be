"""The page about the API names the bounds that the code has."""

from __future__ import annotations

import re
from pathlib import Path

from multikueued.api_server import running
from multikueued.logserver import access
from multikueued.remoteapi import handlers, job_page, job_watch, manager_view, overview, sum_handlers, sums
from multikueued.remoteapi import history as history_module
from multikueued.remoteapi.history import STEPS

PAGE = (Path(__file__).parents[2] / "docs/api.md").read_text()
BOUNDS = dict(re.findall(r"^\| (.+?) \| (.*?) \| .*\|$", PAGE, re.MULTILINE))


def test_the_bounds_are_those_in_the_code() -> None:
    watches = BOUNDS["watches"]
    assert watches.startswith(f"{running.WATCHES}, half of them of one namespace")
    assert f" {running.WATCHES_PER_USER} of one user" in watches
    assert (BOUNDS["a watch"].split(",")[0], handlers.LONGEST) == ("an hour", 3600)
    assert BOUNDS["what a watch may begin behind"] == f"{manager_view.WINDOW:,} changes"
    assert BOUNDS["a watch in which nothing happens"] == f"{job_watch.BOOKMARK:g} s"
    revoked = BOUNDS["a watch of who may not read any more"]
    assert (revoked.split(";")[0], access.CHECK, access.UNANSWERED) == ("a minute", 60, 3)
    assert "; three," in revoked
    pages = BOUNDS["namespaces of a page of `remotenamespaces`"]
    assert pages.startswith(f"{sum_handlers.NAMESPACES};")
    assert (f"of {access.USERS} users and pages" in pages, access.KEPT) == (True, 60)
    assert BOUNDS["`fleet`"] == f"made anew after {handlers.FLEET_KEPT:g} s"
    history = BOUNDS["the history in `overview`"]
    assert history.startswith(f"{STEPS} steps of a minute, for {history_module.NAMESPACES} namespaces")
    shown = BOUNDS["jobs of `timeline`, of `places`; of those that need somebody, in `overview`"]
    assert shown == f"{overview.BARS}, those that moved first; {sums.PLACES}; {overview.TROUBLED}"
    assert f"{sum_handlers.ANSWERS_KEPT} are kept" in BOUNDS["`overview`, `places` and `causes`"]
    rows = f"{job_page.ROWS} rows, of {sum_handlers.MOST_NAMESPACES:,} namespaces"
    assert BOUNDS["`jobpage`"] == f"{rows}, made anew after {sum_handlers.JOBS_KEPT:g} s"
