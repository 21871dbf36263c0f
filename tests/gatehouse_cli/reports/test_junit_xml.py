"""The report as JUnit XML, in the elements and attributes that Jenkins' schema allows."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from gatehouse_cli.reports import render
from tests.gatehouse_cli.manifests import LIMITS, deployment, policies, run_of
from tests.gatehouse_cli.reports.conftest import FILE

if TYPE_CHECKING:
    from gatehouse_cli.trials.trial import TrialRun

NUMBERS = {"tests", "failures", "errors"}
# Element: attributes required, attributes allowed, children allowed (junit-10.xsd).
SCHEMA = {
    "testsuites": (set(), {"name", *NUMBERS}, {"testsuite"}),
    "testsuite": ({"name", *NUMBERS}, {"name", "file", *NUMBERS}, {"testcase"}),
    "testcase": ({"name"}, {"name", "classname"}, {"failure", "system-out"}),
    "failure": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
}


def test_report_is_valid(run: TrialRun) -> None:
    root = ET.fromstring(render(run, "junit"))  # noqa: S314  our own text
    assert root.tag == "testsuites"
    for element in root.iter():
        required, allowed, children = SCHEMA[element.tag]
        assert required <= set(element.attrib) <= allowed
        assert {child.tag for child in element} <= children


def test_suite_is_a_file_and_case_an_object(run: TrialRun) -> None:
    root = ET.fromstring(render(run, "junit"))  # noqa: S314  our own text
    [suite] = root
    assert (suite.get("file"), suite.get("tests"), suite.get("failures")) == (FILE, "2", "1")
    assert [case.get("name") for case in suite] == ["Deployment shop/web", "Deployment shop/small"]


def test_failure_names_its_line(run: TrialRun) -> None:
    [failure] = ET.fromstring(render(run, "junit")).iter("failure")  # noqa: S314  our own text
    assert failure.get("type") == "MaxConstraint"
    assert (failure.text or "").startswith(f"{FILE}:15:13: spec.template.spec.containers[0]")


def test_characters_that_xml_lacks_are_replaced() -> None:
    text = deployment("3").replace("name: web", 'name: "w\\u0001<&"', 1)
    root = ET.fromstring(render(run_of(policies(LIMITS), text), "junit"))  # noqa: S314
    [case] = root.iter("testcase")
    assert case.get("name") == "Deployment shop/w\ufffd<&"
