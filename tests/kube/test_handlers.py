"""What is called at each change."""

from __future__ import annotations

import pytest

from multikueue.kube.informers.handlers import Handlers


def test_all_are_called_in_the_order_in_which_they_were_added() -> None:
    calls: list[str] = []
    handlers = Handlers.beginning_with(lambda what: calls.append(f"first {what}"))
    handlers.add(lambda what: calls.append(f"second {what}"))
    handlers("a")
    assert calls == ["first a", "second a"]


def test_who_comes_too_late_is_refused() -> None:
    """A handler that has missed changes would know the objects wrongly."""
    handlers: Handlers[str] = Handlers.beginning_with(None)
    handlers.close()
    with pytest.raises(RuntimeError, match="comes too late"):
        handlers.add(print)
