"""Whether what was handed over is a function as it will be called."""

from __future__ import annotations

import inspect


def fault_of(given: object, arguments: int, words: str) -> str:
    """Why it cannot be called with so many arguments and answer at once; empty if it can.

    Args:
        given: what was handed over.
        arguments: how many there will be.
        words: what they are.
    """
    if not callable(given):
        return "is no function"
    if inspect.iscoroutinefunction(given) or inspect.iscoroutinefunction(type(given).__call__):
        return "is async"
    try:
        inspect.signature(given).bind(*range(arguments))
    except TypeError:
        return f"does not take {words}"
    except (ValueError, NameError):  # some that are built into Python do not say it; Python 3.14 evaluates annotations
        return ""
    return ""
