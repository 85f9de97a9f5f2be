"""The library's loggers: structlog's, and silent until the program configures structlog, but for bugs.

Without a configuration structlog prints every line to standard output; what is printed there is for the program to
decide. A program that wants the log calls `structlog.configure(...)`, at any time; the daemon does. Until then
an unexpected exception goes to Python's `logging`, which prints it to standard error unless it is told otherwise.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import attrs
import structlog


@attrs.frozen
class Logger:
    """A structlog logger that drops events while structlog is not configured, but for exceptions."""

    _logger: Any
    _name: str

    def __getattr__(self, method: str) -> Any:
        """The method of structlog's logger; see `structlog.typing.FilteringBoundLogger`."""
        return getattr(self._logger, method) if structlog.is_configured() else partial(_only_exceptions, self._name)


def get_logger(name: str) -> Logger:
    """The logger of a module.

    Args:
        name: of the module.
    """
    return Logger(structlog.get_logger(name), name)


def _only_exceptions(name: str, event: str, *_: Any, exc_info: BaseException | None = None, **fields: Any) -> None:
    """An exception that nobody expects must be seen by who writes an adapter or a dispatcher; the rest is dropped."""
    if exc_info is not None:
        context = "".join(f" {field}={value}" for field, value in fields.items())
        logging.getLogger(name).error("%s%s", event, context, exc_info=exc_info)
