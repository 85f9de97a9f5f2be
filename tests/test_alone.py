"""A clone passes its tests by itself: nothing here reads what lies beside the checkout."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CHECKED = ("multikueue", "daemon", "tests", "noxfile.py", "docs/conf.py")
TEXT = {".py", ".md", ".yaml", ".yml", ".json", ".toml", ".txt", ".sh", ".go"}
BESIDE = re.compile(
    r"""(?:\.\.|/work)/shared\b         # as one path
      | /\s*["']shared["'] | ["']shared["']\s*/   # put together with pathlib
      | join(?:path)?\([^)\n]*["']shared["']      # or with a function
    """,
    re.VERBOSE,
)
UP = re.compile(r"__file__\)(?:\.resolve\(\))?(?:\.parents\[(\d+)\]|((?:\.parent\b(?!s))+))")


def files() -> Iterator[Path]:
    """Everything that a test or the package can be made of."""
    for place in map(ROOT.joinpath, CHECKED):
        paths = sorted(place.rglob("*")) if place.is_dir() else [place]
        yield from (path for path in paths if path.suffix in TEXT and path != Path(__file__))


def paths_beside(text: str) -> list[str]:
    """Where a text mentions the folder `shared` beside the checkout."""
    return [match.group() for match in BESIDE.finditer(text)]


def steps_up(text: str) -> list[int]:
    """How many folders above its own file each path of a module begins."""
    return [int(up) + 1 if up else one_by_one.count(".parent") for up, one_by_one in UP.findall(text)]


def test_nothing_mentions_the_folder_beside_the_checkout() -> None:
    """Its schemas and traces that tests need are in `tests/data`."""
    mentioned = {str(path.relative_to(ROOT)): paths_beside(path.read_text()) for path in files()}
    assert len(mentioned) > 400
    assert {path: paths for path, paths in mentioned.items() if paths} == {}


def test_no_path_begins_above_the_checkout() -> None:
    """Whatever it is called there."""
    modules = [path for path in files() if path.suffix == ".py"]
    outside = {
        str(path.relative_to(ROOT))
        for path in modules
        if any(up > len(path.relative_to(ROOT).parts) for up in steps_up(path.read_text()))
    }
    assert sum(bool(steps_up(path.read_text())) for path in modules) > 10
    assert outside == set()


@pytest.mark.parametrize(
    "text",
    [
        '"""The traces (../shared/traces)."""',
        'TRACES = Path("/work/shared/traces")',
        'Path(__file__).parents[3] / "shared" / "crds"',
        "ROOT.parent / 'shared'",
        'os.path.join(ROOT, "..", "shared", "crds")',
        'ROOT.parent.joinpath("shared")',
    ],
)
def test_a_mention_is_found(text: str) -> None:
    """These were or could be in the tests."""
    assert paths_beside(text)


@pytest.mark.parametrize(
    ("text", "up"), [("Path(__file__).parents[3]", 4), ("Path(__file__).resolve().parent.parent / 'a'", 2)]
)
def test_folders_are_counted(text: str, up: int) -> None:
    """`parents[0]` is the file's own folder."""
    assert steps_up(text) == [up]


def test_words_are_no_paths() -> None:
    """A queue may have that name, and an object may be shared."""
    assert not paths_beside('checks = {"shared": ["multikueue"]}; kept = shared / 2  # is shared by the tests')
