"""Jobs and nodes of a file: our own columns, or the Standard Workload Format. A bad line is refused with its number."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

import attrs

from tests.dispatch.load import Flavor, Job, Worker

JOB_COLUMNS: Final = ("submit_s", "tenant", "gpus", "cpus", "runtime_s")
FURTHER_JOB_COLUMNS: Final = ("kind", "region", "model", "priority")
NODE_COLUMNS: Final = ("worker", "model", "gpus", "cpus")
FURTHER_NODE_COLUMNS: Final = ("region", "cost", "speed")
SWF_FIELDS: Final = 18
MOST: Final = 1 << 31
"""Of any number: 68 years, if they are seconds."""

T = TypeVar("T")


class BadTrace(Exception):
    """What is wrong, and in which line of which file."""


@attrs.frozen
class Line:
    """One line, by column."""

    where: str
    values: dict[str, str]

    def text(self, column: str) -> str:
        """What it says; empty: nothing."""
        return (self.values.get(column) or "").strip()

    def number(self, column: str, least: float, missing: float | None = None) -> float:
        """A number that is at least so large.

        Raises:
            BadTrace: it is none, or smaller, or above `MOST`, or missing and must not be.
        """
        text = self.text(column)
        if not text and missing is not None:
            return missing
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or number < least:
            raise BadTrace(f'{self.where}: {column} is "{text}": it must be a number, {least:g} at least')
        if number > MOST:
            raise BadTrace(f'{self.where}: {column} is "{text}": it must be {MOST} at most')
        return number

    def whole(self, column: str, least: int = 0, missing: int | None = 0) -> int:
        """A whole number.

        Raises:
            BadTrace: it is none.
        """
        number = self.number(column, least, missing)
        if number != int(number):
            raise BadTrace(f'{self.where}: {column} is "{self.text(column)}": it must be a whole number')
        return int(number)

    def name(self, column: str) -> str:
        """A text that must be there.

        Raises:
            BadTrace: it is not.
        """
        if not self.text(column):
            raise BadTrace(f"{self.where}: {column} is missing")
        return self.text(column)


def read_jobs(path: Path) -> list[Job]:
    """Jobs by submission, the first at 0.

    Raises:
        BadTrace: a line cannot be read.
    """
    if path.suffix == ".swf":
        jobs = [job for line in _swf_lines(path) for job in _swf_job(line)]
    else:
        jobs = [_job(i, line) for i, line in enumerate(_csv_lines(path, JOB_COLUMNS, FURTHER_JOB_COLUMNS))]
    if not jobs:
        raise BadTrace(f"{path.name}: it has no jobs")
    first = min(job.submit for job in jobs)
    return sorted((attrs.evolve(job, submit=job.submit - first) for job in jobs), key=lambda job: job.submit)


def read_workers(path: Path, speeds: Callable[[str], float]) -> list[Worker]:
    """Workers in the order of the file, with a flavor for each model.

    Args:
        path: the nodes.
        speeds: of a model that the file says no speed of.

    Raises:
        BadTrace: a line cannot be read, or contradicts an earlier one.
    """
    nodes: dict[str, dict[str, list[Line]]] = defaultdict(lambda: defaultdict(list))
    for line in _csv_lines(path, NODE_COLUMNS, FURTHER_NODE_COLUMNS):
        nodes[line.name("worker")][line.text("model") or "cpu"].append(line)
    if not nodes:
        raise BadTrace(f"{path.name}: it has no nodes")
    return [_worker(name, models, speeds) for name, models in nodes.items()]


def _worker(name: str, models: dict[str, list[Line]], speeds: Callable[[str], float]) -> Worker:
    lines = [line for listed in models.values() for line in listed]
    flavors = tuple(_flavor(model, listed, speeds(model)) for model, listed in models.items())
    cost = _same(lines, "cost", lambda line: line.number("cost", 0.0, 1.0))
    return Worker(name, flavors, _same(lines, "region", lambda line: line.text("region")), cost)


def _flavor(model: str, lines: Sequence[Line], speed: float) -> Flavor:
    gpus, cpus = (sum(line.whole(column) for line in lines) for column in ("gpus", "cpus"))
    return Flavor(model, gpus, cpus, _same(lines, "speed", lambda line: line.number("speed", 1e-6, speed)))


def _same(lines: Sequence[Line], column: str, read: Callable[[Line], T]) -> T:
    """What all of them say."""
    first = read(lines[0])
    for line in lines:
        if read(line) != first:
            raise BadTrace(f'{line.where}: {column} is "{line.text(column)}", and another one before: {first}')
    return first


def _job(number: int, line: Line) -> Job:
    request = line.whole("gpus"), line.whole("cpus")
    if not any(request):
        raise BadTrace(f"{line.where}: neither gpus nor cpus is above 0")
    return Job(
        f"job-{number}",
        line.number("submit_s", 0.0),
        line.name("tenant"),
        request,
        line.number("runtime_s", 0.0),
        model=line.text("model"),
        region=line.text("region"),
        priority=int(line.number("priority", -(2**31), 0)),
        kind=line.text("kind") or "Job",
    )


def _csv_lines(path: Path, needed: Sequence[str], further: Sequence[str]) -> list[Line]:
    lines: list[Line] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, strict=True)
            header = [column.strip() for column in next(rows, [])]
            _check_header(path, header, needed, further)
            for row in rows:
                where = f"{path.name}:{rows.line_num}"
                if not any(cell.strip() for cell in row):
                    continue
                if len(row) > len(header):
                    raise BadTrace(f"{where}: it has {len(row)} columns, and the first line names {len(header)}")
                lines.append(Line(where, dict(zip(header, row, strict=False))))
    except csv.Error as error:
        raise BadTrace(f"{path.name}:{rows.line_num}: {error}") from error
    except UnicodeDecodeError as error:
        raise BadTrace(f"{path.name}: it is not UTF-8: {error}") from error
    return lines


def _check_header(path: Path, header: Sequence[str], needed: Sequence[str], further: Sequence[str]) -> None:
    if missing := [column for column in needed if column not in header]:
        raise BadTrace(f"{path.name}:1: the column {missing[0]} is missing: {','.join(needed)} are needed")
    if strange := [column for column in header if column not in {*needed, *further}]:
        raise BadTrace(f'{path.name}:1: the column "{strange[0]}" is not known')
    if len(set(header)) < len(header):
        raise BadTrace(f"{path.name}:1: a column is named twice")


def _swf_lines(path: Path) -> list[Line]:
    lines: list[Line] = []
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for number, text in enumerate(file, 1):
            fields = text.partition(";")[0].split()
            if not fields:
                continue
            where = f"{path.name}:{number}"
            if len(fields) != SWF_FIELDS:
                raise BadTrace(f"{where}: it has {len(fields)} fields, and SWF has {SWF_FIELDS}")
            names = {0: "job", 1: "submit", 3: "runtime", 4: "processors", 7: "requested", 11: "user"}
            lines.append(Line(where, {name: fields[i] for i, name in names.items()}))
    return lines


def _swf_job(line: Line) -> Iterator[Job]:
    """Processors count as CPUs. A job that never ran (cancelled: no run time, or no processors) is left out."""
    runtime = line.number("runtime", -1)
    processors = line.whole("processors", -1)
    if processors <= 0:
        processors = line.whole("requested", -1)
    if runtime > 0 and processors > 0:
        submit = line.number("submit", 0.0)
        yield Job(f"job-{line.text('job')}", submit, f"user-{line.text('user')}", (0, processors), runtime)
