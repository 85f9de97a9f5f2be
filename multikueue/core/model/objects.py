"""Reading and comparing JSON objects by path; what was computed of parts of cached ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, TypeVar

import attrs
import orjson

from multikueue.core.model.names import GVK, Json


def dig(obj: Any, *path: str) -> Any:
    """The value at `path`, or None where any step is missing or not an object."""
    try:
        for step in path:
            if obj is None:
                return None
            obj = obj.get(step)
    except AttributeError:
        return None
    return obj


_PARTS: Final = (dict, list)
"""What JSON values are made of. Most of what is in them is neither, so a walk that calls itself for these only makes a
third of the calls."""


def clone(value: Any) -> Any:
    """A deep copy of a JSON value, at a tenth of what `copy.deepcopy` takes."""
    if isinstance(value, dict):
        return {key: clone(item) if isinstance(item, _PARTS) else item for key, item in value.items()}
    if isinstance(value, list):
        return [clone(item) if isinstance(item, _PARTS) else item for item in value]
    return value


def _of_metadata(obj: Json, field: str) -> Any:
    """As `dig` finds it, which takes twice as long: it is asked some five hundred times per Workload."""
    metadata = obj.get("metadata")
    return metadata.get(field) if isinstance(metadata, dict) else None


def labels_of(obj: Json) -> dict[str, str]:
    """The object's labels; empty if it has none."""
    return _of_metadata(obj, "labels") or {}


def finalizers_of(obj: Json) -> list[str]:
    """What holds the object when it is deleted; empty if nothing does."""
    return obj["metadata"].get("finalizers") or []


def annotations_of(obj: Json) -> dict[str, str]:
    """The object's annotations; empty if it has none."""
    return _of_metadata(obj, "annotations") or {}


def name_of(obj: Json) -> str:
    """The name of an object that has one: all but those still to be named by a server."""
    return str(obj["metadata"]["name"])


def namespace_of(obj: Json) -> str:
    """The object's namespace; empty if it is in none."""
    return _of_metadata(obj, "namespace") or ""


def uid(obj: Json) -> str:
    """The object's UID; empty for an object that was never stored."""
    return _of_metadata(obj, "uid") or ""


def resource_version(obj: Json) -> str:
    """The object's resourceVersion; empty for an object that was never stored."""
    return _of_metadata(obj, "resourceVersion") or ""


def was_changed(obj: Json) -> bool:
    """Whether its spec was changed since it was made, or it was deleted."""
    return (_of_metadata(obj, "generation") or 1) > 1


def identity(obj: Json) -> Json:
    """Its key, UID and resourceVersion: what an informer needs of an object that nobody reads, and an apply of any."""
    kept = ("name", "namespace", "uid", "resourceVersion")
    return {"metadata": {field: obj["metadata"][field] for field in kept if field in obj["metadata"]}}


def version_number(version: str) -> int:
    """A resourceVersion as a number: those of one server can be compared (KEP-5504). 0 for what is none, or has more
    digits than any server counts with.
    """
    return int(version) if version.isascii() and version.isdecimal() and len(version) <= 40 else 0


def version_of(obj: Json) -> int:
    """The object's resourceVersion as a number."""
    return version_number(resource_version(obj))


def counted(text: str) -> int | None:
    """A number of things, as annotations write it; None for what is none, or larger than any can be."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def is_terminating(obj: Json) -> bool:
    """Whether somebody has deleted the object and a finalizer still holds it."""
    return bool(_of_metadata(obj, "deletionTimestamp"))


def has_owner(obj: Json) -> bool:
    """Whether the object goes with another one, if not before."""
    return bool(_of_metadata(obj, "ownerReferences"))


def controller_of(obj: Json) -> Json | None:
    """The owner reference of the object's controller; None if it has none."""
    references = _of_metadata(obj, "ownerReferences") or []
    return next((reference for reference in references if reference.get("controller")), None)


def without(obj: Json, paths: Iterable[tuple[str, ...]]) -> Json:
    """A deep copy of `obj` without the fields at `paths`."""
    return stripped(clone(obj), paths)


def stripped(obj: Json, paths: Iterable[tuple[str, ...]]) -> Json:
    """The object without the fields at `paths`; changes its argument, which may be large."""
    for path in paths:
        parent = dig(obj, *path[:-1])
        if isinstance(parent, dict):
            parent.pop(path[-1], None)
    return obj


def with_value(obj: Json, path: tuple[str, ...], value: Any) -> Json:
    """A deep copy of `obj` with the field at `path` set; parents are made as needed."""
    result: Json = clone(obj)
    parent = result
    for step in path[:-1]:
        parent = parent.setdefault(step, {})
    parent[path[-1]] = value
    return result


