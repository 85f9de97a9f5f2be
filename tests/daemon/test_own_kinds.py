"""`--config` of `multikueue demo` and `multikueue sandbox`: kinds that the user's settings declare."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
import yaml

from multikueue.errors import SettingsError
from multikueue.sandbox.kinds import AVAILABLE
from multikueued.demo.files import load_files
from multikueued.demo.jobs import drawn_job
from multikueued.demo.own_kinds import OwnKinds
from multikueued.settings.file import load_settings
from tests.daemon.test_practice import files, running
from tests.docs.blocks import ADAPTERS, blocks, program

DEMO = [sys.executable, "-m", "multikueued", "demo"]
RENDER = "externalFrameworks: [{name: Render.v1.studio.example.com%s}]"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """The settings that the page for authors of job kinds shows."""
    (text,) = re.findall(r'SETTINGS = """\n(.*?)"""', program(ADAPTERS), re.DOTALL)
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    return file


@pytest.fixture
def trailer(tmp_path: Path) -> Path:
    """The job that it shows."""
    (text,) = (text for text in blocks(ADAPTERS, "yaml") if "apiVersion" in text)
    file = tmp_path / "trailer.yaml"
    file.write_text(text)
    return file


@pytest.mark.gate
@pytest.mark.timeout(90)
@pytest.mark.parametrize("own", [False, True], ids=["drawn", "of a file"])
def test_the_kind_of_the_page_runs_to_its_end(settings: Path, trailer: Path, own: bool) -> None:
    arguments = ["-f", str(trailer)] if own else ["--jobs", "3"]
    done = subprocess.run(
        [*DEMO, "--config", str(settings), *arguments, "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outcome = orjson.loads(done.stdout.splitlines()[-1])
    jobs = 1 if own else 3
    assert (outcome["jobs"], outcome["finished"], outcome["failed"], outcome["leftovers"]) == (jobs, jobs, 0, 0)


@pytest.mark.gate
async def test_the_sandboxs_daemon_has_the_declaration_and_its_sample_can_be_submitted(
    settings: Path, tmp_path: Path
) -> None:
    with running(tmp_path, "--config", str(settings)) as (process, lines):
        written = files(tmp_path)
        declared = [load_settings(file).settings.external_frameworks for file in (written["daemon.yaml"], settings)]
        (sample,) = load_files([written["render.yaml"]], OwnKinds.declared_in(settings).available).jobs
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert declared[0] == declared[1]
    assert sample.cpus == 1
    assert any("get renders" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("namespace: a", "settings.yaml: declares no kind of job: list yours under externalFrameworks"),
        (
            RENDER % ", finished: object.status.frames > object.spec.frames",
            "settings.yaml: externalFrameworks[0].finished: object.status.frames > object.spec.frames: no status",
        ),
        (RENDER % ", finished: object.status.", "settings.yaml: externalFrameworks[0].finished: "),
    ],
)
def test_settings_that_do_not_help_are_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        OwnKinds.declared_in(file)
    assert str(caught.value).startswith(f"{tmp_path}/{message}")
    assert "\n" not in str(caught.value)


def test_a_job_that_cannot_be_copied_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    """It would be Rejected, and wait until the demo gives up."""
    file = tmp_path / "settings.yaml"
    file.write_text(RENDER % ", creationPatches: [{op: remove, path: /spec/license}]")
    own = OwnKinds.declared_in(file)
    (kind,) = own.named(())
    with pytest.raises(SettingsError, match=r'Render "mine" cannot be copied: .*creationPatches\[0\].*: give another'):
        own.check_copies([drawn_job(kind, "mine", 1)], advice="give another")


def test_kinds_are_found_by_name_the_declared_ones_without_one(settings: Path) -> None:
    own = OwnKinds.declared_in(settings)
    assert [kind.name for kind in own.named(())] == ["render"]
    assert [kind.name for kind in own.named(["Render", "job"])] == ["render", "job"]
    assert len(own.named(["all"])) == len(AVAILABLE) + 1
    assert [kind.name for kind in OwnKinds().named(())] == ["job"]


@pytest.mark.parametrize(
    ("declared", "ready"),
    [
        ("{name: PipelineRun.v1.tekton.dev}", True),
        ("{name: Workflow.v1alpha1.argoproj.io, syncPatches: []}", True),
        ("{name: Workflow.v1alpha1.argoproj.io, managedByPath: .spec.by, finished: object.status.phase == 'X'}", False),
    ],
)
def test_a_kind_that_the_sandbox_has_is_its_own_where_the_declaration_fits_it(
    tmp_path: Path, declared: str, ready: bool
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump({"externalFrameworks": [yaml.safe_load(declared)]}))
    (kind,) = OwnKinds.declared_in(file).named(())
    assert (kind in AVAILABLE) is ready
