"""A TrialRun as text, JSON, JUnit XML, SARIF, GitHub annotations: each module has ``render``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gatehouse_cli.trials.trial import TrialRun

FORMS: Final = ("text", "json", "junit", "sarif", "github")
"""The names of the forms; only the module of the one that is asked for is loaded."""
_MODULES: Final = {
    "text": "plain_text",
    "json": "json_text",
    "junit": "junit_xml",
    "sarif": "sarif",
    "github": "github_annotations",
}


def render(run: TrialRun, form: str) -> str:
    """Render a run in one of the forms, without a newline at its end."""
    module = importlib.import_module(f"gatehouse_cli.reports.{_MODULES[form]}")
    rendered: str = module.render(run)
    return rendered
