"""What is wrong and what to do about it, as values; `remedies.toml` has the rows."""

from __future__ import annotations

import re
import shlex
import string
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

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
    blocking: bool = attrs.field(
        init=False, default=attrs.Factory(lambda self: self.severity is Severity.ERROR, takes_self=True)
    )
    """Whether somebody has to act, since it is an error."""

    @property
    def sentence(self) -> str:
        """What is wrong, where nothing stands before it that says of what."""
        return f"{self.where}: {self.why}" if self.why.startswith(("it ", "somebody ")) else self.why

    def mild(self, is_so: bool = True) -> Finding:
        """The same as something that nobody has to act on, if it is so."""
        return attrs.evolve(self, severity=Severity.WARNING) if is_so and self.blocking else self


@attrs.frozen(kw_only=True)
class Remedy:
    """A row of `remedies.toml`, which says what each field is for."""

    key: str
    why: str = ""
    remedy: str = ""
    command: str = ""
    audience: str = ""
    otherwise: str = ""
    severity: Severity = attrs.field(default=Severity.ERROR, converter=Severity)
    side: Side = "manager"
    object: str = ""
    matters: str = ""
    cause: str = ""
    rejection: str = ""
    run: bool = False
    pods: bool = False
    lasts: bool = False
    reasons: tuple[str, ...] = attrs.field(default=(), converter=tuple[str, ...])

    @property
    def id(self) -> str:
        """Of the finding."""
        return self.key.partition("@")[0]

    def about(
        self, where: str, message: str, *each: Mapping[str, str], instead: str = "", workers: tuple[str, ...] = ()
    ) -> Finding:
        """The finding, with everything filled in.

        Args:
            where: what it is about.
            message: the words that say so.
            each: what is filled in; of several workers that of each, and what is wrong names them together.
            instead: the key of a row whose remedy holds here; empty: its own.
            workers: those that show it.
        """
        filling = [defaultdict(str, {"told": message, **words}) for words in each]
        together = {slot: ", ".join(dict.fromkeys(words[slot] for words in filling)) for slot in [*filling[0]]}
        return Finding(
            self.id,
            where,
            self.why.format_map(defaultdict(str, {**together, "told": message})),
            message,
            REMEDIES[instead or self.key].filled(filling),
            self.severity,
            self.object.format_map(filling[0]),
            workers,
            side=self.side,
        )

    def filled(self, each: Sequence[Mapping[str, str]]) -> str:
        """What to do: each command once, and what several workers have in common once.

        Args:
            each: the words of each worker that shows it.
        """
        commands = dict.fromkeys(filled(self.command, words) for words in each)
        if NO_COMMAND in commands:
            return NO_COMMAND
        shown = "; ".join(islice(commands, MOST_COMMANDS))
        if len(commands) > MOST_COMMANDS:
            shown += f"; and so for {', '.join(words['worker'] for words in each[MOST_COMMANDS:])}"
        texts = dict.fromkeys(filled(self.remedy, defaultdict(str, {**words, "command": shown})) for words in each)
        return "; ".join(islice(texts, MOST_COMMANDS))


def finding(key: str, where: str, message: str = "", /, *, instead: str = "", **words: str) -> Finding:
    """What a row says, with these words filled in; see `Remedy.about`."""
    return REMEDIES[key].about(where, message, words, instead=instead)


@attrs.frozen
class RemedyRule:
    """A row of a table about words of others, where nothing else tells what is wrong."""

    pattern: re.Pattern[str]
    remedy: Remedy

    @property
    def id(self) -> str:
        """Of the finding."""
        return self.remedy.id


MOST_COMMANDS: Final = 3
"""Commands of one remedy; for the other workers it is the same with their names."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_AND: Final = " and "
NO_COMMAND: Final = "mend what it names; no command is shown, as a name in these words is none that Kubernetes allows"


def filled(remedy: str, words: Mapping[str, str]) -> str:
    """A remedy with names filled in; people paste it into a shell, so nothing but names enters it.

    Args:
        remedy: `{name}` stands for a word; the table says which slots take a list of names, or texts of ours.
        words: names, or TYPE/NAME. An empty one is left out.

    Returns:
        The remedy; another one without a command if a word is no name.
    """
    asked = {field for _, field, _, _ in string.Formatter().parse(remedy) if field}
    quoted: dict[str, str] = {}
    for slot in asked:
        kind, word = SLOTS.get(slot, "name"), words[slot]
        parts = word.split(_AND) if kind == "names" else [word]
        if kind != "ours" and not all(is_name(part) for name in parts if name for part in name.split("/")):
            return NO_COMMAND
        quoted[slot] = word if kind == "ours" else _AND.join(shlex.quote(name) if name else "" for name in parts)
    return remedy.format_map(quoted)


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


def _read(table: dict[str, Any]) -> tuple[Mapping[str, Remedy], Mapping[str, tuple[RemedyRule, ...]]]:
    """The rows of the table, and the words of others that lead to them; what several rows say is put in."""
    texts: dict[str, str] = table.pop("texts")

    def whole(fields: dict[str, Any]) -> dict[str, Any]:
        for name, text in texts.items():
            fields["remedy"] = fields.get("remedy", "").replace(f"{{{name}}}", text)
        return {"audience": fields.pop("for", ""), **fields}

    rows = {key: Remedy(key=key, **whole(fields)) for key, fields in table.items() if isinstance(fields, dict)}
    rules = {
        name: tuple(RemedyRule(re.compile(row["pattern"], _AS_TOLD), rows[row["row"]]) for row in words)
        for name, words in table.items()
        if isinstance(words, list)
    }
    return rows, rules


_AS_TOLD: Final = re.IGNORECASE | re.DOTALL
_TABLE: Final = tomllib.loads(Path(__file__).with_name("remedies.toml").read_text(encoding="utf-8"))
SLOTS: Final[Mapping[str, str]] = _TABLE.pop("slots")
"""What slots of remedies take that take no name: `names`, or `ours`, a text of ours."""
CAUSES: Final[Sequence[Sequence[str]]] = _TABLE.pop("causes")
"""The ids of findings that tell of one cause: the one with the best remedy first."""
REMEDIES, RULES = _read(_TABLE)
"""By key; and the tables of words, by name."""
