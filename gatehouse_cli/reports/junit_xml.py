"""The report as JUnit XML, as Jenkins' schema (junit-10.xsd) has it: a suite for each file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gatehouse_cli.trials.trial import ManifestTrial, Remark, TrialRun

# XML has no character for these, not even escaped.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DECLARATION: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'


def render(run: TrialRun) -> str:
    """Render ``testsuites`` with a ``testsuite`` for each file and a ``testcase`` for each object.

    Lines stand in the texts: the schema has no attribute for them.
    """
    by_file: dict[str, list[ManifestTrial]] = {}
    for trial in run.trials:
        by_file.setdefault(trial.candidate.item.document.source, []).append(trial)
    root = ET.Element("testsuites", {"name": "gatehouse test", **_numbers(run.trials)})
    for file, trials in by_file.items():
        name = _clean(file)
        attributes = {"name": name, "file": name, **_numbers(trials)}
        suite = ET.SubElement(root, "testsuite", attributes)
        for trial in trials:
            _add_case(suite, trial)
    ET.indent(root)
    return _DECLARATION + ET.tostring(root, encoding="unicode")


def _numbers(trials: Sequence[ManifestTrial]) -> dict[str, str]:
    failed = sum(not trial.passes for trial in trials)
    return {"tests": str(len(trials)), "failures": str(failed), "errors": "0"}


def _add_case(suite: ET.Element, trial: ManifestTrial) -> None:
    item = trial.candidate.item
    title = _clean(trial.candidate.title)
    case = ET.SubElement(suite, "testcase", name=title, classname=_clean(item.document.source))
    if trial.failures:
        first = trial.failures[0]
        failure = ET.SubElement(case, "failure", type=first.reason, message=_clean(first.message))
        failure.text = _lines(trial.failures)
    if trial.warnings:
        ET.SubElement(case, "system-out").text = _lines(trial.warnings)


def _lines(remarks: Iterable[Remark]) -> str:
    return _clean(
        "\n".join(f"{each.place}: {each.field}: {each.message} ({each.origin})" for each in remarks)
    )


def _clean(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
