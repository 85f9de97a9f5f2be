"""Workers whose token is bound: it ends, the daemon renews it, and it is void once its Secret on the worker is gone."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from multikueue.core.model.kinds import CONFIG_MAP, SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.protocols import read
from multikueue.runtime.loop import utc_now
from multikueued.clusters import ClusterClient
from multikueued.exits import CommandError
from multikueued.reports.worker_facts import secret_name
from multikueued.settings.config import Settings
from multikueued.tokens.bound import DEFAULT_LIFE, SHORTEST, Bound, bound_in, issue
from multikueued.workers.objects import WorkerSide
from multikueued.workers.places import FIELD_MANAGER, ManagerAccess, apply_all

AUTHORITY: Final = ("kube-root-ca.crt", "ca.crt")
"""The ConfigMap that every namespace has, and its key: who signed the API server's certificate."""


def check_bound(settings: Settings, worker: str, life: float | None) -> None:
    """
    Raises:
        CommandError: nobody would renew the token, or it may not last so long.
    """
    chosen, secret = settings.bound_tokens, secret_name(worker)
    if not chosen.enabled:
        raise CommandError(
            "--bound: such a token ends, and the daemon renews it only with boundTokens.enabled: true. Set that in its "
            "settings (and its role: multikueue rbac manager, or the chart), and name the file with --config-file"
        )
    if chosen.secret_names and secret not in chosen.secret_names:
        raise CommandError(f"--bound: boundTokens.secretNames does not list {secret}, so the daemon may not renew it")
    if life is not None and life < SHORTEST.total_seconds():
        raise CommandError(f"--life: API servers give tokens for {SHORTEST.total_seconds() / 60:g}m or more")


async def issued(
    manager: ManagerAccess, worker: ClusterClient, side: WorkerSide, name: str, life: float | None
) -> tuple[str, Bound]:
    """A token bound to the Secret of that name, which is made if there is none.

    Args:
        manager: for its settings.
        worker: with an administrator's credentials.
        side: whose token.
        name: of the Secret on the worker.
        life: seconds; None: a week.

    Raises:
        ApiError: the worker refuses.
    """
    await apply_all(worker, side.token_objects(manager.settings))
    await worker.apply(SECRET, side.holder_secret(name), field_manager=FIELD_MANAGER)
    wanted = timedelta(seconds=life) if life is not None else DEFAULT_LIFE
    token, bound = await issue(worker, Bound(side.key, name), wanted, utc_now)
    manager.say(f"a token of {side.key} until {bound.until}; the daemon renews it")
    return token, bound


async def still_good(worker: ClusterClient, stored: Json | None, side: WorkerSide) -> Bound | None:
    """The bound token of a Secret on the manager, if it is this account's and need not be renewed yet."""
    bound = bound_in(stored) if stored is not None else None
    if bound is None or bound.account != side.key or bound.is_due(utc_now()):
        return None
    held = not bound.holder or await read(worker, SECRET, ObjectKey(side.namespace, bound.holder)) is not None
    return bound if held else None


async def authority(worker: ClusterClient, side: WorkerSide) -> str:
    """Who signed the worker's certificate, as it tells its own pods.

    Raises:
        CommandError: it does not tell.
    """
    name, field = AUTHORITY
    pem = str(dig(await read(worker, CONFIG_MAP, ObjectKey(side.namespace, name)) or {}, "data", field) or "")
    if not pem:
        raise CommandError(f"ConfigMap {side.namespace}/{name} of the worker names no authority: give it with --ca")
    return pem
