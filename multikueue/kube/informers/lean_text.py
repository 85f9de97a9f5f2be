"""Large objects without the names of the fields that each of their writers has set, which nobody here reads.

API servers name in `managedFields` each entry of a list that has keys. Of 40,000 variables that is more than the spec,
comes with each event and answer, and takes longer to parse than all else.
"""

from __future__ import annotations

from typing import Final

from multikueue.kube.http.response_limits import LARGE

_ENTRIES: Final = b'"managedFields":['
_SPEC: Final = b',"spec":'
_FIRST: Final = (b'{"manager":"', b'{"apiVersion":"')
"""How an entry begins: API servers write fields in the order of the type, or of their names."""
_NAMES: Final = b'"fieldsV1":{'
_BEHIND: Final = (b'},"subresource":"', b'},"manager":"')
"""What comes behind the names, in the one order and in the other; or the entry ends."""


def lean(text: bytes) -> bytes:
    """The JSON of a large object, or of an event with one, with null for these names; as it is where that is not
    certain. What comes of an odd order of fields may be no JSON.

    None of the texts that are looked for can be in a string, where quotes are escaped, nor be a name of a field there:
    these begin with a letter and a colon, or are a dot.
    """
    begin = text.find(_ENTRIES) + len(_ENTRIES) if len(text) > LARGE else 0
    end = text.find(_SPEC, begin)
    first = next((first for first in _FIRST if text.startswith(first, begin)), None)
    if begin < len(_ENTRIES) or end - begin <= LARGE or first is None:
        return text
    between = b"," + first
    entries = between.join(map(_without_names, text[begin:end].split(between)))
    return b"".join((text[:begin], entries, text[end:]))


def _without_names(entry: bytes) -> bytes:
    begin = entry.find(_NAMES) + len(_NAMES) - 1
    end = max(entry.rfind(behind, begin) for behind in _BEHIND)
    end = end if end >= 0 else entry.rfind(b"}}", begin)
    return b"".join((entry[:begin], b"null", entry[end + 1 :])) if len(_NAMES) <= begin < end else entry
