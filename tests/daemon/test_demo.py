"""`multikueue demo`, as a user runs it: a process, its output and its exit code.

`multikueue demo --policy`: the same jobs with each dispatcher, and a table of what was counted.
"""

from __future__ import annotations

import io
import os
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path

import aiohttp
import anyio
import orjson
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from click.testing import CliRunner
from rich.console import Console

from multikueue.core.model.names import Json
from multikueue.sandbox.kinds import AVAILABLE, BATCH_JOB
from multikueued.cli import main
from multikueued.dashboard.local_port import TOKEN_HEADER
from multikueued.demo.jobs import drawn_jobs
from multikueued.demo.kept_clusters import sample
from multikueued.demo.policies import PolicyRun, table, timed

DEMO = [sys.executable, "-m", "multikueued", "demo"]
JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: mine
  labels: {kueue.x-k8s.io/queue-name: user-queue}
  annotations: {sandbox.multikueue.dev/duration: 500ms, sandbox.multikueue.dev/outcome: %s}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, resources: {requests: {cpu: 500m}}}]
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the demo to its end."""
    return subprocess.run([*DEMO, *arguments], capture_output=True, text=True, timeout=60, check=False)


def refused(*arguments: str) -> str:
    """The one line with which it ends before anything is started."""
    done = CliRunner().invoke(main, ["demo", *arguments])
    assert isinstance(done.exception, SystemExit)
    assert done.exit_code != 0
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    return done.stderr


@pytest.mark.timeout(90)
def test_every_job_finishes_on_some_worker_and_nothing_is_left_there() -> None:
    """The promise of the README's first command."""
    done = run("--jobs", "12", "--workers", "3", "--json")
    outcome = orjson.loads(done.stdout.splitlines()[-1])

    assert done.returncode == 0, done.stderr
    assert (outcome["jobs"], outcome["finished"], outcome["failed"], outcome["leftovers"]) == (12, 12, 0, 0)
    assert sum(outcome["per_cluster"].values()) == 12
    assert sum(count > 0 for count in outcome["per_cluster"].values()) > 1
    assert 0 < outcome["first_finished_s"] < outcome["seconds"]


@pytest.mark.gate
@pytest.mark.timeout(120)
def test_a_worker_that_is_taken_away_loses_its_jobs_to_others_and_none_is_left_there() -> None:
    """As the README shows it: it comes back once others have what it had, not while that waits for quota."""
    done = run("--break", "worker1", "--json")
    outcome = orjson.loads(done.stdout.splitlines()[-1])

    assert done.returncode == 0, done.stderr
    assert (outcome["finished"], outcome["failed"], outcome["leftovers"]) == (20, 0, 0)
    assert outcome["moved"] == sum(len(item["placements"]) - 1 for item in outcome["items"]) > 0
    assert sum(outcome["per_cluster"].values()) == 20, "one that has moved counts where it went"
    assert "worker1 is out of reach" in done.stderr, "progress is told where there is no terminal"


@pytest.mark.gate
def test_the_users_own_job_is_submitted_and_a_failure_is_reported(tmp_path: Path) -> None:
    """`-f` takes a file; a job that fails makes the demo fail, and says where it ran."""
    file = tmp_path / "job.yaml"
    file.write_text(JOB % "fail")
    done = run("-f", str(file))

    assert done.returncode == 1
    assert 'Job "mine" failed on worker1' in done.stdout


@pytest.mark.gate
@pytest.mark.timeout(90)
def test_jobs_of_all_kinds_finish_or_serve() -> None:
    """A job that does not end by itself is deleted when it has run for a while; that counts as success."""
    done = run("--kind", "ALL", "--workers", "3", "--json")
    outcome = orjson.loads(done.stdout.splitlines()[-1])

    assert done.returncode == 0, done.stderr
    assert (outcome["finished"], outcome["failed"], outcome["leftovers"]) == (len(AVAILABLE), 0, 0)
    for kind in ("jobset", "raycluster", "podgroup", "deployment", "leaderworkerset", "workflow"):
        assert kind in done.stderr


def test_an_unknown_kind_is_refused_in_one_line_that_lists_the_known_ones() -> None:
    message = refused("--kind", "rayjob", "--kind", "cronjob")
    assert '--kind: there is no kind "cronjob"' in message
    assert "pytorchjob" in message


