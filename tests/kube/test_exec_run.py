"""Exec plugins that really run: what they get, what is read of them, and how they end."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
import structlog
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ObjectKey
from multikueue.errors import Cause, Unauthorized
from multikueue.kube.credentials.authenticator import Authenticators
from multikueue.kube.credentials.credential import KeyPair
from multikueue.kube.credentials.exec_plugin import ExecPlugin
from multikueue.kube.credentials.exec_protocol import exec_info
from multikueue.kube.credentials.exec_run import MAX_COMPLAINT, MAX_OUTPUT, PATH, run_plugin
from multikueue.kube.http.single_flight import SingleFlight
from tests.kube.exec_plugins import API, CANARY, FakePlugin, prints
from tests.kube.scripted import eventually, job, says, talking

GRANDCHILD = """
import fcntl
if os.fork() == 0:
    lock = open(os.path.join(folder, "lock"), "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    open(os.path.join(folder, "ready"), "w").close()
    time.sleep(600)
while not os.path.exists(os.path.join(folder, "ready")):
    time.sleep(0.01)
"""
"""It holds a lock for as long as it lives."""


def ended(folder: Path) -> bool:
    """Whether the grandchild is gone."""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def pem_pair() -> KeyPair:
    """A client certificate and its key."""
    mine = trustme.CA().issue_cert("me@example.com")
    return KeyPair(mine.cert_chain_pems[0].bytes().decode(), mine.private_key_pem.bytes().decode())


def gives(folder: Path, pair: KeyPair) -> FakePlugin:
    """A plugin that prints a certificate and a key."""
    return prints(folder, token="''", clientCertificateData=pair.certificate, clientKeyData=pair.key)


async def test_a_plugin_gets_fixed_variables_its_own_and_what_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else of the daemon's, and no stdin. Arguments are no words for a shell."""
    for name in ("HTTPS_PROXY", "CANARY", "KUBERNETES_EXEC_INFO"):
        monkeypatch.setenv(name, CANARY)
    service = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}  # for rest.InClusterConfig
    for name, value in service.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", "/home/a")
    plugin = prints(tmp_path, token="json.dumps([*sys.argv[2:], sys.stdin.read()]).replace(' ', '')")
    config = plugin.config('{"server":"https://a","config":null}', GIVEN="a").extended(["$HOME", "`id`", ";"])
    assert (await run_plugin(config)).token == '["$HOME","`id`",";",""]'
    environment = {name: value for name, value in plugin.environment.items() if not name.startswith("LC_")}
    assert environment == service | {
        "PATH": PATH,
        "HOME": "/home/a",
        "GIVEN": "a",
        "KUBERNETES_EXEC_INFO": exec_info(config),
    }
    assert '"cluster":{"server":"https://a","config":null}' in exec_info(config)


