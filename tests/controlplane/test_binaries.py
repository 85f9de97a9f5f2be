"""Where binaries are looked for, and what a person reads when there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controlplane import binaries
from tests.controlplane.binaries import FILES, KUBERNETES
from tests.controlplane.errors import BinariesMissing
from tests.controlplane.provider import PROCESSES, choose, choose_or_report


def _put(folder: Path, *files: str) -> Path:
    folder.mkdir(parents=True)
    for file in files:
        (folder / file).touch(mode=0o755)
    return folder


def test_built_binaries_are_found_in_the_users_cache(tmp_path: Path) -> None:
    cache = _put(tmp_path / "multikueue" / f"controlplane-{KUBERNETES}", *FILES)
    installed = binaries.find({"XDG_CACHE_HOME": str(tmp_path)})
    assert (installed.etcd, installed.apiserver, installed.controllers) == tuple(cache / file for file in FILES)


def test_envtests_assets_win_and_the_cache_adds_the_controller_manager_they_lack(tmp_path: Path) -> None:
    assets = _put(tmp_path / "assets", "etcd", "kube-apiserver", "kubectl")
    cache = _put(tmp_path / "multikueue" / f"controlplane-{KUBERNETES}", *FILES)
    installed = binaries.find({"XDG_CACHE_HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(assets)})
    assert (installed.etcd.parent, installed.apiserver.parent) == (assets, assets)
    assert installed.controllers_or_raise().parent == cache


def test_a_missing_binary_is_named_with_the_places_and_the_remedies(tmp_path: Path) -> None:
    _put(tmp_path / "assets", "etcd")
    with pytest.raises(BinariesMissing) as caught:
        binaries.find({"XDG_CACHE_HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(tmp_path / "assets")})
    message = str(caught.value)
    assert message.startswith(f"No kube-apiserver in {tmp_path / 'assets'} and {tmp_path / 'multikueue'}")
    assert "nox -s controlplane" in message
    assert "KUBEBUILDER_ASSETS" in message
    assert "--provider kind" in message


def test_only_who_wants_controllers_is_told_that_they_are_missing(tmp_path: Path) -> None:
    assets = _put(tmp_path / "assets", "etcd", "kube-apiserver")
    installed = binaries.find({"XDG_CACHE_HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(assets)})
    with pytest.raises(BinariesMissing, match="kube-controller-manager is missing"):
        installed.controllers_or_raise()


def test_without_binaries_a_developers_test_is_skipped_and_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match="nox -s controlplane"):
        choose_or_report(PROCESSES, {"XDG_CACHE_HOME": str(tmp_path)})


def test_without_binaries_ci_fails_instead_of_testing_nothing(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="CI must have one"):
        choose_or_report(PROCESSES, {"XDG_CACHE_HOME": str(tmp_path), "CI": "true"})


def test_an_unusable_kind_provider_names_the_missing_programs(tmp_path: Path) -> None:
    with pytest.raises(BinariesMissing, match="needs kind and docker on the PATH"):
        choose("kind", {"PATH": str(tmp_path)})
