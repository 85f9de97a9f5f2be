"""Commands show the same whether they read the manager with one's own rights, or ask its API, which keeps informers of
it: as far as those rights go."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.commands.people import People, people
from tests.commands.test_people import with_a_job

COMMANDS: Final = (
    "get jobs",
    "get jobs -A",
    "explain job/train",
    "explain job/sort",
    "explain job/nobody",
    "events job/train",
    "events job/sort",
    "pods job/train",
    "usage",
    "status",
    "get workers",
)
WHO: Final = ("admin", "submitter")
OWN: Final = frozenset({".notChecked", ".now", ".since", ".until"})
"""What each way could not read is its own, and so is the time of the look."""
UNREAD: Final = "you may not read it"
NEEDS_MORE: Final = frozenset({("submitter", "pods job/train"), ("submitter", "get jobs -A")})
"""What the API shows, and one's own rights do not: they end with 4 without it."""


def differences(api: Any, own: Any, at: str = "") -> Iterator[str]:
    """Where two answers differ, but for what may not be read."""
    if isinstance(api, dict) and isinstance(own, dict):
        if own.get("told") == UNREAD:
            return
        for name in sorted(api.keys() | own.keys()):
            if f"{at}.{name}" not in OWN:
                yield from differences(api.get(name), own.get(name), f"{at}.{name}")
    elif isinstance(api, list) and isinstance(own, list) and at == ".chain":
        known = {(link["kind"], link["name"]): link for link in api}
        for link in own:
            yield from differences(known.get((link["kind"], link["name"])), link, f"{at} {link['kind']}")
    elif isinstance(api, list) and isinstance(own, list) and len(api) == len(own):
        for number, (one, other) in enumerate(zip(api, own, strict=True)):
            yield from differences(one, other, f"{at}[{number}]")
    elif api != own:
        yield f"{at}: by the API {api!r}, by one's own rights {own!r}"


async def both(here: People, who: str, command: str) -> Mapping[bool, tuple[int, str]]:
    """Exit code and text of a command, with the API and without it."""
    answers = {}
    for here.serves in (True, False):
        done = await here.run(who, *command.split(), "-o", "json")
        answers[here.serves] = done.exit_code, done.stdout
    return answers


@pytest.mark.timeout(60)
@pytest.mark.parametrize("who", WHO)
async def test_commands_show_the_same_by_each_way_of_reading(who: str, tmp_path: Path) -> None:
    wrong: dict[str, object] = {}
    async with people(tmp_path) as here:
        await here.stage.fleet.person.submit("sort")
        await with_a_job(here)
        for command in COMMANDS:
            answers = await both(here, who, command)
            (code, api), (own_code, own) = answers[True], answers[False]
            if (who, command) in NEEDS_MORE:
                wrong |= {command: answers} if own_code != 4 else {}
            elif code != own_code:
                wrong[command] = answers
            elif code == 0 and (found := list(differences(json.loads(api), json.loads(own)))):
                wrong[command] = found
    assert wrong == {}
