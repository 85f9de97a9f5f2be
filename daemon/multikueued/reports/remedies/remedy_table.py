"""What is wrong with a worker, or with a job there: by the cause that an object tells, else by words of others.

What we say ourselves is read nowhere: beside it stands its cause. Words of others are matched where nothing else
tells; they lead to a remedy, and to nothing else. Filled in are the job's names, `{secrets}` (the daemon's namespace),
`{told}` (the words), what a cause is about (`{kind}` and `{name}` of what a job needs, `{resource}`, ...), how the
MultiKueueCluster says that its worker is reached, and the named groups of a pattern.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.errors import Cause
from multikueued.reports.remedies.remedy import REMEDIES, RULES, Finding, Trouble, findings_of, trouble_by
from multikueued.reports.typenames import resource_of

WORKER_NAMES: Final = "UnusableNames"
WORKER_IS_MANAGER: Final = "WorkerIsManager"
NEVER_TRIED: Final = "NeverTried"
CORDONED: Final = "Cordoned"
SECOND_NAME: Final = "SecondName"
NO_NAMESPACE: Final = "NamespaceUnnamed"

BY_CAUSE: Final = {row.cause: row for row in REMEDIES.values() if row.cause}
"""By cause: a `Cause`, why the scored dispatcher leaves a worker out, or one of those above."""
WORKER_RULES: Final = RULES["worker-words"]
UNTOLD: Final = "?"
"""In place of a job that no command may name."""
UNKNOWN: Final = "unknown"
"""The id of words that no row knows."""
AWAY: Final = REMEDIES["worker-not-connected"]
"""Of one that is not connected, and of whose words no row knows more."""


def source_names(cluster: Json | None) -> dict[str, str]:
    """What remedies fill in of how a MultiKueueCluster says that its worker is reached."""
    source = dig(cluster or {}, "spec", "clusterSource")
    return {
        "secret": str(dig(source, "kubeConfig", "location") or ""),
        "profile": str(dig(source, "clusterProfileRef", "name") or ""),
    }


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
    words = {**context, "worker": worker}
    if cause == Cause.NAME_TAKEN and resource_of(context.get("job", "").partition("/")[0]) is None:
        words["job"] = UNTOLD  # whoever may create Workloads says of which kind it is, and this remedy deletes it
    if cause in BY_CAUSE:
        return Trouble(worker, message, BY_CAUSE[cause], words)
    known = trouble_by(WORKER_RULES, worker, message, words)
    return known if known is not None else Trouble(worker, message, REMEDIES[UNKNOWN] if connected else AWAY, words)


def about_worker(
    worker: str, message: str, context: Mapping[str, str], *, connected: bool = True, cause: str = ""
) -> Finding:
    """What is wrong with a worker, as a finding; see `trouble_of`."""
    (finding,) = findings_of([trouble_of(worker, message, context, connected=connected, cause=cause)])
    return finding
