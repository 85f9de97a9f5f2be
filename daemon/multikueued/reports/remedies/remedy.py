"""What is wrong and what to do about it, as values; `remedy_table` has the rows."""

from __future__ import annotations

import re
import shlex
import string
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from typing import Final, Literal, TypeAlias

import attrs

Side: TypeAlias = Literal["manager", "worker"]


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    """Jobs are not dispatched, or go wrong: somebody has to act."""
    WARNING = "warning"
    """It passes by itself, other workers can do the work, or it will become an error."""
    INFO = "info"


@attrs.frozen
class Finding:
    """Something that is not as it should be, as all commands tell it."""

    id: str
    """Names the kind of finding, for programs: `kubeconfig-key`, `quota-too-small`."""
    where: str
    """What it is about: `worker1`, `AdmissionCheck multikueue`."""
    why: str
    """What is wrong, in a sentence."""
    told: str
    """The words that say so, as they stand on the object; empty: nothing says so, it follows from what is there."""
    remedy: str
    """What to do."""
    severity: Severity = Severity.ERROR
    object: str = ""
    """What the cause is about where that is no worker: a LocalQueue, a job. What has the same is one finding."""
    workers: tuple[str, ...] = ()
    """The workers that show it; none: it is about the manager."""
    matters: str = ""
    """Why it matters; empty: that is plain."""
    side: Side = "manager"
    """Which cluster is to be mended."""
    blocking: bool = attrs.field(init=False)
    """Whether somebody has to act, since it is an error."""

    @blocking.default
    def _is_error(self) -> bool:
        return self.severity is Severity.ERROR

    def mild(self, is_so: bool = True) -> Finding:
        """The same as something that nobody has to act on, if it is so."""
        return attrs.evolve(self, severity=Severity.WARNING) if is_so and self.blocking else self


@attrs.frozen
class Remedy:
    """What to do about one kind of finding."""

    id: str
    why: str
    remedy: str
    """With `{command}` where the command stands."""
    blocking: bool = True
    command: str = ""
    """What to type, once for each worker that shows it."""
    object: str = ""
    """See `Finding`."""
    side: Side = "manager"
    """See `Finding`."""

    def about(self, where: str, told: str, context: Mapping[str, str]) -> Finding:
        """The finding, with everything filled in."""
        words = defaultdict(str, {**context, "told": told})
        return Finding(
            self.id,
            where,
            self.why.format_map(words),
            told,
            filled_for_all(self.remedy, [words], self.command),
            Severity.ERROR if self.blocking else Severity.WARNING,
            self.object.format_map(words),
            side=self.side,
        )


@attrs.frozen
class Trouble:
    """What is wrong with one worker."""

    worker: str
    told: str
    """Its words, or those about it."""
    remedy: Remedy
    words: Mapping[str, str]
    """What the remedy fills in."""

    @property
    def identity(self) -> tuple[str, str]:
        """What it has in common with the same trouble of other workers."""
        return self.remedy.id, self.remedy.object.format_map(defaultdict(str, self.words)) or self.worker


def findings_of(troubles: Iterable[Trouble]) -> list[Finding]:
    """One finding for each cause, with all the workers that show it."""
    alike: dict[tuple[str, str], list[Trouble]] = defaultdict(list)
    for one in troubles:
        alike[one.identity].append(one)
    return [_finding(group) for group in alike.values()]


def _finding(alike: Sequence[Trouble]) -> Finding:
    first, workers = alike[0], tuple(one.worker for one in alike)
    each = [defaultdict(str, {**one.words, "worker": one.worker, "told": one.told}) for one in alike]
    together = {slot: ", ".join(dict.fromkeys(words[slot] for words in each)) for slot in each[0]}
    told = first.told
    if len({one.told for one in alike}) > 1:
        told = "; ".join(f"{one.worker}: {one.told}" for one in alike)
    made = first.remedy.about(", ".join(workers), told, each[0])
    return attrs.evolve(
        made,
        why=first.remedy.why.format_map(defaultdict(str, {**together, "told": told})),
        remedy=filled_for_all(first.remedy.remedy, each, first.remedy.command),
        workers=workers,
    )


@attrs.frozen
class RemedyRule:
    """A row of a table about words of others, where nothing else tells what is wrong."""

    pattern: re.Pattern[str]
    found: Remedy

    @property
    def id(self) -> str:
        """Of the finding."""
        return self.found.id


