"""Reads a list page by page, past objects that cannot be decoded.

One object that nests too deep makes the whole page unreadable. It is looked for by smaller pages from the same place;
of the one that remains only the metadata is asked for, which also tells where the next page begins.
"""

from __future__ import annotations

import contextlib
from typing import Any, Final

import anyio.lowlevel
import attrs
import orjson

from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import dig
from multikueue.core.model.shape import has_name, outline
from multikueue.core.model.writers import with_status_controllers_only
from multikueue.errors import Unreachable, Unreadable
from multikueue.kube.http import requests
from multikueue.kube.http.error_mapping import decoded, where
from multikueue.kube.http.requester import Requester
from multikueue.kube.http.response_limits import PAGE_BYTES, ListTally
from multikueue.kube.informers.truncated_json import mended
from multikueue.protocols import ObjectList, Received, UnreadableObject

SHRINK: Final = 10
"""A page that is too large is asked for again with one in so many of its objects."""
SPARSE: Final = 4
"""A page behind large objects with less than one in so many of the bytes that it may have is followed by a larger."""
SEARCH: Final = 0.05
"""As how much of a page a request counts that looks for an object that cannot be decoded."""
BREATH: Final = 20
"""After so many objects of a page others may run."""
BREATH_BYTES: Final = 256 << 10
"""And after so many bytes: to look at a large object of many small parts takes up to 0.1 s."""
UNDECODABLE: Final = "its JSON cannot be decoded: it nests too deep, or has a number or bytes that are none"


