"""The secret by which copies are marked: made at the first start, and kept in a Secret that all replicas share. So is
that of mirrors.

Beside it stands the origin that copies are labelled with: those of another one are not seen, and would run once more.
"""

from __future__ import annotations

import base64
import contextlib
import secrets
from typing import Final

import anyio
import attrs
import structlog

from multikueue.core.machinery.backoff import Backoff
from multikueue.core.model.kinds import SECRET
from multikueue.core.model.labels import OWN_PREFIX
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, resource_version
from multikueue.errors import AlreadyExists, ApiError, Conflict, NotFound, SettingsError
from multikueue.protocols import ApiClient
from multikueued.reading.worker_access import FIELD, SHORTEST, key_in
from multikueued.reports.remedies.remedy import REMEDIES

ORIGIN: Final = f"{OWN_PREFIX}origin"
"""Annotation of the Secret: the setting `origin` of whoever has led."""
LENGTH: Final = 32
"""Bytes of a key that is made."""
_BACKOFF: Final = Backoff(base=0.2, cap=30.0, jitter=0.2)

log = structlog.get_logger(__name__)


@attrs.frozen
class KeyUse:
    """What a shared key is for, in the words of the log."""

    what: str
    without: str
    """What follows if no key can be shared."""


MARKS: Final = KeyUse("by which copies are marked", "copies that wait on workers are made again at each start")


async def check_origin(client: ApiClient, secret: ObjectKey, origin: str) -> None:
    """Look at the note before this process is a candidate. Whoever leads looks again: no answer is waited for here.

    Raises:
        SettingsError: the Secret names another origin.
    """
    with contextlib.suppress(ApiError):
        _refuse_another(secret, await client.get(SECRET, secret), origin)


async def shared_key(client: ApiClient, secret: ObjectKey, origin: str, use: KeyUse = MARKS) -> bytes:
    """The key in the Secret; if there is none, one is made and put there, with the origin.

    Where the Secret may not be read or written, a key for this term alone is returned, and the log says what to grant.
    Copies with the mark of another key are believed where their Workload is recorded; those that are only offered are
    removed and made again. So nothing that runs is lost, but places in workers' queues are. Copies of
    what is deleted while no daemon runs stay: they might be another manager's.

    Args:
        client: of the manager cluster.
        secret: its namespace and name.
        origin: the setting.
        use: what it is for.

    Raises:
        SettingsError: the Secret names another origin.
    """
    failures, logged = 0, ""
    while True:
        try:
            return await _read_or_make(client, secret, origin, use)
        except ApiError as error:
            if _is_final(error):
                log.warning(
                    f"no shared key: {use.without}; grant get and patch of the Secret, and create it empty",
                    secret=str(secret),
                    error=str(error),
                )
                return secrets.token_bytes(LENGTH)
            if str(error) != logged:
                log.warning(f"the key {use.what} cannot be read", secret=str(secret), error=str(error))
            failures, logged = failures + 1, str(error)
        await anyio.sleep(_BACKOFF.delay(failures))


async def _read_or_make(client: ApiClient, secret: ObjectKey, origin: str, use: KeyUse) -> bytes:
    """Read the key, or write one. Of several that write at once one succeeds, and the others get a conflict."""
    try:
        stored = await client.get(SECRET, secret)
    except NotFound:
        stored = {}
    _refuse_another(secret, stored, origin)
    noted, key = annotations_of(stored).get(ORIGIN), key_in(stored)
    if key is None:
        if dig(stored, "data", FIELD):
            unusable = f"the key is not usable and is replaced: it must be {SHORTEST} bytes or more, in base64"
            log.warning(unusable, secret=str(secret), field=FIELD)
        key = secrets.token_bytes(LENGTH)
        await _write(client, secret, stored, origin, {"data": {FIELD: base64.b64encode(key).decode()}})
        log.info(f"made a key {use.what}", secret=str(secret))
    elif noted is None:
        try:
            await _write(client, secret, stored, origin, {})
        except ApiError as error:
            if not _is_final(error):
                raise
            log.warning("the setting origin cannot be noted: grant patch", secret=str(secret), error=str(error))
    return key


async def _write(client: ApiClient, secret: ObjectKey, stored: Json, origin: str, more: Json) -> None:
    annotations = {ORIGIN: origin}
    if stored:
        metadata: Json = {"resourceVersion": resource_version(stored), "annotations": annotations}
        await client.merge_patch(SECRET, secret, {"metadata": metadata, **more})
    else:
        metadata = {"namespace": secret.namespace, "name": secret.name, "annotations": annotations}
        await client.create(SECRET, SECRET.object({"metadata": metadata, **more}))


def _refuse_another(secret: ObjectKey, stored: Json, origin: str) -> None:
    noted = annotations_of(stored).get(ORIGIN)
    if noted in (None, origin):
        return
    words = {"name": secret.name, "namespace": secret.namespace, "noted": noted, "origin": origin}
    raise SettingsError(
        f"origin: it was {noted!r} so far, and copies with it may be on workers: with {origin!r} what they run would "
        f"run once more, beside them; {REMEDIES['origin-changed'].filled([words])}"
    )


def _is_final(error: ApiError) -> bool:
    """Whether asking again leads nowhere until somebody changes something. After a conflict the key is there."""
    return not (error.retryable or isinstance(error, Conflict | AlreadyExists))
