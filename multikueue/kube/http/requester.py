"""Sends requests and reads their answers: sessions, credentials, deadlines, and retries that the server asks for."""

from __future__ import annotations

import asyncio
import io
import itertools
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Final, TypeVar

import aiohttp
import anyio
import anyio.to_thread
import attrs
import yarl

from multikueue.core.model.names import Json
from multikueue.errors import (
    AlreadyExists,
    ApiError,
    DeadlineExceeded,
    NotFound,
    NotSent,
    ServerFault,
    TooManyRequests,
    Unreachable,
)
from multikueue.kube.client_options import ClientOptions
from multikueue.kube.credentials.authenticator import Authenticators
from multikueue.kube.credentials.credential import Credential, CredentialSource
from multikueue.kube.credentials.sources import credential_source
from multikueue.kube.http.activity import Activity
from multikueue.kube.http.error_mapping import ErrorMapping, decoded, error_of, where
from multikueue.kube.http.large_json import LargeJson
from multikueue.kube.http.name_lookup import NameLookup
from multikueue.kube.http.requests import Request
from multikueue.kube.http.response_limits import LARGE_AT_ONCE, Answer, read_body
from multikueue.kube.http.sessions import Sessions
from multikueue.kube.http.single_flight import SingleFlight
from multikueue.kube.http.transport import CALL, CallTime, open_session, ssl_context
from multikueue.kube.http.turns import Turns
from multikueue.kube.kubeconfigs.config import CertificateFiles, ClusterConfig
from multikueue.protocols import RequestHook

_LARGE: Final = 1 << 20
"""Bytes of a body that aiohttp warns of, as it would write them in one piece."""
_MAX_THROTTLED_TRIES: Final = 5
"""Tries of a call that the server answers with Retry-After (429 or 5xx), within the call's deadline."""

_NOTHING_LEFT: Final = b"{}"
"""The answer to a DELETE that has left nothing."""

_AS_IT_IS: Final = {"Accept-Encoding": "identity"}
"""Streams come in small pieces: API servers compress none."""


@asynccontextmanager
async def open_requester(
    config: ClusterConfig,
    name: str,
    options: ClientOptions,
    hook: RequestHook | None,
    plugins: Authenticators | None = None,
    activity: Activity | None = None,
    large_json: LargeJson | None = None,
) -> AsyncIterator[Requester]:
    """Open the sessions with a server; this sends nothing yet. They are closed also while being cancelled.

    Raises:
        KubeconfigError: the certificates cannot be used, or others could read the credentials on the way.
    """
    named = config.files != CertificateFiles()
    tls = await anyio.to_thread.run_sync(ssl_context, config) if named else ssl_context(config)
    async with SingleFlight() as flights:
        credentials = credential_source(config, flights, plugins or Authenticators())
        names = NameLookup(flights, options.connect_deadline)
        calls, watches = (open_session(config, names, limit, options.user_agent) for limit in (options.connections, 0))
        sessions = Sessions(config, calls, watches, flights, options.deadline, tls)
        try:
            beside = activity or Activity(), large_json or LargeJson()
            yield Requester(config, name, options, hook, credentials, sessions, *beside)
        finally:
            await sessions.close()


_Answered = TypeVar("_Answered", Answer, aiohttp.ClientResponse)


