"""The table of remedies about workers: the words of Kueue, API servers and of systems, what they mean, what to do.

Words are matched where nothing else tells: what is wrong with how a worker is reached has a cause (`cause_remedies`).
Why a worker refuses a job stands in words only, those of its server or ours about a name or what the job needs: a fact
of each would be one more write of the Workload. They lead to a remedy, and to nothing else.

The first row whose pattern is found decides, so the special ones come before the general ones. `{worker}`,
`{namespace}`, `{queue}`, `{cluster_queue}`, `{job}`, `{secrets}` (the daemon's namespace) and `{told}` (the words) are
filled in, and so are the named groups of the pattern.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from multikueued.reports.cause_remedies import BY_CAUSE
from multikueued.reports.dependency_remedies import DEPENDENCY_RULES
from multikueued.reports.remedies import RETRY, Finding, filled, found_by, row

UNKNOWN: Final = "unknown"
"""The id of words that no row knows."""
WORKER_RULES: Final = (
    row(
        "credential-plugin",
        r"\Agetting credentials: ",  # a worker's words stand behind its name, the verb and the resource
        "the credential plugin for {worker} gives none: {told}",
        "run its command as the settings name it, where the daemon runs, with KUBERNETES_EXEC_INFO set; the "
        "daemon's log has the beginning of what it writes to standard error",
    ),
    *DEPENDENCY_RULES,
    row(
        "bad-token",
        r"\bUnauthorized\b|\b401\b",
        "{worker} does not accept the daemon's credential: the token is wrong, expired or revoked",
        "make a new one on {worker} and write it into the Secret of its kubeconfig: multikueue worker rotate {worker} "
        "--worker-context CONTEXT; with a ClusterProfile, whoever manages that has to; the daemon notices by itself",
    ),
    row(
        "rbac",
        r'cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)"(?: in API group "(?P<group>[^"]*)")?',
        'the daemon\'s identity on {worker} may not {verb} {resource} (API group "{group}")',
        "grant that verb there: multikueue rbac worker prints all rules; " + RETRY,
    ),
    row(
        "webhook",
        r'admission webhook "(?P<webhook>[^"]+)" denied the request(?:: (?P<said>.*))?',
        'the admission webhook "{webhook}" on {worker} refuses the copy: {said}',
        "change the job so that the webhook takes it, or exempt there what carries the label "
        "kueue.x-k8s.io/multikueue-origin; " + RETRY,
    ),
    row(
        "webhook-down",
        r'failed calling webhook "(?P<webhook>[^"]+)"',
        'the admission webhook "{webhook}" on {worker} does not answer',
        "start what serves it, or remove its registration there; it is asked again by itself",
    ),
    row(
        "name-taken",
        r"its name is taken by an object|is not known as a copy of ours",
        "another object has the job's name on {worker}",
        "if it is not needed: kubectl --context {worker} -n {namespace} delete {job}; else create the job here under "
        "another name; " + RETRY,
    ),
    row(
        "namespace-missing",
        r'namespaces "(?P<missing>[^"]+)" not found|namespace "?(?P<other>[\w.-]+)"? (?:does not|doesn\'t) exist',
        'namespace "{namespace}" does not exist on {worker}',
        "create it there with its LocalQueue: kubectl --context {worker} create namespace {namespace}; " + RETRY,
    ),
    row(
        "namespace-terminating",
        r"because it is being terminated",
        'namespace "{namespace}" is being deleted on {worker}',
        "wait until it is gone, and create it again there",
    ),
    row(
        "local-queue-missing",
        r"LocalQueue \"?(?P<missing>[\w.-]+)\"? (?:doesn't|does not) exist",
        'LocalQueue "{missing}" does not exist in namespace "{namespace}" on {worker}',
        "create it there, with the name it has here and a ClusterQueue of that worker in spec.clusterQueue; the job is "
        "then taken by itself",
    ),
    row(
        "queue-inactive",
        r'(?P<kind>LocalQueue|ClusterQueue) "?(?P<name>[\w.-]+)"? (?:is inactive|(?:doesn\'t|does not) exist)',
        "{kind} {name} on {worker} takes no jobs",
        "look at its condition Active there: kubectl --context {worker} -n {namespace} get {kind} {name} -o yaml",
    ),
    row(
        "quota-in-use",
        r"insufficient unused quota|unused quota|waiting for quota|preempt",
        "{worker} has enough quota, and other jobs have it now",
        "nothing: it starts there when they end, or elsewhere before that",
        blocking=False,
    ),
    row(
        "quota-too-small",
        r"insufficient quota for (?P<resource>[\w./-]+)|maximum capacity",
        "the job asks for more {resource} than its ClusterQueue on {worker} has in all",
        "raise nominalQuota of {resource} there, or request less: it never fits as it is",
    ),
    row(
        "resource-quota",
        r"exceeded quota: (?P<quota>[\w.-]+)",
        'the ResourceQuota "{quota}" of namespace "{namespace}" on {worker} is used up',
        "raise it there, or wait: it is asked again by itself",
    ),
    row(
        "crd-missing",
        r"could not find the requested resource|does not serve|no matches for kind|no resource type",
        "{worker} does not serve a kind that is needed there: {told}",
        "install it there (Kueue for workloads.kueue.x-k8s.io, else the CRD and controller of the job's kind), in the "
        "version of this cluster; the daemon notices by itself",
    ),
    row(
        "crd-field",
        r"CustomResourceDefinition has no field",
        "the CustomResourceDefinition of the job's kind on {worker} is too old, or another one: {told}",
        "install there the version that this cluster has; it is read again every five minutes",
    ),
    row(
        "untrusted-certificate",
        r"certificate is not trusted|certificate verify failed|not yet valid|certificate has expired",
        "the certificate of {worker} is not trusted",
        "put its CA into certificate-authority-data of the kubeconfig; if the CA is right, compare the clocks of both "
        "sides with the certificate's dates",
    ),
    row(
        "clock-skew",
        r"token (?:used before issued|is not valid yet)|clock skew",
        "the clocks of {worker} and of this side differ",
        "synchronise them (NTP)",
    ),
    row(
        "name-lookup",
        r"Name or service not known|name resolution|cannot be resolved|No address associated",
        "the address of {worker} cannot be resolved from where the daemon runs",
        "correct server in the kubeconfig of {worker}, or the daemon's DNS",
    ),
    row(
        "worker-hung",
        r"no answer to anything|no answer in time|nothing heard|does not answer",
        "{worker} accepts connections and answers nothing",
        "look after its API server and etcd; it is asked again by itself every minute",
    ),
    row(
        "worker-down",
        r"cannot connect|connect call failed|connection re(?:fused|set)|connection broke|disconnected|unreachable"
        r"|cannot be reached|No route to host",
        "{worker} cannot be reached",
        "look whether its API server runs, and whether the daemon may connect to it (address, firewall, "
        "NetworkPolicy); it is asked again by itself, at least every minute",
    ),
    row(
        "answers-unreadable",
        r"more than may be read|more than is read|is not an event|larger than",
        "{worker} answers with more than the daemon reads",
        "remove leftovers there, or raise workerLimits in the daemon's settings",
    ),
)
"""About one worker."""


def about_worker(
    worker: str, told: str, context: Mapping[str, str], *, connected: bool = True, cause: str = ""
) -> Finding:
    """What is wrong with a worker, as a finding: also words that no rule knows.

    Args:
        worker: its name.
        told: its words, or those about it.
        context: what remedies fill in.
        connected: whether it is.
        cause: a key of `BY_CAUSE`; empty: the words alone tell.
    """
    filled_in = {**context, "worker": worker}
    if cause in BY_CAUSE:
        return BY_CAUSE[cause].about(worker, told, filled_in)
    known = found_by(WORKER_RULES, worker, told, filled_in)
    if known is not None:
        return known
    if not connected:
        remedy = "look at its API server and its kubeconfig; it is asked again by itself, at least every minute"
        return Finding("worker-not-connected", worker, f"{worker} is not connected", told, remedy)
    remedy = f"act on what it says; {filled(RETRY, context)}"
    return Finding(UNKNOWN, worker, f"{worker} says: {told}", told, remedy)
