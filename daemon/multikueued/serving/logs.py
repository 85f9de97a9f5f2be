"""Logging: one JSON object a line on standard error, or coloured lines for people. Only the daemon configures it.

The library logs through structlog. aiohttp, asyncio and other libraries log through the standard library; their
warnings and errors have the same format.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, MutableMapping
from typing import Any, Final, TextIO

import orjson
import structlog
from structlog.typing import Processor

from multikueued.settings.config import LoggingSettings

REDACTED: Final = "[redacted]"

_SECRET: Final = re.compile(
    r"token|passw|kubeconfig|authorization|credential|private.?key|api.?key|client.?key|(key|cert|secret).?data",
    re.IGNORECASE,
)


def configure_logging(settings: LoggingSettings, stream: TextIO) -> None:
    """Send all logging of this process to `stream`."""
    as_json = settings.format == "json"
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    shared: list[Processor] = [structlog.processors.add_log_level, redact]
    if as_json:
        shared += [structlog.processors.format_exc_info, structlog.processors.TimeStamper(fmt="iso", utc=True)]
    else:
        shared.append(structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False))
    lines: Processor = structlog.processors.JSONRenderer(orjson.dumps, default=str) if as_json else _console(stream)
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, *shared, lines],
        logger_factory=structlog.BytesLoggerFactory(stream.buffer) if as_json else structlog.PrintLoggerFactory(stream),
        wrapper_class=structlog.make_filtering_bound_logger(level),
    )
    _route_standard_library(shared, as_json, stream)


def _console(stream: TextIO) -> Processor:
    """Lines for people. Tracebacks are plain: the default shows local variables, and a token may be one of them."""
    return structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback)


def redact(logger: Any, name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor that hides the values of keys that look like secrets, at any depth.

    It is a second safeguard: no code should log a secret.
    """
    return {key: _redacted(key, value) for key, value in event.items()}


def _redacted(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {inner: _redacted(str(inner), item) for inner, item in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(key, item) for item in value]
    return REDACTED if value and _SECRET.search(key) else value


def _route_standard_library(shared: list[Processor], as_json: bool, stream: TextIO) -> None:
    last: Processor = structlog.processors.JSONRenderer(_dumps_text) if as_json else _console(stream)
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    # cel warns of each failing function call, with its arguments. We report a failing rule once.
    logging.getLogger("cel").setLevel(logging.CRITICAL)
    logging.captureWarnings(True)


def _dumps_text(event: Any, **_: Any) -> str:
    return orjson.dumps(event, default=str).decode()