@attrs.define
class PageSizes:
    """How many objects the next page may have.

    Where a page cannot be decoded the object is looked for by halves. Behind it pages begin small and double: one that
    cannot be decoded is rarely alone.
    """

    limit: int
    """Objects of a page where nothing is wrong; 0: all in one page. Fewer where objects are large."""
    room: int = PAGE_BYTES
    """Bytes of a page of several objects."""
    most: int = attrs.field(default=attrs.Factory(lambda self: self.limit, takes_self=True), init=False)
    """What `limit` was at first."""
    suspects: int = attrs.field(default=0, init=False)
    """An object that cannot be decoded is among so many of the next ones; 0: none is known."""
    pace: int = attrs.field(default=0, init=False)
    """At most so many meanwhile; 0: as many as may be."""

    @property
    def next(self) -> int:
        """The limit to ask with."""
        size = min(self.limit, self.pace) if self.pace else self.limit
        return min(size, max(1, self.suspects // 2)) if self.suspects else size

    @property
    def searching(self) -> bool:
        """Whether pages are smaller because of an object that cannot be decoded."""
        return bool(self.suspects or self.pace)

    def too_large(self) -> bool:
        """The page was too large; return whether a smaller one may be asked for."""
        if self.next == 1:
            return False
        self.limit = max(1, self.next // SHRINK)
        return True

    def failed(self) -> bool:
        """The page could not be decoded; return whether it had one object only."""
        if self.next == 1:
            return True
        self.suspects = self.next or requests.PAGE_SIZE
        self.limit = self.limit or requests.PAGE_SIZE
        return False

    def read(self, objects: int, size: int) -> None:
        """The page was read, and had so many objects and bytes. Behind large objects pages double, up to `most`."""
        if self.limit < self.most and size <= self.room // SPARSE:
            self.limit = min(self.most, self.limit * 2)
        self.suspects = max(0, self.suspects - objects)
        self.pace = self.pace * 2 if self.pace * 2 < self.limit else 0

    def passed(self) -> None:
        """The object was found, and the next page begins behind it."""
        self.suspects, self.pace = 0, 2


@attrs.define(eq=False)
class ListPages:
    """Reads one list."""

    exchange: Requester
    resource: Resource
    namespace: str
    label_selector: str
    sizes: PageSizes
    tally: ListTally
    each: Received | None = None
    _items: list[Json] = attrs.field(factory=list, init=False)
    _unreadable: list[UnreadableObject] = attrs.field(factory=list, init=False)
    _texts: dict[str, str] = attrs.field(factory=dict, init=False)

    async def read(self, *, one_page: bool) -> ObjectList:
        """Read it all, or one page.

        Raises:
            Unreadable: it is too much, or has an object without a name.
            ApiError: the server did not answer, or not with a list.
        """
        token = ""
        while True:
            page = await self._page(token)
            if page is None:
                continue
            version = dig(page, "metadata", "resourceVersion")
            token = dig(page, "metadata", "continue") or ""
            if one_page or not token:
                return ObjectList(self._items, version, tuple(self._unreadable))

    async def _page(self, token: str) -> Json | None:
        """Read a page; None: it must be asked for again, smaller."""
        try:
            request, body = await self._fetch(token)
        except Unreadable:
            if not self.sizes.too_large():  # all that may be read of the list has been seen then
                self.tally.check_bytes()
                raise
            return None
        async with self.exchange.large_json.turn(len(body)):
            page = decoded(body)
        if page is not None:
            items = self._items_of(page, request)
            self.tally.add(len(body), len(items), SEARCH if self.sizes.searching else 1.0)
            self.sizes.read(len(items), len(body))
            each = len(body) // max(1, len(items))
            del body
            items.reverse()
            breath = max(1, min(BREATH, BREATH_BYTES // max(1, each)))
            while items:  # none of them is in memory whole any longer than it is looked at
                self._items.append(self._kept(items.pop()))
                if len(items) % breath == 0:
                    await anyio.lowlevel.checkpoint()  # others run, however large the objects are
            return page
        if not body.startswith(b"{"):  # a proxy's words
            raise not_json(self.exchange, request)
        self.tally.add(0, 0, SEARCH)
        return await self._outlined(token) if self.sizes.failed() else None

    def _kept(self, item: Json) -> Json:
        size = 0 if self.each is None else size_of(item)  # with all its `managedFields`
        kept = _slim(self.resource, item, self._texts)
        return kept if self.each is None else self.each(kept, size)

    async def _outlined(self, token: str) -> Json:
        """Read what is around one object that cannot be decoded, and what it is called."""
        request, body = await self._fetch(token, requests.METADATA_ONLY)
        page = decoded(body) or mended(body)
        if page is None:
            raise not_json(self.exchange, request)
        items = self._items_of(page, request)
        self.tally.add(len(body), len(items), SEARCH)
        self.sizes.passed()
        for item in items:
            named = {**item, "apiVersion": self.resource.gvk.api_version, "kind": self.resource.gvk.kind}
            self._unreadable.append(UnreadableObject(outline(named), UNDECODABLE))
        return page

    async def _fetch(self, token: str, accept: str = "") -> tuple[requests.Request, bytes]:
        request = requests.list_page(
            self.resource,
            namespace=self.namespace,
            label_selector=self.label_selector,
            limit=self.sizes.next,
            continue_token=token,
            accept=accept,
        )
        room = self.tally.room
        return request, await self.exchange.fetch(request, min(room, self.sizes.room) if self.sizes.next > 1 else room)

    def _items_of(self, page: Json, request: requests.Request) -> list[Json]:
        begin, version = where(self.exchange.name, request), dig(page, "metadata", "resourceVersion")
        if not version or not isinstance(version, str) or not isinstance(listed := page.get("items") or [], list):
            raise Unreachable(f"{begin}: the answer is not a list")
        if not all(map(has_name, listed)):
            raise Unreadable(f"{begin}: an item of the list has no name")
        return listed


def not_json(exchange: Requester, request: requests.Request) -> Unreachable:
    """The error for an answer that no API server gives."""
    return Unreachable(f"{where(exchange.name, request)}: the answer is not JSON: is there a proxy in between?")


def _slim(resource: Resource, item: Json, texts: dict[str, str]) -> Json:
    """Prepare an item of a list: add `apiVersion` and `kind`, which lists of builtin kinds leave out, and remove of
    `managedFields`, which are half of its size, what nobody reads: an informer's transform sees the rest.

    Args:
        resource: its kind.
        item: changed in place.
        texts: the strings of the items so far. Items share equal strings, which saves a quarter of a list's memory.
    """
    with_status_controllers_only(item)
    with contextlib.suppress(RecursionError):  # nested a thousand deep: sharing stops there
        _share(item, texts)
    item.setdefault("apiVersion", resource.gvk.api_version)
    item.setdefault("kind", resource.gvk.kind)
    return item


def size_of(obj: Json) -> int:
    """The bytes of an object's JSON; 0: it cannot be written, as it nests too deep."""
    try:
        return len(orjson.dumps(obj))
    except TypeError:
        return 0


def _share(value: Any, texts: dict[str, str]) -> None:
    """Replace each string in a dict or list by the first equal one in `texts`."""
    for place, item in value.items() if type(value) is dict else enumerate(value):
        kind = type(item)
        if kind is str:
            value[place] = texts.setdefault(item, item)
        elif kind is dict or kind is list:
            _share(item, texts)


@attrs.define(eq=False)
class InitialList:
    """All objects of a kind, as they were a moment ago. Whoever takes them may change them, so only one does."""

    _listed: ObjectList | None = None

    def __repr__(self) -> str:
        return f"<InitialList: {len(self._listed.items) if self._listed is not None else 'no'} objects>"

    def take(self) -> ObjectList | None:
        """The list, once; then None."""
        listed, self._listed = self._listed, None
        return listed
