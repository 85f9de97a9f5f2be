"""How a command ends: the exit codes, and errors for people.

0: it did what it was asked for, and nothing needs somebody.
1: a finding that somebody has to act on, or an unexpected failure.
2: wrong usage: options, settings, a kubeconfig.
3: what was asked for does not exist.
4: the manager, or the worker whose pods are read, cannot be asked: no answer, credentials or a permission are refused,
   no Kueue there.
130: stopped with Ctrl-C.

The reference has these lines as well.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Final

from multikueue.core.model.objects import shortened
from multikueue.errors import (
    AdapterError,
    ApiError,
    Forbidden,
    KubeconfigError,
    MultiKueueError,
    NotFound,
    SettingsError,
    Unauthorized,
    Unreachable,
)

_WROTE: Final = 300
"""Bytes of what a credential plugin wrote."""

FINE: Final = 0
FINDING: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
NOT_REACHABLE: Final = 4
INTERRUPTED: Final = 130
"""As shells have it: 128 + SIGINT."""

_FORBIDDEN: Final = re.compile(r'cannot (\w+) resource "([^"]+)"(?: in API group "([^"]*)")?(.*)$')


class CommandError(MultiKueueError):
    """A command cannot do what it was asked for; the message says what, where and what to do."""

    def __init__(self, message: str, exit_code: int = FINDING) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@contextmanager
def in_words(words: Callable[[ApiError], str]) -> Iterator[None]:
    """Turn what an API server answers into an error that says what to do.

    Args:
        words: what to say of an answer.

    Raises:
        CommandError: with the exit code 4.
    """
    try:
        yield
    except ApiError as error:
        raise CommandError(words(error), NOT_REACHABLE) from error


def for_people(server: str) -> AbstractContextManager[None]:
    """The same for the manager at an address."""
    return in_words(partial(_told, server))


def _told(server: str, error: ApiError) -> str:
    match error:
        case Unauthorized(status=0):  # a plugin that fails, a file that is not there: the manager was not asked
            advice = "run, or read, what the user of this context names there, or choose another with --context"
            return f"the kubeconfig leads to no credentials for the manager at {server} ({with_words(error)}): {advice}"
        case Unauthorized():
            advice = "renew the credentials of this context, or choose another with --context"
            return f"the manager at {server} does not accept the credentials of the kubeconfig: {advice}"
        case Forbidden():
            return f"{permission(error)}: ask for a role that allows it, or choose another context with --context"
        case NotFound():
            advice = "is Kueue installed there, in version 0.15 or later (v1beta2), and is it the manager?"
            return f"the cluster at {server} does not serve a kind that is needed ({error}): {advice}"
        case Unreachable():
            return (
                f"the manager at {server} cannot be reached ({error}): look at --kubeconfig, --context and the network"
            )
    return f"the manager at {server} answers with an error: {error}"


def with_words(error: Unauthorized) -> str:
    """The error with what a credential plugin of the caller's own kubeconfig wrote: there is no log that has it."""
    return f"{error}; it wrote: {shortened(error.wrote, _WROTE)}" if error.wrote else str(error)


def permission(error: Forbidden) -> str:
    """Which verb of which resource is not permitted, as RBAC words it."""
    match = _FORBIDDEN.search(str(error))
    on = "the manager" if error.cluster in ("", "manager") else f"worker cluster {error.cluster}"
    if match is None:
        return f"{on} refuses: {error}"
    verb, resource, group, where = match.groups()
    return f"you may not {verb} {resource}{f'.{group}' if group else ''} on {on}{where}"


@contextmanager
def listing(namespace: str) -> Iterator[None]:
    """While the body lists something of a namespace; empty: of all.

    Raises:
        CommandError: it may not be listed of all namespaces; it says what to do.
        Forbidden: it may not be listed of that one.
    """
    try:
        yield
    except Forbidden as error:
        if namespace:
            raise
        advice = "name a namespace with -n, without -A, or ask for a role that allows it"
        raise CommandError(f"{permission(error)}: {advice}", NOT_REACHABLE) from error


def in_the_end(error: BaseException) -> tuple[str, int]:
    """The message and the exit code of an error that ends a command."""
    known = known_error(error)
    match known:
        case None:
            return _unexpected(next(ungrouped(error))), FINDING
        case Forbidden():
            return f"{permission(known)}: ask for a role that allows it", NOT_REACHABLE
        case Unauthorized(status=0):  # a plugin that fails, a file that is not there: no server was asked
            advice = "run, or read, what the user of this context names in the kubeconfig"
            return f"{with_words(known)}: {advice}", NOT_REACHABLE
        case Unauthorized():
            return f"{known}: renew the credentials of this context in the kubeconfig", NOT_REACHABLE
        case Unreachable():
            return f"{known}: look at the kubeconfig, its contexts and the network", NOT_REACHABLE
        case SettingsError() | KubeconfigError() | AdapterError():
            return str(known), USAGE
        case CommandError():
            return str(known), known.exit_code
    return str(known), FINDING


def _unexpected(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"cannot write the output, or a file: {error.strerror}"
    return f"unexpected {type(error).__name__}: {error}; this is a bug, please report it"


def known_error(error: BaseException) -> MultiKueueError | None:
    """The first of our own errors, also inside exception groups; None if there is none."""
    return next((inner for inner in ungrouped(error) if isinstance(inner, MultiKueueError)), None)


def ungrouped(error: BaseException) -> Iterator[BaseException]:
    """An error, or those in its groups."""
    if isinstance(error, BaseExceptionGroup):
        for nested in error.exceptions:
            yield from ungrouped(nested)
    else:
        yield error