@pytest.mark.gate
def test_a_file_may_hold_jobs_of_several_kinds_and_the_pods_of_a_group(tmp_path: Path) -> None:
    """What `--keep` leaves as samples can be submitted, too."""
    kinds = {kind.name: kind for kind in AVAILABLE}
    texts = [sample(kinds[name]) for name in ("podgroup", "statefulset")]
    file = tmp_path / "jobs.yaml"
    file.write_text("---\n".join(texts))
    done = run("-f", str(file), "--json")
    outcome = orjson.loads(done.stdout.splitlines()[-1])

    assert done.returncode == 0, done.stderr
    assert (outcome["jobs"], outcome["finished"], outcome["leftovers"]) == (2, 2, 0)


@pytest.mark.gate
def test_a_job_runs_beside_what_its_file_holds_else(tmp_path: Path) -> None:
    """In a namespace of its own, which the workers get, too."""
    file = tmp_path / "job.yaml"
    beside = "{apiVersion: v1, kind: ConfigMap, metadata: {name: code, namespace: team}, data: {a: b}}"
    named = (JOB % "succeed").replace("name: mine\n", "name: mine\n  namespace: team\n")
    file.write_text(f"{beside}\n---\n{named}---\n{{apiVersion: example.com/v1, kind: Other}}\n")
    done = run("-f", str(file))

    assert done.returncode == 0, done.stderr
    assert "1 of 1 jobs finished" in done.stdout
    assert "document 3: passed over: example.com/v1 Other" in done.stdout


def test_a_job_that_its_kind_refuses_is_refused_before_anything_starts(tmp_path: Path) -> None:
    """It would wait, Rejected, until the demo gives up."""
    file = tmp_path / "ray.yaml"
    made = sample({kind.name: kind for kind in AVAILABLE}["raycluster"])
    file.write_text(made.replace("spec:\n", "spec:\n  enableInTreeAutoscaling: true\n", 1))
    assert "cannot be copied: spec.enableInTreeAutoscaling is true" in refused("-f", str(file))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "not valid YAML in line 1, column 5"),
        ("- 1\n- 2", "is not a Kubernetes object"),
        ("{apiVersion: v1, kind: Secret, metadata: {name: x}}", "holds no job"),
        ("{apiVersion: batch/v1, kind: Job, spec: {}}", "has no metadata.name"),
        ("{apiVersion: batch/v1, kind: Job, metadata: {name: x}}", "has no spec"),
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {}}",
            'holds no job; {file}, document 1: passed over: v1 Pod "x" names no queue',
        ),
        (
            "{apiVersion: example.com/v1, kind: X}",
            'holds no job; {file}, document 1: passed over: example.com/v1 X "" is no kind',
        ),
        (
            "{apiVersion: batch/v1, kind: job, metadata: {name: x}, spec: {}}",
            'batch/v1 job "x" is no kind of job here; did you mean "batch/v1 Job"?',
        ),
        ("", "holds no job"),
    ],
)
def test_a_file_that_is_no_job_for_our_queue_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    """Nothing is started for input that cannot work; the line names file and fault."""
    file = tmp_path / "job.yaml"
    file.write_text(text)
    error = refused("-f", str(file))
    assert message.format(file=file) in error
    assert str(file) in error


@pytest.mark.gate
def test_a_port_in_use_is_reported_in_one_line() -> None:
    """Another program on the port: no traceback, and nothing keeps running."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("--port", str(port))

    assert done.returncode != 0
    assert str(port) in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.gate
def test_ctrl_c_ends_it_at_once_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """The kubeconfigs of `--keep` hold tokens: their folder is deleted with the process."""
    command = [*DEMO, "--jobs", "1", "--keep"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if "get workloads" in line:
                    break
            assert [path.name for path in tmp_path.glob("multikueue-demo-*/*.yaml")]
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
        finally:
            process.kill()

    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.gate
@pytest.mark.timeout(120)
async def test_the_page_of_a_demo_follows_it_and_ctrl_c_ends_it_as_any_command() -> None:
    """Counts and bars move while the jobs run, which takes some seconds. What was opened last is closed first: the
    page, then the dispatcher, then the clusters."""
    process = await anyio.open_process([*DEMO, "--jobs", "20", "--dashboard"])
    assert process.stdout is not None
    assert process.stderr is not None
    lines = BufferedByteReceiveStream(process.stdout)
    seen: list[Json] = []

    async def watch(address: str) -> None:
        url, _, token = address.partition("/#token=")
        async with aiohttp.ClientSession(headers={TOKEN_HEADER: token}) as session:
            while True:
                async with session.get(f"{url}/apis/remote.multikueue.dev/v1alpha1/overview") as answer:
                    if answer.status == 200:
                        seen.append((await answer.json())["status"])
                await anyio.sleep(0.2)

    async with process, anyio.create_task_group() as tasks:
        text = ""
        while "stays up until Ctrl-C" not in text:
            text = (await lines.receive_until(b"\n", 4096)).decode()
            if text.startswith("Open "):
                tasks.start_soon(watch, text.split()[1])
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            process.send_signal(signal.SIGINT)
            errors = b"".join([part async for part in process.stderr])
            code = await process.wait()

    assert code == 130
    assert b"unexpected" not in errors
    assert len({overview["jobs"]["running"] for overview in seen}) >= 3
    assert len({overview["use"][0]["ours"] for overview in seen if overview["use"]}) >= 3
    assert max(len(overview["history"].get("running", ())) for overview in seen) >= 3


@pytest.mark.gate
async def test_a_demo_that_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    """The folder is made only when there is something to keep."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*DEMO, "--jobs", "100", "--workers", "1", "--port", str(port)]
    async with await anyio.open_process(command, env={**os.environ, "TMPDIR": str(tmp_path)}) as process:
        with anyio.fail_after(20):
            while True:
                try:
                    await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                except OSError:
                    await anyio.sleep(0.05)
                else:
                    break
        process.terminate()
        assert await process.wait() == -signal.SIGTERM
    assert [path async for path in anyio.Path(tmp_path).iterdir()] == []


