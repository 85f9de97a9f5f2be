"""The format of the log, and what is never in it."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest
import structlog

from multikueue.adapters.declared.expressions import EvaluationError, Expression
from multikueued.serving.logs import configure_logging
from multikueued.settings.config import LoggingSettings


def configured(settings: LoggingSettings) -> io.TextIOWrapper:
    stream = io.TextIOWrapper(io.BytesIO(), write_through=True)
    configure_logging(settings, stream)
    return stream


def lines(stream: io.TextIOWrapper) -> list[dict[str, Any]]:
    stream.seek(0)
    return [json.loads(line) for line in stream.read().splitlines()]


def test_a_line_is_one_json_object() -> None:
    stream = configured(LoggingSettings())
    with structlog.contextvars.bound_contextvars(controller="multikueue_workload"):
        structlog.get_logger().info("retry", key="team/job", seconds=0.5)

    (line,) = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "retry",
        "level": "info",
        "controller": "multikueue_workload",
        "key": "team/job",
        "seconds": 0.5,
    }


def test_less_important_lines_are_left_out() -> None:
    stream = configured(LoggingSettings(level="warning"))
    log = structlog.get_logger()
    log.info("left out")
    log.warning("kept")

    assert [line["event"] for line in lines(stream)] == ["kept"]


def test_a_logger_that_has_written_writes_where_it_is_told_to_later() -> None:
    """It kept the stream of a command that had ended: each later daemon in the same process failed with its first
    line, as in tests.
    """
    log, first = structlog.get_logger(), configured(LoggingSettings())
    log.info("one")
    second = configured(LoggingSettings())
    first.close()
    log.info("two")
    assert [line["event"] for line in lines(second)] == ["two"]


def test_values_of_keys_that_look_like_secrets_are_hidden_at_any_depth() -> None:
    stream = configured(LoggingSettings())
    structlog.get_logger().info(
        "connect",
        token="s3cret",
        kubeconfig=b"s3cret",
        config={"users": [{"user": {"client-key-data": "s3cret", "name": "me"}}]},
        headers={"Authorization": "Bearer s3cret"},
        passwords=["s3cret"],
        server="https://worker",
        token_file="",
    )

    stream.seek(0)
    text = stream.read()
    (line,) = lines(stream)
    assert "s3cret" not in text
    assert line["config"] == {"users": [{"user": {"client-key-data": "[redacted]", "name": "me"}}]}
    assert (line["token"], line["server"], line["token_file"]) == ("[redacted]", "https://worker", "")


def test_an_exception_is_one_line_too() -> None:
    stream = configured(LoggingSettings())
    try:
        raise ValueError("broken")
    except ValueError as error:
        structlog.get_logger().error("reconcile failed", exc_info=error)

    (line,) = lines(stream)
    assert "ValueError: broken" in line["exception"]


def test_warnings_of_other_libraries_have_the_same_format() -> None:
    stream = configured(LoggingSettings())
    logging.getLogger("aiohttp.client").warning("slow %s", "server", extra={"token": "s3cret"})
    logging.getLogger("asyncio").info("left out")

    (line,) = lines(stream)
    assert (line["event"], line["level"], line["logger"]) == ("slow server", "warning", "aiohttp.client")


def test_an_expression_that_fails_has_no_line_of_its_library() -> None:
    """It may fail with every event of a job, and the line may show what is in the job. We tell it once."""
    stream = configured(LoggingSettings())
    expression = Expression.compiled("object.spec.note.substring(100)", ("object",))
    with pytest.raises(EvaluationError):
        expression.value(object={"spec": {"note": "short"}})
    assert lines(stream) == []


def test_console_lines_are_for_people() -> None:
    stream = configured(LoggingSettings(format="console"))
    structlog.get_logger().info("worker", cluster="worker-1", token="s3cret")
    logging.getLogger("asyncio").error("oops")

    stream.seek(0)
    text = stream.read()
    assert "worker-1" in text
    assert "oops" in text
    assert "s3cret" not in text
    assert "\x1b" not in text  # colours are for terminals


def test_a_traceback_at_a_terminal_shows_no_local_variables() -> None:
    """A token may be one of them."""
    stream = io.StringIO()
    configure_logging(LoggingSettings(format="console", level="error"), stream)
    token = "canary" + "-credential"
    try:
        raise RuntimeError("broken" if token else token)
    except RuntimeError as error:
        structlog.get_logger("test").error("internal error", exc_info=error)

    assert "RuntimeError: broken" in stream.getvalue()
    assert token not in stream.getvalue()
