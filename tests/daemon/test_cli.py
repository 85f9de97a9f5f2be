"""The command line: its output and its exit codes."""

from __future__ import annotations

import errno
import io
import json
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import anyio
import click
import pytest
from click.testing import CliRunner

from multikueue import __version__
from multikueue.errors import AdapterError, KubeconfigError, MultiKueueError, SettingsError, Unauthorized, Unreachable
from multikueued.cli import CommandLine, main
from multikueued.commands.options import confirmed
from multikueued.commands.report_runner import LiveConsole
from multikueued.lazy_group import LazyGroup, StoredHelp, short_help

COMMAND = [sys.executable, "-m", "multikueued"]


def failing_with(error: BaseException) -> CommandLine:
    """A command line whose only subcommand, itself without options, fails."""

    @click.group(cls=CommandLine, invoke_without_command=True)
    def group() -> None:
        raise error

    return group


def test_version_and_help_list_what_there_is() -> None:
    version = CliRunner().invoke(main, ["--version"])
    text = CliRunner().invoke(main, ["--help"])

    assert version.output == f"multikueue, version {__version__}\n"
    assert text.exit_code == 0
    assert [name for name in main.subcommands if name not in text.output] == []
    assert [line for line in text.output.splitlines() if line and line == line.lstrip()][1:] == [
        "Options:",
        "Jobs:",
        "The fleet:",
        "Servers:",
        "To try it out:",
    ]


HELP = [
    ["--help"],
    *([name, "--help"] for name in main.subcommands),
    *(
        [name, subcommand, "-h"]
        for name, group in main.subcommands.items()
        if isinstance(group, LazyGroup)
        for subcommand in group.subcommands
    ),
]
LISTED = [
    (group, name)
    for group in (main, *(subcommand for subcommand in main.subcommands.values() if isinstance(subcommand, LazyGroup)))
    for name, subcommand in group.subcommands.items()
    if isinstance(subcommand, str)
]


