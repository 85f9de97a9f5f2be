"""The command `multikueue sandbox`."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import click
import yaml

from multikueue import Json
from multikueue.core.model.kinds import SECRET
from multikueue.kube.kubernetes_yaml import KubernetesDumper
from multikueue.sandbox import Sandbox, SandboxOptions
from multikueue.sandbox.kinds import SandboxKind
from multikueue.sandbox.objects import built
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from multikueued.commands.options import kind_option
from multikueued.demo.jobs import frameworks_of
from multikueued.demo.kept_clusters import kept_folder, sample, until_stopped, write_kubeconfig
from multikueued.demo.own_kinds import OwnKinds, config_option
from multikueued.rbac.mirrors import mirror_policy_objects
from multikueued.settings.config import Settings
from multikueued.settings.file import written

DAEMON: Final = {
    "namespace": KUEUE_NAMESPACE,
    "logging": {"format": "console"},
    "serving": {"bindAddress": "127.0.0.1", "port": 0},
}
"""Settings of a daemon on this machine, for the clusters of a sandbox; there may be several of both."""
API_SECRET: Final = "multikueue-logs"
"""With the certificate of `multikueue api-server`."""


@click.command("sandbox")
@click.option("--workers", type=click.IntRange(1, 20), default=2, show_default=True, help="Worker clusters.")
@click.option("--port", type=click.IntRange(0, 65_000), default=0, help="Port of the manager's API server; 0: any.")
@click.option("--pods", is_flag=True, help="Give jobs pods with logs, to practise multikueue pods and logs.")
@kind_option("Know this kind, such as rayjob; may be given more than once; all for every kind.")
@config_option
@click.option("--bare", is_flag=True, help="Leave it to you to add the workers to the manager.")
def sandbox(workers: int, port: int, pods: bool, kind_names: tuple[str, ...], config: Path | None, bare: bool) -> None:
    """Bring clusters up to practise on, until Ctrl-C.

    A manager and workers, with Kueue and queues on each, inside this process: API servers that speak HTTPS, with RBAC
    for service accounts. No dispatcher runs: start one beside it, or watch what happens without. Kubeconfigs and sample
    files are in a folder of their own, which goes with the clusters.
    """
    options = SandboxOptions(port=port, join=not bare, roles=True, pods=pods)
    own = OwnKinds.declared_in(config)
    kinds = own.named(kind_names)
    anyio.run(_practise, Sandbox(workers, options=options, kinds=kinds), kinds, own)


async def _practise(clusters: Sandbox, kinds: Sequence[SandboxKind], own: OwnKinds) -> None:
    async with clusters:
        if shows_pods(clusters):
            _prepare_mirrors(clusters)
        # The receiver first: a signal must not end the process and leave the folder behind, because it holds tokens.
        with until_stopped() as stopped, kept_folder("multikueue-sandbox-") as folder:
            await _write(clusters, folder, kinds, own)
            click.echo("\n".join(instructions(clusters, folder, kinds)))
            await stopped()


def shows_pods(clusters: Sandbox) -> bool:
    """Whether the settings have the manager show the pods of workers: there are some, and the workers are known."""
    return clusters.options.pods and clusters.options.join


def daemon_settings(clusters: Sandbox) -> dict[str, Any]:
    """What is set for a daemon of these clusters, but for their kinds: where jobs have pods, the manager shows them.

    It shows them also when they have ended. The port for their logs is a free one: each sandbox has its own.
    """
    if not shows_pods(clusters):
        return dict(DAEMON)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    return DAEMON | {
        "mirrorPods": {"logs": True, "exec": True, "port": port},
        "retention": {"finished": "10m", "failed": "1h"},
    }


def _prepare_mirrors(clusters: Sandbox) -> None:
    """What the chart brings: the Secrets of who answers for logs, and the policy that bounds who makes mirrors."""
    settings = Settings(namespace=KUEUE_NAMESPACE)
    secrets = (API_SECRET, settings.mirrors_certificate_secret)
    for obj in (
        *(built(SECRET, name, KUEUE_NAMESPACE) for name in secrets),
        *mirror_policy_objects(settings.mirrors_policy, "admin"),
    ):
        clusters.manager.server.registry.create_object(obj)


async def _write(clusters: Sandbox, folder: Path, kinds: Sequence[SandboxKind], own: OwnKinds) -> None:
    kubeconfigs = {cluster.name: cluster.kubeconfig for cluster in clusters.clusters}
    await write_kubeconfig(folder / "kubeconfig.yaml", merged(kubeconfigs.values()))
    for name, kubeconfig in kubeconfigs.items():
        await write_kubeconfig(folder / f"{name}.yaml", kubeconfig)
    for kind in kinds:
        await anyio.Path(folder / f"{kind.name}.yaml").write_text(sample(kind))
    frameworks, declared = frameworks_of(clusters.kinds, own.declarations)
    kinds_of = {
        "integrations": {"frameworks": frameworks},
        "externalFrameworks": [written(declaration) for declaration in declared],
    }
    settings = daemon_settings(clusters) | kinds_of
    await anyio.Path(folder / "daemon.yaml").write_text(yaml.dump(settings, Dumper=KubernetesDumper, sort_keys=False))


def instructions(clusters: Sandbox, folder: Path, kinds: Sequence[SandboxKind]) -> list[str]:
    """What is there and what to try."""
    bare, pods = not clusters.options.join, shows_pods(clusters)
    names = [cluster.name for cluster in clusters.clusters]
    first = names[1]
    add = [f"  multikueue worker add {name} --worker-context {name} --outside" for name in names[1:]]
    return [
        f"Up until you press Ctrl-C: {', '.join(names)}. Each has a context of its name; no dispatcher runs.",
        "",
        "In other terminals:",
        f"  export KUBECONFIG={folder / 'kubeconfig.yaml'}",
        f"  multikueue run --config {folder / 'daemon.yaml'}",
        *([f"  {_api_server(names[1:], folder)}"] if pods else ()),
        *(add if bare else ()),
        "",
        "Try:",
        f"  kubectl create -f {folder / kinds[0].name}.yaml",
        *(
            [f"  kubectl create -f {folder}/KIND.yaml   # {', '.join(kind.name for kind in kinds)}"]
            if kinds[1:]
            else ()
        ),
        *(["  kubectl logs -f job/NAME   # once it runs; by the name that create has printed"] if pods else ()),
        "  multikueue status --watch",
        f"  kubectl --context {first} get {kinds[0].resource.plural}",
        f"  kubectl --context {first} create serviceaccount robot",
        f"  kubectl --context {first} auth can-i list jobs --as system:serviceaccount:default:robot",
        "  kubectl explain job.spec",
        "",
        f"A kubeconfig for each cluster alone: {folder}/NAME.yaml",
    ]


def _api_server(workers: Iterable[str], folder: Path) -> str:
    """The command that answers for logs on the manager."""
    named = " ".join(f"--worker {name}={name}-secret" for name in workers)
    where = f"--namespace {KUEUE_NAMESPACE} --daemon-namespace {KUEUE_NAMESPACE} --bind-address 127.0.0.1 --port 0"
    return f"multikueue api-server --config {folder / 'daemon.yaml'} {where} {named}"


def merged(kubeconfigs: Iterable[Json]) -> Json:
    """A kubeconfig with the contexts of all; the first one's is current.

    Args:
        kubeconfigs: each with one cluster, one user and one context. Users may have the same name: they get the
            cluster's before it.
    """
    together: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "current-context": ""}
    lists: dict[str, list[Json]] = {"clusters": [], "contexts": [], "users": []}
    for kubeconfig in kubeconfigs:
        (cluster,), (user,), (context,) = kubeconfig["clusters"], kubeconfig["users"], kubeconfig["contexts"]
        name = f"{cluster['name']}-{user['name']}"
        lists["clusters"].append(cluster)
        lists["users"].append({**user, "name": name})
        lists["contexts"].append({**context, "context": {**context["context"], "user": name}})
        together["current-context"] = together["current-context"] or kubeconfig["current-context"]
    return {**together, **lists}
