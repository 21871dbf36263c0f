"""``python -m portal.dev.run``: port chosen, Children started and restarted, curl shown; Ctrl-C."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import signal
import sys
import time
from typing import TYPE_CHECKING, Final, NoReturn

import django
from django.conf import settings

from portal.dev.install import say
from portal.dev.supervisor.children import Children, StartError, commands
from portal.env import SettingsError, gather
from portal.health.probe import is_ready
from portal.machine import ROOT

if TYPE_CHECKING:
    from types import FrameType

READY_WITHIN: Final = 120.0  # seconds; the end of a process is reported at once
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_WATCH_STEP: Final = 0.1
POD: Final = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "demo", "uid": "4f7f5a3e-6d0c-4c0e-9a43-0d3f6a2b1c5d"},
    "spec": {
        "containers": [
            {
                "name": "web",
                "image": "nginx",
                "resources": {
                    "requests": {"cpu": "100m", "memory": "300Mi"},
                    "limits": {"cpu": "2", "memory": "500Mi"},
                },
            }
        ]
    },
}


class Interrupted(Exception):  # noqa: N818  not an error, but the usual end
    """Somebody pressed Ctrl-C or sent SIGTERM."""


def main(arguments: list[str] | None = None) -> int:
    """Run until stopped; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m portal.dev.run",
        description="Start all processes of the portal with demo policies; Ctrl-C stops them.",
    )
    parser.add_argument("--port", help="listen there (default: GATEHOUSE_LISTEN_PORT or 8000)")
    _choose_port(parser.parse_args(arguments).port)
    django.setup()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        _ignore_signals()
        raise Interrupted

    for signal_number in SIGNALS:
        signal.signal(signal_number, interrupt)
    try:
        _run_portal()
    except StartError as error:
        sys.stderr.write(f"gatehouse: {error}\n")
        return 1
    except Interrupted:
        say("stopped")
        return 0


def _choose_port(port: str | None) -> None:
    """Set the port, and the portal's address that follows from it unless it is configured."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    if port:
        os.environ["GATEHOUSE_LISTEN_PORT"] = port
    try:
        setting_values = gather(os.environ, ROOT / ".env")
    except SettingsError as error:
        raise SystemExit(str(error)) from None
    chosen_port = setting_values.get("GATEHOUSE_LISTEN_PORT") or "8000"
    if chosen_port.isdecimal() and not setting_values.get("GATEHOUSE_EXTERNAL_URL"):
        scheme = "https" if setting_values.get("GATEHOUSE_TLS_CERTIFICATE") else "http"
        os.environ["GATEHOUSE_EXTERNAL_URL"] = f"{scheme}://127.0.0.1:{chosen_port}"


def _run_portal() -> NoReturn:
    from portal.dev.supervisor.preparation import (  # noqa: PLC0415  needs Django set up
        check_port,
        hold_folder,
        prepare_data,
    )

    with contextlib.closing(hold_folder()):
        check_port()
        password, demo_secret = prepare_data()
        if password:
            # Printed before anything else can fail: the password is not stored anywhere.
            admin_user = settings.GATEHOUSE_ADMIN_USER
            say(f"sign in as {admin_user} with password {password} (shown once)")
        children = Children()
        try:
            children.start(commands())
            _wait_until_ready(children)
            portal_address = settings.GATEHOUSE_EXTERNAL_URL
            say(f"ready at {portal_address} (Ctrl-C stops it)")
            say("have a pod reviewed, as an API server does:")
            sys.stdout.write(f"\n{_curl(portal_address, demo_secret)}\n\n")
            sys.stdout.flush()
            while True:
                _restart_ended(children)
                time.sleep(_WATCH_STEP)
        finally:
            _ignore_signals()
            children.stop()


def _wait_until_ready(children: Children) -> None:
    ready_deadline = time.monotonic() + READY_WITHIN
    setting_values = gather(os.environ, ROOT / ".env")
    while not is_ready(setting_values):
        _restart_ended(children)
        if time.monotonic() > ready_deadline:
            raise StartError(f"the portal was not ready within {READY_WITHIN:.0f} s")
        time.sleep(_WATCH_STEP)


def _restart_ended(children: Children) -> None:
    """Restart ended processes after their pauses; raises StartError if a restart cannot help."""
    for ended_child in children.ended():
        if not ended_child.can_restart:
            raise StartError(f"{ended_child}; its last lines are above")
        delay = children.start_later(ended_child.name)
        sys.stderr.write(f"gatehouse: {ended_child}; it is started again in {delay:.1f} s\n")
        sys.stderr.flush()
    children.start_due()


def _curl(portal_address: str, demo_secret: str) -> str:
    pod_request = {
        "uid": "9be4a4f1-8a4b-4f0e-8a7f-1f8f6a0f7d11",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "demo",
        "name": "web",
        "operation": "CREATE",
        "userInfo": {"username": "you"},
        "object": POD,
    }
    pod_review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": pod_request,
    }
    words = ["curl", "-sS", f"{portal_address}/admission/demo/validate"]
    if settings.GATEHOUSE_TLS_CERTIFICATE:
        words += ["--cacert", str(settings.GATEHOUSE_TLS_CERTIFICATE)]
    words += ["-H", f"Authorization: Bearer {demo_secret}", "-H", "Content-Type: application/json"]
    return shlex.join([*words, "-d", json.dumps(pod_review, separators=(",", ":"))])


def _ignore_signals() -> None:
    # All processes are being stopped: a second Ctrl-C must not leave some of them running.
    for signal_number in SIGNALS:
        signal.signal(signal_number, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
