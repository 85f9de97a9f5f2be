"""Decodes of a large event of a watch, or answer to a write, what is not known yet: a change of a status comes with the
whole object.

To parse 1.2 MB in 40,000 small parts takes 12 ms and 14 MB. Most events of such an object change no more than its
status, and so do most of our own writes.
"""

from __future__ import annotations

from typing import Final

from multikueue.core.model.names import Json
from multikueue.core.model.shape import has_name
from multikueue.kube.http.error_mapping import decoded
from multikueue.kube.http.response_limits import LARGE
from multikueue.kube.informers.lean_text import lean
from multikueue.protocols import Known

_SPEC: Final = b',"spec":'
_STATUS: Final = b',"status":{'
_ANY_STATUS: Final = b'"status"'


def with_known_spec(line: bytes, known: Known | None) -> Json | None:
    """The event of a line with what is known of its object's spec, without what nobody reads; None: it is to be decoded
    as a whole."""
    if known is None or not line.endswith(b"\n"):  # one that is cut off may lack the status
        return None
    text = lean(line)
    event = _without_spec(text, b"}}")
    obj = _completed(event.get("object"), known) if event is not None else None
    if event is not None and obj is not None:
        return {**event, "object": obj}
    return None if text is line else decoded(text)


def decoded_answer(known: Known | None, body: bytes) -> Json | None:
    """The object of an answer, with what is known of its spec; None if the answer is anything else."""
    text = lean(body)
    obj = _completed(_without_spec(text, b"}"), known) if known is not None else None
    return obj or decoded(text) or (None if text is body else decoded(body))


def _without_spec(text: bytes, ends: bytes) -> Json | None:
    """What is around a large spec, with null in its place; None: that is not certain.

    Neither text that is looked for can be in a string, where quotes are escaped. API servers write the fields of an
    object in the order of their names, or of the type, and in both the spec comes behind the metadata and right before
    the status. Where an object has them otherwise, what is left is no JSON, or lacks a field that the known version
    has. Where there may be a status that is no object all is decoded.
    """
    begin = text.find(_SPEC) + len(_SPEC) if len(text) > LARGE else 0
    if begin < len(_SPEC):
        return None
    status = text.rfind(_STATUS, begin)
    if status < 0 <= text.find(_ANY_STATUS, begin):
        return None
    end = status if status >= 0 else len(text.rstrip()) - len(ends)
    return decoded(b"null".join((text[:begin], text[end:]))) if end - begin > LARGE else None


def _completed(obj: object, known: Known) -> Json | None:
    """An object without its spec, with what is known of that; None: that is not known."""
    if not isinstance(obj, dict) or obj.pop("spec", ...) is not None or not has_name(obj):
        return None
    fields = known(obj)
    return {**obj, **fields} if isinstance(fields.get("spec"), dict) else None
