"""The compose file against its specification, the Dockerfile against its linter.

No engine runs here; the commands themselves run in tests/servers.
"""

from __future__ import annotations

import importlib.resources
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from sync.connect import sealed_box

if TYPE_CHECKING:
    from pytest_django.fixtures import SettingsWrapper

ROOT = Path(__file__).resolve().parents[2]
OURS = ("bootstrap", "web", "worker", "beat")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe", pure=True).load(ROOT / "docker-compose.yml")
    return loaded


def test_compose_file_follows_the_specification(compose: dict[str, Any]) -> None:
    schemas = importlib.resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema = json.loads((schemas / "compose-spec.json").read_text(encoding="utf-8"))
    jsonschema.validate(compose, schema)


def test_dockerfile_passes_its_linter() -> None:
    linter = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert linter, "hadolint is installed with requirements/dev.txt"
    subprocess.run([linter, str(ROOT / "deploy" / "Dockerfile")], check=True)  # noqa: S603  our own file


@pytest.mark.parametrize("service", OURS)
def test_service_runs_without_privileges_and_waits_for_its_database(
    compose: dict[str, Any], service: str
) -> None:
    entry = compose["services"][service]
    assert entry["cap_drop"] == ["ALL"]
    gate = entry["depends_on"].get("bootstrap") or entry["depends_on"]["postgres"]
    assert gate["condition"] in {"service_completed_successfully", "service_healthy"}


def test_secrets_come_by_file_and_are_all_made(compose: dict[str, Any]) -> None:
    script = (ROOT / "deploy" / "secrets.sh").read_text(encoding="utf-8")
    for name, secret in compose["secrets"].items():
        assert secret == {"file": f"deploy/secrets/{name}"}
        assert name in script


def test_worker_and_follower_alone_can_open_credentials(compose: dict[str, Any]) -> None:
    holders = {
        name
        for name, service in compose["services"].items()
        if "seal_private_keys" in service.get("secrets", [])
    }
    assert holders == {"worker", "follower"}
    web = compose["services"]["web"]
    assert "GATEHOUSE_SEAL_PRIVATE_KEYS_FILE" not in web["environment"]
    assert "seal_public_keys" in web["secrets"]


def test_script_makes_keys_that_open_what_they_seal(
    tmp_path: Path, settings: SettingsWrapper
) -> None:
    folder = tmp_path / "deploy"
    folder.mkdir()
    shutil.copy(ROOT / "deploy" / "secrets.sh", folder)
    subprocess.run(["sh", str(folder / "secrets.sh")], check=True, capture_output=True)  # noqa: S603, S607
    settings.GATEHOUSE_SEAL_PUBLIC_KEYS_FILE = folder / "secrets" / "seal_public_keys"
    settings.GATEHOUSE_SEAL_PRIVATE_KEYS_FILE = folder / "secrets" / "seal_private_keys"
    assert sealed_box.open_sealed(sealed_box.seal(b"token", place="a"), place="a") == b"token"


def test_secrets_are_for_their_owner_who_runs_the_services(
    tmp_path: Path, compose: dict[str, Any]
) -> None:
    (tmp_path / "deploy").mkdir()
    (tmp_path / ".env").write_text("GATEHOUSE_LOG_LEVEL=INFO\nGATEHOUSE_UID=1\n")
    script = shutil.copy(ROOT / "deploy" / "secrets.sh", tmp_path / "deploy")
    for _ in range(2):  # the second time finds everything done
        subprocess.run(["sh", str(script)], check=True, capture_output=True)  # noqa: S603, S607
    folder = tmp_path / "deploy" / "secrets"
    owner = folder.stat().st_uid
    assert owner == (os.geteuid() or 10001)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    found = {(f.stat().st_uid, stat.S_IMODE(f.stat().st_mode)) for f in folder.iterdir()}
    assert found == {(owner, 0o600)}
    lines = (tmp_path / ".env").read_text().splitlines()
    assert lines == ["GATEHOUSE_LOG_LEVEL=INFO", f"GATEHOUSE_UID={owner}"]
    for service in (*OURS, "postgres"):
        assert compose["services"][service]["user"].startswith("${GATEHOUSE_UID:?")


def test_worker_exports_into_a_volume_that_any_user_may_write(compose: dict[str, Any]) -> None:
    (mount,) = compose["services"]["worker"]["volumes"]
    volume, folder = mount.split(":")
    assert volume in compose["volumes"]
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    assert f"install -d -m 1777 {folder}" in dockerfile


def test_image_runs_as_another_user_than_root() -> None:
    lines = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert "USER 10001:10001" in lines[lines.index("FROM python:3.11-slim-bookworm") :]
