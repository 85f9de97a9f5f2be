"""The build: safe to repeat, all or nothing. A script plays Go; the real build is `nox -s controlplane`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controlplane.binaries import FILES
from tests.controlplane.building import Module, build
from tests.controlplane.errors import BuildFailed

_GO = """#!/bin/sh
echo "$CGO_ENABLED $PWD $*" >> {calls}
while [ "$1" != -o ]; do shift; done
case "$2" in
*/) echo built > "$2kube-apiserver"; {then}; echo built > "$2kube-controller-manager";;
*) echo built > "$2";;
esac
"""


def _go(tmp_path: Path, *, then: str = ":") -> dict[str, str]:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir(exist_ok=True)
    go = bin_folder / "go"
    go.write_text(_GO.format(calls=tmp_path / "calls", then=then))
    go.chmod(0o755)
    return {"PATH": f"{bin_folder}:/usr/bin:/bin"}


def _calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "calls").read_text().splitlines()


def test_all_binaries_are_built_without_cgo_from_the_pinned_modules(tmp_path: Path) -> None:
    folder, said = tmp_path / "cache" / "plane", list[str]()
    build(folder, say=said.append, environ=_go(tmp_path))
    assert all((folder / file).read_text() == "built\n" for file in FILES)
    etcd, kubernetes = _calls(tmp_path)
    assert etcd.startswith("0 ")
    assert "/go/etcd build -trimpath -mod=readonly" in etcd
    assert "/go/kubernetes build -trimpath -mod=readonly" in kubernetes
    assert "gitVersion=v1.36.3" in kubernetes
    assert said[-1] == f"{folder}: built"


def test_a_second_build_does_nothing_unless_forced(tmp_path: Path) -> None:
    folder, said, environ = tmp_path / "plane", list[str](), _go(tmp_path)
    build(folder, say=said.append, environ=environ)
    build(folder, say=said.append, environ=environ)
    assert said[-1] == f"{folder}: already built"
    assert len(_calls(tmp_path)) == 2
    build(folder, say=said.append, environ=environ, force=True)
    assert len(_calls(tmp_path)) == 4


def test_a_failed_build_leaves_no_half_set_and_the_next_one_repairs_it(tmp_path: Path) -> None:
    folder = tmp_path / "plane"
    with pytest.raises(BuildFailed, match=r"`go build` failed in .*/go/kubernetes with code 7"):
        build(folder, say=lambda _: None, environ=_go(tmp_path, then="exit 7"))
    assert not folder.exists()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["bin"]
    build(folder, say=lambda _: None, environ=_go(tmp_path))
    assert all((folder / file).exists() for file in FILES)


def test_manifests_of_a_module_are_kept_beside_its_program_and_a_missing_one_is_named(tmp_path: Path) -> None:
    source = tmp_path / "mod" / "crds" / "a.yaml"
    source.parent.mkdir(parents=True)
    source.write_text("kind: A\n")
    environ = _go(tmp_path)
    go = tmp_path / "bin" / "go"
    go.write_text(go.read_text().replace("while", f'[ "$1" = list ] && echo {tmp_path}/mod && exit\nwhile', 1))
    (tmp_path / "modules" / "a").mkdir(parents=True)
    module = Module("a", ("a",), "example.com/a", "a", root=tmp_path / "modules", manifests=(("m", "crds/a.yaml"),))
    build(tmp_path / "kept", (module,), say=lambda _: None, environ=environ)
    assert (tmp_path / "kept" / "a.yaml").read_text() == "kind: A\n"
    assert (tmp_path / "kept" / "a").exists()
    lacking = Module("a", ("a",), "example.com/a", "a", root=tmp_path / "modules", manifests=(("m", "crds/b.yaml"),))
    with pytest.raises(BuildFailed, match=r"m has no crds/b\.yaml"):
        build(tmp_path / "kept", (lacking,), say=lambda _: None, environ=environ)


def test_without_go_the_message_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match=r"there is no `go` on the PATH\. Install Go 1\.26 or newer"):
        build(tmp_path / "plane", say=lambda _: None, environ={"PATH": str(tmp_path)})
