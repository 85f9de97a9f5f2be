"""Builds programs that tests start from their public Go modules.

No line of Go is ours: each folder of `go` has module files that pin the versions, and the programs are their tools.
kubernetes' own `go.mod` replaces its staging modules by folders, which Go ignores in a dependency; so ours
replaces each of them by its published version.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from tests.controlplane.binaries import (
    APISERVER_FILE,
    CONTROLLERS_FILE,
    ETCD_FILE,
    HELM_FILE,
    HELM_VERSION,
    KUBECTL_FILE,
    KUBERNETES,
    OAUTH2_PROXY_FILE,
    OAUTH2_PROXY_VERSION,
)
from tests.controlplane.errors import BuildFailed

_MODULES = Path(__file__).with_name("go")
_STAMP = "built-from"
_VERSION = "k8s.io/component-base/version"
_MAJOR, _MINOR, _ = KUBERNETES.removeprefix("v").split(".")
# Without these the API server says that its version is v0.0.0-master.
_PLAIN_LDFLAGS = "-s -w"
_KUBERNETES_LDFLAGS = (
    f"{_PLAIN_LDFLAGS} -X {_VERSION}.gitVersion={KUBERNETES} "
    f"-X {_VERSION}.gitMajor={_MAJOR} -X {_VERSION}.gitMinor={_MINOR}"
)
# As Helm's Makefile does: else it renders for Kubernetes 1.20.
_HELM_KUBERNETES = ("helm.sh/helm/v3/pkg/chartutil", "helm.sh/helm/v3/pkg/lint/rules")
_HELM_LDFLAGS = " ".join(
    (
        f"{_PLAIN_LDFLAGS} -X helm.sh/helm/v3/internal/version.version={HELM_VERSION}",
        *(
            f"-X {package}.k8sVersionMajor={_MAJOR} -X {package}.k8sVersionMinor={_MINOR}"
            for package in _HELM_KUBERNETES
        ),
    )
)


@attrs.frozen
class Module:
    """A folder with module files, and what `go build` makes from it."""

    folder: str
    """Below `root`."""
    files: tuple[str, ...]
    package: str
    """Or `tool`, for all tools of the module files."""
    about: str
    """Said before it is built."""
    ldflags: str = _PLAIN_LDFLAGS
    root: Path = _MODULES
    """Where the folder is."""
    manifests: tuple[tuple[str, str], ...] = ()
    """Files to keep beside the programs: the name of a Go module, and the path of a file in it."""

    @property
    def path(self) -> Path:
        """The folder with the module files."""
        return self.root / self.folder

    @property
    def products(self) -> tuple[str, ...]:
        """The names of all that is kept."""
        return (*self.files, *(Path(file).name for _, file in self.manifests))

    def target(self, into: Path) -> list[str]:
        """The arguments of `go build`: what to build, into that folder."""
        output = f"{into}/" if len(self.files) > 1 else str(into / self.files[0])
        return ["-ldflags", self.ldflags, "-o", output, self.package]


ETCD: Final = Module(
    "etcd",
    (ETCD_FILE,),
    "go.etcd.io/etcd/server/v3",
    "etcd (about 1 minute on 2 cores, the first time)",
)
APISERVER: Final = Module(
    "kubernetes",
    (APISERVER_FILE, CONTROLLERS_FILE),
    "tool",
    "kube-apiserver and kube-controller-manager (about 5 minutes on 2 cores, the first time)",
    _KUBERNETES_LDFLAGS,
)
CONTROL_PLANE: Final = (ETCD, APISERVER)
HELM: Final = (
    Module(
        "helm",
        (HELM_FILE,),
        "helm.sh/helm/v3/cmd/helm",
        "helm (about 3 minutes on 2 cores, the first time)",
        _HELM_LDFLAGS,
    ),
)
KUBECTL: Final = (
    Module(
        "kubectl",
        (KUBECTL_FILE,),
        "k8s.io/kubernetes/cmd/kubectl",
        "kubectl (about 1 minute on 2 cores, the first time)",
        _KUBERNETES_LDFLAGS,
    ),
)
OAUTH2_PROXY: Final = (
    Module(
        "oauth2-proxy",
        (OAUTH2_PROXY_FILE,),
        "github.com/oauth2-proxy/oauth2-proxy/v7",
        "oauth2-proxy (about 2 minutes on 2 cores, the first time)",
        f"{_PLAIN_LDFLAGS} -X github.com/oauth2-proxy/oauth2-proxy/v7/pkg/version.VERSION={OAUTH2_PROXY_VERSION}",
    ),
)


def build(
    folder: Path,
    modules: Sequence[Module] = CONTROL_PLANE,
    *,
    say: Callable[[str], None],
    environ: Mapping[str, str] = os.environ,
    force: bool = False,
) -> None:
    """Build all programs of modules into `folder`, unless they are there already, built from the same module files.

    Safe to run again, after an interruption, and twice at once (the second waits for the first). Each binary appears
    under its name only when it is complete.

    Raises:
        BuildFailed: Go is missing, or it failed.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_name(folder.name + ".lock")):
        stamp, files = _source_digest(modules), [file for module in modules for file in module.products]
        if not force and _is_built(folder, stamp, files):
            say(f"{folder}: already built")
            return
        go = shutil.which("go", path=environ.get("PATH", ""))
        if go is None:
            raise BuildFailed(
                f"Go is needed to build {' and '.join(files)}, and there is no `go` on the PATH. "
                "Install Go 1.26 or newer, or set KUBEBUILDER_ASSETS to a folder with the control plane's binaries."
            )
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as temporary:
            for module in modules:
                say(f"building {module.about}")
                _go_build(go, module.path, module.target(Path(temporary)), environ)
                _copy_manifests(go, module, Path(temporary), environ)
            _move(Path(temporary), folder, stamp, files)
        say(f"{folder}: built")


