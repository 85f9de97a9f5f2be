"""The guides and the page for authors of job kinds: their code runs as it stands, a dispatcher in the daemon, too."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from multikueue.adapters import BUILTIN, AdapterRegistry
from multikueue.kube import ClusterConfig, KubeClient
from multikueue.runtime.plugins import DISPATCHER_GROUP
from multikueued.metrics.hooks import Metrics
from multikueued.run.daemon import build_manager
from multikueued.settings.file import parse_settings
from tests.docs.blocks import ADAPTERS, GUIDES, ROOT, blocks, program
from tests.examples import shared

DISPATCHER = ROOT / "docs" / "guides" / "dispatcher.md"


@pytest.mark.parametrize("guide", shared([*GUIDES, ADAPTERS], lambda guide: guide.stem))
def test_the_code_runs_from_top_to_bottom(tmp_path: Path, guide: Path) -> None:
    """As somebody would try it: pasted into a file, in an empty folder, with the library installed."""
    script = tmp_path / "program.py"
    script.write_text(program(guide))
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'daemon'}", "PATH": ""}
    command = [sys.executable, "-W", "error", str(script)]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=28, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]


async def test_the_daemon_uses_the_dispatcher_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed as its `pyproject.toml` says, and chosen by the settings beside it."""
    (project,), (settings,) = map(tomllib.loads, blocks(DISPATCHER, "toml")), blocks(DISPATCHER, "yaml")
    (points,) = project["project"]["entry-points"].items()
    (module,) = project["tool"]["setuptools"]["py-modules"]
    installed = tmp_path / "acme_dispatching-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-dispatching\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in points[1].items()]
    (installed / "entry_points.txt").write_text("\n".join([f"[{points[0]}]", *lines]))
    (tmp_path / f"{module}.py").write_text(blocks(DISPATCHER, "python")[0])
    monkeypatch.syspath_prepend(tmp_path)

    client = KubeClient(ClusterConfig("https://manager.example.com"), name="manager")
    manager = build_manager(parse_settings(settings), client, Metrics("standalone"), b"", AdapterRegistry(BUILTIN))

    assert points[0] == DISPATCHER_GROUP
    assert list(points[1]) == [yaml.safe_load(settings)["dispatcher"]["name"]]
    assert type(manager.dispatcher).__name__ == "ByTeam"


def test_the_fixture_that_is_shown_is_set_up_and_torn_down(tmp_path: Path) -> None:
    """By anyio's plugin; pytest-asyncio's is beside it, as in most projects."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    (tmp_path / "test_page.py").write_text(program(ROOT / "docs" / "reference" / "testing.md"))
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'daemon'}", "PATH": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", str(tmp_path)]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=28, check=False
    )
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert "1 passed" in ran.stdout