@attrs.frozen(eq=False)
class Requester:
    """The open sessions with one server, and what requests are authenticated with."""

    config: ClusterConfig
    name: str
    options: ClientOptions
    hook: RequestHook | None
    credentials: CredentialSource
    sessions: Sessions
    activity: Activity = attrs.field(factory=Activity)
    large_json: LargeJson = attrs.field(factory=LargeJson)
    """The turns of what is decoded."""
    large_answers: anyio.Semaphore = attrs.field(factory=lambda: anyio.Semaphore(LARGE_AT_ONCE), init=False)
    """The turns of those that are read at a time."""
    turns: Turns = attrs.field(init=False)
    """Whose call is sent next: of each namespace in turn."""

    @turns.default
    def _by_namespace(self) -> Turns:
        return Turns(self.options.connections or sys.maxsize)

    def __repr__(self) -> str:
        return f"<Requester {self.name}: {self.config.server}, {'closed' if self.closed else 'open'}>"

    @property
    def closed(self) -> bool:
        """Whether nothing can be sent any more."""
        return self.sessions.closed

    async def call(self, request: Request, read: Callable[[bytes], Json | None] = decoded) -> Json:
        """Send a request and parse its answer; see `fetch` and `decode`."""
        body = await self.fetch(request, self.options.limits.answer_bytes)
        async with self.large_json.turn(len(body)):
            return self.decode(request, body, read)

    def decode(self, request: Request, body: bytes, read: Callable[[bytes], Json | None] = decoded) -> Json:
        """Parse an answer.

        Args:
            request: what it answers.
            body: the answer.
            read: the JSON object that it is, or None.

        Raises:
            Unreachable: it is no JSON object.
        """
        answer = read(body)
        if answer is None:
            raise Unreachable(f"{where(self.name, request)}: the answer is not JSON: is there a proxy in between?")
        return answer

    async def fetch(self, request: Request, limit: int) -> bytes:
        """Send a request and read its answer within the deadline. Retry if the server answers with Retry-After.

        A DELETE that was sent more than once, and whose object is not there at the last, has been done.

        Args:
            request: what to send.
            limit: how many bytes the answer may have.

        Raises:
            NotSent: there was no connection within `ClientOptions.connection_wait`.
            ApiError: the server refused, did not answer, or answered with too much.
        """
        failed: ServerFault | None = None
        time = CallTime(self.options.deadline, self.options.connection_wait)
        with time.scope, self.activity:
            for tries in itertools.count(1):
                try:
                    return await self._authorized(request, limit, time)
                except NotSent as error:
                    if failed is not None:  # an earlier try was sent, and may have taken effect
                        raise Unreachable(str(error)) from failed
                    raise
                except (TooManyRequests, ServerFault) as error:
                    failed = error if isinstance(error, ServerFault) else failed
                    wait = error.retry_after
                    late = wait is None or anyio.current_time() + wait > anyio.current_effective_deadline()
                    if wait is None or late or tries == _MAX_THROTTLED_TRIES:
                        raise failed or error from None
                except ApiError as error:
                    if (failed is not None or time.again) and _has_come_about(request, error):
                        return _NOTHING_LEFT
                    # After a try that may have created it, a refusal may be the consequence.
                    if failed is not None and request.method == "POST" and not isinstance(error, AlreadyExists):
                        raise failed from error
                    raise
                await anyio.sleep(wait)
        begin = where(self.name, request)
        if time.sent:
            raise DeadlineExceeded(f"{begin}: no answer within {self.options.deadline:g} s")
        message = f"{begin}: not sent: no connection was free within {self.options.connection_wait:g} s"
        raise NotSent(message) if failed is None else Unreachable(message)

    async def _authorized(self, request: Request, limit: int, time: CallTime) -> bytes:
        begin = where(self.name, request)

        async def send(tls: ssl.SSLContext, headers: dict[str, str]) -> Answer:
            async with self.turns.of(request.namespace):
                if self.closed:  # meanwhile
                    raise NotSent(f"{begin}: the connection was broken off")
                async with await self._request(self.sessions.calls, tls, request, headers, None, time) as response:
                    body = await read_body(response.content, limit, begin, self.large_answers)
                    return Answer(response.status, response.headers, body)

        credential = await self.credentials.credential()
        answer = await self._send(request, credential, send, time)
        if answer.status == 401:
            time.waits()  # a request that was refused has had no effect
            fresh = await self.credentials.credential(refused=credential)
            if fresh != credential:
                answer = await self._send(request, fresh, send, time)
        if answer.status >= 300:
            raise error_of(self.name, request, answer.status, answer.body, answer.headers)
        return answer.body

    async def stream(self, request: Request, idle: float) -> aiohttp.ClientResponse:
        """Send a request whose answer is a stream. The caller closes it.

        Raises:
            ApiError: the server did not accept it.
        """
        try:
            with anyio.fail_after(self.options.deadline):  # a server may accept a connection and say nothing
                response = await self._open(request, idle)
                if response.status < 300:
                    return response
                with ErrorMapping(self.name, request):
                    async with response:
                        limit = self.options.limits.answer_bytes
                        begin = where(self.name, request)
                        body = await read_body(response.content, limit, begin, self.large_answers)
        except TimeoutError as error:
            raise DeadlineExceeded(f"{where(self.name, request)}: not accepted in time") from error
        refusal = error_of(self.name, request, response.status, body, response.headers)
        self.activity.failed(refusal)
        raise refusal

    async def _open(self, request: Request, idle: float) -> aiohttp.ClientResponse:
        """Begin a stream. After a 401, try once more if there is a newer credential."""

        async def send(tls: ssl.SSLContext, headers: dict[str, str]) -> aiohttp.ClientResponse:
            all_headers = {**headers, **_AS_IT_IS}
            response = await self._request(self.sessions.watches, tls, request, all_headers, idle, None)
            self.sessions.began(response, tls)
            return response

        credential = await self.credentials.credential()
        response = await self._send(request, credential, send, None)
        if response.status != 401:
            return response
        try:
            fresh = await self.credentials.credential(refused=credential)
        except BaseException:
            response.close()
            raise
        if fresh == credential:
            return response
        response.close()
        return await self._send(request, fresh, send, None)

    async def _send(
        self,
        request: Request,
        credential: Credential,
        send: Callable[[ssl.SSLContext, dict[str, str]], Awaitable[_Answered]],
        time: CallTime | None,
    ) -> _Answered:
        tls = await self.sessions.tls(credential.pair)
        started, status = perf_counter(), 0
        if time is not None:
            time.waits()
        try:
            with ErrorMapping(self.name, request):
                answer = await send(tls, self._headers(request, credential))
            status = answer.status
        except NotSent as error:
            if time is not None and time.sent:  # it was, and the server may have closed the connection after doing it
                raise Unreachable(str(error)) from error
            raise
        except asyncio.CancelledError:
            # When a session closes, aiohttp cancels the futures that wait for a connection or a name. This task was not
            # cancelled then, and the error would end its task group.
            task = asyncio.current_task()
            if self.closed and task is not None and not task.cancelling():
                message = f"{where(self.name, request)}: the connection was broken off"
                raise (Unreachable(message) if time is None or time.sent else NotSent(message)) from None
            raise
        finally:
            if self.hook is not None:
                seconds = perf_counter() - started
                self.hook.observe(self.name, request.verb, request.resource.qualified, status, seconds)
        return answer

    async def _request(
        self,
        session: aiohttp.ClientSession,
        tls: ssl.SSLContext,
        request: Request,
        headers: dict[str, str],
        idle: float | None,
        time: CallTime | None,
    ) -> aiohttp.ClientResponse:
        """Send a request and wait for the headers of its answer, which the caller reads and closes.

        aiohttp sends a read, PUT or DELETE once more if the server has closed the connection meanwhile (RFC 9112,
        9.3.1). If it did the first one, the second PUT is a Conflict, as is a second DELETE that names a version or
        another object has the name by then: who gets one has to read. That of a DELETE may be a NotFound: see `fetch`.
        """
        CALL.set(time)
        return await session.request(
            request.method,
            yarl.URL(self.config.server + request.path, encoded=True),
            data=request.body if len(request.body or b"") < _LARGE else io.BytesIO(request.body or b""),
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.options.connect_deadline, sock_read=idle),
            allow_redirects=False,  # a redirect would turn a write into a read
            ssl=tls,
            server_hostname=self.config.tls_server_name or None,
            proxy_headers=dict(self.config.proxy_headers) or None,
        )

    def _headers(self, request: Request, credential: Credential) -> dict[str, str]:
        headers = {"Accept": request.accept or "application/json"}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if credential.token:
            headers["Authorization"] = f"{credential.scheme} {credential.token}".strip()
        if self.options.impersonate:
            headers["Impersonate-User"] = self.options.impersonate
        return headers


def _has_come_about(request: Request, error: ApiError) -> bool:
    """Whether a refusal shows what an earlier sending of the request was to bring about.

    Only that of its object: a server that does not serve the kind, or has no such namespace, may still have it.
    """
    return request.method == "DELETE" and isinstance(error, NotFound) and error.name == request.name
