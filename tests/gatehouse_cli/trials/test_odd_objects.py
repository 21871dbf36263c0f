"""No object makes a trial or a report fail, whatever its shape."""

from __future__ import annotations

import json
from contextlib import suppress
from xml.etree import ElementTree as ET

import pytest

from gatehouse_cli import reports
from gatehouse_cli.trials.judge import Judge
from gatehouse_cli.trials.trial import TrialRun
from gatehouse_cli.trials.trial_objects import TrialObjects
from policies.manifests.documents import ManifestError
from policies.manifests.policy_files import PolicyFiles
from policies.manifests.sources import parse_documents
from tests.mutations import POLICIES, mutated

POLICY_FILES = PolicyFiles(tuple(POLICIES))


def odd_texts(first: int, number: int) -> list[str]:
    """Objects of mutated reviews, as far as the review still has one."""
    texts = []
    for each in range(first, first + number):
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            review = json.loads(mutated(each)[0])
            obj = review["request"]["object"]
            texts.append(json.dumps({"apiVersion": "v1", **obj}))
    return texts


@pytest.mark.parametrize("first", range(0, 1000, 250))
def test_odd_objects_are_judged_and_reported(first: int) -> None:
    found = TrialObjects()
    for text in odd_texts(first, 250):
        with suppress(ManifestError):
            found.add(parse_documents(text, "odd.yaml"))
    judge = Judge(POLICY_FILES, "ns")
    run = TrialRun([judge.judge(each) for each in found.objects], found.skipped)
    assert len(run.trials) > 100
    assert len(run.failed) > 10
    for trial in run.trials:
        assert all(remark.line and remark.column for remark in trial.refusals)
    written = {form: reports.render(run, form) for form in reports.FORMS}
    ET.fromstring(written["junit"])  # noqa: S314  our own text
    assert len(json.loads(written["json"])["results"]) == len(run.trials)
