"""Assignments that mypy checks: what implements which seam. Running it proves nothing more."""

from __future__ import annotations

from multikueue.adapters import SafeAdapter
from multikueue.core.model.adapter import JobAdapter
from multikueue.kube import KubeClient, RequestHook
from multikueue.kube.credentials import PluginToken, StaticToken, TokenFile, TokenSource
from multikueue.kube.reflector import ListerWatcher
from multikueue.protocols import ApiClient, Reader, Watcher, Writer
from multikueue.runtime.discovery import Discoverer
from multikueue.sandbox.apiserver import DirectClient, Registry
from multikueued.metrics import Metrics


def clients(over_http: KubeClient, in_memory: DirectClient) -> tuple[ApiClient, ApiClient]:
    """Both clients can do everything a server can be asked."""
    return over_http, in_memory


def parts(client: ApiClient) -> tuple[Reader, Watcher, Writer, ListerWatcher]:
    """A whole client serves whoever needs a part."""
    return client, client, client, client


def adapters(safe: SafeAdapter) -> JobAdapter:
    """What a registry gives out is what a decision asks."""
    return safe


def discoverers(client: KubeClient) -> Discoverer:
    """The manager's client tells how it has a kind."""
    return client


def tokens(fixed: StaticToken, file: TokenFile, plugin: PluginToken) -> tuple[TokenSource, TokenSource, TokenSource]:
    """All of them are asked in the same way."""
    return fixed, file, plugin


def hooks(metrics: Metrics) -> RequestHook:
    """The daemon's metrics see every request."""
    return metrics


def test_the_client_in_memory_stands_where_any_client_is_wanted() -> None:
    """The rest of this file is for the type checker, which reads it under `mypy --strict`."""
    client = DirectClient(Registry())
    assert parts(client) == (client,) * 4
