"""`multikueue run`: the daemon for a cluster that exists."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import anyio
import click
import structlog

from multikueue.kube import load_incluster
from multikueued.commands.options import CONTEXT, FILE, kubeconfig_option, named_cluster
from multikueued.exits import known_error
from multikueued.run.daemon import serve
from multikueued.run.leadership import collected_rarely
from multikueued.run.memory import small_buffers
from multikueued.serving.logs import configure_logging
from multikueued.settings.dispatcher import chosen_dispatcher
from multikueued.settings.file import Loaded, load_settings
from multikueued.settings.kinds import chosen_kinds
from multikueued.settings.kueue_configuration import Remark


@click.command()
@click.option("--config", "config", type=FILE, help="Settings, in YAML. Without it every setting has its default.")
@kubeconfig_option(
    "How to reach the manager cluster: a file, or several, merged. Without it: the pod's service account."
)
@CONTEXT
@click.option("--check", is_flag=True, help="Only say what is wrong with the settings: no cluster is needed.")
@click.option(
    "--uvloop", is_flag=True, help="Run on uvloop, which mixes up connections that are given up: see the docs."
)
def run(config: Path | None, kubeconfig: str | None, context: str | None, check: bool, uvloop: bool) -> None:
    """Dispatch the jobs of a manager cluster until told to stop.

    Logs go to standard error; health and metrics are served on one port. With --check it ends at once: with 2 if the
    settings cannot be used, and with 0 if they can.
    """
    if check and config is None:
        raise click.UsageError("--check is about a file: name it with --config")
    if context is not None and kubeconfig is None and not check:
        raise click.UsageError("--context names a context of a kubeconfig: name that with --kubeconfig, too")
    if uvloop and importlib.util.find_spec("uvloop") is None:
        raise click.UsageError("--uvloop needs the package uvloop: pip install 'multikueue[uvloop]'")
    loaded = load_settings(config)
    settings = loaded.settings
    if check:
        _checked(loaded)
        return
    manager = named_cluster(kubeconfig, context) if kubeconfig else load_incluster(os.environ)
    configure_logging(settings.logging, sys.stderr)
    _tell(loaded.remarks)
    try:
        with collected_rarely(), small_buffers():
            anyio.run(serve, settings, manager, backend_options={"use_uvloop": uvloop})
    except Exception as error:
        if known_error(error) is None:  # a bug: the traceback goes to the log only
            structlog.get_logger(__name__).error("internal error", exc_info=error)
        raise


def _checked(loaded: Loaded) -> None:
    """Say what there is to say of settings; what installed packages bring is looked at, too.

    Raises:
        SettingsError: an installed package's dispatcher cannot be used.
        AdapterError: an installed package's job kind cannot be used.
    """
    chosen_kinds(loaded.settings)
    chosen_dispatcher(loaded.settings)
    for remark in loaded.remarks:
        click.echo(f"{remark.setting}: {remark.why}")
    click.echo("These settings can be used.")


def _tell(remarks: Iterable[Remark]) -> None:
    log = structlog.get_logger(__name__)
    for remark in remarks:
        tell = log.warning if remark.important else log.info
        tell("remark on a setting", setting=remark.setting, why=remark.why)
