"""What is wrong with a worker, or with a job there: by the cause that an object tells, else by words of others.

What we say ourselves is read nowhere: beside it stands its cause. Words of others are matched where nothing else
tells; they lead to a remedy, and to nothing else. Filled in are the job's names, `{secrets}` (the daemon's namespace),
`{told}` (the words), what a cause is about (`{kind}` and `{name}` of what a job needs, `{resource}`, ...), how the
MultiKueueCluster says that its worker is reached, and the named groups of a pattern.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.errors import Cause
from multikueued.reports.cluster_answers import WorkerState
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies.remedy import REMEDIES, RULES, Finding, Remedy, RemedyRule, finding
from multikueued.reports.typenames import resource_of
from multikueued.reports.worker_facts import secret_name

BY_CAUSE: Final[Mapping[str, Remedy]] = {Cause(row.cause): row for row in REMEDIES.values() if row.cause}
"""By `Cause`."""
WORKER_RULES: Final = RULES["worker-words"]
UNTOLD: Final = "?"
"""In place of a job that no command may name."""
UNKNOWN: Final = "unknown"
"""The id of words that no row knows."""
AWAY: Final = REMEDIES["worker-not-connected"]
"""Of one that is not connected, and of whose words no row knows more."""


DETACHED: Final = "worker-detached"
GONE: Final = "worker-gone"


@attrs.frozen
class Trouble:
    """What is wrong with one worker."""

    worker: str
    message: str
    """Its words, or those about it."""
    remedy: Remedy
    words: Mapping[str, str]
    """What the remedy fills in."""


def findings_of_workers(troubles: Iterable[Trouble]) -> list[Finding]:
    """One finding for each cause, with all the workers that show it."""
    alike: dict[tuple[str, str], list[Trouble]] = defaultdict(list)
    for trouble in troubles:
        about = trouble.remedy.object.format_map(defaultdict(str, trouble.words))
        alike[trouble.remedy.id, about or trouble.worker].append(trouble)
    return [_finding(group) for group in alike.values()]


def _finding(alike: Sequence[Trouble]) -> Finding:
    """What several workers show that have one cause."""
    row, message, workers = alike[0].remedy, alike[0].message, tuple(trouble.worker for trouble in alike)
    if len({trouble.message for trouble in alike}) > 1:
        message = "; ".join(f"{trouble.worker}: {trouble.message}" for trouble in alike)
    each = [{**trouble.words, "told": trouble.message} for trouble in alike]
    # Our commands leave alone the Secret of a worker that somebody has made by hand.
    ours = any(words.get("secret", "") in ("", secret_name(words["worker"])) for words in each)
    by_hand = f"{row.key}@by-hand"
    instead = by_hand if not ours and by_hand in REMEDIES else ""
    return row.about(", ".join(workers), message, *each, instead=instead, workers=workers)


def known_by(rules: tuple[RemedyRule, ...], message: str) -> tuple[Remedy, dict[str, str]] | None:
    """The row of the first rule that knows these words, and what it has found in them; None if none does."""
    for rule in rules:
        if (match := rule.pattern.search(message)) is not None:
            return rule.remedy, {name: text or "" for name, text in match.groupdict().items()}
    return None


def found_by(rules: tuple[RemedyRule, ...], where: str, message: str, context: Mapping[str, str]) -> Finding | None:
    """The finding of the first rule that knows these words; None if none does.

    Args:
        rules: the table.
        where: what it is about.
        message: the words, of a worker or of Kueue.
        context: what remedies fill in.
    """
    if (known := known_by(rules, message)) is None:
        return None
    row, found = known
    return row.about(where, message, {"namespace_there": context.get("namespace", ""), **context, **found})


def trouble_of(
    worker: str, message: str, context: Mapping[str, str], *, connected: bool = True, cause: str = ""
) -> Trouble:
    """What is wrong with a worker: also words that no rule knows.

    Args:
        worker: its name.
        message: its words, or those about it.
        context: what remedies fill in.
        connected: whether it is.
        cause: a key of `BY_CAUSE`; empty: the words alone tell.
    """
    words = {"namespace_there": context.get("namespace", ""), **context, "worker": worker}
    if cause == Cause.NAME_TAKEN and resource_of(context.get("job", "").partition("/")[0]) is None:
        words["job"] = UNTOLD  # whoever may create Workloads says of which kind it is, and this remedy deletes it
    if cause in BY_CAUSE:
        return Trouble(worker, message, BY_CAUSE[cause], words)
    row, found = known_by(WORKER_RULES, message) or (REMEDIES[UNKNOWN] if connected else AWAY, {})
    return Trouble(worker, message, row, {**words, **found})


def about_worker(
    worker: str, message: str, context: Mapping[str, str], *, connected: bool = True, cause: str = ""
) -> Finding:
    """What is wrong with a worker, as a finding; see `trouble_of`."""
    (found,) = findings_of_workers([trouble_of(worker, message, context, connected=connected, cause=cause)])
    return found


def taken_away(worker: str, objects: ManagerObjects) -> Finding | None:
    """That a worker is taken away under jobs: its cluster is being detached, or its MultiKueueCluster is gone.

    Args:
        worker: its name.
        objects: of the manager.
    """
    said = objects.said_of(worker)
    if said.state is WorkerState.MISSING and MULTIKUEUE_CLUSTER not in objects.unread:
        return finding(GONE, f"MultiKueueCluster {worker}", worker=worker)
    if said.detached is None:
        return None
    how = "moves" if said.moves_at is not None else "connected" if said.connected else "stays"
    moves = timestamp(said.moves_at) if said.moves_at is not None else ""
    return finding(f"{DETACHED}@{how}", worker, worker=worker, since=timestamp(said.detached), moves=moves)
