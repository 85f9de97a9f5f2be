"""Lists and watches one resource. `core.machinery.watch` decides which request comes next; this module sends it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import anyio
import attrs

from multikueue.core.machinery import watch
from multikueue.core.machinery.liveness import LOST_AFTER
from multikueue.core.model.names import Resource
from multikueue.core.model.objects import resource_version, version_number
from multikueue.errors import ApiError, DeadlineExceeded, ServerFault, Unreachable
from multikueue.kube.informers.list_pages import InitialList
from multikueue.protocols import Known, Lister, ObjectList, Received, Watcher, WatchEvent, WatchOptions

PROBE_DEADLINE: Final = LOST_AFTER
"""Seconds for the probe after a silent watch: a server whose answers take ten seconds is not taken for dead."""

NOTHING: Final = "multikueue,!multikueue"
"""A label selector that matches no object: a list with it returns the server's resourceVersion and no items."""


class ListerWatcher(Lister, Watcher, Protocol):
    """What a reflector needs of a client."""


@attrs.define(eq=False)
class Reflector:
    """Reads one resource of one server into a store, request by request.

    * `step` sends one request and returns when it has ended. The caller waits after failures.
    * It calls `on_list` and `on_event` in the order of the server's changes, from its own task.
    * What the callbacks raise ends `step`: it is a bug, not a failure of the server. An `ApiError` of theirs counts as
      one, though: they may refuse what the server sends.
    """

    client: ListerWatcher
    resource: Resource
    namespace: str = attrs.field(kw_only=True)
    label_selector: str = attrs.field(kw_only=True)
    initial: InitialList = attrs.field(factory=InitialList, kw_only=True)
    """Taken instead of the first list."""
    idle: float = attrs.field(kw_only=True)
    """Seconds without a byte after which a watch is silent."""
    lifetime: Callable[[], float] = attrs.field(kw_only=True)
    """Seconds after which the next watch is closed."""
    lists_next: Callable[[], bool] = attrs.field(kw_only=True)
    """Whether a list follows a watch that has ended well: there are objects that could not be read."""
    reset_after: float = attrs.field(kw_only=True)
    """Seconds after which a watch is established."""
    each: Received | None = attrs.field(default=None, kw_only=True)
    """Gets each object of a list as it is read, before `on_list`."""
    known: Known | None = attrs.field(default=None, kw_only=True)
    """What is known of the spec of an object that changes; None: nothing, and a client is not told of it."""
    on_list: Callable[[ObjectList, bool], Awaitable[None]] = attrs.field(kw_only=True)
    """Gets each list, and whether its resourceVersion is lower than what was known."""
    on_event: Callable[[WatchEvent], None] = attrs.field(kw_only=True)
    """Gets each event that is no bookmark."""
    on_established: Callable[[], None] = attrs.field(kw_only=True)
    state: watch.WatchState = attrs.field(factory=watch.WatchState, init=False)
    _open: anyio.CancelScope | None = attrs.field(default=None, init=False)
    """Around the watch that is open."""
    resource_version: str = attrs.field(default="", init=False)
    """Everything up to here has been read; empty before the first list."""

    def __repr__(self) -> str:
        return f"<Reflector {self.resource}: {self.state.phase}, {self.state.failures} failures>"

    async def step(self, known: str) -> tuple[watch.Outcome, ApiError | None]:
        """Send the next request and wait for its end.

        Args:
            known: a resourceVersion that others have read from this server. Lists are consistent reads: a lower one
                means that the history went backwards.

        Returns:
            What the request came to, and the failure after which to wait; None: send the next request at once.
        """
        match self.state.phase:
            case watch.Listing():
                outcome, error = await self._list(known)
            case watch.Probing(silent=silent):
                first = silent and not self.state.failures
                outcome, error = await self._probe(PROBE_DEADLINE if first else float("inf"))
            case watch.Watching(since):
                error = await self._watch(since)
                again = error is None and self.lists_next()
                outcome = watch.EventUnreadable() if again else watch.outcome_of(error)
        failures = self.state.failures  # after the request: an established watch resets them
        self._advance(outcome)
        if self.state.failures == failures:
            return outcome, None
        return outcome, error or Unreachable(f"{self.resource}: the server closed the watch at once")

    def end_watch_within(self, seconds: float) -> None:
        """Close the watch that is open, if any, after so many seconds at the latest."""
        if self._open is not None:
            self._open.deadline = min(self._open.deadline, anyio.current_time() + seconds)

    def begin_anew(self) -> None:
        """Send a list next."""
        self.state = watch.WatchState()

    def abandon(self, error: ApiError) -> tuple[watch.Outcome, ApiError]:
        """What a `step` came to that was cancelled because somebody knows that the server does not answer."""
        self._advance(watch.Failed())
        return watch.Failed(), error

    async def _list(self, known: str) -> tuple[watch.Outcome, ApiError | None]:
        highest = max(version_number(self.resource_version), version_number(known))
        try:
            listed = self.initial.take() or await self.client.list(
                self.resource, namespace=self.namespace, label_selector=self.label_selector, each=self.each
            )
            # `on_list` stores it at its end. NO AWAIT from then to the end of `step`: nobody may see half a list.
            await self.on_list(listed, version_number(listed.resource_version) < highest)
        except ApiError as error:
            return watch.Failed(), error
        return watch.Listed(listed.resource_version), None

    async def _probe(self, deadline: float) -> tuple[watch.Outcome, ApiError | None]:
        try:
            with anyio.move_on_after(deadline):  # beside the client's own deadline
                listed = await self.client.list(self.resource, namespace=self.namespace, label_selector=NOTHING)
                return watch.Probed(listed.resource_version), None
        except (Unreachable, DeadlineExceeded, ServerFault) as error:
            return watch.Failed(), error
        except ApiError as error:
            return watch.ProbeRefused(), error
        text = f"{self.resource}: the watch is silent, and the server does not answer within {deadline:g} s"
        return watch.Failed(), DeadlineExceeded(text)

    async def _watch(self, since: str) -> ApiError | None:
        failure: ApiError | None = None
        async with anyio.create_task_group() as tasks:

            def opened() -> None:
                tasks.start_soon(self._establish)

            options: WatchOptions = {
                "resource_version": since,
                "namespace": self.namespace,
                "label_selector": self.label_selector,
                "idle": self.idle,
                "on_open": opened,
            }
            if self.known is not None:  # else a client that does not have the argument will do
                options["known"] = self.known
            try:
                with anyio.move_on_after(self.lifetime()) as self._open:
                    await self.client.watch(self.resource, self._receive, **options)
            except ApiError as error:  # returned: a task group would wrap it
                failure = error
            tasks.cancel_scope.cancel()
        return failure

    async def _establish(self) -> None:
        await anyio.sleep(self.reset_after)
        self._advance(watch.Established())
        self.on_established()

    def _receive(self, event: WatchEvent) -> None:
        if event.type != "BOOKMARK":
            self.on_event(event)
        self._advance(watch.EventReceived(resource_version(event.object)))

    def _advance(self, outcome: watch.Outcome) -> None:
        self.state = self.state.step(outcome)
        if isinstance(self.state.phase, watch.Watching):
            self.resource_version = self.state.phase.resource_version
