"""``gatehouse test``: files, folders and standard input; reports; exit codes; its speed."""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gatehouse_cli.exit_codes import ExitCode
from gatehouse_cli.main import run
from tests.gatehouse_cli.manifests import LIMITS, deployment, documents

if TYPE_CHECKING:
    from collections.abc import Callable

    Write = Callable[..., str]

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(name: str, *texts: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(documents(*texts), encoding="utf-8")
        return str(path)

    return make


@pytest.fixture
def limits(write: Write) -> str:
    return write("policies/limits.yaml", LIMITS)


def given_as_input(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_folders_are_read(write: Write, limits: str, capsys: Any) -> None:
    good, bad = write("apps/good.yaml", deployment()), write("apps/deep/bad.yml", deployment("3"))
    folder = str(Path(good).parent)
    assert run(["test", "-f", str(Path(limits).parent), folder]) == ExitCode.FOUND
    assert capsys.readouterr().out.startswith(f"{bad}:15:13: Deployment shop/web: maximum cpu")


def test_many_files_and_policies_are_taken_together(write: Write, limits: str, capsys: Any) -> None:
    quota = write("q.yaml", LIMITS.replace("limits}", "x}").replace("name: limits", "name: two"))
    paths = [write(f"{n}.yaml", deployment(name=f"n{n}")) for n in range(3)]
    assert run(["test", "-f", limits, "--policies", quota, *paths]) == ExitCode.OK
    assert capsys.readouterr().out == "3 objects tested: 3 passed, 0 failed\n"


def test_manifests_come_from_standard_input(
    limits: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    given_as_input(monkeypatch, documents(deployment(), deployment("3", name="big")))
    assert run(["test", "-f", limits, "-"]) == ExitCode.FOUND
    assert capsys.readouterr().out.startswith("<stdin>:31:13: Deployment shop/big: ")


def test_policies_come_from_standard_input(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    given_as_input(monkeypatch, LIMITS)
    assert run(["test", "-f", "-", write("a.yaml", deployment("3"))]) == ExitCode.FOUND


def test_limited_resources_are_read(write: Write, capsys: Any) -> None:
    configuration = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - resource: pods
      matchContains: [pods]
"""
    paths = write("admission.yaml", configuration), write("a.yaml", deployment())
    assert run(["test", "-f", *paths]) == ExitCode.FOUND
    assert "InsufficientQuota" in capsys.readouterr().out


def test_namespace_is_that_of_the_policies_or_the_given_one(write: Write, limits: str) -> None:
    homeless = write("a.yaml", deployment("3").replace("  namespace: shop\n", ""))
    assert run(["test", "-f", limits, homeless]) == ExitCode.FOUND
    assert run(["test", "-f", limits, "-n", "elsewhere", homeless]) == ExitCode.OK


def test_case_files_pass_with_their_expected_denials(write: Write, limits: str) -> None:
    cases = documents(
        deployment(), deployment("3", name="b", expect="deny", expect_reason="MaxConstraint")
    )
    assert run(["test", "-f", limits, write("cases.yaml", cases)]) == ExitCode.OK


@pytest.mark.parametrize(
    ("form", "begin"),
    [("json", "{"), ("junit", "<?xml"), ("sarif", "{"), ("github", "::error "), ("text", "/")],
)
def test_report_is_printed_or_written(
    form: str, begin: str, write: Write, limits: str, capsys: Any
) -> None:
    words = ["test", "-f", limits, write("a.yaml", deployment("3")), "--report", form]
    assert run(words) == ExitCode.FOUND
    printed = capsys.readouterr().out
    assert printed.startswith(begin)
    file = write("report")
    assert run([*words, "--report-file", file]) == ExitCode.FOUND
    assert Path(file).read_text("utf-8") == printed
    assert capsys.readouterr().out.endswith("1 object tested: 0 passed, 1 failed\n")


def test_report_that_cannot_be_written_is_an_error(
    write: Write, limits: str, tmp_path: Path, capsys: Any
) -> None:
    file = str(tmp_path / "missing" / "report.xml")
    assert run(["test", "-f", limits, write("a.yaml", deployment()), "--report-file", file]) == 2
    assert f"{file}: no such file or directory" in capsys.readouterr().err


def test_problems_of_all_files_are_listed_with_their_lines(write: Write, capsys: Any) -> None:
    typo = write("p.yaml", LIMITS.replace("limits:", "limit:"))
    broken, unknown = (
        write("a.yaml", "a: ["),
        write("b.yaml", deployment().replace("apps/v1", "v1")),
    )
    assert run(["test", "-f", typo, broken, unknown, "gone.yaml"]) == ExitCode.ERROR
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert lines[0].startswith(f"{typo}:5:3: spec.limit: unknown field")
    assert lines[1] == "gone.yaml: no such file or directory"
    assert lines[-1] == "gatehouse: 2 problems; nothing was tested"


def test_problems_of_readable_files_are_found_together(
    write: Write, limits: str, capsys: Any
) -> None:
    broken, unknown = (
        write("a.yaml", "a: ["),
        write("b.yaml", deployment().replace("apps/v1", "v1")),
    )
    assert run(["test", "-f", limits, broken, unknown]) == ExitCode.ERROR
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[0] for line in lines[:2]] == [f"{broken}:1:1", f"{unknown}:1:1"]


@pytest.mark.parametrize("name", ["policies", "manifests"])
def test_nothing_to_test_by_or_nothing_to_test_is_an_error(
    name: str, write: Write, limits: str, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "empty").mkdir()
    empty, obj = str(tmp_path / "empty"), write("a.yaml", deployment())
    words = [empty, obj] if name == "policies" else [limits, empty]
    assert run(["test", "-f", *words]) == ExitCode.ERROR
    assert (
        f"{empty}: there is no {'policy' if name == 'policies' else 'manifest'}"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.yaml"], "Missing option '-f'"),
        (["-f", "-", "-"], "standard input (-) can be read only once"),
        (["-f", "p", "a", "--namespac", "x"], "Did you mean '--namespace'?"),
        (["-f", "p", "a", "--report", "xml"], "'xml' is not one of"),
    ],
)
def test_wrong_usage_is_an_error_in_words(words: list[str], said: str, capsys: Any) -> None:
    assert run(["test", *words]) == ExitCode.ERROR
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("colour", [{}, {"NO_COLOR": "1"}])
def test_pipes_get_no_colour(colour: dict[str, str], write: Write, limits: str) -> None:
    done = subprocess.run(  # noqa: S603  our own words
        [
            sys.executable,
            "-m",
            "gatehouse_cli",
            "test",
            "-f",
            limits,
            write("a.yaml", deployment("3")),
        ],
        cwd=ROOT,
        env={**os.environ, **colour},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, b"\x1b" in done.stdout, done.stderr) == (1, False, b"")


def test_thousand_manifests_take_less_than_three_seconds(write: Write, limits: str) -> None:
    for number in range(1000):
        path = write(f"many/{number}.yaml", deployment(name=f"n{number}", replicas=number % 4))
    words = [sys.executable, "-m", "gatehouse_cli", "test", "-f", limits, str(Path(path).parent)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*words, "--report", "json"], cwd=ROOT, capture_output=True, check=False)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert json.loads(done.stdout)["summary"]["passed"] == 1000
    # Of the processor, which other tests use, too: on an idle machine nothing else takes time.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 3


def test_the_version_of_the_cluster_decides(write: Write, capsys: Any) -> None:
    policies = write(
        "policies.yaml",
        """
        apiVersion: v1
        kind: ResourceQuota
        metadata: {name: q}
        spec: {hard: {limits.cpu: "2"}}
        """,
    )
    manifest = write(
        "pod.yaml",
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: p, namespace: shop}
        spec:
          resources: {requests: {cpu: "3"}}
          containers:
            - {name: c, image: i, resources: {requests: {cpu: 500m}, limits: {cpu: "2"}}}
        """,
    )
    assert run(["test", "-f", policies, manifest]) == ExitCode.OK
    known = ["test", "-f", policies, manifest, "--kubernetes-version"]
    assert run([*known, "1.37"]) == ExitCode.FOUND
    assert "exceeded quota: q, requested: limits.cpu=3" in capsys.readouterr().out
    assert run([*known, "1.2"]) == ExitCode.ERROR
    assert "1.35" in capsys.readouterr().err