async def test_a_plugin_of_the_operators_kubeconfig_gets_the_daemons_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is looked up in PATH, as kubectl does it."""
    monkeypatch.setenv("INHERITED", "i")
    plugin = prints(tmp_path)
    link = tmp_path / "bin" / "my-plugin"
    link.parent.mkdir()
    link.symlink_to(plugin.config().command)
    monkeypatch.setenv("PATH", f"{link.parent}:{os.environ['PATH']}")
    own = attrs.evolve(plugin.config(GIVEN="a"), command="my-plugin", search_path=True, inherit_env=True)
    assert (await run_plugin(own)).token == "t1"
    assert plugin.environment.items() >= {"INHERITED": "i", "GIVEN": "a", "PATH": os.environ["PATH"]}.items()
    message = 'getting credentials: exec plugin: command "my-plugin" is not an absolute'
    with pytest.raises(Unauthorized, match=message) as caught:
        await run_plugin(attrs.evolve(own, search_path=False))
    assert caught.value.cause is Cause.PLUGIN


async def test_a_plugin_may_write_a_lot_to_stderr(tmp_path: Path) -> None:
    """More than a pipe holds, before it prints anything."""
    plugin = prints(tmp_path)
    loud = FakePlugin(tmp_path, "sys.stderr.write('x' * 1_000_000)\n" + plugin.body)
    assert (await run_plugin(loud.config())).token == "t1"


async def test_a_plugin_is_stopped_when_the_client_is_closed(tmp_path: Path) -> None:
    """No process is left behind, also none that it has started."""
    plugin = FakePlugin(tmp_path, GRANDCHILD + f"time.sleep(600); {CANARY!r}")
    async with talking(says(200, job("1")), exec_plugin=plugin.config()) as (server, client):
        with anyio.move_on_after(0.01):
            await client.get(JOB, ObjectKey("n", "a"))
        await eventually((tmp_path / "ready").exists)
        assert not ended(tmp_path)
    await eventually(lambda: ended(tmp_path))
    assert not server.asked


@pytest.mark.looptime
async def test_a_plugin_that_hangs_is_given_up_after_its_deadline() -> None:
    began = anyio.current_time()

    async def hangs(_: ExecPlugin) -> bytes:
        await anyio.sleep_forever()
        raise AssertionError("unreachable")

    with pytest.raises(Unauthorized) as caught:
        await run_plugin(ExecPlugin("/plugin", [CANARY]), hangs)
    message = "getting credentials: exec: executable /plugin did not answer within 30 s, and was killed"
    assert str(caught.value) == message
    assert anyio.current_time() == began + 30


async def test_a_plugin_that_hangs_is_killed_with_all_that_it_has_started(tmp_path: Path) -> None:
    """Signals that can be ignored are no use."""
    plugin = FakePlugin(tmp_path, f"import signal; signal.signal(15, signal.SIG_IGN)\n{GRANDCHILD}time.sleep(600)")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_plugin, plugin.config())
        await eventually((tmp_path / "ready").exists)
        assert not ended(tmp_path)
        tasks.cancel_scope.cancel()  # as the deadline does
    await eventually(lambda: ended(tmp_path))


async def test_what_a_plugin_leaves_behind_is_killed(tmp_path: Path) -> None:
    """It holds the plugin's stdout open, so that its end would never be read."""
    plugin = prints(tmp_path)
    leaves = FakePlugin(tmp_path, GRANDCHILD + plugin.body)
    assert (await run_plugin(leaves.config())).token == "t1"
    await eventually(lambda: ended(tmp_path))


async def test_a_plugin_that_prints_without_an_end_is_killed(tmp_path: Path) -> None:
    plugin = FakePlugin(tmp_path, GRANDCHILD + "while True:\n    sys.stdout.write('x' * 65536)")
    with pytest.raises(Unauthorized, match=f"getting credentials: exec: it printed more than {MAX_OUTPUT} bytes"):
        await run_plugin(plugin.config())
    await eventually(lambda: ended(tmp_path))


