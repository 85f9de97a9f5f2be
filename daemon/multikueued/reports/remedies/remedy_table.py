"""The table of remedies about workers: the words of Kueue, API servers and of systems, what they mean, what to do.

Words of others are matched where nothing else tells. What we say ourselves is read nowhere: beside it stands its cause,
for which `cause_remedies` has the remedy. Words lead to a remedy, and to nothing else.

The first row whose pattern is found decides, so the special ones come before the general ones. `{worker}`,
`{namespace}`, `{queue}`, `{cluster_queue}`, `{job}`, `{secrets}` (the daemon's namespace) and `{told}` (the words) are
filled in, and so are the named groups of the pattern.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from multikueue.core.dispatchers.reasons import Why
from multikueue.errors import Cause
from multikueued.reports.remedies.cause_remedies import BY_CAUSE
from multikueued.reports.remedies.check_remedies import NO_FLAVOR, NOT_COVERED, NOT_SELECTED
from multikueued.reports.remedies.remedy import (
    RETRY,
    Finding,
    Remedy,
    Trouble,
    findings_of,
    row,
    said,
    trouble_by,
)
from multikueued.reports.typenames import resource_of

UNTOLD: Final = "?"
"""In place of a job that no command may name."""
UNKNOWN: Final = "unknown"
"""The id of words that no row knows."""
_DENIED: Final = r'cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)"(?: in API group "(?P<group>[^"]*)")?'
_MAY_NOT: Final = 'the daemon\'s identity on {worker} may not {verb} {resource} (API group "{group}")'
_ITS_ACCOUNT: Final = r'User "system:serviceaccount:(?P<home>[^":]+):(?P<account>[^":]+)" '
_GRANT: Final = "grant that verb there (with --config FILE, if the daemon has settings): {command}"
_GRANTING: Final = (
    "multikueue rbac worker --least --service-account {home}/{account} --name {home}-{account} | "
    "kubectl --context {worker} auth reconcile -f -"
)
_GRANT_USER: Final = (
    "grant that verb there to the user of its kubeconfig, by a role such as multikueue rbac worker prints"
)
_NOTICED: Final = "the daemon notices within six minutes"
MAKE_CLUSTER_QUEUE: Final = (
    "make it there, or have the LocalQueue lead to one of these: kubectl --context {worker} get clusterqueues"
)
"""Of a ClusterQueue that a worker has not."""
_there: Final = partial(row, side="worker")
WORKER_RULES: Final = (
    said(r"\bUnauthorized\b", BY_CAUSE[Cause.BAD_TOKEN]),
    *(
        _there("rbac", f"{user}{denied}", _MAY_NOT, f"{grant}; {then}", command=command)
        for user, grant, command in ((_ITS_ACCOUNT, _GRANT, _GRANTING), ("", _GRANT_USER, ""))
        for denied, then in ((_DENIED.replace(r"\w+", "list|watch"), _NOTICED), (_DENIED, RETRY))
    ),
    _there(
        "webhook",
        r'admission webhook "(?P<webhook>[^"]+)" denied the request(?:: (?P<said>.*))?',
        'the admission webhook "{webhook}" on {worker} refuses the copy: {said}',
        "change the job so that the webhook takes it, or exempt there what carries the label "
        "kueue.x-k8s.io/multikueue-origin; " + RETRY,
    ),
    _there(
        "webhook-down",
        r'failed calling webhook "(?P<webhook>[^"]+)"',
        'the admission webhook "{webhook}" on {worker} does not answer',
        "start what serves it, or remove its registration there; it is asked again by itself",
    ),
    _there(
        "namespace-missing",
        r'namespaces "(?P<missing>[^"]+)" not found|namespace "?(?P<other>[\w.-]+)"? (?:does not|doesn\'t) exist',
        'namespace "{namespace}" does not exist on {worker}',
        "create it there with its LocalQueue: kubectl --context {worker} create namespace {namespace}; " + RETRY,
        object="Namespace {namespace}",
    ),
    _there(
        "namespace-terminating",
        r"because it is being terminated",
        'namespace "{namespace}" is being deleted on {worker}',
        "wait until it is gone, and create it again there",
    ),
    said(r"LocalQueue \"?(?P<missing>[\w.-]+)\"? (?:doesn't|does not) exist", BY_CAUSE[Why.NO_LOCAL_QUEUE]),
    _there(
        "queue-inactive",
        r'ClusterQueue "?(?P<name>[\w.-]+)"? (?:doesn\'t|does not) exist',
        'ClusterQueue "{name}" does not exist on {worker}',
        MAKE_CLUSTER_QUEUE,
        object="ClusterQueue {name} on {worker}",
    ),
    said(r'(?P<kind>LocalQueue|ClusterQueue) "?(?P<name>[\w.-]+)"? is inactive', BY_CAUSE[Why.QUEUE_INACTIVE]),
    _there(
        "namespace-not-selected",
        NOT_SELECTED,
        'its ClusterQueue on {worker} takes no jobs of namespace "{namespace}"',
        "label that namespace there as spec.namespaceSelector of the ClusterQueue asks, or widen that: kubectl "
        "--context {worker} get clusterqueues -o yaml",
        object="Namespace {namespace}",
    ),
    _there(
        "quota-in-use",
        r"unused quota|waiting for quota|(?:pending the|waiting for|needs|requires) preemption",
        "{worker} has enough quota, and other jobs have it now",
        "nothing: it starts there when they end, or elsewhere before that",
        blocking=False,
    ),
    said(r"insufficient quota for (?P<resource>[\w./-]+)|maximum capacity", BY_CAUSE[Why.NEVER_FITS]),
    _there(
        "quota-too-small",
        NOT_COVERED,
        "the job asks for {resource}, of which its ClusterQueue on {worker} has no quota",
        "name {resource} in coveredResources and in each flavor of a resourceGroup there, or do not request it",
        object="{namespace}/{job}",
    ),
    _there(
        "no-flavor",
        NO_FLAVOR,
        "no flavor of its ClusterQueue on {worker} takes the job's pods",
        "compare nodeSelector, affinity and tolerations of the job with nodeLabels and nodeTaints there: kubectl "
        "--context {worker} get resourceflavors -o yaml",
        object="{namespace}/{job}",
    ),
    _there(
        "resource-quota",
        r"exceeded quota: (?P<quota>[\w.-]+)",
        'the ResourceQuota "{quota}" of namespace "{namespace}" on {worker} is used up',
        "raise it there, or wait: it is asked again by itself",
    ),
    said(r"could not find the requested resource|no matches for kind|no resource type", BY_CAUSE[Cause.NOT_SERVED]),
    said(r"certificate verify failed|not yet valid|certificate has expired", BY_CAUSE[Cause.CERTIFICATE]),
    _there(
        "clock-skew",
        r"token (?:used before issued|is not valid yet)|clock skew",
        "the clocks of {worker} and of this side differ",
        "synchronise them (NTP)",
    ),
    said(r"Name or service not known|name resolution|No address associated", BY_CAUSE[Cause.HOST_NAME]),
    said(r"connection re(?:fused|set)|No route to host", BY_CAUSE[Cause.OUT_OF_REACH]),
)
"""About one worker."""
AWAY: Final = Remedy(
    "worker-not-connected",
    "{worker} is not connected",
    "look at its API server and its kubeconfig; it is asked again by itself, at least every minute",
)
"""Of one that is not connected, and of whose words no row knows more."""
_UNKNOWN: Final = Remedy(UNKNOWN, "{worker} says: {told}", f"act on what it says; {RETRY}")


def trouble_of(
    worker: str, told: str, context: Mapping[str, str], *, connected: bool = True, cause: str = ""
) -> Trouble:
    """What is wrong with a worker: also words that no rule knows.

    Args:
        worker: its name.
        told: its words, or those about it.
        context: what remedies fill in.
        connected: whether it is.
        cause: a key of `BY_CAUSE`; empty: the words alone tell.
    """
    words = {**context, "worker": worker}
    if cause == Cause.NAME_TAKEN and resource_of(context.get("job", "").partition("/")[0]) is None:
        words["job"] = UNTOLD  # whoever may create Workloads says of which kind it is, and this remedy deletes it
    if cause in BY_CAUSE:
        return Trouble(worker, told, BY_CAUSE[cause], words)
    known = trouble_by(WORKER_RULES, worker, told, words)
    return known if known is not None else Trouble(worker, told, _UNKNOWN if connected else AWAY, words)


def about_worker(
    worker: str, told: str, context: Mapping[str, str], *, connected: bool = True, cause: str = ""
) -> Finding:
    """What is wrong with a worker, as a finding; see `trouble_of`."""
    (found,) = findings_of([trouble_of(worker, told, context, connected=connected, cause=cause)])
    return found
