"""What a person is told when a command fails: one message, never a traceback."""

from __future__ import annotations

import errno
from typing import Final

from multikueue.errors import AdapterError, ApiError, KubeconfigError, MultiKueueError, SettingsError

USAGE: Final = 2
"""Exit code for what the user must fix before trying again: settings, kubeconfig, arguments."""
FAILURE: Final = 1
"""Exit code for everything else that went wrong."""
INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as shells have it: 128 + SIGINT."""

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


def known_error(error: BaseException) -> MultiKueueError | None:
    """The first of our own errors, looking into groups; None if there is none."""
    if isinstance(error, MultiKueueError):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next((found for nested in error.exceptions if (found := known_error(nested))), None)
    return None


def holds(error: BaseException, kind: type[BaseException]) -> bool:
    """Whether it is of that kind, or a group with one that is."""
    if isinstance(error, BaseExceptionGroup):
        return any(holds(nested, kind) for nested in error.exceptions)
    return isinstance(error, kind)


def message(error: BaseException) -> str:
    """What to tell."""
    known = known_error(error)
    if known is not None:
        return str(known)
    root = error
    while isinstance(root, BaseExceptionGroup):
        root = root.exceptions[0]
    if isinstance(root, OSError) and root.errno in _FULL:
        return f"cannot write the output, or a file: {root.strerror}"
    return f"unexpected {type(root).__name__}: {root}; this is a bug, please report it"


def exit_code(error: BaseException) -> int:
    """What to exit with."""
    known = known_error(error)
    fixable = isinstance(known, SettingsError | KubeconfigError | AdapterError) and not isinstance(known, ApiError)
    return USAGE if fixable else FAILURE
