"""What we tell people to run can be pasted: it has what the command needs, and nothing that it does not know."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.commands.people import people
from tests.commands.remedies_printed import Printed, of_kubectl, ours
from tests.commands.test_people import ENDLESS, LAST, with_a_job

VALUES: Final = {
    "--user": "jane",
    "-c": "main",
    "-n": "default",
    "--name": "kueue-system-multikueue",
    "--service-account": "kueue-system/multikueue",
    "--worker": "worker1",
    "--worker-context": "manager",
    "add": "worker3",
    "events": "job/train",
    "explain": "job/train",
    "drain": "worker2",
    "logs": "job/train",
    "mirror": "user-queue",
    "pods": "job/train",
    "remove": "worker2",
    "retry": "job/train",
    "uncordon": "worker2",
}
"""What stands for a name that is filled in, or for a placeholder, behind which word."""
MISSES: Final = ("doctor", "worker add")
"""They end with 1: there is no daemon, and the worker's address is this machine's."""
ELSEWHERE: Final = "worker rotate"
"""It waits for half a minute for the daemon that is not there; `test_people` runs it."""


def flaws(commands: list[Printed]) -> dict[str, str]:
    return {
        f"{command.where} {' '.join(command.words)}": ", ".join(command.lacks) for command in commands if command.lacks
    }


def test_our_commands_are_complete() -> None:
    commands = list(ours())

    assert len({command.words[:2] for command in commands}) > 15
    assert flaws(commands) == {}


def test_those_of_kubectl_are_commands() -> None:
    commands = list(of_kubectl())

    assert len(commands) > 10
    assert flaws(commands) == {}


@pytest.mark.timeout(60)
async def test_ours_run_as_they_are_printed(tmp_path: Path) -> None:
    """With real names in place of those that are filled in, by an administrator."""
    settings = tmp_path / "settings.yaml"
    settings.write_text("managerName: here\n")
    commands = {
        command.words for command in ours() if command.words[0] not in ENDLESS and "--watch" not in command.words
    }
    commands = {_filled(words, settings) for words in commands if " ".join(words[:2]) != ELSEWHERE}
    wrong: dict[str, str] = {}
    async with people(tmp_path) as here:
        await with_a_job(here)
        for command in sorted(commands, key=lambda words: (" ".join(words[:2]) in LAST, words)):
            done = await here.run("admin", *command)
            if done.exit_code != (1 if " ".join(command).startswith(MISSES) else 0):
                wrong[" ".join(command)] = f"{done.exit_code}: {done.output}"
    assert wrong == {}


def _filled(words: tuple[str, ...], settings: Path) -> tuple[str, ...]:
    """A command with a value behind each word that is followed by a placeholder."""
    values = {**VALUES, "--config": str(settings)}
    pairs = zip(("", *words), words, strict=False)
    return tuple(values[before] if "{" in word or word.isupper() else word for before, word in pairs)
