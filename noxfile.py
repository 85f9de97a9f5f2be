"""The one door to every check: `nox` proves every module once, `nox -t gate` is the rest of what CI runs."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import nox

nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_external_run = True
nox.options.sessions = ["lint", "types", "tests", "docs"]
nox.options.error_on_missing_interpreters = False  # nox names each that it does not find, and says that it skips it
nox.options.download_python = "never"

# Each of some 200 processes would compile what it imports once more: starting a daemon takes three times as long.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

PROJECT = nox.project.load_toml("pyproject.toml")
CODE = ("multikueue", "daemon", "tests", "docs/conf.py", "noxfile.py")
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
"""The Pythons that the tests can run on. The project's classifiers are those that they have run on."""
NIGHTLY = ("tests/benchmarks", "tests/conformance", "tests/formats", "tests/soak")
"""What only `nox -t nightly` runs, beside what needs the real controllers of job kinds."""
ON_SERVERS = ("tests/integration", "tests/controlplane", "tests/scenarios", "tests/adapters/test_on_real_servers.py")
"""Where tests of real servers are, but for the nightly ones: real conformance shows how those servers answer, and has
nothing of ours in it; the sandbox's side of it is nightly as well."""
PURE = ("tests/core", "tests/adapters")
"""The layers that do no I/O: run with coverage, and on every Python."""
ELSEWHERE = ("tests/integration", "tests/dashboard/test_page.py", *NIGHTLY)
"""What needs more than Python, in sessions of its own."""
HANGS = "--timeout=1200"
"""What ends a test that hangs in an `untimed` session: `.ci/run` gives those what the others leave of the machine."""
SEEDS, OF_NOX = 300, 60
"""How many seeds of the simulation are run, and how many of them `nox` runs: the others are the gate's."""

BESIDE = ("-n", "2", "--dist", "loadgroup")
"""The load of `tests/operators` goes beside the kinds, which mostly wait. With any arguments all go one by one."""


def find_pyenvs_pythons() -> None:
    """Put the Pythons that pyenv has installed on the PATH, behind what is there, and take its shims off.

    A shim has the name of every version, and runs only the one that is chosen at the moment.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    others = [folder for folder in path if folder != str(pyenv / "shims")]
    pythons = [str(folder) for version in VERSIONS for folder in sorted(pyenv.glob(f"versions/{version}.*/bin"))]
    os.environ["PATH"] = os.pathsep.join(others + pythons)


find_pyenvs_pythons()


def install(session: nox.Session, *groups: str) -> None:
    """Install the project and dependency groups into the session."""
    session.install("-e", ".", *nox.project.dependency_groups(PROJECT, *groups))


def build_control_plane(session: nox.Session) -> None:
    """Build the binaries of a real control plane, unless they are there; kind brings its own."""
    if shutil.which("go") and "--provider" not in session.posargs:
        session.run("python", "-m", "tests.controlplane", "build")


def timed(name: str) -> list[str]:
    """Have pytest write how long each test takes, into the folder that the gate compares durations in."""
    folder = os.environ.get("DURATIONS")
    return [f"--junitxml={folder}/{name}.xml"] if folder else []


@nox.session
def lint(session: nox.Session) -> None:
    """Format, lint rules, and the layers' import contracts."""
    install(session, "lint")
    session.run("ruff", "format", "--check", *CODE)
    session.run("ruff", "check", *CODE)
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """Mypy, strict, over everything."""
    install(session, "types", "tests")
    session.run("mypy", "--num-workers", "2", "multikueue", "daemon/multikueued", "tests", "noxfile.py")
    session.run("python", "-m", "tests.docs.blocks")


def those(session: nox.Session, marked: str, *more: str) -> None:
    """Run the tests that need nothing but Python and are marked so, on all cores."""
    arguments = (
        "-m",
        f"({marked}) and not real and not operators",
        *(f"--ignore={folder}" for folder in ELSEWHERE),
        *more,
    )
    # Each process begins with its part of the files, so their fixtures are made once, and helps the other at the end.
    session.run("pytest", "-n", "auto", "--dist", "worksteal", *timed(session.name), *arguments)


