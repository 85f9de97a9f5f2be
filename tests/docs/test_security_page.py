"""The page about security names bounds that hold."""

from __future__ import annotations

import re
from pathlib import Path

from multikueue.kube import AnswerLimits, ClientOptions
from multikueue.kube.credentials.authenticator import KEPT, LONGEST_PAUSE, PATIENCE, PAUSE, RUNS
from multikueue.kube.credentials.exec_run import MAX_OUTPUT, PLUGIN_DEADLINE
from multikueue.kube.http.response_limits import LARGE, MAX_LINE, MAX_OBJECT, PAGE_BYTES
from multikueue.kube.kubernetes_yaml import MAX_DEPTH, MAX_NUMBER, MAX_SIZE, MAX_VALUES
from multikueue.runtime.reconcilers.configuration import SMALL
from multikueued.mirrors.endpoint.callers import REVIEWS
from multikueued.mirrors.endpoint.heads import MAX_HEAD
from multikueued.mirrors.endpoint.places import Places
from multikueued.mirrors.endpoint.serving import DRAIN
from multikueued.serving.gate import Limits
from multikueued.serving.kept_answers import ALLOWED_FOR, TIMEOUT

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
ROWS = {cells[0]: cells[1] for cells in re.findall(r"^\| (.+?) \| (.*?) \|.* \|$", PAGE, re.MULTILINE)}
MIB = 1 << 20


def test_the_bounds_are_those_in_the_code() -> None:
    limits, options = AnswerLimits(), ClientOptions()
    assert MAX_OBJECT == 6 * 3 * MIB // 2
    assert MAX_LINE == MAX_OBJECT + (64 << 10)
    assert ROWS["bytes of an answer, decompressed"] == f"{limits.answer_bytes // MIB} MiB"
    assert ROWS["bytes of a page of several objects"].startswith(f"{PAGE_BYTES // MIB} MiB")
    assert ROWS[f"answers of more than {LARGE >> 10} KiB that are read at a time"] == "one of each server"
    assert ROWS["bytes of a list"] == f"{limits.list_bytes // MIB} MiB"
    assert ROWS["pages of a list"] == f"{limits.list_pages:,}"
    assert ROWS["objects of a kind, by lists and by events"] == f"{limits.list_objects:,}"
    assert ROWS["the time of a call, from when it is sent"] == f"{options.deadline:g} s"
    assert ROWS[f"its wait for one of {options.connections} connections"] == f"{options.connection_wait:g} s"
    assert ROWS["bytes of a kubeconfig or settings file"] == f"{MAX_SIZE // MIB} MiB"
    assert ROWS["its values and characters, with what aliases repeat"] == f"{MAX_VALUES:,} and {MAX_SIZE // MIB} Mi"
    assert ROWS["its levels of nesting, and the length of a number"] == f"{MAX_DEPTH} and {MAX_NUMBER}"
    assert ROWS["time of a run"] == f"{PLUGIN_DEADLINE:g} s"
    assert ROWS["what it prints"] == f"{MAX_OUTPUT // MIB} MiB"
    assert ROWS["time that a request waits for it"] == f"{PATIENCE:g} s"
    assert ROWS["runs at a time"] == str(RUNS)
    assert ROWS["runs of one that fails"] == f"after {PAUSE:g} s, then twice that, up to {LONGEST_PAUSE:g} s"
    assert ROWS["credentials that nobody asks for"] == f"{KEPT / 60:g} minutes"
    assert ROWS["what is parsed in the event loop of a kubeconfig"] == f"{SMALL >> 10} KiB"


def test_the_bounds_of_mirrors_are_those_in_the_code() -> None:
    places = Places()
    assert ROWS["streams of mirrors at a time, of all"] == str(places.most)
    assert ROWS["streams of one mirror"] == str(places.of_a_mirror)
    of_a_program = f"streams of one program, by its User-Agent, for namespaces that have {places.few} streams or more"
    assert ROWS[of_a_program] == str(places.of_a_program)
    kept = ROWS[f"of these, for namespaces that have fewer than {places.few} streams"]
    assert kept == f"the last {places.kept_for_few}"
    assert ROWS["the head of a request"] == f"{MAX_HEAD >> 10} KiB, {Limits().head_timeout:g} s"
    bounds = f"{TIMEOUT:g} s, {REVIEWS} at a time, kept for {ALLOWED_FOR:g} s"
    assert ROWS["the manager's word on who may"] == bounds
    assert ROWS["the end of the process"].startswith(f"{DRAIN:g} s ")


def test_what_is_said_to_be_impossible_is_a_test() -> None:
    section = PAGE.partition("## What reaches the logs of mirrors")[2].partition("\n## ")[0]
    named = set(re.findall(r"`((?:test_|Test)\w+)`", section))
    files = [*(ROOT / "tests" / "mirrors").rglob("*.py"), *(ROOT / "tests" / "integration").glob("*.py")]
    defined = set(re.findall(r"^ *(?:async def|def|class) (\w+)", "\n".join(map(Path.read_text, files)), re.MULTILINE))
    assert named
    assert named <= defined
