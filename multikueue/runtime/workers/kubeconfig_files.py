"""Kubeconfigs in files: read in threads, every other second.

Kubelet replaces the files of a mounted Secret by swapping a link above them, which file notifications do not report
reliably. So all files in use are read again and compared; they are small.
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Callable, Iterable
from typing import Final

import anyio.to_thread
import attrs

from multikueue.errors import KubeconfigError
from multikueue.logs import get_logger

INTERVAL: Final = 1.5
"""Seconds between two reads: a change shows within 2 s. A read costs 0.4 ms, so a hundred files take 3 % of a core."""
SETTLING: Final = 0.2
"""Seconds for which a changed file must stay the same before it is taken: it may be being written."""
MAX_SIZE: Final = 1 << 20
"""Bytes of a file at most; a real one has some thousand."""

KUBECONFIG_PREFIX: Final = "/etc/multikueue/kubeconfigs"
"""Kueue's: the only folder kubeconfig files are read from. A MultiKueueCluster must not make us read other files."""

_REASON: Final = "BadKubeConfig"
_OUTSIDE: Final = "kubeconfig path is not under the allowed prefix: "

log = get_logger(__name__)


@attrs.define(eq=False, repr=False)
class KubeconfigFiles:
    """The content of the files in use.

    A file on storage that does not answer blocks one thread and nothing else: nothing waits for it, its last content
    stays in use, and it is not read again meanwhile.
    """

    paths: Callable[[], Iterable[str]]
    """The paths in use, as the MultiKueueClusters write them."""
    changed: Callable[[str], None]
    """Called when the content of a path has changed, or why it cannot be read."""
    prefix: str = KUBECONFIG_PREFIX
    interval: float = INTERVAL
    _found: dict[str, bytes | str] = attrs.field(factory=dict, init=False)
    """By path, the content, or why it cannot be used."""
    _under_way: set[str] = attrs.field(factory=set, init=False)
    _wakeup: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    def __repr__(self) -> str:
        return f"<KubeconfigFiles below {self.prefix}: {len(self._found)} read, {len(self._under_way)} being read>"

    def get(self, path: str) -> bytes | None:
        """The content; None if the file has not been read yet: it is read now, and `changed` is called after that.

        Raises:
            KubeconfigError: it cannot be read or must not be read.
        """
        content = self._found.get(path)
        if content is None:
            self._wakeup.set()
        if isinstance(content, str):
            raise KubeconfigError(_REASON, content)
        return content

    async def run(self) -> None:
        """Read the files until cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                used = set(self.paths())
                for gone in self._found.keys() - used:
                    del self._found[gone]
                for path in sorted(used - self._under_way):
                    self._under_way.add(path)
                    tasks.start_soon(self._check, path)
                self._wakeup = anyio.Event()
                with anyio.move_on_after(self.interval):
                    await self._wakeup.wait()

    async def _check(self, path: str) -> None:
        try:
            content = await self._read(path)
            known = self._found.get(path)
            if known == content:
                return
            if known is not None:
                await anyio.sleep(SETTLING)
                if content != await self._read(path):
                    return  # it is still being written: the next read gets it
        finally:
            self._under_way.discard(path)
        self._found[path] = content
        log.info("kubeconfig file read", path=path, error=content if isinstance(content, str) else None)
        self.changed(path)

    async def _read(self, path: str) -> bytes | str:
        limiter = anyio.CapacityLimiter(1)  # its own: blocked threads take none from other files
        run = anyio.to_thread.run_sync
        try:
            return await run(read_kubeconfig, path, self.prefix, abandon_on_cancel=True, limiter=limiter)
        except KubeconfigError as error:
            return str(error)


def read_kubeconfig(path: str, prefix: str = KUBECONFIG_PREFIX) -> bytes:
    """Read a kubeconfig below `prefix`. Blocks: call it in a thread.

    Raises:
        KubeconfigError: Kueue's reason and words where Kueue has the same rule.
    """
    clean = _cleaned(path)
    if problem := _problem(clean):
        raise KubeconfigError(_REASON, problem)
    try:
        real_prefix = os.path.realpath(prefix, strict=True)
    except (OSError, ValueError):
        raise KubeconfigError(_REASON, f'{_OUTSIDE}"{clean}" is not under "{prefix}"') from None
    try:
        real = os.path.realpath(clean, strict=True)
    except (OSError, ValueError) as error:  # a ValueError for a NUL
        raise KubeconfigError(_REASON, f"cannot resolve kubeconfig path symlinks: {_why(clean, error)}") from None
    if not real.startswith(real_prefix.rstrip("/") + "/"):
        raise KubeconfigError(_REASON, f'{_OUTSIDE}"{real}" is not under "{real_prefix}"')
    try:
        return _read_regular(real, clean)
    except OSError as error:
        raise KubeconfigError(_REASON, f"cannot read kubeconfig: {_why(clean, error)}") from None


def _cleaned(path: str) -> str:
    """The path without `.`, `..` and double slashes, as far as that can be told without looking at links."""
    return posixpath.normpath("/" + path.lstrip("/") if path.startswith("/") else path) if path else ""


def _problem(path: str) -> str:
    """What is wrong with a cleaned path, in Kueue's words; empty if nothing is."""
    if not path:
        return "kubeconfig path must not be empty"
    if ".." in path.split("/"):
        return f'{_OUTSIDE}path contains ".."'
    return "" if path.startswith("/") else f"{_OUTSIDE}path must be absolute"


def _read_regular(real: str, path: str) -> bytes:
    if not stat.S_ISREG(os.lstat(real).st_mode):  # before opening: that alone can have an effect on a device
        raise KubeconfigError(_REASON, f'kubeconfig path "{path}" is not a regular file')
    # Without waiting, should it have become a pipe in between, and without following a link it has become.
    with open(os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise KubeconfigError(_REASON, f'kubeconfig path "{path}" is not a regular file')
        content = file.read(MAX_SIZE + 1)
    if len(content) > MAX_SIZE:
        raise KubeconfigError(_REASON, f'kubeconfig file "{path}" is larger than {MAX_SIZE} bytes')
    return content


def _why(path: str, error: OSError | ValueError) -> str:
    if isinstance(error, ValueError):  # Python's own words differ between its versions
        return f"{path!r}: it has a character that no path can have"
    return f"{error.filename or path}: {(error.strerror or type(error).__name__).lower()}"