@nox.session
def tests(session: nox.Session) -> None:
    """Every module once: all tests that need nothing but Python, but for those of the gate; and the first seeds."""
    install(session, "tests")
    if session.posargs:
        session.run("pytest", *session.posargs)
        return
    those(session, "not gate", "--hypothesis-profile=few")
    session.run("python", "-m", "tests.simulation", "--seeds", str(OF_NOX))


@nox.session(tags=["gate"])
def gate(session: nox.Session) -> None:
    """The tests that `nox` leaves out, but for the pure layers: those with coverage are all of theirs."""
    install(session, "tests")
    those(session, "gate or hypothesis", *(f"--ignore={folder}" for folder in PURE))


@nox.session(tags=["gate", "untimed"])
def coverage(session: nox.Session) -> None:
    """The tests of the pure layers once more: do they reach every branch?"""
    install(session, "tests")
    measured = (*(f"--cov={package}" for package in ("multikueue.core", "multikueue.adapters")), "--cov-fail-under=95")
    session.run("pytest", "-n", "auto", HANGS, *timed("coverage"), *measured, *PURE)


@nox.session(
    python=[version for version in VERSIONS if version != f"3.{sys.version_info.minor}"], tags=["gate", "untimed"]
)
def versions(session: nox.Session) -> None:
    """The pure layers on each other Python that is installed. One, and more of it: `nox -s versions-3.13 -- tests`.

    With few examples of the properties: what another Python does otherwise, it does with all; `coverage` draws all.
    """
    install(session, "tests")
    few = ("-n", "auto", HANGS, "--hypothesis-profile=few", *timed(session.name))
    session.run("pytest", *(session.posargs or (*few, *PURE)))


@nox.session(tags=["nightly"])
def nightly(session: nox.Session) -> None:
    """What takes long: the harness of the benchmarks, conformance (also real), formats, leaks, 4,000 seeds."""
    install(session, "tests")
    build_control_plane(session)
    session.run("pytest", "-n", "auto", "-m", "not operators", *NIGHTLY)
    session.run("pytest", "-n", "auto", "-m", "hypothesis", "--hypothesis-profile=nightly", "--timeout=1200", "tests")
    session.run("python", "-m", "tests.simulation", "--seeds", "3000", "--first-seed", "300")
    session.run("python", "-m", "tests.mirrors.chaos", "--seeds", "1000")
    session.run("python", "-m", "tests.dispatch.family", "--all", "--seeds", "3", "--limit", "1.05")


@nox.session(tags=["gate", "untimed"])
def simulation(session: nox.Session) -> None:
    """A fleet on virtual time, from seeds: `nox -s simulation -- --seeds 20000 --first-seed 1`."""
    install(session, "tests")
    rest = ("--first-seed", str(OF_NOX), "--seeds", str(SEEDS - OF_NOX))
    session.run("python", "-m", "tests.simulation", *(session.posargs or rest))


@nox.session(tags=["gate", "untimed"])
def dispatch(session: nox.Session) -> None:
    """What choosing workers costs and brings, beside AllAtOnce: seed 1 alone; `-- --seeds 3` is all of it."""
    install(session, "tests")
    session.run("python", "-m", "tests.dispatch.floors", *(session.posargs or ("--gate",)))
    if not session.posargs:
        session.run("python", "-m", "tests.dispatch.family", "--limit", "1.2")


@nox.session
def soak(session: nox.Session) -> None:
    """Weeks of a fleet on virtual time: does anything in the daemon grow? `nox -s soak -- --weeks 2`."""
    install(session, "tests")
    session.run("python", "-m", "tests.soak", *session.posargs)


@nox.session
def mutants(session: nox.Session) -> None:
    """Which small changes of the code does no unit test see? `nox -s mutants -- --sample 200 --seed 1`."""
    install(session, "tests", "mutants")
    session.run("python", "-m", "tests.mutants", *session.posargs)


@nox.session
def controlplane(session: nox.Session) -> None:
    """Find, or build once and keep, the binaries of a real control plane; needs Go and some minutes the first time."""
    install(session, "tests")
    session.run("python", "-m", "tests.controlplane", "build", *session.posargs)


@nox.session(tags=["gate"])
def integration(session: nox.Session) -> None:
    """What must hold on a real kube-apiserver: `-- --provider kind` where Docker is."""
    install(session, "tests")
    build_control_plane(session)
    # Two at a time: the tests mostly wait for servers. Files go in their order: xdist would take those of few tests
    # last, which are the longest, and one process would wait for them.
    beside = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", *timed("integration"))
    chosen = [argument for argument in session.posargs if argument.startswith("tests/")]
    where = () if chosen else ON_SERVERS
    session.run("pytest", "-m", "real", "--timeout=120", *beside, *session.posargs, *where)


