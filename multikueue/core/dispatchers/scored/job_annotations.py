"""What a job's annotations ask for: they narrow the workers, and order them; they never widen.

One that narrows and cannot be read holds the job: it might have excluded the worker that would be chosen. Others are
ignored whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import filterfalse
from typing import Final

import attrs

from multikueue.core.dispatchers.reasons import Reason
from multikueue.core.model.names import GVK, OBJECT_NAME, ClusterName
from multikueue.core.model.written_values import LABEL_KEY, LABEL_VALUE
from multikueue.errors import Cause

NAMES: Final = "kueue.x-k8s.io/multikueue-cluster-names"
"""`a,b`: only these workers. The name is upstream's draft."""
SELECTOR: Final = "multikueue.dev/cluster-selector"
"""A label selector over the MultiKueueClusters: `region in (eu,us),gpu=h100,!spot`."""
PREFERENCE: Final = "multikueue.dev/cluster-preference"
"""`region=eu:100,region=us:10`: points for labels, 0 to 100."""
TOGETHER: Final = "multikueue.dev/same-cluster-as"
"""`job/train`: only where that job runs, and nowhere before it does."""
TOLERATIONS: Final = "multikueue.dev/tolerations"
"""`spot=true,arm`: taints that do not keep the job away; a key alone tolerates all of its values."""
TAINTS: Final = "multikueue.dev/taints"
"""On a MultiKueueCluster: `spot=true:NoDispatch,arm:NoDispatch`."""
FLAVORS: Final = "multikueue.dev/flavors"
"""On a MultiKueueCluster: `oslo,oslo-spot`, flavors of the manager. Only jobs that got none but these go there."""

