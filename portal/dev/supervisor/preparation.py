"""Preparation of ``make run``: data folder, port, database, demo data, static files."""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import socket
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import OperationalError, connection

from portal.auth.accounts import ensure_first_admin
from portal.dev import bundle
from portal.dev.demo import begin_demo, demo_credential
from portal.dev.supervisor.children import StartError
from portal.health import problems
from sync.connect import seal_keys

if TYPE_CHECKING:
    from typing import IO

PACKAGES: Final = ("django", "djangorestframework", "drf-spectacular-sidecar", "whitenoise")


def hold_folder() -> IO[str]:
    """Lock the data folder as long as the returned file is open; raises StartError."""
    folder = Path(settings.GATEHOUSE_VAR)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Opened without truncation: another start must be able to read the holder's process number.
    file = (folder / "run.lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        file.close()
        raise StartError(
            f"a portal runs on {folder} already (process {holder}): "
            f"stop it with Ctrl-C there or kill {holder}"
        ) from None
    file.seek(0)
    file.truncate()
    file.write(str(os.getpid()))
    file.flush()
    return file


def check_port() -> None:
    """Raise StartError if another process listens at the web server's port."""
    host, port = settings.GATEHOUSE_LISTEN_HOST, settings.GATEHOUSE_LISTEN_PORT
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise StartError(
                f"port {port} of {host} cannot be used ({error.strerror}); "
                f"run: make run PORT={min(port + 1, 65535)}"
            ) from error


def prepare_data() -> tuple[str | None, str]:
    """Bring database and files up to date; returns a new admin's password and the demo secret.

    Raises StartError when the database does not answer or cannot be trusted with a decision.
    """
    for folder in ("queue", "control"):
        (Path(settings.GATEHOUSE_BROKER_FOLDER) / folder).mkdir(parents=True, exist_ok=True)
    try:
        if connection.vendor == "postgresql":
            # Connect once without the pool, which would retry, and log it, for a long time.
            parameters = connection.get_connection_params()
            parameters.pop("pool", None)
            psycopg.connect(**parameters).close()
        collect_static()
        call_command("check", databases=["default"], stdout=io.StringIO())
        call_command("migrate", interactive=False, verbosity=0)
        seal_keys.ensure_keys()
        if wrong := problems.keep_key_check():
            sys.stderr.write(f"gatehouse: {wrong}\n")
        begin_demo()
        secret = demo_credential()
        return ensure_first_admin(), secret
    except (SystemCheckError, seal_keys.KeyFileError) as error:
        raise StartError(str(error)) from None
    except (OperationalError, psycopg.OperationalError) as error:
        reason = str(error).strip().partition("\n")[0]
        hint = "start it, or correct GATEHOUSE_DATABASE_URL"
        raise StartError(f"the database does not answer ({reason}): {hint}") from None


def collect_static() -> None:
    """Bundle and collect the static files if they or their packages changed."""
    bundle.main()
    folder = Path(settings.STATIC_ROOT)
    folder.mkdir(parents=True, exist_ok=True)
    # The folder itself is locked, because all its files are replaced: two portals may start from
    # one checkout.
    holder = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        mark, wanted = folder / "gatehouse.stamp", _fingerprint()
        if not mark.exists() or mark.read_text(encoding="utf-8") != wanted:
            call_command("collectstatic", interactive=False, verbosity=0, clear=True)
            mark.write_text(wanted, encoding="utf-8")
    finally:
        os.close(holder)


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for package in PACKAGES:
        digest.update(f"{package} {version(package)}\n".encode())
    found = (
        Path(storage.path(path))
        for finder in get_finders()
        for path, storage in finder.list([".*"])
        if Path(storage.location).is_relative_to(settings.BASE_DIR)
    )
    # Versions stand for the many files of installed packages, which may be below the checkout.
    for path in sorted(path for path in found if ".venv" not in path.parts):
        digest.update(f"{path} {path.stat().st_mtime_ns}\n".encode())
    return digest.hexdigest()
