"""The library's loggers: structlog's, and silent until the program configures structlog.

Without a configuration structlog prints every line to standard output; what is printed there is for the program to
decide. A program that wants the library's log calls `structlog.configure(...)`, at any time; the daemon does.
"""

from __future__ import annotations

from typing import Any

import attrs
import structlog


@attrs.frozen
class Logger:
    """A structlog logger that drops events while structlog is not configured."""

    _logger: Any

    def __getattr__(self, method: str) -> Any:
        """The method of structlog's logger; see `structlog.typing.FilteringBoundLogger`."""
        return getattr(self._logger, method) if structlog.is_configured() else _drop


def get_logger(name: str) -> Logger:
    """The logger of a module.

    Args:
        name: of the module.
    """
    return Logger(structlog.get_logger(name))


def _drop(*_: Any, **__: Any) -> None:
    """Log nothing."""