_WISHES: Final = (PREFERENCE, TOLERATIONS)
"""Without these a job goes nowhere that it may not go with them: what cannot be read of them is ignored."""
LONGEST: Final = 4096
"""Characters of an annotation: with more it cannot be read. Each is read whenever the job is looked at, by one loop."""
_KEY: Final = LABEL_KEY.pattern
_VALUE: Final = rf"(?:{LABEL_VALUE.pattern})?"
_PART: Final = re.compile(r"(?:\A|,)(?P<part>(?:[^,(]+|\([^)]*\)?)*)")
"""A comma in brackets separates no parts. Each character is looked at once: whoever submits jobs writes this."""
_EQUALS: Final = re.compile(rf"(?P<key>{_KEY})\s*(?P<operator>==?|!=)\s*(?P<value>{_VALUE})")
_SET: Final = re.compile(rf"(?P<key>{_KEY})\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_EXISTS: Final = re.compile(rf"(?P<operator>!?)\s*(?P<key>{_KEY})")
_POINTS: Final = re.compile(rf"(?P<key>{_KEY})=(?P<value>{_VALUE}):(?P<points>100|\d{{1,2}})")
_TAINT: Final = re.compile(rf"(?P<key>{_KEY})(?:=(?P<value>{_VALUE}))?:NoDispatch")
_TOLERATION: Final = re.compile(rf"(?P<key>{_KEY})(?:=(?P<value>{_VALUE}))?")
_JOB: Final = re.compile(r"[a-z0-9]+(?:\.[a-z0-9.]+)?/[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?")

Labels = Mapping[str, str]


@attrs.frozen
class Narrowing:
    """A job's annotations, read."""

    names: frozenset[str] | None = None
    selects: tuple[Callable[[Labels], bool], ...] = ()
    points: tuple[tuple[str, str, int], ...] = ()
    together: str = ""
    tolerated: tuple[tuple[str, str | None], ...] = ()
    unreadable: tuple[str, ...] = ()
    """Annotations that narrow and cannot be read: the job is held."""
    ignored: tuple[str, ...] = ()
    """Others that cannot be read."""

    def excludes(
        self, name: ClusterName, labels: Labels, annotations: Labels, company: ClusterName | None
    ) -> Reason | None:
        """Why a worker is not for this job; None: it is.

        Args:
            name: the worker.
            labels: of its MultiKueueCluster.
            annotations: of its MultiKueueCluster.
            company: where the job runs that it goes together with.
        """
        if self.unreadable:
            return Reason(Cause.UNREADABLE, f"the annotation {self.unreadable[0]} cannot be read")
        if self.names is not None and name not in self.names:
            return Reason(Cause.NOT_NAMED)
        if not all(select(labels) for select in self.selects):
            return Reason(Cause.NOT_SELECTED)
        if self.together and name != company:
            where = f"is on {company}" if company else "has no worker yet"
            return Reason(Cause.NOT_TOGETHER, f"{self.together} {where}")
        for key, value in taints(annotations):
            if (key, None) not in self.tolerated and (key, value) not in self.tolerated:
                return Reason(Cause.NOT_TOLERATED, f"its taint {key}{'=' if value else ''}{value} is not tolerated")
        return None

    def preference(self, labels: Labels) -> float:
        """How much the job prefers a worker with these labels: 0 to 1."""
        return max((points for key, value, points in self.points if labels.get(key) == value), default=0) / 100


def read(annotations: Labels) -> Narrowing:
    """What a job's annotations ask for."""
    unreadable, ignored = list[str](), list[str]()
    ours = NAMES, SELECTOR, TOGETHER, PREFERENCE, TOLERATIONS
    asked = {name: text for name in ours if (text := annotations.get(name)) is not None}
    annotations = {name: text for name, text in asked.items() if len(text) <= LONGEST}
    for name in filterfalse(annotations.__contains__, asked):
        (ignored if name in _WISHES else unreadable).append(name)
    names = _names(annotations.get(NAMES), unreadable)
    selects = _selects(annotations.get(SELECTOR), unreadable)
    together = annotations.get(TOGETHER)
    if together is not None and not _JOB.fullmatch(together):
        unreadable.append(TOGETHER)
    points = tuple(
        (match["key"], match["value"], int(match["points"]))
        for match in _parts(annotations, PREFERENCE, _POINTS, ignored)
    )
    tolerated = tuple(
        (match["key"], match["value"]) for match in _parts(annotations, TOLERATIONS, _TOLERATION, ignored)
    )
    return Narrowing(names, selects, points, together or "", tolerated, tuple(unreadable), tuple(ignored))


def job_named(together: str, gvk: GVK) -> str:
    """The name of the job of a kind that `job/train` or `rayjob.ray.io/train` means; empty: it means another kind."""
    kind, _, name = together.partition("/")
    return name if kind in (gvk.kind.lower(), f"{gvk.kind.lower()}.{gvk.group}") else ""


def _parts(annotations: Labels, name: str, pattern: re.Pattern[str], ignored: list[str]) -> list[re.Match[str]]:
    """The parts of an annotation between commas; none if one of them cannot be read."""
    matches = [pattern.fullmatch(part.strip()) for part in annotations.get(name, "").split(",")]
    read = [match for match in matches if match is not None]
    if name in annotations and len(read) < len(matches):
        ignored.append(name)
    return read if len(read) == len(matches) else []


def taints(annotations: Labels) -> tuple[tuple[str, str], ...]:
    """The taints of a worker. One that cannot be read is one that nobody tolerates: it was meant to keep jobs away."""
    parts = [part.strip() for part in annotations.get(TAINTS, "").split(",") if part.strip()]
    matches = [(part, _TAINT.fullmatch(part)) for part in parts]
    return tuple(
        (match["key"], match["value"] or "") if match else (part[:100], "unreadable") for part, match in matches
    )


def flavors(annotations: Labels) -> frozenset[str] | None:
    """The manager's flavors that stand for a worker; None: all do."""
    listed = annotations.get(FLAVORS)
    return None if listed is None else frozenset(part.strip() for part in listed.split(",") if part.strip())


def _names(text: str | None, unreadable: list[str]) -> frozenset[str] | None:
    if text is None:
        return None
    names = frozenset(part.strip() for part in text.split(",") if part.strip())
    if not names or not all(map(OBJECT_NAME.fullmatch, names)):
        unreadable.append(NAMES)
    return names


def _selects(text: str | None, unreadable: list[str]) -> tuple[Callable[[Labels], bool], ...]:
    made: list[Callable[[Labels], bool]] = []
    for match in _PART.finditer(text) if text is not None else ():
        if (select := _select(match["part"].strip())) is None:
            unreadable.append(SELECTOR)
            break
        made.append(select)
    return tuple(made)


def _select(part: str) -> Callable[[Labels], bool] | None:
    """One requirement of a label selector, as Kubernetes reads them; None: it is not one."""
    if match := _EQUALS.fullmatch(part):
        key, values, wanted = match["key"], frozenset({match["value"]}), match["operator"] != "!="
    elif match := _SET.fullmatch(part):
        listed = [value.strip() for value in match["values"].split(",")]
        if not all(re.fullmatch(_VALUE, value) for value in listed):
            return None
        key, values, wanted = match["key"], frozenset(listed), match["operator"] == "in"
    elif match := _EXISTS.fullmatch(part):
        key, exists = match["key"], not match["operator"]
        return lambda labels: (key in labels) is exists
    else:
        return None
    return lambda labels: (labels.get(key) in values) is wanted
