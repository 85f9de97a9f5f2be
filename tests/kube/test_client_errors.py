"""The client: which answer becomes which error."""

from __future__ import annotations

import json
import ssl

import aiohttp
import anyio
import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ObjectKey
from multikueue.errors import (
    MAX_RETRY_AFTER,
    AlreadyExists,
    ApiError,
    Cause,
    Conflict,
    DeadlineExceeded,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    NotSent,
    ServerFault,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from multikueue.kube import ClientOptions, ClusterConfig, KubeClient
from multikueue.kube.credentials.sources import StaticToken
from multikueue.kube.http.error_mapping import ErrorMapping
from multikueue.kube.http.requester import Requester
from multikueue.kube.http.requests import Request
from multikueue.kube.http.transport import CallTime
from tests.kube.scripted import Answer, hangs, job, refuses, resets, says, serving, sessions_of, talking

KEY = ObjectKey("default", "a")
FAST = ClientOptions(deadline=0.3, connect_deadline=0.2)


async def error_of(*script: Answer, options: ClientOptions = FAST) -> ApiError:
    """What a get raises."""
    async with talking(*script, options=options) as (_, client):
        with pytest.raises(ApiError) as caught:
            await client.get(JOB, KEY)
    return caught.value


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (400, "BadRequest", Invalid),
        (401, "Unauthorized", Unauthorized),
        (402, "", ApiError),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", AlreadyExists),
        (410, "Gone", Expired),
        (410, "Expired", Expired),
        (415, "UnsupportedMediaType", Invalid),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", ServerFault),
        (503, "ServiceUnavailable", ServerFault),
    ],
)
async def test_statuses_become_errors(status: int, reason: str, expected: type[ApiError]) -> None:
    """With the server's message, and the server's name."""
    error = await error_of(refuses(status, reason, "because"))
    assert type(error) is expected
    assert (error.status, error.reason, str(error)) == (status, reason, "w1: get jobs.batch: because")


@pytest.mark.parametrize(
    ("causes", "expected"),
    [
        ([{"field": "metadata.uid", "message": "field is immutable"}], Conflict),
        ([{"field": "spec.template"}, {"field": "metadata.uid"}], Conflict),
        ([{"field": "spec.template"}], Invalid),
        ([], Invalid),
        (None, Invalid),
        (["metadata.uid"], Invalid),
    ],
)
async def test_a_wrong_uid_is_a_conflict_whatever_code_a_server_gives_it(
    causes: object, expected: type[ApiError]
) -> None:
    """A patch of an object that was made again under its name is 422 Invalid, and 409 for other verbs."""
    body = {"kind": "Status", "reason": "Invalid", "message": "no", "details": {"causes": causes}}
    error = await error_of(says(422, json.dumps(body)))
    assert type(error) is expected


@pytest.mark.parametrize(("details", "name"), [({"name": "a"}, "a"), ({}, ""), (None, ""), ("a", "")])
async def test_a_missing_object_is_told_from_a_missing_kind(details: object, name: str) -> None:
    body = {"kind": "Status", "reason": "NotFound", "message": "no", "details": details}
    error = await error_of(says(404, json.dumps(body)))
    assert isinstance(error, NotFound)
    assert error.name == name


async def test_a_servers_words_are_one_line_of_bounded_length() -> None:
    """They go into events, conditions, logs and terminals."""
    error = await error_of(
        refuses(403, "Bad\nReason", "no\n\x1b[2J--- multikueue: the log ends here" + "x" * (1 << 20))
    )
    assert str(error).startswith("w1: get jobs.batch: no [2J--- multikueue")
    assert str(error).isprintable()
    assert len(str(error)) < 1100
    assert error.reason == "Bad Reason"


@pytest.mark.parametrize("status", [302, 404, 502])
async def test_a_page_of_html_is_an_error_like_any(status: int) -> None:
    """Load balancers answer in HTML; the page is not quoted, and a redirect is not followed."""
    error = await error_of(says(status, "<html>go away</html>", Location="/elsewhere"))
    assert (error.status, str(error)) == (status, f"w1: get jobs.batch: HTTP {status}")