@nox.session(tags=["gate"])
def dashboard(session: nox.Session) -> None:
    """The page in Debian's Chromium: `PICTURES=docs/pictures nox -s dashboard` makes the pictures of the docs."""
    if shutil.which("chromium") is None:
        session.skip("there is no chromium here: apt-get install chromium")
    install(session, "tests", "browser")
    session.run("pytest", *timed("dashboard"), "tests/dashboard/test_page.py", *session.posargs)


@nox.session(tags=["nightly"])
def operators(session: nox.Session) -> None:
    """Job kinds against their real controllers; `-- --all` runs all there are. Needs Go once.

    `-- --result docs/results/operators.json` writes down how it went, `-- --jobs 60` loads the workers with less.
    """
    install(session, "tests")
    wanted = [argument for argument in session.posargs if argument == "--all"]
    build_control_plane(session)
    if shutil.which("go"):
        session.run("python", "-m", "tests.operators", "build", *wanted)
    others = [argument for argument in session.posargs if argument not in wanted]
    chosen = [argument for argument in others if argument.startswith("tests/operators/")]
    marked = "operators" if wanted else "operators and not every_operator"
    arguments = ("-m", marked, "--timeout=400", *(() if session.posargs else BESIDE), *others)
    session.run("pytest", *arguments, *([] if chosen else ["tests/operators"]))


@nox.session(tags=["nightly"])
def clients(session: nox.Session) -> None:
    """Other people's programs against a sandbox, each as it is, from an environment of its own; eight minutes."""
    install(session, "tests")
    session.install("uv")
    build_control_plane(session)
    folder = Path(session.create_tmp()).absolute() / "programs"
    for line in str(session.run("python", "-m", "tests.clients", silent=True)).splitlines():
        name, *packages = line.split()
        python = folder / name
        session.run("uv", "venv", "--quiet", "--clear", "--python", "3.11", str(python))
        session.run("uv", "pip", "install", "--quiet", "--python", str(python), *packages)
    session.run("python", "-m", "tests.clients", str(folder))


@nox.session
def bench(session: nox.Session) -> None:
    """Measure a MultiKueue controller: `nox -s bench -- burst`; `-- --help` lists what there is."""
    install(session, "tests", "bench")
    session.run("python", "-m", "tests.benchmarks", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation; a broken link or reference is an error."""
    install(session, "docs")
    session.run("sphinx-build", "-W", "--keep-going", "-q", "-j", "auto", "docs", os.path.join("docs", "_build"))


@nox.session(tags=["gate"])
def package(session: nox.Session) -> None:
    """Wheel and sdist are built, are in order, and each runs the demo from a bare environment."""
    folder = Path(session.create_tmp()).absolute()
    for file in build_packages(session, folder / "dist"):
        bare = folder / f"bare-{Path(file).suffix[1:]}"
        session.run(sys.executable, "-m", "venv", "--without-pip", "--clear", str(bare), external=True)
        python = str(bare / "bin" / "python")
        session.run("uv", "pip", "install", "--quiet", "--python", python, file)
        with session.chdir(bare):  # not beside the sources
            session.run(python, "-m", "multikueued", "demo", "--jobs", "3", "--json", external=True)


def build_packages(session: nox.Session, dist: Path) -> list[str]:
    """Wheel and sdist, alone in a folder, which `twine` has nothing against."""
    session.install("build", "twine", "uv")
    version = PROJECT["project"]["version"]
    shutil.rmtree(dist, ignore_errors=True)
    session.run("python", "-m", "build", "--installer", "uv", "--outdir", str(dist))
    built = [str(dist / f"multikueue-{version}{end}") for end in ("-py3-none-any.whl", ".tar.gz")]
    session.run("twine", "check", "--strict", *built)
    return built


@nox.session
def release(session: nox.Session) -> None:
    """All of a release but the uploads: packages and chart in `dist/`, and at the end what a person pushes where."""
    install(session, "tests")
    build_control_plane(session)
    build_packages(session, Path("dist"))
    session.run("python", "-m", "tests.release", "dist")
