"""The pages about the logs server name what the code has: its API, its parameters, its bounds."""

from __future__ import annotations

import itertools
import re
from contextlib import ExitStack
from pathlib import Path

import yaml

from multikueue.kube import log_stream
from multikueued.api_answers import API_SERVICE_NAME, LOG_PATH, NOTE
from multikueued.api_server.command import api_server
from multikueued.logserver import access, outgoing, reading, resolving
from multikueued.serving import caller_tls
from multikueued.serving.kept_answers import TIMEOUT
from multikueued.serving.refusal import RefusedError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "logs.md").read_text()
SECURITY = (ROOT / "docs" / "security.md").read_text().partition("## What reaches the logs server")[2]
BOUNDS = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|[^|]*\| [^|]+ \|$", SECURITY, re.MULTILINE))
CHART = ROOT / "charts" / "multikueued"


def test_the_api_is_the_one_that_is_served() -> None:
    assert LOG_PATH.format(namespace="team-a", name="job.train-1") in PAGE
    assert API_SERVICE_NAME in PAGE
    assert f"`{NOTE}`" in PAGE
    (listed,) = re.findall(r"Its parameters are those of `kubectl logs`:\s+(.*?)\.\s+Lines", PAGE, re.DOTALL)
    assert sorted(re.findall(r"`(\w+)`", listed)) == sorted(reading.PARAMETERS)


def test_the_bounds_are_those_in_the_code() -> None:
    defaults = {param.name: param.default for param in api_server.params}
    assert BOUNDS["logs of a replica at a time, of one user"] == str(defaults["streams_per_user"])
    slots = access.Slots(int(BOUNDS["logs of a replica at a time, of all"]), 1)
    assert BOUNDS["logs of a replica at a time, of one namespace"] == f"{of_one_namespace(slots)}: half of all"
    assert BOUNDS["logs of a replica at a time, of all"] == str(defaults["streams"])
    assert BOUNDS["bytes of one answer"] == f"{reading.Bounds().size >> 20} MiB"
    assert (BOUNDS["its time"], reading.Bounds().time, defaults["max_time"]) == ("1 h", 3600, "1h")
    kept = BOUNDS["bytes kept for a reader who is slow, with what is put before each line"]
    assert kept == f"{outgoing.AHEAD >> 10} KiB, and a line of each of {reading.PODS} pods"
    assert BOUNDS["lines of one log that are shown in a row"] == str(log_stream.TURN)
    assert BOUNDS["the time of a reader who reads nothing"] == f"{outgoing.STALL:g} s"
    request = BOUNDS["a request to a worker"]
    assert request.startswith(f"{resolving.OPTIONS.deadline:g} s, after up to {resolving.TURN:g} s")
    assert f": {resolving.READS} lists" in request
    limits = resolving.OPTIONS.limits
    listed = f"{limits.list_bytes >> 20} MiB, {limits.list_objects:,} objects"
    assert BOUNDS["what is listed of one namespace on a worker"] == listed
    assert BOUNDS["the manager's word on a user"] == f"{TIMEOUT:g} s, {access.REVIEWS} users at a time"
    assert (access.CHECK, caller_tls.INTERVAL) == (60, 30)


def of_one_namespace(slots: access.Slots) -> int:
    """How many places one may have."""
    with ExitStack() as taken:
        for number in itertools.count():
            try:
                taken.enter_context(slots.in_namespace("team-a"))
            except RefusedError:
                return number
    raise AssertionError("there is no bound")


def test_the_chart_has_the_commands_bounds() -> None:
    defaults = {param.name: param.default for param in api_server.params}
    values = yaml.safe_load((CHART / "values.yaml").read_text())["apiServer"]
    assert values["maxStreams"] == defaults["streams"]
    assert values["maxStreamsPerUser"] == defaults["streams_per_user"]
    assert (values["maxBytes"], values["maxTime"]) == (defaults["max_bytes"], defaults["max_time"])
    assert values["port"] == defaults["port"]
    service = (CHART / "templates" / "logs-apiservice.yaml").read_text()
    assert f"name: {API_SERVICE_NAME}\n" in service
