"""--watch, and errors of the manager as people read them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import anyio
import attrs
import click
import pytest
from rich.console import Console

from multikueue.errors import ApiError, Forbidden, NotFound, ServerFault, Unauthorized, Unreachable
from multikueue.kube import ClusterConfig
from multikueue.kube.credentials.exec_run import no_credentials
from multikueue.testing import NOW, job, stored, workload
from multikueued.commands import report_runner
from multikueued.commands.report_runner import EVERY, Printed, text_of
from multikueued.commands.report_text import jobs_table, status_lines
from multikueued.commands.status import status_panel
from multikueued.diagnosis.fleet import StatusReport, status_report
from multikueued.exits import NOT_REACHABLE, CommandError, for_people
from multikueued.reading.asked import ReportTarget
from multikueued.remote.command import printer
from multikueued.reports.jobs import job_report
from tests.reports.objects import fleet, worker

TARGET = ReportTarget(ClusterConfig("https://manager:6443"), "default", "kueue-system")
NOBODY: Any = None


def printing(reports: Iterator[str | ApiError]) -> Printed[str]:
    async def make(_client: object, _now: datetime) -> str:
        report = next(reports)
        if isinstance(report, ApiError):
            raise report
        return report

    return Printed(make, lambda report, _now, width: [f"{report} {width}"])


@pytest.mark.looptime
async def test_watch_prints_what_has_changed(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal: each new report once, for a log."""
    printed = printing(iter(["a", "a", "b", "b", "b"]))
    with anyio.move_on_after(4.5 * EVERY):
        await report_runner._watch(NOBODY, TARGET, printed, "table")

    assert capsys.readouterr().out == "a None\n\nb None\n\n"


@pytest.mark.looptime
async def test_watch_reads_a_tenth_of_the_time() -> None:
    looks: list[float] = []

    async def make(_client: object, _now: datetime) -> str:
        looks.append(anyio.current_time())
        await anyio.sleep(3)
        return "a"

    with anyio.move_on_after(70):
        await report_runner._watch(NOBODY, TARGET, Printed(make, lambda report, _now, _width: [report]), "table")

    assert [round(look - looks[0]) for look in looks] == [0, 30, 60]


async def test_at_a_terminal_a_manager_that_is_away_is_told_and_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    printed = printing(iter([Unreachable("manager: cannot connect"), "back"]))
    away = Console(width=80, record=True, file=None)
    with away.capture() as first:
        away.print(await report_runner._view(NOBODY, TARGET, printed, "table"))
    with away.capture() as second:
        away.print(await report_runner._view(NOBODY, TARGET, printed, "table"))

    assert "the manager at https://manager:6443 cannot be reached" in first.get()
    assert "asked again every 2 s" in first.get()
    assert second.get() == "back 80\n"


def test_the_formats() -> None:
    printed: Printed[dict[str, int]] = Printed(NOBODY, lambda report, _now, width: [f"{report} {width}"])
    assert text_of({"a": 1}, printed, "table") == "{'a': 1} None"  # what reads a pipe wants whole lines
    assert text_of({"a": 1}, attrs.evolve(printed, wraps=True), "table") == "{'a': 1} 80"
    assert text_of({"a": 1}, printed, "wide") == "{'a': 1} None"
    assert text_of({"a": 1}, printed, "json") == '{\n  "a": 1\n}'
    assert text_of({"a": 1}, printed, "yaml") == "a: 1"


def some_status() -> StatusReport:
    runs = workload(stored(job("a")), cluster="worker1", checks={"multikueue": "Ready"})
    lost = worker("worker2", "cannot connect: " + "no route " * 15, reason="ClientConnectionFailed")
    return status_report(fleet(runs, workers=(worker("worker1"), lost)), NOW)


def test_status_and_jobs_fit_a_terminal() -> None:
    jobs = [job_report(fleet().chain(workload(stored(job("a" * 60)), nominated=("worker1",))))]
    printed = {
        "status": status_lines(some_status(), 80, wide=False),
        "jobs": jobs_table(jobs, NOW, 80, wide=False, everywhere=False, users=False),
    }
    assert [line for lines in printed.values() for line in lines if len(click.unstyle(line)) > 80] == []


