"""Renews bound tokens of workers: the leader asks each worker for a new one, with the worker's own credentials.

The new kubeconfig is written into the Secret as it was read. The pool of workers then tries it beside the connection in
use, so nothing is interrupted. What goes wrong is told with the time at which the token ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, Protocol

import anyio
import anyio.abc
import attrs
import structlog

from multikueue.core.machinery.backoff import Backoff
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import is_terminating, name_of
from multikueue.errors import ApiError, Conflict, Forbidden, MultiKueueError, NotFound, Unauthorized
from multikueue.kube import ClientOptions, parse_worker_kubeconfig
from multikueue.protocols import Writer
from multikueue.runtime.loop import loop_time
from multikueue.runtime.reconcilers.configuration import kubeconfig_in
from multikueued.clusters import Connect, over_http
from multikueued.metrics.tokens import TokenMetrics
from multikueued.tokens.bound import Bound, bound_in, issue
from multikueued.workers.objects import location
from multikueued.workers.rotate import store, with_token

INTERVAL: Final = 10.0
"""Seconds between two looks at the caches."""
DEADLINE: Final = 30.0
"""Seconds for one attempt."""
AT_ONCE: Final = 4
SETTLING: Final = 60.0
"""Seconds after a renewal in which the caches may not show it yet."""
BACKOFF: Final = Backoff(base=30.0, cap=1_800.0, jitter=0.2)
CONNECT: Final = over_http(ClientOptions(deadline=15.0, connection_wait=15.0, connect_deadline=8.0, connections=1))
"""By connections that nothing else waits for."""

log = structlog.get_logger(__name__)


class Emit(Protocol):
    """Has an event sent; see `EventRecorder.emit`."""

    def __call__(self, regarding: Json, type: str, reason: str, action: str, note: str) -> None:
        """Do it."""


def retry_in(bound: Bound, failures: int, now: datetime, fraction: float) -> float:
    """Seconds until the next attempt: with back-off, and more often as the end comes near."""
    left = (bound.expires - now).total_seconds() if bound.expires is not None else 0.0
    if left <= 0:
        return BACKOFF.delay(failures, fraction)
    return min(BACKOFF.delay(failures, fraction), max(left / 4, BACKOFF.base / 3))


def remedy(error: Exception, worker: str, *, writing: bool) -> str:
    """What to do about a renewal that fails; empty: it is tried again, and that may be enough."""
    rotate = f"multikueue worker rotate {worker} --bound --worker-context CONTEXT --config-file FILE"
    match error:
        case Forbidden() if writing:
            return "let the daemon patch that Secret: multikueue rbac manager, or the chart, with boundTokens.enabled"
        case Forbidden():
            return f"let the account ask for tokens of itself: {rotate}, or multikueue rbac worker --bound"
        case Unauthorized():
            return f"the token is void or has ended: {rotate}"
        case NotFound() if not writing:
            return f"the account, or the Secret that its token is bound to, is gone: {rotate}"
    return ""


@attrs.define
class Attempts:
    """What was tried for one Secret."""

    failures: int = 0
    not_before: float = 0.0
    """On the loop's clock."""
    under_way: bool = False
    logged: str = ""
    """Why it failed, as it was logged last."""


@attrs.frozen
class RenewedWorker:
    """A worker with a bound token."""

    cluster: Json
    secret: Json
    bound: Bound

    @property
    def name(self) -> str:
        """The worker's."""
        return name_of(self.cluster)


