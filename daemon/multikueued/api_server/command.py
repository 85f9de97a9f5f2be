"""`multikueue api-server`: jobs, their logs, and the fleet as an aggregated API of the manager cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import click

from multikueue.core.model.names import ObjectKey
from multikueue.core.model.quantities import exact
from multikueued.api_server.running import Options, serve
from multikueued.commands.options import (
    DAEMON_NAMESPACE,
    MANAGER_OPTIONS,
    NAME,
    Duration,
    manager_config,
    namespace_option,
    settings_option,
)
from multikueued.logserver.reading import Bounds
from multikueued.page.hosted import PageOptions, is_host_name
from multikueued.serving.logs import configure_logging
from multikueued.settings.config import Settings
from multikueued.settings.file import load_settings

F = TypeVar("F", bound=Callable[..., Any])

DEFAULTS: Final = Bounds()


class WorkerSecret(click.ParamType[tuple[str, str]]):
    """`WORKER=SECRET`."""

    name = "worker=secret"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Read it."""
        worker, _, secret = str(value).partition("=")
        if not worker or not secret:
            self.fail(f"{value!r} is not WORKER=SECRET, as oslo=multikueue-logs-oslo", param, ctx)
        return worker, secret


class Size(click.ParamType[int]):
    """Bytes, written as Kubernetes writes quantities: `256Mi`."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it."""
        try:
            size = int(exact(str(value))[0])
        except ValueError:
            size = 0
        if size < 1:
            self.fail(f"{value!r} is not a size: write it like 256Mi", param, ctx)
        return size


class Host(click.ParamType[str]):
    """A name by which browsers reach a server; an empty one is none."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read it."""
        host = str(value)
        if host and not is_host_name(host):
            self.fail(
                f"{host!r} is not a name: write it like multikueue.example.com, without scheme and port", param, ctx
            )
        return host


class Span(Duration):
    """A duration that is longer than none."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it."""
        seconds = super().convert(value, param, ctx)
        if seconds <= 0:
            self.fail("every answer would end at once: write it like 1h", param, ctx)
        return seconds


_WHERE: Final = (
    *MANAGER_OPTIONS,
    namespace_option("Of its Secrets and its Service. Without it: the pod's own."),
    click.option(
        "--worker",
        "workers",
        type=WorkerSecret(),
        multiple=True,
        help="A worker, and the Secret with "
        "the kubeconfig for it, under the key kubeconfig. Repeat it for each worker.",
    ),
    click.option(
        "--daemon-namespace",
        type=NAME,
        default=DAEMON_NAMESPACE,
        show_default=True,
        help="Where the daemon has the Secret with the key of marks.",
    ),
    click.option(
        "--daemon-name",
        type=NAME,
        default=str(Settings().name),
        show_default=True,
        help="The daemon's setting name, after which that Secret, its Lease and the ConfigMap of findings are named.",
    ),
    settings_option(
        "The daemon's settings. It logs as they say, requests at info; with mirrorPods.logs in them it also "
        "answers for logs of mirrors."
    ),
    click.option(
        "--origin", type=NAME, default=str(Settings().origin), show_default=True, help="The daemon's setting origin."
    ),
    click.option(
        "--service",
        type=NAME,
        default="multikueue-logs",
        show_default=True,
        help="The Service in front of it. A Secret of the same name must exist, in which it keeps the certificate "
        "that it makes.",
    ),
    click.option(
        "--cert-dir",
        default="",
        help="A folder with tls.crt and tls.key, which somebody else renews. "
        "Then it makes none, and leaves the APIService's caBundle alone.",
    ),
)
"""Where its objects are."""
_PAGE: Final = (
    click.option(
        "--page-host",
        "page_hosts",
        type=Host(),
        multiple=True,
        help="Also serve the page of multikueue dashboard, for browsers that reach it by this name: people sign in "
        "with a token of the manager, and see what they may. Repeat it for each name.",
    ),
    click.option("--page-address", default="", help="Where the page listens. Without it: all addresses."),
    click.option("--page-port", type=click.IntRange(0, 65_535), default=8444, show_default=True, help="Of the page."),
    click.option(
        "--page-cert-dir",
        default="",
        help="A folder with tls.crt and tls.key for the page. Without it the page listens on the loopback alone.",
    ),
)
"""Where the page is."""
_BOUNDS: Final = (
    click.option("--bind-address", "address", default="", help="Without it: all addresses."),
    click.option("--port", type=click.IntRange(0, 65_535), default=8443, show_default=True, help="HTTPS."),
    click.option(
        "--max-streams",
        "streams",
        type=click.IntRange(1, 512),
        default=32,
        show_default=True,
        help="Logs that are read at a time, and as many lists; half of them of one namespace.",
    ),
    click.option(
        "--max-streams-per-user",
        "streams_per_user",
        type=click.IntRange(1),
        default=4,
        show_default=True,
        help="Of these, by one user.",
    ),
    click.option(
        "--max-bytes", type=Size(), default=f"{DEFAULTS.size >> 20}Mi", show_default=True, help="Of one answer."
    ),
    click.option("--max-time", type=Span(), default="1h", show_default=True, help="That one answer may take."),
)
"""What its clients may take."""


def _options(command: F) -> F:
    """All of them."""
    for option in reversed((*_WHERE, *_PAGE, *_BOUNDS)):
        command = option(command)
    return command


def _page(hosts: tuple[str, ...], address: str, port: int, cert_dir: str) -> PageOptions | None:
    return PageOptions(hosts, port, address, cert_dir) if hosts else None


@click.command("api-server")
@_options
def api_server(
    workers: tuple[tuple[str, str], ...],
    daemon_namespace: str,
    daemon_name: str,
    config_file: Path | None,
    max_bytes: int,
    max_time: float,
    **options: Any,
) -> None:
    """Serve jobs, their logs, and the fleet as an API of the manager cluster, until told to stop.

    Users need no credentials of workers, and no access to Secrets: the manager's API server says who they are and what
    they may. It runs beside the daemon, in a process of its own, with credentials of its own for workers, as
    multikueue rbac logs-worker grants them. It is called through an APIService by API servers alone, but for the page.
    """
    manager = manager_config(options.pop("kubeconfig"), options.pop("context"))
    settings = load_settings(config_file).settings
    daemon = Settings(namespace=daemon_namespace, name=daemon_name, mirror_pods=settings.mirror_pods)
    chosen = Options(
        manager=manager,
        namespace=options.pop("namespace") or manager.namespace or "default",
        workers=dict(workers),
        findings=ObjectKey(daemon_namespace, daemon.findings_config_map),
        lease=ObjectKey(daemon_namespace, str(daemon.name)),
        marks=ObjectKey(daemon_namespace, daemon.marks_secret),
        mirrors=daemon if settings.mirror_pods.logs else None,
        bounds=Bounds(max_bytes, max_time),
        page=_page(**{name: options.pop(f"page_{name}") for name in ("hosts", "address", "port", "cert_dir")}),
        **options,
    )
    configure_logging(settings.logging, sys.stderr)
    anyio.run(serve, chosen)
