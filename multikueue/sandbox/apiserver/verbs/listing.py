"""The verb list: selectors, pages, and old revisions."""

from __future__ import annotations

import base64
import bisect
from collections.abc import Mapping

import attrs

from multikueue.sandbox.apiserver.encoding import decode, encode
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.status_errors import bad_request, too_large_revision
from multikueue.sandbox.apiserver.storage.cluster import Cluster
from multikueue.sandbox.apiserver.storage.selectors import EVERYTHING, Selector
from multikueue.sandbox.apiserver.storage.store import Entry, Key


@attrs.frozen
class ListOptions:
    """What to list.

    Attributes:
        limit: items in a page; 0 for all.
        token: the `continue` of the previous page.
        revision: the resourceVersion parameter, as sent.
        match: the resourceVersionMatch parameter.
    """

    selector: Selector = EVERYTHING
    limit: int = 0
    token: str = ""
    revision: str = ""
    match: str = ""

    @classmethod
    def from_query(cls, row: ResourceType, query: Mapping[str, str]) -> ListOptions:
        """Read the parameters of a URL.

        Raises:
            StatusError: 400, a parameter cannot be read.
        """
        limit = query.get("limit") or "0"
        if not limit.isdigit():
            raise bad_request(f'limit: Invalid value: "{limit}": must be a non-negative integer')
        return cls(
            Selector.parse(row, query.get("labelSelector", ""), query.get("fieldSelector", "")),
            int(limit),
            query.get("continue", ""),
            query.get("resourceVersion", ""),
            query.get("resourceVersionMatch", ""),
        )


@attrs.frozen(eq=False)
class Page:
    """The answer: entries, the revision they were true at, and how to get the rest."""

    entries: list[Entry]
    revision: int
    token: str = ""
    remaining: int | None = None


def list_objects(cluster: Cluster, row: ResourceType, namespace: str | None, options: ListOptions) -> Page:
    """List objects of one namespace, or of all for None.

    Raises:
        StatusError: 400 for a bad revision or token, 410 for one too old, 504 for one in the future.
    """
    revision, start = _from_where(cluster, options)
    keys, objects = _keys_at(cluster, row, namespace, revision)
    if start is not None:
        keys = keys[bisect.bisect_right(keys, start) :]
    entries: list[Entry] = []
    last: Key = ("", "")
    for index, key in enumerate(keys):
        entry = objects[key]
        if not options.selector.matches(entry):
            continue
        if options.limit and len(entries) == options.limit:
            remaining = len(keys) - index if options.selector.everything else None
            return Page(entries, revision, _token(revision, last), remaining)
        entries.append(entry)
        last = key
    return Page(entries, revision)


def _keys_at(
    cluster: Cluster, row: ResourceType, namespace: str | None, revision: int
) -> tuple[list[Key], dict[Key, Entry]]:
    store = cluster.store
    if revision >= store.revision:
        bucket = store.bucket(row.group_resource)
        return bucket.keys_of(namespace), bucket.objects
    keys, objects = store.snapshot(row.group_resource, revision)
    return [key for key in keys if namespace is None or key[0] == namespace], objects


def _from_where(cluster: Cluster, options: ListOptions) -> tuple[int, Key | None]:
    """The revision to read at, and the key after which the page starts."""
    current, asked = cluster.store.revision, options.revision
    if asked and not asked.isdigit():
        problem = f'strconv.ParseUint: parsing "{asked}": invalid syntax'
        raise bad_request(f'resourceVersion: Invalid value: "{asked}": {problem}')
    if options.token:
        return _read_token(options.token)
    if not asked or asked == "0":
        return current, None
    if int(asked) > current:
        raise too_large_revision(asked, current)
    exact = options.match == "Exact" or (options.limit and not options.match)
    return (int(asked) if exact else current), None


def _token(revision: int, last: Key) -> str:
    return base64.urlsafe_b64encode(encode([revision, *last])).decode()


def _read_token(token: str) -> tuple[int, Key]:
    try:
        revision, namespace, name = decode(base64.urlsafe_b64decode(token))
    except ValueError as error:
        raise bad_request("continue key is not valid") from error
    return int(revision), (str(namespace), str(name))