@pytest.mark.parametrize("width", [80, 120])
def test_the_live_panel_fits(width: int) -> None:
    console = Console(width=width, file=None)
    with console.capture() as shown:
        console.print(status_panel(some_status(), NOW))
    lines = shown.get().splitlines()

    assert all(len(line) <= width for line in lines)
    assert any("worker2  Lost" in line for line in lines)
    assert any("cpu 0/4" in line for line in lines)
    assert any("Jobs: 1 (1 Running)" in line for line in lines)


DENIED = (
    'workloads.kueue.x-k8s.io is forbidden: User "me" cannot list resource "workloads" in API group "kueue.x-k8s.io"'
)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            Forbidden(f"manager: list workloads.kueue.x-k8s.io: {DENIED} at the cluster scope"),
            "you may not list workloads.kueue.x-k8s.io on the manager at the cluster scope: ask for a role that",
        ),
        (Forbidden("manager: get secrets: no"), "the manager refuses: manager: get secrets: no"),
        (
            Unauthorized("x", status=401),
            "the manager at https://m does not accept the credentials of the kubeconfig: renew",
        ),
        (
            Unauthorized("getting credentials: exec: executable login cannot be run"),
            "the kubeconfig leads to no credentials for the manager at https://m (getting credentials: exec: "
            "executable login cannot be run): run, or read, what the user of this context names there",
        ),
        (
            no_credentials("exec: executable login failed with exit code 3", "not logged in"),
            "the kubeconfig leads to no credentials for the manager at https://m (getting credentials: exec: "
            "executable login failed with exit code 3; it wrote: not logged in): run, or read, what the user of this",
        ),
        (Unreachable("no route"), "the manager at https://m cannot be reached (no route)"),
        (
            NotFound("no such kind"),
            "the cluster at https://m does not serve a kind that is needed (no such kind): is Kueue installed there",
        ),
        (ServerFault("500"), "the manager at https://m answers with an error: 500"),
    ],
)
def test_errors_of_the_manager_say_what_to_do(error: ApiError, told: str) -> None:
    with pytest.raises(CommandError) as caught, for_people("https://m"):
        raise error
    assert str(caught.value).startswith(told)
    assert caught.value.exit_code == NOT_REACHABLE


def test_a_terminal_is_told_nothing_but_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of workers could set its title, clear it, or turn the direction of what follows."""
    seen: list[str] = []
    monkeypatch.setattr(click, "echo", lambda text, color: seen.append(text))
    report_runner.echo(f"{click.style('Lost', fg='red')} \x1b]0;t\x07\x1b[2J\x9b2J\u202e\nnext")
    assert seen == [f"{click.style('Lost', fg='red')} �]0;t��[2J�2J�\nnext"]


@pytest.mark.parametrize(
    ("raw", "tty", "expected"), [(False, True, "a�b"), (True, True, "a\x1bb"), (False, False, "a\x1bb")]
)
def test_logs_are_filtered_at_a_terminal(
    raw: bool, tty: bool, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: tty)
    printer(raw=raw)("a\x1bb\n")
    assert capsys.readouterr().out == f"{expected}\n"


@pytest.mark.parametrize("log", [b"caf\xe9\r\n", b"\x00\xff\x80\n", b"no newline"])
def test_in_a_pipe_a_log_is_byte_for_byte_what_was_written(log: bytes, capfdbinary: Any) -> None:
    printer(raw=False)(log.decode(errors="surrogateescape"))
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == log


def test_a_terminal_gets_whole_lines_of_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    printer(raw=False)(b"caf\xe9\r\n".decode(errors="surrogateescape"))
    printer(raw=False)("no newline")
    assert capsys.readouterr().out == "caf�\nno newline\n"


@pytest.mark.parametrize(("set_to", "coloured"), [("", True), ("1", False)])
def test_no_color(set_to: str, coloured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a terminal states have colours, unless NO_COLOR says otherwise."""
    seen: list[bool | None] = []
    monkeypatch.setenv("NO_COLOR", set_to)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(click, "echo", lambda _text, color: seen.append(color))
    report_runner.echo("x")

    assert seen == [coloured]
