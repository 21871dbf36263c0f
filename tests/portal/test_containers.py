"""The compose file against its specification, the Dockerfile against its linter.

No engine runs here; the commands themselves run in tests/servers.
"""

from __future__ import annotations

import importlib.resources
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from policies.sync import sealing

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


def test_worker_alone_can_open_credentials(compose: dict[str, Any]) -> None:
    holders = {
        name
        for name, service in compose["services"].items()
        if "seal_private_keys" in service.get("secrets", [])
    }
    assert holders == {"worker"}
    web = compose["services"]["web"]
    assert "GATEHOUSE_SEAL_PRIVATE_KEYS_FILE" not in web["environment"]
    assert "seal_public_keys" in web["secrets"]


def test_script_makes_keys_that_open_what_they_seal(
    tmp_path: Path, settings: SettingsWrapper
) -> None:
    shutil.copy(ROOT / "deploy" / "secrets.sh", tmp_path)
    subprocess.run(["sh", str(tmp_path / "secrets.sh")], check=True, capture_output=True)  # noqa: S603, S607
    settings.GATEHOUSE_SEAL_PUBLIC_KEYS_FILE = tmp_path / "secrets" / "seal_public_keys"
    settings.GATEHOUSE_SEAL_PRIVATE_KEYS_FILE = tmp_path / "secrets" / "seal_private_keys"
    assert sealing.open_sealed(sealing.seal(b"token", place="a"), place="a") == b"token"


def test_image_runs_as_another_user_than_root() -> None:
    lines = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert "USER 10001:10001" in lines[lines.index("FROM python:3.11-slim-bookworm") :]
