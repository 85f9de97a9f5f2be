"""The secret by which copies are marked: made at the first start, and kept in a Secret that all replicas share."""

from __future__ import annotations

import base64
import secrets
from typing import Final

import anyio
import structlog

from multikueue.core.machinery.backoff import Backoff
from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, resource_version
from multikueue.errors import AlreadyExists, ApiError, Conflict, NotFound
from multikueue.protocols import ApiClient

FIELD: Final = "key"
"""Where the Secret has it."""
LENGTH: Final = 32
"""Bytes of a key that is made."""
SHORTEST: Final = 16
"""Bytes that one must have that somebody else has put there: a shorter one might be guessed."""
_BACKOFF: Final = Backoff(base=0.2, cap=30.0, jitter=0.2)

log = structlog.get_logger(__name__)


async def shared_key(client: ApiClient, secret: ObjectKey) -> bytes:
    """The key in the Secret; if there is none, one is made and put there.

    Where the Secret may not be read or written, a key for this term alone is returned, and the log says what to grant.
    Copies with the mark of another key are believed where their Workload is recorded; those that are only offered are
    removed and made again. So nothing that runs is lost, but places in workers' queues are.

    Args:
        client: of the manager cluster.
        secret: its namespace and name.
    """
    failures, told = 0, ""
    while True:
        try:
            return await _read_or_make(client, secret)
        except ApiError as error:
            if _is_final(error):
                log.warning(
                    "no shared key: copies that wait on workers are made again at each start; grant get and patch of "
                    "the Secret, and create it empty",
                    secret=str(secret),
                    error=str(error),
                )
                return secrets.token_bytes(LENGTH)
            if str(error) != told:
                log.warning("the key by which copies are marked cannot be read", secret=str(secret), error=str(error))
            failures, told = failures + 1, str(error)
        await anyio.sleep(_BACKOFF.delay(failures))


async def _read_or_make(client: ApiClient, secret: ObjectKey) -> bytes:
    """Read the key, or write one. Of several that write at once one succeeds, and the others get a conflict."""
    try:
        found = await client.get(SECRET, secret)
    except NotFound:
        found = None
    if found is not None and (key := key_in(found)) is not None:
        return key
    made = secrets.token_bytes(LENGTH)
    data = {FIELD: base64.b64encode(made).decode()}
    if found is None:
        metadata: Json = {"namespace": secret.namespace, "name": secret.name}
        kind = {"apiVersion": SECRET.gvk.api_version, "kind": SECRET.gvk.kind}
        await client.create(SECRET, {**kind, "metadata": metadata, "data": data})
    else:
        precondition = {"resourceVersion": resource_version(found)}
        await client.merge_patch(SECRET, secret, {"metadata": precondition, "data": data})
    log.info("made a key by which copies are marked", secret=str(secret))
    return made


def key_in(found: Json) -> bytes | None:
    """The key in a Secret; None if it has none that can be used."""
    text = dig(found, "data", FIELD)
    if not text:
        return None
    key = base64.b64decode(text)
    if len(key) < SHORTEST:
        log.warning(
            f"the key is not usable and is replaced: it must be {SHORTEST} bytes or more, in base64", field=FIELD
        )
        return None
    return key


def _is_final(error: ApiError) -> bool:
    """Whether asking again leads nowhere until somebody changes something. After a conflict the key is there."""
    return not (error.retryable or isinstance(error, Conflict | AlreadyExists))