def merge_patch(old: Any, new: Any) -> Any:
    """The JSON merge patch (RFC 7386) that turns `old` into `new`; `{}` if nothing differs."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return clone(new)
    patch: Json = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old:
            patch[key] = clone(value)
        elif not is_same_json(old[key], value):
            patch[key] = merge_patch(old[key], value)
    return patch


def is_same_json(old: Any, new: Any) -> bool:
    """Whether two values are one in JSON. For Python `true` is 1, and `false` is 0."""
    return bool(old == new) and _has_same_flags(old, new)


def _has_same_flags(old: Any, new: Any) -> bool:
    """Whether of two equal values the one is true or false wherever the other is."""
    if isinstance(old, dict):
        return all(_has_same_flags(item, new[key]) for key, item in old.items())
    if isinstance(old, list):
        return all(map(_has_same_flags, old, new))
    return isinstance(old, bool) == isinstance(new, bool)


def overlaid(patch: Json, more: Json) -> Json:
    """One merge patch that does what the two do, one after the other."""
    result = dict(patch)
    for key, value in more.items():
        known = result.get(key)
        result[key] = overlaid(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return result


def without_nulls(value: Any) -> Any:
    """The value without null fields: in a merge patch they would mean "remove"; servers add some themselves."""
    if isinstance(value, dict):
        return {
            key: without_nulls(item) if isinstance(item, _PARTS) else item
            for key, item in value.items()
            if item is not None
        }
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def json_fault(value: Any, path: str = "") -> str:
    """What in a value is no JSON that an API server gives back as it got it, after its place; empty: nothing.

    Numbers beyond 64 bits, and fractions beyond 53, come back rounded.
    """
    match value:
        case None | bool():
            return ""
        case str():
            broken = any("\ud800" <= character <= "\udfff" for character in value)
            return f"{path} has half of a character" if broken else ""
        case int() | float():
            bound = 1 << (63 if isinstance(value, int) else 53)
            return "" if -bound <= value < bound else f"{path} is {value}, which API servers round or refuse"
        case list():
            faults = (json_fault(item, f"{path}[{number}]") for number, item in enumerate(value))
        case dict() if all(isinstance(key, str) for key in value):
            faults = (json_fault(item, f"{path}.{key}") or json_fault(key, path) for key, item in value.items())
        case dict():
            return f"{path} has a key that is no text"
        case _:
            return f"{path} is a {type(value).__name__}, which JSON does not have"
    return next(filter(None, faults), "")


def digest(value: Any) -> str:
    """A short fingerprint of a JSON value that does not depend on the order of keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def pruned(value: Any) -> Any:
    """The value without empty objects and lists and nulls, which API servers may or may not keep."""
    if isinstance(value, dict):
        kept = {}
        for key, item in value.items():
            kept_item = pruned(item) if isinstance(item, _PARTS) else item
            if kept_item is not None and (kept_item or not isinstance(kept_item, _PARTS)):
                kept[key] = kept_item
        return kept
    return [pruned(item) for item in value] if isinstance(value, list) else value


def json_size(value: Any) -> int:
    """The bytes of a JSON value as it is sent; more than any bound if it cannot be: it nests too deep, or has a number
    that is none."""
    try:
        return len(orjson.dumps(value))
    except TypeError:
        return 1 << 30


def names_any(value: Any, names: Iterable[str]) -> bool:
    """Whether any of these names, of labels or annotations, is anywhere in a JSON value. Of 1.2 MB it takes 1 ms."""
    try:
        text = orjson.dumps(value)
    except TypeError:  # it nests too deep, or has a number that orjson reads and does not write
        text = repr(value).encode(errors="replace")
    return any(name.encode() in text for name in names)


def shortened(text: str, limit: int) -> str:
    """The text cut to `limit` UTF-8 bytes; a cut text ends in ` ...`, as Kueue's do."""
    raw = text.encode()
    if len(raw) <= limit:
        return text
    return raw[: limit - 4].decode(errors="ignore") + " ..."


def reference_to(obj: Json, gvk: GVK) -> Json:
    """An owner reference that makes an object go with this one, and gives nobody a say in it."""
    metadata = obj["metadata"]
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "name": metadata["name"], "uid": metadata["uid"]}


Value = TypeVar("Value")


@attrs.define(eq=False)
class ByIdentity(Generic[Value]):
    """The values of a function for the objects that it was asked for lately."""

    compute: Callable[[Json], Value]
    size: int
    """How many objects are kept, and with them what they hold."""
    _known: dict[int, tuple[Json, Value]] = attrs.field(factory=dict, init=False, repr=False)
    """With the object, so that no other one gets its `id`."""

    def of(self, obj: Json) -> Value:
        """The value for an object."""
        known = self._known.get(id(obj))
        return self.know(obj, self.compute(obj)) if known is None else known[1]

    def know(self, obj: Json, value: Value) -> Value:
        """Somebody knows the value for an object."""
        if len(self._known) >= self.size:
            del self._known[next(iter(self._known))]
        self._known[id(obj)] = obj, value
        return value

    def forget(self, obj: Json) -> None:
        """Keep an object no longer."""
        self._known.pop(id(obj), None)