@pytest.mark.parametrize("body", ["<html>welcome</html>", "[1]", ""])
async def test_success_that_is_no_object_is_no_success(body: str) -> None:
    """A login page with status 200."""
    assert type(await error_of(says(200, body))) is Unreachable


async def test_a_reset_connection_is_unreachable() -> None:
    assert type(await error_of(resets, options=ClientOptions())) is Unreachable


async def test_a_client_outside_its_context_says_so() -> None:
    """A closed one said that a connection was broken off, which is tried again."""
    client = KubeClient(ClusterConfig("https://127.0.0.1:1"), name="worker1")
    for state in ("is not open", "is closed"):
        with pytest.raises(NotSent, match=f"worker1: the client {state}: use it as an async context manager"):
            await client.get(JOB, ObjectKey("default", "train"))
        async with client:
            pass


async def test_a_refused_connection_is_unreachable_and_says_so() -> None:
    async with KubeClient(ClusterConfig("http://127.0.0.1:1"), name="w1") as client:
        with pytest.raises(NotSent, match="cannot connect") as caught:
            await client.get(JOB, KEY)
    assert caught.value.cause is Cause.OUT_OF_REACH


@pytest.mark.parametrize(("first", "error"), [(503, Unreachable), (429, NotSent)])
async def test_a_call_is_not_notsent_if_an_earlier_try_was_sent(first: int, error: type[ApiError]) -> None:
    """A write may have happened at the 503, after which the server went away; at a 429 it has not."""
    refused: list[ApiError] = [ServerFault("busy", status=503, retry_after=0.01), NotSent("cannot connect")]
    if first == 429:
        refused[0] = TooManyRequests("busy", status=429, retry_after=0.01)

    class Going(Requester):
        async def _authorized(self, request: Request, limit: int, time: CallTime) -> bytes:
            raise refused.pop(0)

    async with aiohttp.ClientSession() as session:
        config = ClusterConfig("http://127.0.0.1:1")
        exchange = Going(config, "w1", FAST, None, StaticToken(""), sessions_of(session))
        with pytest.raises(Unreachable) as caught:
            await exchange.call(Request("create", JOB, "POST", "/jobs"))
    assert type(caught.value) is error


async def test_a_server_that_says_nothing_is_given_up_after_the_deadline() -> None:
    assert type(await error_of(hangs)) is DeadlineExceeded


async def test_429_is_retried_after_the_time_the_server_names() -> None:
    """So is 503 with Retry-After."""
    script = refuses(429, Retry_After="0"), refuses(503, Retry_After="0"), says(200, job("1"))
    async with talking(*script) as (server, client):
        assert await client.get(JOB, KEY) == job("1")
    assert len(server.asked) == 3


@pytest.mark.parametrize("then", [403, 422, 429], ids=str)
async def test_a_creation_that_is_refused_after_a_503_may_have_happened(then: int) -> None:
    """By the first try, of which the refusal may be a consequence: the job has taken the last of a quota."""
    async with talking(refuses(503, Retry_After="0"), refuses(then)) as (server, client):
        with pytest.raises(ServerFault):
            await client.create(JOB, job("1"))
    assert len(server.asked) == 2


async def test_a_name_that_is_taken_after_a_503_is_reported_as_such() -> None:
    """The caller finds out whose it is."""
    async with talking(refuses(503, Retry_After="0"), refuses(409, reason="AlreadyExists")) as (_, client):
        with pytest.raises(AlreadyExists):
            await client.create(JOB, job("1"))


async def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    """The caller gets the error with its `retry_after` at once."""
    with anyio.fail_after(2):
        error = await error_of(refuses(429, Retry_After="60"), options=ClientOptions(deadline=5))
    assert (type(error), error.retry_after) == (TooManyRequests, 60)