def _go_build(go: str, module: Path, target: list[str], environ: Mapping[str, str]) -> None:
    # No cgo: the same binaries with and without a C compiler. -mod=readonly: the committed sums hold.
    command = [go, "build", "-trimpath", "-mod=readonly", *target]
    result = subprocess.run(command, cwd=module, env={**environ, "CGO_ENABLED": "0", "GOWORK": "off"}, check=False)
    if result.returncode != 0:
        raise BuildFailed(
            f"`go build` failed in {module} with code {result.returncode}; its own words are above. It needs "
            "Go 1.26 or newer, a Go module proxy (GOPROXY), about 6 GB of disk for Go's caches and 3 GB of memory."
        )


def _copy_manifests(go: str, module: Module, into: Path, environ: Mapping[str, str]) -> None:
    """Copy a module's manifests out of Go's cache, which may be cleaned."""
    for name, file in module.manifests:
        command = [go, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", name]
        settings = {**environ, "GOWORK": "off"}
        result = subprocess.run(command, cwd=module.path, env=settings, capture_output=True, check=False)
        source = Path(result.stdout.decode().strip()) / file
        if result.returncode != 0 or not source.is_file():
            raise BuildFailed(f"{name} has no {file}: {source} is not there. {result.stderr.decode().strip()}")
        shutil.copyfile(source, into / source.name)


def _move(source: Path, folder: Path, stamp: str, files: Sequence[str]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / _STAMP).unlink(missing_ok=True)
    for file in files:
        (source / file).replace(folder / file)
    (folder / _STAMP).write_text(stamp)


def _is_built(folder: Path, stamp: str, files: Sequence[str]) -> bool:
    try:
        return (folder / _STAMP).read_text() == stamp and all((folder / file).exists() for file in files)
    except FileNotFoundError:
        return False


def _source_digest(modules: Sequence[Module]) -> str:
    digest = hashlib.sha256()
    for module in modules:  # what is built plainly changes with its module files only
        digest.update(module.ldflags.encode() if module.ldflags != _PLAIN_LDFLAGS else b"")
    for module in modules:
        for file in sorted(module.path.glob("go.*")):
            digest.update(file.read_bytes())
        digest.update("".join(file for _, file in module.manifests).encode())
    return digest.hexdigest()


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
