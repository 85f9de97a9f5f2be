"""What is wrong and what to do about it, as values; `remedy_table` has the rows."""

from __future__ import annotations

import re
import shlex
import string
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import attrs


@attrs.frozen
class Finding:
    """Something that is not as it should be."""

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
    blocking: bool = True
    """Whether somebody has to act; if not, it passes by itself, or other workers can do the work."""


@attrs.frozen
class Remedy:
    """What to do about one kind of finding."""

    id: str
    why: str
    remedy: str
    blocking: bool = True

    def about(self, where: str, told: str, context: Mapping[str, str]) -> Finding:
        """The finding, with everything filled in."""
        words = defaultdict(str, {**context, "told": told})
        return Finding(self.id, where, self.why.format_map(words), told, filled(self.remedy, words), self.blocking)


@attrs.frozen
class RemedyRule:
    """A row of a table about words of others, where nothing else tells what is wrong."""

    pattern: re.Pattern[str]
    found: Remedy

    @property
    def id(self) -> str:
        """Of the finding."""
        return self.found.id


_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_NO_COMMAND: Final = "mend what it names; no command is shown, as a name in these words is none that Kubernetes allows"


def filled(remedy: str, words: Mapping[str, str]) -> str:
    """A remedy with names filled in; people paste it into a shell, so nothing but names enters it.

    Args:
        remedy: `{name}` stands for a word.
        words: names, or TYPE/NAME; `setting` is a sentence of ours. An empty one is left out.

    Returns:
        The remedy; another one without a command if a word is no name.
    """
    asked = {field for _, field, _, _ in string.Formatter().parse(remedy) if field}
    names = {field: words[field] for field in asked - {"setting"}}
    if not all(is_name(part) for name in names.values() if name for part in name.split("/")):
        return _NO_COMMAND
    quoted = {field: shlex.quote(name) if name else "" for field, name in names.items()}
    return remedy.format_map({**quoted, "setting": words["setting"]} if "setting" in asked else quoted)


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


def found_by(rules: tuple[RemedyRule, ...], where: str, told: str, context: Mapping[str, str]) -> Finding | None:
    """The finding of the first rule that knows these words; None if none does.

    Args:
        rules: the table.
        where: what it is about.
        told: the words, of a worker or of Kueue.
        context: what remedies fill in.
    """
    for rule in rules:
        if (match := rule.pattern.search(told)) is not None:
            words = {name: text or "" for name, text in match.groupdict().items()}
            return rule.found.about(where, told, {**context, **words})
    return None


def row(id: str, pattern: str, why: str, remedy: str, *, blocking: bool = True) -> RemedyRule:
    """A row: patterns ignore case, and `.` is any character."""
    return said(pattern, Remedy(id, why, remedy, blocking))


def said(pattern: str, remedy: Remedy) -> RemedyRule:
    """A row of words of others that lead to a remedy of ours."""
    return RemedyRule(re.compile(pattern, re.IGNORECASE | re.DOTALL), remedy)
