"""Kubeconfigs in files: which are read, and that a change is seen however it is made."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.names import ObjectKey
from multikueue.errors import KubeconfigError
from multikueue.runtime.workers.kubeconfig_files import INTERVAL, MAX_SIZE, SETTLING, KubeconfigFiles, read_kubeconfig
from multikueue.testing import running
from tests.runtime.fleet import Fleet, is_active, kubeconfig, until

OUTSIDE = "kubeconfig path is not under the allowed prefix: "


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    folder = tmp_path / "kubeconfigs"
    folder.mkdir()
    (folder / "w1").write_text("one")
    (tmp_path / "kubeconfigs-of-others").mkdir()
    (tmp_path / "kubeconfigs-of-others" / "w1").write_text("secret")
    (tmp_path / "outside").write_text("secret")
    return folder


def refusal(path: object, prefix: object) -> str:
    with pytest.raises(KubeconfigError) as caught:
        read_kubeconfig(str(path), str(prefix))
    assert caught.value.reason == "BadKubeConfig"
    return str(caught.value)


def test_a_file_below_the_prefix_is_read(prefix: Path) -> None:
    """With or without detours in how it is written."""
    assert read_kubeconfig(str(prefix / "w1"), str(prefix)) == b"one"
    assert read_kubeconfig(f"/{prefix}/./x/..//w1", f"{prefix}/") == b"one"


def test_kueues_rules_in_kueues_words(prefix: Path) -> None:
    parent = prefix.parent
    assert refusal("", prefix) == "kubeconfig path must not be empty"
    assert refusal("../w1", prefix) == f'{OUTSIDE}path contains ".."'
    assert refusal("a/../../w1", prefix) == f'{OUTSIDE}path contains ".."'
    assert refusal("kubeconfigs/w1", prefix) == f"{OUTSIDE}path must be absolute"
    assert refusal(parent / "outside", prefix) == f'{OUTSIDE}"{parent}/outside" is not under "{prefix}"'
    assert refusal(f"{prefix}/../outside", prefix) == f'{OUTSIDE}"{parent}/outside" is not under "{prefix}"'
    similar = parent / "kubeconfigs-of-others" / "w1"
    assert refusal(similar, prefix) == f'{OUTSIDE}"{similar}" is not under "{prefix}"'
    assert refusal(prefix / "no", prefix) == (
        f"cannot resolve kubeconfig path symlinks: {prefix}/no: no such file or directory"
    )
    assert refusal(f"{prefix}/a\0b", prefix) == (
        f"cannot resolve kubeconfig path symlinks: '{prefix}/a\\x00b': it has a character that no path can have"
    )
    assert refusal(prefix / "w1", parent / "no") == f'{OUTSIDE}"{prefix}/w1" is not under "{parent}/no"'
    assert refusal(prefix, prefix) == f'{OUTSIDE}"{prefix}" is not under "{prefix}"'


def test_links_count_by_where_they_lead(prefix: Path) -> None:
    """A link out is refused; a prefix that is a link itself, and links inside, are how kubelet mounts Secrets."""
    (prefix / "out").symlink_to(prefix.parent / "outside")
    (prefix / "in").symlink_to("w1")
    (prefix.parent / "link").symlink_to(prefix)
    (prefix / "loop").symlink_to("loop")
    assert refusal(prefix / "out", prefix) == f'{OUTSIDE}"{prefix.parent}/outside" is not under "{prefix}"'
    assert read_kubeconfig(str(prefix / "in"), str(prefix)) == b"one"
    link = prefix.parent / "link"
    assert read_kubeconfig(str(link / "in"), str(link)) == b"one"
    assert refusal(prefix / "loop", prefix).startswith("cannot resolve kubeconfig path symlinks: ")


def test_only_regular_files_of_a_sensible_size_are_read(prefix: Path) -> None:
    """A pipe would make the daemon wait for ever, a device may do anything."""
    os.mkfifo(prefix / "pipe")
    (prefix / "folder").mkdir()
    (prefix / "large").write_bytes(b"x" * (MAX_SIZE + 1))
    (prefix / "full").write_bytes(b"x" * MAX_SIZE)
    (prefix / "null").symlink_to("/dev/null")
    assert refusal(prefix / "pipe", prefix) == f'kubeconfig path "{prefix}/pipe" is not a regular file'
    assert refusal(prefix / "folder", prefix) == f'kubeconfig path "{prefix}/folder" is not a regular file'
    assert refusal(prefix / "large", prefix) == f'kubeconfig file "{prefix}/large" is larger than 1048576 bytes'
    assert len(read_kubeconfig(str(prefix / "full"), str(prefix))) == MAX_SIZE
    assert refusal("/dev/null", "/dev") == 'kubeconfig path "/dev/null" is not a regular file'
    assert refusal(prefix / "null", prefix).startswith(OUTSIDE)


class Watched:
    """Files that are looked at every few milliseconds, and a way to wait for what is told about them."""

    def __init__(self, prefix: Path) -> None:
        self.used: list[str] = []
        self.changed_paths: list[str] = []
        self.files = KubeconfigFiles(lambda: self.used, self._changed, str(prefix), interval=0.01)
        self._news = anyio.Event()

    def _changed(self, path: str) -> None:
        self.changed_paths.append(path)
        self._news.set()
        self._news = anyio.Event()

    async def news(self) -> str:
        with anyio.fail_after(5):
            await self._news.wait()
        return self.changed_paths[-1]


@asynccontextmanager
async def watching(prefix: Path, *names: str) -> AsyncIterator[Watched]:
    watched = Watched(prefix)
    watched.used = [str(prefix / name) for name in names]
    async with running(watched.files.run):
        yield watched


async def test_a_file_is_read_when_it_is_first_asked_for(prefix: Path) -> None:
    async with watching(prefix) as watched:
        path = str(prefix / "w1")
        watched.files.interval = 3600
        await anyio.sleep(0.05)
        watched.used.append(path)
        assert watched.files.get(path) is None
        assert await watched.news() == path
        assert watched.files.get(path) == b"one"


async def test_a_changed_file_is_told_once(prefix: Path) -> None:
    async with watching(prefix, "w1") as watched:
        path = await watched.news()
        (prefix / "w1").write_text("two")
        await watched.news()
        assert watched.files.get(path) == b"two"
        await anyio.sleep(0.1)
        assert watched.changed_paths == [path, path]


def test_a_change_shows_within_two_seconds() -> None:
    """Kueue is told by the kernel at once; whoever changes a file looks at the MultiKueueCluster right after."""
    assert KubeconfigFiles(list, print).interval == INTERVAL
    assert INTERVAL + SETTLING < 2


async def test_the_swap_of_a_link_above_the_file_is_seen(prefix: Path) -> None:
    """This is how kubelet replaces a mounted Secret: `w -> ..data/w`, `..data -> ..2026_01_01`."""
    for name in ("..2026_01_01", "..2026_01_02"):
        (prefix / name).mkdir()
        (prefix / name / "w").write_text(name)
    (prefix / "..data").symlink_to("..2026_01_01")
    (prefix / "w").symlink_to("..data/w")
    async with watching(prefix, "w") as watched:
        path = await watched.news()
        assert watched.files.get(path) == b"..2026_01_01"
        (prefix / "..data_tmp").symlink_to("..2026_01_02")
        (prefix / "..data_tmp").rename(prefix / "..data")
        await watched.news()
        assert watched.files.get(path) == b"..2026_01_02"


async def test_a_file_that_goes_and_comes_back_is_told_both_times(prefix: Path) -> None:
    async with watching(prefix, "w1") as watched:
        path = await watched.news()
        (prefix / "w1").unlink()
        await watched.news()
        with pytest.raises(KubeconfigError, match="no such file"):
            watched.files.get(path)
        (prefix / "w1").write_text("one")
        await watched.news()
        assert watched.files.get(path) == b"one"


async def test_a_file_that_is_being_written_is_not_taken_half_done(prefix: Path) -> None:
    """An editor writes in place; half a kubeconfig would disconnect the worker for a while."""
    async with watching(prefix, "w1") as watched:
        path = await watched.news()
        with (prefix / "w1").open("w") as file:
            for part in range(20):
                file.write(f"{part} ")
                file.flush()
                await anyio.sleep(SETTLING / 4)
                assert watched.files.get(path) == b"one"
        await watched.news()
        assert watched.files.get(path) == "".join(f"{part} " for part in range(20)).encode()


async def test_files_nobody_uses_any_more_are_forgotten(prefix: Path) -> None:
    """They hold credentials."""
    async with watching(prefix, "w1") as watched:
        path = await watched.news()
        watched.used.clear()
        await until(lambda: watched.files.get(path) is None, within=5)


async def test_a_worker_whose_kubeconfig_is_a_file_is_connected_and_follows_it(prefix: Path) -> None:
    """What the file says at first is refused; then it is mended, as a rotation would."""
    path, key = prefix / "w1", ObjectKey("", "worker1")
    path.write_text("{not yaml")
    fleet = await Fleet.connected("worker1")
    reference = {"location": str(path), "locationType": "Path"}
    await fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, key, {"spec": {"clusterSource": {"kubeConfig": reference}}})
    manager = fleet.build(kubeconfig_prefix=str(prefix), kubeconfig_interval=0.02)
    async with fleet.running(manager):
        await until(is_active(fleet, status="False"), within=10)
        active = await fleet.active()
        assert (active["reason"], active["message"]) == (
            "InsecureKubeConfig",
            "load client config failed: failed to parse kubeconfig(apiconfig): it is not YAML at line 1, column 10",
        )
        path.write_text(json.dumps(kubeconfig("worker1")))
        await until(is_active(fleet), within=10)
