"""Where the control plane's binaries are."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import attrs

from tests.controlplane.errors import BinariesMissing

KUBERNETES = "v1.36.3"
ETCD_FILE = "etcd"
APISERVER_FILE = "kube-apiserver"
CONTROLLERS_FILE = "kube-controller-manager"
HELM_VERSION = "v3.18.6"
HELM_FILE = "helm"
KUBECTL_FILE = "kubectl"
OAUTH2_PROXY_VERSION = "v7.15.6"
OAUTH2_PROXY_FILE = "oauth2-proxy"
FILES = (ETCD_FILE, APISERVER_FILE, CONTROLLERS_FILE)
ASSETS_VARIABLE = "KUBEBUILDER_ASSETS"

_HOW = f"""\
To get it, do one of these:
- run `nox -s controlplane` once: it builds them with Go (about 6 minutes on 2 cores), then they stay in the cache;
- set {ASSETS_VARIABLE} to a folder that has them, as controller-runtime's `setup-envtest use -p path` prints it;
- with Docker and the `kind` CLI: run the tests with `--provider kind`."""


@attrs.frozen
class Binaries:
    """Paths of the programs. `controllers` is None where only envtest's assets are there: they lack it."""

    etcd: Path
    apiserver: Path
    controllers: Path | None

    def controllers_or_raise(self) -> Path:
        """Return kube-controller-manager's path.

        Raises:
            BinariesMissing: there is none.
        """
        if self.controllers is None:
            raise BinariesMissing(f"{CONTROLLERS_FILE} is missing, beside {self.apiserver} and in the cache.\n{_HOW}")
        return self.controllers


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where built binaries are kept: outside the repository, one folder per Kubernetes version."""
    base = environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "multikueue" / f"controlplane-{KUBERNETES}"


def helm_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where Helm is kept once it is built."""
    return cache_folder(environ).with_name(f"helm-{HELM_VERSION}")


def kubectl_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where kubectl is kept once it is built."""
    return cache_folder(environ).with_name(f"kubectl-{KUBERNETES}")


def find_helm(environ: Mapping[str, str] = os.environ) -> Path:
    """Helm: the one that was built, else the one on the PATH.

    Raises:
        BinariesMissing: there is none.
    """
    return _built_or_on_path(helm_folder(environ) / HELM_FILE, environ)


def find_kubectl(environ: Mapping[str, str] = os.environ) -> Path:
    """kubectl: the one that was built, else the one on the PATH.

    Raises:
        BinariesMissing: there is none.
    """
    return _built_or_on_path(kubectl_folder(environ) / KUBECTL_FILE, environ)


def oauth2_proxy_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where oauth2-proxy is kept once it is built."""
    return cache_folder(environ).with_name(f"oauth2-proxy-{OAUTH2_PROXY_VERSION}")


def find_oauth2_proxy(environ: Mapping[str, str] = os.environ) -> Path:
    """oauth2-proxy: the one that was built, else the one on the PATH.

    Raises:
        BinariesMissing: there is none.
    """
    return _built_or_on_path(oauth2_proxy_folder(environ) / OAUTH2_PROXY_FILE, environ)


def _built_or_on_path(built: Path, environ: Mapping[str, str]) -> Path:
    path = str(built) if os.access(built, os.X_OK) else shutil.which(built.name, path=environ.get("PATH", ""))
    if path is None:
        what = f"No {built.name} in {built.parent}, nor on the PATH"
        raise BinariesMissing(f"{what}. Run `nox -s controlplane` once, with Go.")
    return Path(path)


def find(environ: Mapping[str, str] = os.environ) -> Binaries:
    """Find each binary: in `$KUBEBUILDER_ASSETS` first, then in the cache.

    Raises:
        BinariesMissing: no etcd or no kube-apiserver.
    """
    folders = [cache_folder(environ)]
    if assets := environ.get(ASSETS_VARIABLE):
        folders.insert(0, Path(assets))
    by_file = {file: _first(folders, file) for file in FILES}
    etcd, apiserver = by_file[ETCD_FILE], by_file[APISERVER_FILE]
    if etcd is None or apiserver is None:
        missing = " and ".join(file for file in (ETCD_FILE, APISERVER_FILE) if by_file[file] is None)
        looked = " and ".join(str(folder) for folder in folders)
        raise BinariesMissing(f"No {missing} in {looked}.\n{_HOW}")
    return Binaries(etcd, apiserver, by_file[CONTROLLERS_FILE])


def _first(folders: list[Path], file: str) -> Path | None:
    return next((folder / file for folder in folders if os.access(folder / file, os.X_OK)), None)
