"""Context: a portal's address and token; Contexts in the user's config folder, as kubeconfig."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from gatehouse_cli.exit_codes import CliError

_CURRENT: Final = "current-context"
_CONTEXTS: Final = "contexts"
_OTHERS_MAY_READ: Final = 0o077


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One portal as one account sees it."""

    name: str
    url: str
    token: str = dataclasses.field(repr=False)
    certificate_authority: str = ""
    """A file with the only authority that may vouch for the portal; empty: the machine's."""
    cluster: str = ""
    """The cluster of commands that name none."""


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts of a user, and the name of the one in use."""

    current: str = ""
    known: tuple[Context, ...] = ()

    def named(self, name: str) -> Context:
        """The context of this name; raises CliError with the closest one."""
        for context in self.known:
            if context.name == name:
                return context
        names = [context.name for context in self.known]
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(names) or 'none'}"
        raise CliError(f'there is no context "{name}" in {config_path()}{hint}')

    def with_current(self, context: Context) -> Contexts:
        """The same with one more or replaced context, which is the one in use."""
        others = tuple(each for each in self.known if each.name != context.name)
        return Contexts(context.name, (*others, context))


def config_path() -> Path:
    """The file of contexts: ``gatehouse/config.yaml`` in the user's config folder."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    # Relative values are to be ignored, as the XDG specification demands.
    base = Path(folder) if Path(folder).is_absolute() else Path.home() / ".config"
    return base / "gatehouse" / "config.yaml"


def load() -> Contexts:
    """Read the file; without one there are no contexts. Raises CliError for a file of others."""
    path = config_path()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Contexts()
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"{path}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from error
    if path.stat().st_mode & _OTHERS_MAY_READ:
        raise CliError(f"{path} has tokens and others may read it; run: chmod 600 {path}")
    try:
        return _contexts(yaml.safe_load(text) or {})
    except (yaml.YAMLError, TypeError, ValueError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise CliError(f"{path} is no file of contexts: {reason}") from error


def save(contexts: Contexts) -> None:
    """Write the file for its owner alone; a reader sees the old file or the new one."""
    path = config_path()
    document = {_CURRENT: contexts.current, _CONTEXTS: [_entry(each) for each in contexts.known]}
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # mkstemp makes files for their owner alone.
        descriptor, new_name = tempfile.mkstemp(dir=path.parent, prefix=".config-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                yaml.safe_dump(document, file, sort_keys=False, allow_unicode=True)
            Path(new_name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(new_name).unlink()
            raise
    except OSError as error:
        raise CliError(f"{path}: {error.strerror or error}") from error


def _entry(context: Context) -> dict[str, str]:
    given = {name.replace("_", "-"): text for name, text in dataclasses.asdict(context).items()}
    return {name: text for name, text in given.items() if text}


def _contexts(document: dict[str, Any]) -> Contexts:
    """Raises ValueError and its like for anything that is not understood."""
    _require_known(document, [_CURRENT, _CONTEXTS])
    known = tuple(_context(entry) for entry in document.get(_CONTEXTS) or [])
    return Contexts(str(document.get(_CURRENT) or ""), known)


def _context(entry: dict[str, Any]) -> Context:
    fields = [field.name.replace("_", "-") for field in dataclasses.fields(Context)]
    _require_known(entry, fields)
    return Context(**{name.replace("-", "_"): str(value) for name, value in entry.items()})


def _require_known(given: dict[str, Any], known: list[str]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f'unknown field "{name}"; known: {", ".join(known)}')
