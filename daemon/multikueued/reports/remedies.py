"""What is wrong and what to do about it, as values; `remedy_table` has the rows."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import attrs

from multikueue.adapters.available import setting_for
from multikueue.core.model.names import GVK


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
class Rule:
    """A row of the table."""

    id: str
    pattern: re.Pattern[str]
    why: str
    remedy: str
    blocking: bool = True

    def applied(self, match: re.Match[str], where: str, told: str, context: Mapping[str, str]) -> Finding:
        """The finding, with everything filled in."""
        words = defaultdict(str, {**context, **{name: text or "" for name, text in match.groupdict().items()}})
        if "gvk" in words and (gvk := GVK.parse(words["gvk"])) is not None:
            words["setting"] = setting_for(gvk)
        why, remedy = self.why.format_map(words), self.remedy.format_map(words)
        return Finding(self.id, where, why, told, remedy, self.blocking)


RETRY: Final = "then multikueue retry {job} (by itself it is asked again after five minutes, then ever more rarely)"
"""How a remedy goes on where a worker has refused the job."""


def found_by(rules: tuple[Rule, ...], where: str, told: str, context: Mapping[str, str]) -> Finding | None:
    """The finding of the first rule that knows these words; None if none does."""
    for rule in rules:
        if (match := rule.pattern.search(told)) is not None:
            return rule.applied(match, where, told, {**context, "told": told})
    return None


def row(id: str, pattern: str, why: str, remedy: str, *, blocking: bool = True) -> Rule:
    """A row: patterns ignore case, and `.` is any character."""
    return Rule(id, re.compile(pattern, re.IGNORECASE | re.DOTALL), why, remedy, blocking)
