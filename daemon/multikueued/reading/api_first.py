"""Asks the manager's API, and else reads with the rights of who asks.

Discovery decides, and then the first answer: whoever may not use the API, or asks for what it does not know, is
answered with what he may read himself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final, TypeVar

from multikueue.errors import ApiError, DeadlineExceeded, Forbidden, NotFound, ServerFault, TooManyRequests
from multikueued.api_answers import REMOTE_JOB
from multikueued.clusters import ClusterClient
from multikueued.exits import NOT_FOUND, CommandError
from multikueued.reading.own_rights import OwnRights
from multikueued.reading.source import Source
from multikueued.reading.through_api import ThroughApi

R = TypeVar("R")

ELSEWHERE: Final = (Forbidden, NotFound, ServerFault, TooManyRequests, DeadlineExceeded)
"""Answers after which it is tried without the API."""


async def ask(client: ClusterClient, question: Callable[[Source], Awaitable[R | None]]) -> R:
    """The answer to what is asked of a `Source`: the API's; without it, or where it does not know, one's own.

    Args:
        client: of the manager.
        question: asks the source; None: it does not know the job.

    Raises:
        CommandError: there is no such job, or it may not be read.
        ApiError: the manager cannot be read.
    """
    refused: ApiError | None = None
    if await _is_served(client):
        try:
            if (answer := await question(ThroughApi(client))) is not None:
                return answer
        except ELSEWHERE as error:
            refused = error
    try:
        answer = await question(OwnRights(client))
    except (CommandError, Forbidden) as error:
        may_not = any(isinstance(cause, Forbidden) for cause in _causes(error))
        if refused is None or isinstance(refused, Forbidden) or not may_not:
            raise
        if isinstance(refused, NotFound):  # the API is served, and knows what is not there
            raise CommandError(refused.said or str(refused), NOT_FOUND) from refused
        raise refused from error
    assert answer is not None, "whoever reads himself is told why there is nothing"
    return answer


async def _is_served(client: ClusterClient) -> bool:
    try:
        return await client.discover(REMOTE_JOB.gvk) is not None
    except ApiError:
        return False


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