def test_help_imports_no_command() -> None:
    """What a list of commands costs: `--help` is asked for at each completion, and in each new shell."""
    program = (
        "import sys; from multikueued.cli import main\n"
        f"for words in {HELP!r}: main(words, standalone_mode=False)\n"
        "from click.shell_completion import ShellComplete\n"
        "shell = ShellComplete(main, {}, 'multikueue', '_X')\n"
        "offered = [*shell.get_completions([], 'd'), *shell.get_completions(['worker'], '')]\n"
        "assert {'demo', 'doctor', 'drain'} <= {one.value for one in offered}\n"
        "assert all(one.help for one in offered)\n"
        "ours = [name for name in sys.modules if name.startswith(('multikueue.kube', 'multikueued.'))]\n"
        "print(*ours, file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=20)

    assert set(result.stderr.split()) == {"multikueued.cli", "multikueued.lazy_group"}


def test_a_manager_without_declared_kinds_starts_without_cel() -> None:
    program = "import sys; import multikueued.run.command; print('cel' in sys.modules, 'typer' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=20)

    assert result.stdout.split() == ["False", "False"]


def test_commands_that_print_reports_start_without_controllers_and_roles() -> None:
    """A fifth of their start."""
    program = (
        "import sys, multikueued.commands.get, multikueued.commands.status, multikueued.remote.explain\n"
        "unwanted = ('multikueue.runtime.workers', 'multikueue.runtime.reconcilers', 'multikueued.rbac')\n"
        "print(*(name for name in sys.modules if name.startswith(unwanted)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=20)

    assert result.stdout.split() == []


@pytest.mark.parametrize(("group", "name"), LISTED)
def test_what_help_lists_is_what_the_command_says(group: LazyGroup, name: str) -> None:
    listed = short_help(group.subcommands[name], 10_000)
    command = group.get_command(click.Context(group), name)

    assert command is not None
    assert command.name == name
    assert command.get_short_help_str(10_000) == listed


@pytest.mark.parametrize(("group", "name"), LISTED)
@pytest.mark.parametrize("width", [60, 140])
def test_help_without_an_import_says_what_the_command_itself_says(group: LazyGroup, name: str, width: int) -> None:
    context = click.Context(group, info_name="multikueue", terminal_width=width, help_option_names=["-h", "--help"])
    _, stored, _ = group.resolve_command(context, [name, "--help"])
    command = group.get_command(context, name)

    assert isinstance(stored, StoredHelp)
    assert command is not None
    said = [
        subcommand.get_help(click.Context(subcommand, context, name, terminal_width=width))
        for subcommand in (stored, command)
    ]
    assert said[0] == said[1]


@pytest.mark.parametrize("name", sorted(main.subcommands))
def test_every_subcommand_has_help(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])

    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: main {name}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["statu"], "No such command 'statu'. Did you mean status?"),
        (["drian", "oslo"], "Did you mean worker drain?"),
        (["jobs"], "Did you mean get jobs?"),
        (["worker", "lst"], "Did you mean list?"),
        (["run", "--nonsense"], "No such option '--nonsense'"),
        (["run", "--config", "/nowhere/config.yaml"], "'/nowhere/config.yaml' does not exist"),
        (["run", "--kubeconfig", "/nowhere/config"], "/nowhere/config: cannot be read: No such file or directory"),
        (["run", "--context", "prod"], "name that with --kubeconfig, too"),
        (["run", "extra"], "unexpected extra argument"),
        (["explain", "job", "train-1"], "extra argument (train-1): a job is one word, TYPE/NAME, as job/train-1"),
        (["logs", "job", "train-1", "-f"], "a job is one word, TYPE/NAME, as job/train-1"),
        (["get", "jobs", "train-1"], "this lists all of them; multikueue explain TYPE/NAME tells of one job"),
        (["get", "job/train-1"], "Did you mean explain job/train-1?"),
        (["run", "--check"], "name it with --config"),
    ],
)
def test_wrong_usage_is_reported_and_exits_with_2(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, arguments, env={"KUBECONFIG": ""})

    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_kubectl_finds_it_as_a_plugin(tmp_path: Path) -> None:
    """By the name of the file alone: `kubectl multikueue get jobs` runs `kubectl-multikueue get jobs`."""
    pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    scripts = pyproject["project"]["scripts"]
    module, _, function = scripts["kubectl-multikueue"].partition(":")
    script = tmp_path / "kubectl-multikueue"
    script.write_text(f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n")
    result = subprocess.run(
        [sys.executable, str(script), "get", "jobs", "--help"], capture_output=True, text=True, check=True, timeout=20
    )

    assert scripts["kubectl-multikueue"] == scripts["multikueue"]
    assert result.stdout.startswith("Usage: kubectl multikueue get jobs [OPTIONS]")


def test_outside_a_pod_and_without_a_kubeconfig_it_says_what_to_name() -> None:
    result = CliRunner().invoke(main, ["run"], env={"KUBECONFIG": "", "KUBERNETES_SERVICE_HOST": ""})

    assert result.exit_code == 2
    assert result.stderr == (
        "multikueue: error: this is not a pod with a service account: name a kubeconfig with --kubeconfig or "
        "KUBECONFIG\n"
    )


def test_bad_settings_are_reported_before_anything_starts(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("gcInterval: 60\n")
    result = CliRunner().invoke(main, ["run", "--config", str(config)])

    assert result.exit_code == 2
    assert result.stderr == (
        f'multikueue: error: {config}: gcInterval: 60 lacks a unit: write it like "15m", "1m30s" or "500ms"\n'
    )


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("gcInterval: 2m\n", 0, "These settings can be used.\n"),
        (
            "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nhealth: {}\n",
            0,
            "health: Kueue's own setting: passed over",
        ),
        ("ocm: {enabled: true}\n", 0, "ocm: the order of clusters by score means something to"),
        ("gcIntervall: 2m\n", 2, 'gcIntervall: there is no such setting: did you mean "gcInterval"?'),
        ("pods: {check: Ready}\n", 2, "pods.check: without the webhook's scheduling gate"),
        (
            "externalFrameworks: [{name: Fold.v1.lab.example.com, finished: '1 +'}]\n",
            2,
            "externalFrameworks[0].finished",
        ),
    ],
)
def test_settings_are_checked_without_a_cluster(tmp_path: Path, text: str, code: int, message: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(text)
    result = CliRunner().invoke(
        main, ["run", "--check", "--config", str(config)], env={"KUBECONFIG": "", "KUBERNETES_SERVICE_HOST": ""}
    )

    assert result.exit_code == code
    assert message in (result.stderr if code else result.stdout)


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (SettingsError("port in use"), "port in use", 2),
        (KubeconfigError("BadKubeConfig", "no such context"), "no such context", 2),
        (AdapterError("two adapters"), "two adapters", 2),
        (Unreachable("manager: connection refused"), "manager: connection refused", 4),
        (Unauthorized("manager: get pods", status=401), "manager: get pods: renew the credentials", 4),
        (
            Unauthorized("exec: executable x"),
            "exec: executable x: run, or read, what the user of this context names",
            4,
        ),
        (MultiKueueError("something"), "something", 1),
        (ExceptionGroup("tasks", [OSError("x"), ExceptionGroup("inner", [SettingsError("deep")])]), "deep", 2),
        (
            ExceptionGroup("tasks", [OSError(errno.ENOSPC, "No space left on device")]),
            "cannot write the output, or a file: No space left on device",
            1,
        ),
        (ValueError("broken"), "unexpected ValueError: broken; this is a bug, please report it", 1),
        (ExceptionGroup("tasks", [ValueError("broken")]), "unexpected ValueError: broken; this is a bug, please", 1),
    ],
)
def test_a_failure_is_one_line_and_no_traceback(error: Exception, message: str, code: int) -> None:
    result = CliRunner().invoke(failing_with(error), [])

    assert result.exit_code == code
    assert result.stderr.startswith(f"multikueue: error: {message}")
    assert result.stderr.count("\n") == 1


