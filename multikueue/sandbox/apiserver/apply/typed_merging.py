"""Merge an applied value into the live one, by shape; items of keyed lists and sets keep a common order."""

from __future__ import annotations

from collections import Counter
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
        old, new = ([(item_step(shape, item), item) for item in items] for items in (left, right))
    except UnkeyedItemError:
        return live if config is ABSENT else config
    return _merge_items(shape, old, new) or ABSENT


def _merge_items(shape: ListShape, live: list[tuple[str, Any]], config: list[tuple[str, Any]]) -> list[Any]:
    """The applied items in the applied order.

    An item that only the live list has stays where it is relative to the items both have.
    """
    applied, often = dict(config), Counter(step for step, _ in live)
    # An item that is there twice is merged with neither: which one would it be.
    known = {step: item if often[step] == 1 else None for step, item in live}
    shared = [step for step, _ in config if step in known]
    out: list[Any] = []
    done: set[str] = set()
    left = right = 0
    while left < len(live) or right < len(config):
        if left < len(live):
            step, item = live[left]
            both = right < len(config)
            if both and step in applied and step != config[right][0] and shared and shared[0] != step:
                left += 1  # it has its turn where the applied list has it
                continue
            if step not in applied:
                out.append(item)
                left += 1
                continue
            if step in done or (both and step == config[right][0]):
                left += 1
        if right < len(config):
            step = config[right][0]
            out.append(_merge(shape.items, known.get(step, ABSENT), applied[step]))
            done.add(step)
            right += 1
            if shared and shared[0] == step:
                shared = shared[1:]
    return out