MOST_COMMANDS: Final = 3
"""Commands of one remedy; for the other workers it is the same with their names."""
_OURS: Final = frozenset({"setting", "command", "outside"})
"""Slots that take texts of ours."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_NO_COMMAND: Final = "mend what it names; no command is shown, as a name in these words is none that Kubernetes allows"


def filled(remedy: str, words: Mapping[str, str]) -> str:
    """A remedy with names filled in; people paste it into a shell, so nothing but names enters it.

    Args:
        remedy: `{name}` stands for a word.
        words: names, or TYPE/NAME; `setting`, `command` and `outside` are ours. An empty one is left out.

    Returns:
        The remedy; another one without a command if a word is no name.
    """
    asked = {field for _, field, _, _ in string.Formatter().parse(remedy) if field}
    names = {field: words[field] for field in asked - _OURS}
    if not all(is_name(part) for name in names.values() if name for part in name.split("/")):
        return _NO_COMMAND
    quoted = {field: shlex.quote(name) if name else "" for field, name in names.items()}
    return remedy.format_map(quoted | {field: words[field] for field in asked & _OURS})


def filled_for_all(remedy: str, each: Sequence[Mapping[str, str]], command: str = "") -> str:
    """A remedy for several workers: each command once, and what they have in common once.

    Args:
        remedy: see `filled`; with `{command}` where the commands stand.
        each: the words of each worker.
        command: what to type for one of them.
    """
    commands = dict.fromkeys(filled(command, words) for words in each)
    if _NO_COMMAND in commands:
        return _NO_COMMAND
    shown = "; ".join(islice(commands, MOST_COMMANDS))
    if len(commands) > MOST_COMMANDS:
        shown += f"; and so for {', '.join(words['worker'] for words in each[MOST_COMMANDS:])}"
    texts = dict.fromkeys(filled(remedy, defaultdict(str, {**words, "command": shown})) for words in each)
    return "; ".join(islice(texts, MOST_COMMANDS))


def is_name(word: str) -> bool:
    """Whether a word may stand in a command: a name as Kubernetes has them, which is no option and quotes nothing."""
    return _NAME.fullmatch(word) is not None


def command_for(job: str, verb: str, namespace: str) -> str:
    """What to type about a job. Whoever may create Workloads names the job: what is no name is not shown.

    Args:
        job: TYPE/NAME.
        verb: of `multikueue`.
        namespace: the job's.
    """
    named = job if all(map(is_name, job.split("/"))) else "JOB"
    return f"multikueue {verb} {named} -n {namespace}"


RETRY: Final = (
    "then multikueue retry {job} -n {namespace} (by itself it is asked again after five minutes, then ever more rarely)"
)
"""How a remedy goes on where a worker has refused the job."""


def trouble_by(rules: tuple[RemedyRule, ...], worker: str, told: str, context: Mapping[str, str]) -> Trouble | None:
    """The trouble that the first rule knows which knows these words; see `found_by`."""
    for rule in rules:
        if (match := rule.pattern.search(told)) is not None:
            words = {name: text or "" for name, text in match.groupdict().items()}
            return Trouble(worker, told, rule.found, {**context, **words})
    return None


def found_by(rules: tuple[RemedyRule, ...], where: str, told: str, context: Mapping[str, str]) -> Finding | None:
    """The finding of the first rule that knows these words; None if none does.

    Args:
        rules: the table.
        where: what it is about.
        told: the words, of a worker or of Kueue.
        context: what remedies fill in.
    """
    known = trouble_by(rules, where, told, context)
    return known.remedy.about(where, told, known.words) if known is not None else None


def row(
    id: str,
    pattern: str,
    why: str,
    remedy: str,
    *,
    blocking: bool = True,
    command: str = "",
    object: str = "",
    side: Side = "manager",
) -> RemedyRule:
    """A row: patterns ignore case, and `.` is any character."""
    return said(pattern, Remedy(id, why, remedy, blocking, command, object, side))


def said(pattern: str, remedy: Remedy) -> RemedyRule:
    """A row of words of others that lead to a remedy of ours."""
    return RemedyRule(re.compile(pattern, re.IGNORECASE | re.DOTALL), remedy)
