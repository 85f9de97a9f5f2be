"""What a manager is made of: controllers, and what runs beside them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import attrs

from multikueue.core.model.names import ObjectKey
from multikueue.protocols import ControllerHook, Reconciler
from multikueue.runtime.controller import Controller, KeyQueue
from multikueue.runtime.loop import Task


@attrs.frozen
class Part:
    """One thing that a manager does."""

    controllers: tuple[Controller[ObjectKey], ...] = ()
    services: tuple[Task, ...] = ()
    """What runs beside the controllers; nothing waits for it."""


@attrs.frozen
class Process:
    """What all parts have in common."""

    clock: Callable[[], datetime]
    """The wall clock."""
    fraction: Callable[[], float]
    """The source of jitter: numbers in [0, 1)."""
    instance: str
    """Who writes the events: the process's name."""
    hook: ControllerHook | None = None
    """For metrics of reconciles."""

    def controller(
        self, name: str, reconciler: Reconciler[ObjectKey], queue: KeyQueue[ObjectKey], concurrency: int = 1
    ) -> Controller[ObjectKey]:
        """A controller that takes the keys of a queue.

        Args:
            name: in logs and metrics.
            reconciler: called for each key.
            queue: of the keys.
            concurrency: how many keys at a time.
        """
        return Controller(
            name, reconciler, queue=queue, concurrency=concurrency, fraction=self.fraction, hook=self.hook
        )