def test_no_name_in_an_error_begins_a_line_that_looks_like_ours() -> None:
    """Whoever may create Workloads gives their owner any name: `pods` and `retry` say it."""
    message = "job/a\nmultikueue: error: run this has no pods:\n  team/job/b"
    result = CliRunner().invoke(failing_with(MultiKueueError(message)), [])

    assert result.stderr == "multikueue: error: job/a\n  multikueue: error: run this has no pods:\n  team/job/b\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), BaseExceptionGroup("tasks", [KeyboardInterrupt()])])
def test_ctrl_c_is_no_error_message(error: BaseException) -> None:
    result = CliRunner().invoke(failing_with(error), [])

    assert result.exit_code == 130
    assert result.stderr == ""


async def _asking() -> bool:
    return confirmed("Move them?")


def test_ctrl_c_ends_a_question_that_is_asked_in_an_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop's own handler cancels a task, which waits for the answer: it took a second Ctrl-C."""

    answered = list[str]()

    def pressed(prompt: str) -> str:
        signal.raise_signal(signal.SIGINT)
        answered.append("y")
        return "y"

    monkeypatch.setattr("click.termui.visible_prompt_func", pressed)
    with pytest.raises(KeyboardInterrupt):
        anyio.run(_asking)
    assert not answered


def test_an_input_that_has_ended_agrees_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr("click.termui.visible_prompt_func", ended)
    assert not anyio.run(_asking)


@pytest.mark.parametrize("error", [BrokenPipeError(32, "pipe"), ExceptionGroup("tasks", [BrokenPipeError(32, "pipe")])])
def test_a_closed_pipe_causes_no_error_message(error: Exception) -> None:
    """`multikueue demo | head` ends quietly."""
    result = CliRunner().invoke(failing_with(error), [])

    assert result.exit_code == 1
    assert result.stderr == ""


@pytest.mark.parametrize("stream", ["stdin", "stdout", "stderr"])
def test_a_stream_that_is_closed_leads_nowhere(monkeypatch: pytest.MonkeyPatch, stream: str) -> None:
    """`multikueue status >&-`: Python has no stream then."""

    @click.group(cls=CommandLine, invoke_without_command=True)
    def asks() -> str:
        with getattr(sys, stream) as opened:
            return f"a terminal: {opened.isatty()}"

    monkeypatch.setattr(sys, stream, None)
    assert asks([], standalone_mode=False) == "a terminal: False"


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["get", "--help"], ["status", "--help"]])
def test_help_that_cannot_be_written_is_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 1
    message = "multikueue: error: cannot write the output, or a file: No space left on device\n"
    assert capsys.readouterr().err == message


def test_rich_leaves_a_closed_pipe_to_the_command_line() -> None:
    """By itself it would end the process, in the midst of task groups."""

    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(errno.EPIPE, text)

    with pytest.raises(BrokenPipeError):
        LiveConsole(file=Gone()).print("x")


def test_python_m_is_the_same_command() -> None:
    result = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True, timeout=20)

    assert result.stdout == f"multikueue, version {__version__}\n"


@pytest.mark.parametrize(("options", "uvloop"), [([], False), (["--uvloop"], True)])
def test_the_daemon_runs_on_pythons_own_loop_unless_it_is_told_otherwise(
    options: list[str], uvloop: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On uvloop it could not connect to anybody any more after it had lost and won its lease, until a restart."""
    loops = list[object]()
    monkeypatch.setattr("multikueued.run.command.anyio.run", lambda *_, **how: loops.append(how["backend_options"]))
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}
    context = {"name": "k", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {"token": "t"}}]
    kubeconfig = {"clusters": [cluster], "contexts": [context], "users": users, "current-context": "k"}
    (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig))
    done = CliRunner().invoke(main, ["run", "--kubeconfig", str(tmp_path / "kubeconfig"), *options])
    assert (done.exit_code, loops) == (0, [{"use_uvloop": uvloop}]), done.output