async def test_a_plugin_may_print_up_to_the_bound(tmp_path: Path) -> None:
    """More than a pipe holds."""
    plugin = prints(tmp_path, token="'x' * (1 << 19)")
    assert len((await run_plugin(plugin.config())).token) == 1 << 19


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"print({CANARY!r}); sys.exit(3)", r"failed with exit code 3$"),
        ("os.kill(os.getpid(), 9)", "failed with exit code -9$"),
        (f"print({CANARY!r})", "decoding stdout: it is not JSON"),
        ("os.close(1); sys.exit(0)", "decoding stdout: it is not JSON"),
        (
            f"print(json.dumps(dict(kind='ExecCredential', apiVersion={API!r}, status=dict(token='{CANARY} x'))))",
            "status.token is not one word of plain characters",
        ),
    ],
)
async def test_errors_of_a_plugin_do_not_quote_its_output(
    tmp_path: Path, body: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither do the logs, nor what the daemon writes."""
    with structlog.testing.capture_logs() as logs:
        async with SingleFlight() as flights:
            known = Authenticators().get(FakePlugin(tmp_path, body).config(SECRET=CANARY))
            with pytest.raises(Unauthorized, match=f"getting credentials: .*{message}") as caught:
                await known.credential(flights)
    assert "canary" not in f"{caught.value!r}{caught.value.__cause__!r}{logs}{capfd.readouterr()}"


async def test_the_log_has_the_beginning_of_what_a_failing_plugin_complains_of(tmp_path: Path) -> None:
    """The error, which goes into conditions, does not quote it; a command, which has no log, shows it beside."""
    body = "sys.stderr.write('unable to load in-cluster\\n\\x1b[2Jconfiguration' + 'x' * 100_000); sys.exit(1)"
    with structlog.testing.capture_logs() as logs, pytest.raises(Unauthorized) as caught:
        await run_plugin(FakePlugin(tmp_path, body).config())
    (line,) = logs
    assert line["stderr"].startswith("unable to load in-cluster [2Jconfiguration")
    assert len(line["stderr"]) <= MAX_COMPLAINT
    assert "in-cluster" not in str(caught.value)
    assert caught.value.wrote == line["stderr"]


async def test_a_renewal_that_fails_is_logged_without_its_output(tmp_path: Path) -> None:
    """The credential at hand is still good."""
    works = prints(tmp_path).config(SECRET=CANARY)
    with structlog.testing.capture_logs() as logs:
        async with SingleFlight() as flights:
            known = Authenticators(max_age=0.0).get(works)
            assert (await known.credential(flights)).token == "t1"
            FakePlugin(tmp_path, f"print({CANARY!r}); sys.exit(1)").config()
            assert (await known.credential(flights)).token == "t1"
            await eventually(lambda: not flights.under_way)
    assert [line["event"] for line in logs] == ["credential plugin failed", "credential not renewed"]
    assert "failed with exit code 1" in logs[1]["error"]
    assert "canary" not in str(logs)


async def test_a_command_that_is_not_there_is_named() -> None:
    with pytest.raises(
        Unauthorized, match="getting credentials: exec: executable /no/such cannot be run: No such file"
    ):
        await run_plugin(ExecPlugin("/no/such"))


async def test_what_cannot_be_handed_to_a_process_is_an_error(tmp_path: Path) -> None:
    """Too long, or no text that can be encoded: a ClusterProfile may hold anything."""
    for more, why in (("x" * 300_000, "Argument list too long"), ("\ud800", "args or env are not text")):
        with pytest.raises(Unauthorized, match=f"cannot be run: {why}"):
            await run_plugin(prints(tmp_path).config().extended([more]))


async def test_a_pair_of_certificate_and_key_is_a_credential(tmp_path: Path) -> None:
    pair = pem_pair()
    credential = await run_plugin(gives(tmp_path, pair).config())
    assert (credential.token, credential.pair) == ("", pair)


def encrypted(key: str) -> str:
    """A key with a password."""
    loaded = load_pem_private_key(key.encode(), None)
    return loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"canary")).decode()


@pytest.mark.parametrize("wrong", ["no PEM", "another's key", "half a key", "a password", "no text"])
async def test_pairs_that_cannot_be_used(tmp_path: Path, wrong: str) -> None:
    """They are not quoted, no password is asked for, and no file is left."""
    pair, other = pem_pair(), pem_pair()
    bad = {
        "no PEM": KeyPair(CANARY, CANARY),
        "another's key": KeyPair(pair.certificate, other.key),
        "half a key": KeyPair(pair.certificate, pair.key[:100]),
        "a password": KeyPair(pair.certificate, encrypted(pair.key)),
        "no text": KeyPair(pair.certificate, "\ud800"),
    }[wrong]
    with pytest.raises(Unauthorized, match="getting credentials: failed parsing client key/certificate: ") as caught:
        await run_plugin(gives(tmp_path, bad).config())
    assert "canary" not in f"{caught.value!r}{caught.value.__cause__!r}"


async def test_key_material_is_in_files_of_ours_alone_and_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other user can read them, and none is left."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    modes: list[int] = []
    (tmp_path / "tmp").mkdir()
    load = __import__("ssl").SSLContext.load_cert_chain

    def recording(context: Any, file: str, **options: Any) -> None:
        modes.append(os.stat(file).st_mode & 0o777)
        load(context, file, **options)

    monkeypatch.setattr("ssl.SSLContext.load_cert_chain", recording)
    await run_plugin(gives(tmp_path, pem_pair()).config())
    assert modes == [0o600]
    assert list((tmp_path / "tmp").iterdir()) == []


async def test_a_disk_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may have a file system that is read only: it is no fault of the certificate."""
    plugin = gives(tmp_path, pem_pair()).config()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    message = "client key/certificate cannot be loaded: the temporary file: No such file or directory"
    with pytest.raises(Unauthorized, match=f"getting credentials: {message}"):
        await run_plugin(plugin)