@pytest.mark.gate
@pytest.mark.timeout(90)
def test_both_run_all_jobs_and_the_scored_one_writes_less_and_admits_nothing_in_vain() -> None:
    done = run("--policy", "--jobs", "8", "--workers", "3", "--json")

    assert done.returncode == 0, done.stderr
    everywhere, scored = orjson.loads(done.stdout.splitlines()[-1])["policies"]
    assert (everywhere["policy"], scored["policy"]) == ("AllAtOnce", "scored")
    assert (everywhere["finished"], scored["finished"]) == (8, 8)
    assert (everywhere["offers"], scored["offers"], scored["lost"]) == (24, 8, 0)
    assert scored["requests"] < everywhere["requests"]
    assert sum(scored["placements"].values()) == 8
    assert all(
        0 < figures["wait_mean"] <= figures["wait_longest"] and figures["cost"] > 0 for figures in (everywhere, scored)
    )
    assert "writes to workers" in done.stderr


def test_the_jobs_are_the_same_and_run_for_the_same_time() -> None:
    first, second = (timed(drawn_jobs([BATCH_JOB], 5, random.Random(7)), 7) for _ in range(2))
    assert [job.objects for job in first] == [job.objects for job in second]


def test_the_table_has_a_column_for_each() -> None:
    made = PolicyRun("a policy", 20, 19, 100, 40, 3, 0.5, 1.25, 70.4, {"worker1": 12, "worker2": 8})
    console = Console(file=io.StringIO(), width=80)
    console.print(table([made, made]))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert text.count("19 of 20") == text.count("100, 5.0 a job") == text.count("1.25 s") == 2
    assert "ran on worker2 (price 1)" in text


@pytest.mark.parametrize(("option", "value"), [("--ocm", ""), ("--break", "worker1"), ("--port", "9000")])
def test_options_that_have_no_place_beside_it_are_refused_in_one_line(option: str, value: str) -> None:
    message = refused("--policy", option, *([value] if value else []))
    assert "--policy" in message or "--ocm" in message


@pytest.mark.parametrize("story", ["--policy", "--ocm"])
def test_the_page_is_of_the_jobs_alone(story: str) -> None:
    """It was left out without a word."""
    assert "leave --dashboard out" in refused(story, "--dashboard")


@pytest.mark.parametrize("option", [("--jobs", "3"), ("--kind", "rayjob")])
def test_what_is_drawn_has_no_place_beside_a_file(option: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB % "succeed")
    assert f"leave {option[0]} out" in refused("-f", str(file), *option)


@pytest.mark.gate
@pytest.mark.timeout(120)
def test_what_serves_moves_as_well() -> None:
    """It was deleted, as having run for long enough, while its worker was out of reach."""
    done = run("--break", "worker1", "--kind", "raycluster", "--jobs", "6", "--json")
    outcome = orjson.loads(done.stdout.splitlines()[-1])

    assert done.returncode == 0, done.stderr
    assert (outcome["finished"], outcome["leftovers"], outcome["ended_out_of_reach"]) == (6, 0, 0)
    assert outcome["moved"] > 0
