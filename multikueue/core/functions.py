"""Whether what was handed over is a function as it will be called."""

from __future__ import annotations

import inspect


def fault_of(given: object, arguments: int | None, words: str = "", *, is_async: bool = False) -> str:
    """Why it cannot be called with so many arguments and answer as it should; empty if it can.

    Args:
        given: what was handed over.
        arguments: how many there will be; None: it is not known.
        words: what they are.
        is_async: whether its answer is awaited; otherwise it is to answer at once.
    """
    if not callable(given):
        return "is no function"
    if (inspect.iscoroutinefunction(given) or inspect.iscoroutinefunction(type(given).__call__)) is not is_async:
        return "is not async" if is_async else "is async"
    if arguments is None:
        return ""
    try:
        inspect.signature(given).bind(*range(arguments))
    except TypeError:
        return f"does not take {words}"
    except (ValueError, NameError):  # some that are built into Python do not say it; Python 3.14 evaluates annotations
        return ""
    return ""
