"""The reference of the command line as Markdown, made of the commands and of the values that they print.

`python -m tests.docs.cli_reference` writes what stands between the marks of its pages, and the file by which `--help`
of a command imports nothing.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import attrs
import click

from multikueued import exits
from multikueued.cli import SECTIONS, main
from multikueued.commands.get import WorkerList
from multikueued.commands.options import OUTPUT, WATCH, target_options
from multikueued.commands.retry import Retried
from multikueued.diagnosis.findings import Diagnosis, Measured
from multikueued.diagnosis.fleet import StatusReport
from multikueued.lazy_group import HELP, HELP_FLAGS, LazyGroup
from multikueued.reading.pods import PodList, PodReport
from multikueued.reading.source import JobList
from multikueued.remote.explain import EventList
from multikueued.reports.chain import ChainLink
from multikueued.reports.daemon_lease import DaemonReport
from multikueued.reports.events import EventReport
from multikueued.reports.explanation import Explanation, NextStep
from multikueued.reports.jobs import JobReport, JobState, ReportedPlacement
from multikueued.reports.queues import QueueReport
from multikueued.reports.quotas import FlavorQuota, WorkerQuota
from multikueued.reports.remedies.pod_remedies import PodReason
from multikueued.reports.remedies.remedy import Finding
from multikueued.reports.unqueued import Unqueued
from multikueued.reports.usage import UsageReport, Use
from multikueued.reports.worker_answers import AnswerState, WorkerAnswer
from multikueued.reports.worker_facts import NotChecked, ShownPods
from multikueued.reports.workers import WorkerReport
from multikueued.settings.values import camel
from tests.docs.marked import replaced

DOCS: Final = Path(__file__).parents[2] / "docs"
EXIT_CODES: Final = {
    int(code): " ".join(meaning.rstrip().removesuffix(".").split())
    for code, meaning in re.findall(r"^(\d+): (.+(?:\n +.+)*)", str(exits.__doc__), re.MULTILINE)
}
"""What each means, as their module says it."""
COMMANDS: Final = {
    "cli/jobs.md": "Jobs",
    "cli/fleet.md": "The fleet",
    "cli/servers.md": "Servers",
    "cli/trial.md": "To try it out",
}
"""Which page has the commands of which section of `multikueue --help`."""
PRINTED: Final = (
    ("multikueue status", StatusReport),
    ("multikueue get jobs", JobList),
    ("multikueue get workers", WorkerList),
    ("multikueue usage", UsageReport),
    ("multikueue explain", Explanation),
    ("multikueue explain, of a job without a Workload", Unqueued),
    ("multikueue events", EventList),
    ("multikueue retry", Retried),
    ("multikueue doctor", Diagnosis),
    ("multikueue pods", PodList),
)
"""What each command prints with -o json and yaml."""
PARTS: Final = (
    DaemonReport,
    WorkerReport,
    WorkerQuota,
    FlavorQuota,
    ShownPods,
    Use,
    QueueReport,
    JobReport,
    ChainLink,
    WorkerAnswer,
    NextStep,
    Finding,
    ReportedPlacement,
    EventReport,
    NotChecked,
    Measured,
    PodReport,
    PodReason,
)
"""What stands in them."""
STATES: Final[dict[str, type[StrEnum]]] = {
    "States of a job": JobState,
    "States of a worker's answer": AnswerState,
}
_TYPES: Final = {
    "str": "text",
    "int": "number",
    "float": "number",
    "bool": "true or false",
    "datetime": "time",
    "JobState": "state",
    "WorkerState": "text",
    "Severity": "severity",
    "Side": "`manager` or `worker`",
    "tuple[str, ...]": "list of texts",
    "Mapping[str, str]": "texts by name",
    "Mapping[str, int]": "numbers by state",
    "Mapping[str, float]": "numbers by name",
    "Audience": "`operator` or `submitter`",
    "AnswerState": "state",
    "Source": "text",
}

_OR_NONE: Final = " | None"


def pages() -> dict[Path, str]:
    """Each page with a generated part, as it should be."""
    parts = {"cli.md": [*_exit_codes(), *_shared_options()], "cli/output.md": _output()}
    for page, section in COMMANDS.items():
        group = LazyGroup("multikueue", subcommands=SECTIONS[section])
        described = (_command(path, command) for path, command in _commands(group, "multikueue"))
        parts[page] = [line for lines in described for line in lines]
    written = {DOCS / page: "\n".join(lines).rstrip() for page, lines in parts.items()}
    return {page: replaced(page.read_text(), "tests/docs/cli_reference.py", text) for page, text in written.items()}


def _output() -> list[str]:
    lines: list[str] = []
    for title, report in PRINTED:
        lines += [f"## {title} -o json", "", *_fields(report)]
    lines += ["## What stands in them", ""]
    for part in PARTS:
        lines += [f"**{part.__name__}**: {_first_line(part)}", "", *_fields(part)]
    for title, states in STATES.items():
        lines += [f"## {title}", "", "| state | what it means |", "|---|---|"]
        meanings = _documented(states)
        lines += [*(f"| {state.value} | {_cell(meanings.get(state.name, ''))} |" for state in states), ""]
    return lines


class _Rows(click.HelpFormatter):
    """Keeps what is listed, before it is fitted to a width."""

    def __init__(self) -> None:
        super().__init__()
        self.sections: dict[str, list[tuple[str, str]]] = {}

    def write_heading(self, heading: str) -> None:
        self.sections[heading] = []

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        self.sections[next(reversed(self.sections))] += rows


def stored_help(group: LazyGroup = main) -> str:
    """What `lazy_group.HELP` has: all that a command's help is made of, in any width."""
    return json.dumps(_stored_help(group), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _stored_help(group: LazyGroup) -> dict[str, Any]:
    help_by_place: dict[str, Any] = {}
    for name, subcommand in group.subcommands.items():
        command = group.get_command(click.Context(group), name)
        assert command is not None, name
        context = click.Context(command, info_name=name, help_option_names=list(HELP_FLAGS))
        if isinstance(subcommand, LazyGroup):
            help_by_place |= _stored_help(subcommand)
        elif isinstance(subcommand, str):
            rows = _Rows()
            command.format_options(context, rows)
            usage = command.collect_usage_pieces(context)
            help_by_place[subcommand] = {"usage": usage, "help": command.help, "sections": rows.sections}
    return help_by_place


def _exit_codes() -> list[str]:
    rows = [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return ["## Exit codes", "", "| code | what it means |", "|---|---|", *rows, ""]


@click.command()
@target_options
@OUTPUT
@WATCH
def _shared() -> None:
    """Has the options that commands share."""


def _records(command: click.Command) -> list[tuple[str, str]]:
    """The options of a command, each with its help."""
    context = click.Context(command)
    options = (param for param in command.params if isinstance(param, click.Option) and not param.hidden)
    return [record for option in options if (record := option.get_help_record(context)) is not None]


def _shared_options() -> list[str]:
    rows = [_row(record) for record in _records(_shared)]
    return ["## Options that commands share", "", "| option | what it does |", "|---|---|", *rows, ""]


def _commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _command(path: str, command: click.Command) -> list[str]:
    arguments = [
        param.make_metavar(click.Context(command)) for param in command.params if isinstance(param, click.Argument)
    ]
    usage = " ".join([path, "[OPTIONS]", *arguments])
    lines = [f"## {path}", "", "```text", usage, "```", "", *_text(command), ""]
    shared, own = _records(_shared), _records(command)
    taken = [record[0] for record in own if record in shared]
    rows = [_row(record) for record in own if record not in shared]
    lines += ["| option | what it does |", "|---|---|", *rows, ""] if rows else []
    return [*lines, f"Shared options: {', '.join(f'`{_code(option)}`' for option in taken)}.", ""] if taken else lines


def _text(command: click.Command) -> list[str]:
    paragraphs = textwrap.dedent(command.help or "").strip().split("\n\n")
    filled = [textwrap.fill(" ".join(paragraph.split()), 120, break_on_hyphens=False) for paragraph in paragraphs]
    return "\n\n".join(filled).replace("*", "\\*").split("\n")


def _row(record: tuple[str, str]) -> str:
    return f"| `{_code(record[0])}` | {_cell(record[1])} |"


def _code(text: str) -> str:
    return text.replace("|", "\\|")


def _fields(report: type) -> list[str]:
    meanings = _documented(report)
    fields: Any = attrs.fields(report)
    types = inspect.get_annotations(report)  # as they are written: cattrs puts classes into the fields
    rows = [
        f"| `{camel(field.name)}` | {_type(types[field.name])} | {_cell(meanings.get(field.name, ''))} |"
        for field in fields
    ]
    return ["| field | type | what |", "|---|---|---|", *rows, ""]


def _type(name: str) -> str:
    if name in _TYPES:
        return _TYPES[name]
    if name.endswith(_OR_NONE):
        return f"{_type(name.removesuffix(_OR_NONE))} or null"
    inner = name.removeprefix("tuple[").removesuffix(", ...]")
    return f"list of {inner}" if inner != name else name


def _documented(owner: type) -> dict[str, str]:
    """The text below each field of a class."""
    body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    assert isinstance(body, ast.ClassDef), owner
    texts: dict[str, str] = {}
    name = ""
    for node in body.body:
        if isinstance(node, ast.AnnAssign | ast.Assign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            name = target.id if isinstance(target, ast.Name) else ""
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and name:
            texts[name] = str(node.value.value)
        else:
            name = ""
    return texts


def _first_line(owner: type) -> str:
    return (inspect.getdoc(owner) or "").partition("\n")[0]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text)
    HELP.write_text(stored_help())
