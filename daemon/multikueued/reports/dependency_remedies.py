"""Rows of the table of remedies about what a job needs beside itself."""

from __future__ import annotations

from typing import Final

from multikueued.reports.remedies import row

_WHAT: Final = r'\b(?P<kind>\w+) "(?P<name>[^"]+)" '
_AGAIN: Final = "it is asked again by itself within five minutes, at once after multikueue retry {job} -n {namespace}"
DEPENDENCY_RULES: Final = (
    row(
        "dependency-unread",
        _WHAT + "cannot be read on the manager cluster",
        "the daemon may not read {kind} {name} of the job's namespace here",
        "grant it here: multikueue rbac manager prints all rules; " + _AGAIN,
    ),
    row(
        "dependency-nowhere",
        _WHAT + "is neither on the manager cluster nor there",
        "the job's pods name {kind} {name}, which is neither here nor on {worker}",
        "create it in namespace {namespace} here, where it is copied from; " + _AGAIN,
    ),
    row(
        "dependency-not-copied",
        _WHAT + "is not there, and is never copied",
        "the job's pods name {kind} {name}, which is not on {worker}",
        "create it in the job's namespace on {worker}; " + _AGAIN,
    ),
    row(
        "dependency-in-use",
        _WHAT + r'has other content there, which Workload "(?P<user>[^"]+)" uses',
        "on {worker} the job of Workload {user} runs with another content of {kind} {name}",
        "nothing: it goes there after that job, or elsewhere; to run beside it, give the new content another name",
        blocking=False,
    ),
    row(
        "dependency-foreign",
        _WHAT + "there is not a copy of ours, or was changed",
        "on {worker} somebody else has made or changed {kind} {name}",
        "use another name here; or, if it is not needed there: kubectl --context {worker} -n {namespace} delete {kind} "
        "{name}; " + _AGAIN,
    ),
    row(
        "dependency-going",
        _WHAT + "of an earlier job (is still being removed there|there has other content)",
        "{kind} {name} of an earlier job is still on {worker}",
        "nothing, if that job has just ended; else look after its Workload, and the garbage collector, of {worker}",
        blocking=False,
    ),
    row(
        "dependency-too-much",
        r"it names more than \d+ objects that would|is larger than \d+ MiB and is not copied|as many jobs there as can",
        "more would have to be copied to {worker} than is: {told}",
        "put it into fewer or smaller objects, or into a volume",
    ),
)
"""About what one worker lacks."""
