"""Preparation of ``make run``: folder lock, port probe, migrate, demo data, collectstatic stamp."""

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
from portal.dev.demo.people import begin_people
from portal.dev.supervisor.children import StartError
from portal.health import problems
from sync.connect import seal_keys

if TYPE_CHECKING:
    from typing import IO

PACKAGES: Final = ("django", "djangorestframework", "drf-spectacular-sidecar", "whitenoise")


def hold_folder() -> IO[str]:
    """Lock the data folder as long as the returned file is open; raises StartError."""
    data_folder = Path(settings.GATEHOUSE_VAR)
    data_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Opened without truncation: another start must be able to read the holder's process number.
    lock_file = (data_folder / "run.lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock_file.seek(0)
        holder_pid = lock_file.read().strip() or "unknown"
        lock_file.close()
        raise StartError(
            f"a portal runs on {data_folder} already (process {holder_pid}): "
            f"stop it with Ctrl-C there or kill {holder_pid}"
        ) from None
    lock_file.seek(0)
    lock_file.truncate()
    lock_file.write(str(os.getpid()))
    lock_file.flush()
    return lock_file


def check_port() -> None:
    """Raise StartError if another process listens at the web server's port."""
    host, port = settings.GATEHOUSE_LISTEN_HOST, settings.GATEHOUSE_LISTEN_PORT
    with socket.socket() as port_probe:
        port_probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            port_probe.bind((host, port))
        except OSError as error:
            raise StartError(
                f"port {port} of {host} cannot be used ({error.strerror}); "
                f"run: make run PORT={min(port + 1, 65535)}"
            ) from error


def prepare_data() -> tuple[str | None, str]:
    """Bring database and files up to date; returns a new admin's password and the demo secret.

    Raises StartError when the database does not answer or cannot be trusted with a decision.
    """
    for queue_folder in ("queue", "control"):
        (Path(settings.GATEHOUSE_BROKER_FOLDER) / queue_folder).mkdir(parents=True, exist_ok=True)
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
        if key_problem := problems.keep_key_check():
            sys.stderr.write(f"gatehouse: {key_problem}\n")
        begin_demo()
        begin_people()
        demo_secret = demo_credential()
        return ensure_first_admin(), demo_secret
    except (SystemCheckError, seal_keys.KeyFileError) as error:
        raise StartError(str(error)) from None
    except (OperationalError, psycopg.OperationalError) as error:
        database_reason = str(error).strip().partition("\n")[0]
        hint = "start it, or correct GATEHOUSE_DATABASE_URL"
        raise StartError(f"the database does not answer ({database_reason}): {hint}") from None


def collect_static() -> None:
    """Bundle and collect the static files if they or their packages changed."""
    bundle.main()
    static_folder = Path(settings.STATIC_ROOT)
    static_folder.mkdir(parents=True, exist_ok=True)
    # The folder itself is locked, because all its files are replaced: two portals may start from
    # one checkout.
    folder_descriptor = os.open(static_folder, os.O_RDONLY)
    try:
        fcntl.flock(folder_descriptor, fcntl.LOCK_EX)
        static_stamp, static_digest = static_folder / "gatehouse.stamp", _static_digest()
        if not static_stamp.exists() or static_stamp.read_text(encoding="utf-8") != static_digest:
            call_command("collectstatic", interactive=False, verbosity=0, clear=True)
            static_stamp.write_text(static_digest, encoding="utf-8")
    finally:
        os.close(folder_descriptor)


def _static_digest() -> str:
    digest = hashlib.sha256()
    for package in PACKAGES:
        digest.update(f"{package} {version(package)}\n".encode())
    static_files = (
        Path(storage.path(static))
        for finder in get_finders()
        for static, storage in finder.list([".*"])
        if Path(storage.location).is_relative_to(settings.BASE_DIR)
    )
    # Versions stand for the many files of installed packages, which may be below the checkout.
    for static in sorted(static for static in static_files if ".venv" not in static.parts):
        digest.update(f"{static} {static.stat().st_mtime_ns}\n".encode())
    return digest.hexdigest()