async def test_a_server_that_always_answers_retry_after_is_tried_five_times() -> None:
    async with talking(refuses(429, Retry_After="0")) as (server, client):
        with pytest.raises(TooManyRequests):
            await client.get(JOB, KEY)
    assert len(server.asked) == 5


@pytest.mark.parametrize("when", ["Wed, 21 Oct 2026 07:28:00 GMT", "-1", "soon", "²", "٣", ""])
async def test_a_retry_after_that_is_no_number_of_seconds_is_passed_over(when: str) -> None:
    error = await error_of(refuses(503, Retry_After=when))
    assert (type(error), error.retry_after) == (ServerFault, None)


async def test_a_retry_after_of_400_digits_is_taken_for_a_mistake() -> None:
    """One header must not stop the client for ever."""
    error = await error_of(refuses(503, Retry_After="9" * 400))
    assert error.retry_after == MAX_RETRY_AFTER


async def test_500_without_retry_after_is_the_callers_to_retry() -> None:
    """A write may have happened."""
    async with talking(refuses(500)) as (server, client):
        with pytest.raises(ServerFault):
            await client.create(JOB, job("1"))
    assert len(server.asked) == 1


async def test_a_proxys_password_is_in_no_error() -> None:
    """Proxies that refuse the tunnel are quoted with their URL by aiohttp."""
    async with serving(says(407, "no")) as proxy:
        address = proxy.url.replace("http://", "http://user:s3cr3t-canary@")
        config = ClusterConfig("https://worker.example:6443", proxy=address)
        async with KubeClient(config, name="w1") as client:
            with pytest.raises(Unreachable) as caught:
                await client.get(JOB, KEY)
    shown = f"{caught.value!r} {config!r} {client!r} {caught.value.__cause__!r}"
    assert "canary" not in shown


@pytest.mark.parametrize(
    ("server", "name"),
    [
        ("ftp://worker.example", ""),
        ("worker.example:6443", ""),
        ("https://[[::1]]:443", ""),
        ("https://[::1:443", ""),
        ("https://a:0", ""),
        ("https://a..b", ""),
        (f"https://{'a' * 64}.b", ""),
        ("https://127.0.0.1:1", "a..b"),
    ],
    ids=[
        *("another scheme", "no scheme", "brackets twice", "half a bracket", "port 0"),
        *("an empty label", "a long label", "an empty label in the certificate's name"),
    ],
)
async def test_an_address_that_is_none_is_an_error_of_the_call_and_no_crash(server: str, name: str) -> None:
    """Python raises a UnicodeError for some hosts, which is no OSError."""
    async with KubeClient(ClusterConfig(server, tls_server_name=name), name="w1", options=FAST) as client:
        with pytest.raises(Unreachable, match=r"^w1: get jobs"):
            await client.get(JOB, KEY)


async def test_plain_text_where_tls_is_expected_is_unreachable() -> None:
    async with serving(says(200, {})) as server:
        config = ClusterConfig(server.url.replace("http:", "https:"))
        async with KubeClient(config, name="w1") as client:
            with pytest.raises(Unreachable) as caught:
                await client.get(JOB, KEY)
    assert isinstance(caught.value.__cause__, OSError | ssl.SSLError)


def test_what_the_event_loop_refuses_is_told_in_its_words() -> None:
    """All connections of a daemon failed for minutes, and "RuntimeError" was all that its log said."""
    refused = "File descriptor 21 is used by transport <TCPTransport>"
    with pytest.raises(Unreachable, match=refused), ErrorMapping("w1", Request("get", JOB, "GET", "/jobs")):
        raise RuntimeError(refused)


@pytest.mark.parametrize("kind", [RecursionError, NotImplementedError])
def test_what_is_no_word_of_the_event_loop_is_not_told_as_one(kind: type[RuntimeError]) -> None:
    """They are RuntimeErrors, too, of faults in code; their texts may quote anything."""
    made = rf"the request cannot be made \({kind.__name__}\)$"
    with pytest.raises(Unreachable, match=made), ErrorMapping("w1", Request("get", JOB, "GET", "/jobs")):
        raise kind("secret")
