"""Files and messages of the build, without building."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.cluster import binaries, build

if TYPE_CHECKING:
    from pathlib import Path

KUBERNETES = """module k8s.io/kubernetes

go 1.26.0

require k8s.io/api v0.0.0

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/kube-proxy => ./staging/src/k8s.io/kube-proxy
)
"""


def place(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text("")
        (folder / name).chmod(0o700)


def test_each_staging_folder_becomes_its_published_module() -> None:
    lines = build.module_text(
        KUBERNETES, ["k8s.io/kubernetes/cmd/kube-apiserver"], "v1.36.3"
    ).split("\n")
    assert "go 1.26.0" in lines
    assert "require k8s.io/kubernetes v1.36.3" in lines
    assert "replace k8s.io/api => k8s.io/api v0.36.3" in lines
    assert "replace k8s.io/kube-proxy => k8s.io/kube-proxy v0.36.3" in lines
    assert "tool k8s.io/kubernetes/cmd/kube-apiserver" in lines


def test_nothing_is_built_if_everything_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(tmp_path, *binaries.BUILT)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", os.devnull)
    assert build.main([]) == 0


def test_missing_go_has_an_exit_code_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.devnull)
    assert build.main([]) == build.UNAVAILABLE
    assert "CANNOT BE BUILT HERE: there is no Go" in capsys.readouterr().out


def test_assets_come_before_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(tmp_path, "kube-apiserver", "etcd", "kubectl")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    found = binaries.find()
    assert found
    assert found.apiserver == tmp_path / "kube-apiserver"
    assert found.controller_manager is None or found.controller_manager.parent != tmp_path


def test_each_version_has_a_folder_and_shares_what_does_not_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for version in binaries.RELEASES:
        binaries.cache(version).mkdir(parents=True)
    place(binaries.cache(), *binaries.BUILT)
    assert binaries.missing("1.37") == ["kube-apiserver"]
    assert binaries.find("1.37") is None
    place(binaries.cache("1.37"), "kube-apiserver")
    found = binaries.find("1.37")
    assert found
    assert found.apiserver == binaries.cache("1.37") / "kube-apiserver"
    assert found.etcd == binaries.cache() / "etcd"


def test_assets_of_nobody_knows_which_version_serve_the_default_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(tmp_path, *binaries.BUILT)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert binaries.find()
    assert binaries.find("1.37") is None


def test_an_unknown_version_is_not_built(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        build.main(["1.2"])
    assert ended.value.code == 2
    assert "unknown version: 1.2" in capsys.readouterr().err