@attrs.define(eq=False)
class Renewer:
    """Renews the tokens of one manager cluster; only the leader runs it."""

    clusters: Callable[[], Iterable[Json]]
    """The MultiKueueClusters, from the cache."""
    secret: Callable[[ObjectKey], Json | None]
    """A Secret, from the cache."""
    client: Writer
    """The manager's."""
    namespace: str
    """Of the Secrets."""
    enabled: bool
    """Whether to renew; otherwise only when tokens end is told."""
    emit: Emit
    clock: Callable[[], datetime]
    metrics: TokenMetrics
    fraction: Callable[[], float] = lambda: 0.0
    connect: Connect = CONNECT
    _attempts: dict[ObjectKey, Attempts] = attrs.field(factory=dict, init=False, repr=False)
    _limiter: anyio.CapacityLimiter = attrs.field(factory=lambda: anyio.CapacityLimiter(AT_ONCE), init=False)

    async def run(self) -> None:
        """Renew until cancelled."""
        try:
            async with anyio.create_task_group() as tasks:
                while True:
                    self.look(tasks)
                    await anyio.sleep(INTERVAL)
        finally:
            self.metrics.ends({})

    def look(self, tasks: anyio.abc.TaskGroup) -> None:
        """Begin what is due."""
        workers = {ObjectKey.of(worker.secret): worker for worker in self.bound()}
        self._attempts = {key: self._attempts.get(key, Attempts()) for key in workers}
        self.metrics.ends(
            {worker.name: worker.bound.expires for worker in workers.values() if worker.bound.expires is not None}
        )
        for key, worker in workers.items():
            attempts = self._attempts[key]
            if not worker.bound.is_due(self.clock()) or attempts.under_way or attempts.not_before > loop_time():
                continue
            if not self.enabled:
                self._tell_off(worker, attempts)
                continue
            attempts.under_way = True
            tasks.start_soon(self._attempt, worker, attempts)

    def bound(self) -> Iterable[RenewedWorker]:
        """The workers whose token is bound; of several with one Secret the first."""
        seen = set[ObjectKey]()
        for cluster in self.clusters():
            key = ObjectKey(self.namespace, location(cluster))
            secret = self.secret(key) if key.name and key not in seen and not is_terminating(cluster) else None
            bound = bound_in(secret) if secret is not None else None
            if secret is not None and bound is not None:
                seen.add(key)
                yield RenewedWorker(cluster, secret, bound)

    async def _attempt(self, worker: RenewedWorker, attempts: Attempts) -> None:
        try:
            async with self._limiter:
                with anyio.fail_after(DEADLINE):
                    await self._renew(worker)
        except (MultiKueueError, TimeoutError) as error:
            attempts.failures += 1
            attempts.not_before = loop_time() + retry_in(worker.bound, attempts.failures, self.clock(), self.fraction())
            self._tell_failure(worker, attempts, error)
        else:
            attempts.failures, attempts.logged, attempts.not_before = 0, "", loop_time() + SETTLING
        finally:
            attempts.under_way = False

    async def _renew(self, renewed: RenewedWorker) -> None:
        """
        Raises:
            MultiKueueError: it is not renewed; `_NotWritten` where the manager refuses.
        """
        config = parse_worker_kubeconfig(kubeconfig_in(renewed.secret, name_of(renewed.secret)))
        async with self.connect(renewed.name, config) as worker:
            token, bound = await issue(worker, renewed.bound, renewed.bound.life, self.clock)
        try:
            await store(self.client, renewed.secret, with_token(renewed.secret, token), bound)
        except ApiError as error:
            raise _NotWritten(str(error)) from error
        self.metrics.tried(renewed.name, "renewed")
        log.info("token renewed", cluster=renewed.name, until=bound.until)
        self.emit(
            renewed.cluster, "Normal", "TokenRenewed", "Renew", f"its token was renewed, and ends at {bound.until}"
        )

    def _tell_failure(self, worker: RenewedWorker, attempts: Attempts, error: Exception) -> None:
        """A warning when the reason changes; a change of the Secret by somebody else is none."""
        cause = error.__cause__ if isinstance(error, _NotWritten) and error.__cause__ is not None else error
        if isinstance(cause, Conflict):
            return
        self.metrics.tried(worker.name, "failed")
        why = str(error) or f"no answer within {DEADLINE:g} s"
        advice = (
            remedy(cause, worker.name, writing=isinstance(error, _NotWritten)) if isinstance(cause, Exception) else ""
        )
        note = f"and was not renewed{f': {advice}' if advice else ''} ({type(cause).__name__})"
        self._tell(worker, attempts, why, advice, f" {note}")

    def _tell_off(self, worker: RenewedWorker, attempts: Attempts) -> None:
        advice = "set boundTokens.enabled: true in the daemon's settings"
        self._tell(worker, attempts, "boundTokens is off", advice, f", and nobody renews it: {advice}")

    def _tell(self, worker: RenewedWorker, attempts: Attempts, why: str, advice: str, note: str) -> None:
        """Warn in the log and by an event, once for each reason; `note` is the event's, after when the token ends."""
        if why != attempts.logged:
            attempts.logged, ends = why, worker.bound.until
            log.warning("token not renewed", cluster=worker.name, ends=ends, error=why, advice=advice)
            self.emit(worker.cluster, "Warning", "TokenNotRenewed", "Renew", f"its token ends at {ends}{note}")


class _NotWritten(MultiKueueError):
    """The worker gave a token, and the manager did not take it."""
