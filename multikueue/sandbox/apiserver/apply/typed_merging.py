"""Merge an applied value into the live one, by shape; items of keyed lists and sets keep a common order."""

from __future__ import annotations

from typing import Any, Final

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.apply.fieldsets import UnkeyedItemError, item_step
from multikueue.sandbox.apiserver.kinds.shapes import ListShape, MapShape, Shape

ABSENT: Final = object()
"""No value, which is not the same as null."""


def merge(shape: Shape, live: Json, config: Json) -> Json:
    """The live object with a configuration merged into it; neither is changed."""
    merged = _merge(shape, live, config)
    return merged if isinstance(merged, dict) else {}


def _merge(shape: Shape | None, live: Any, config: Any) -> Any:
    if shape is None:
        return live if config is ABSENT else config
    narrowed = shape.deduced(live if config is ABSENT else config)
    if narrowed.map:
        return _merge_maps(narrowed.map, live, config)
    if narrowed.list and not narrowed.scalar:
        return _merge_lists(narrowed.list, live, config)
    return live if config is ABSENT else config


def _merge_maps(shape: MapShape, live: Any, config: Any) -> Any:
    left, right = (value if isinstance(value, dict) else {} for value in (live, config))
    if shape.atomic or not (left or right):
        return live if config is ABSENT else config
    merged = {}
    for key in [*left, *(key for key in right if key not in left)]:
        value = _merge(shape.child(key), left.get(key, ABSENT), right.get(key, ABSENT))
        if value is not ABSENT:
            merged[key] = value
    return merged or ABSENT


def _merge_lists(shape: ListShape, live: Any, config: Any) -> Any:
    left, right = (value if isinstance(value, list) else [] for value in (live, config))
    if shape.atomic or not (left or right):
        return live if config is ABSENT else config
    try:
        left_steps = [item_step(shape, item) for item in left]
        right_steps = [item_step(shape, item) for item in right]
    except UnkeyedItemError:
        return live if config is ABSENT else config
    items = _Items(shape, left, left_steps, right, right_steps)
    return items.merged() or ABSENT


class _Items:
    """Two lists on their way into one.

    The result has the applied items in the applied order. An item that only the live list has stays where it is
    relative to the items both have.
    """

    def __init__(
        self, shape: ListShape, left: list[Any], left_steps: list[str], right: list[Any], right_steps: list[str]
    ) -> None:
        self._shape = shape
        self._left, self._left_steps = left, left_steps
        self._right, self._right_steps = right, right_steps
        self._applied = dict(zip(right_steps, right, strict=True))
        # An item that is there twice is merged with neither: which one would it be.
        self._live = {
            step: item if left_steps.count(step) == 1 else None for step, item in zip(left_steps, left, strict=True)
        }
        self._shared = [step for step in right_steps if step in self._live]

    def merged(self) -> list[Any]:
        """The merged list."""
        out: list[Any] = []
        done: set[str] = set()
        left = right = 0
        while left < len(self._left) or right < len(self._right):
            if left < len(self._left):
                step = self._left_steps[left]
                both = right < len(self._right)
                if both and step == self._right_steps[right]:
                    out.append(self._both(step))
                    done.add(step)
                    self._shared = self._shared[1:]
                    left, right = left + 1, right + 1
                    continue
                if both and step in self._applied and self._shared and self._shared[0] != step:
                    left += 1  # it has its turn where the applied list has it
                    continue
                if step not in self._applied:
                    out.append(self._left[left])
                    left += 1
                    continue
                if step in done:
                    left += 1
            if right < len(self._right):
                step = self._right_steps[right]
                out.append(self._both(step))
                done.add(step)
                right += 1
                if self._shared and self._shared[0] == step:
                    self._shared = self._shared[1:]
        return out

    def _both(self, step: str) -> Any:
        return _merge(self._shape.items, self._live.get(step, ABSENT), self._applied[step])
