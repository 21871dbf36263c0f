"""What a run prints and writes, from figures that are made up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bench import figures, report
from bench.figures import BESIDE, FULL, LEAN_FULL

if TYPE_CHECKING:
    from pathlib import Path


def made_up(**more: Any) -> report.Report:
    def figure(rps: float) -> dict[str, float]:
        return {"rps": rps, "p50": 1.0, "p99": 2.0, "cpu_us": 100.0, "database_us": 50.0}

    found = {
        LEAN_FULL: [figure(100.0), figure(110.0)],
        FULL: [figure(50.0), figure(66.0)],
        "orjson.loads": [{"us": 10.0}],
        "engine, validate": [{"us": 25.0}],
        **more,
    }
    return report.Report({"cores": 2}, found, ["one load"], {"regopy": "absent"})


def test_row_has_the_ratio_to_the_floor_of_the_same_round() -> None:
    row = next(row for row in report.rows(made_up()) if row[0] == FULL)
    assert row[1:4] == ["58", "50-66", "0.55"]


def test_floor_has_no_ratio_to_itself() -> None:
    row = next(row for row in report.rows(made_up()) if row[0] == LEAN_FULL)
    assert row[3] == ""


@pytest.mark.parametrize(
    ("name", "floor"),
    [
        ("Gatehouse | spread | c32", "DRF-lean echo | c32"),
        ("Gatehouse | spread | 200/s", ""),
        ("writer alone | hot", "one INSERT per transaction"),
        ("writer alone | hot | 2 ms commits", "one INSERT per transaction | 2 ms commits"),
        (BESIDE, ""),
        ("Gatehouse, 50,000 policies | spread | c32", BESIDE),
    ],
)
def test_figure_is_held_against_the_floor_of_its_kind(name: str, floor: str) -> None:
    assert report.floor_of(name, {LEAN_FULL: []}) == floor


def test_engine_is_shown_beside_the_reader() -> None:
    assert ["engine, validate", "25.0", "25.0-25.0", "2.5"] in report.engine_rows(made_up())


def test_skipped_subject_is_named_loudly() -> None:
    assert "Left out: regopy, absent." in report.as_markdown(made_up())


def test_goal_measured_elsewhere_is_listed() -> None:
    cells = [cell for row in report.goal_rows(made_up()) for cell in row]
    assert "not measured here" in cells
    assert "make bench-growth" in cells


def test_saved_report_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    path = report.save(made_up().as_json(), name="quick-postgresql")
    assert report.load_report(path) == made_up()
    assert (tmp_path / "latest-quick-postgresql.json").exists()


def test_page_is_changed_between_its_marks_only(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- bench: begin -->\nold\n<!-- bench: end -->\nafter\n", "utf-8")
    report.write_between(page, "bench", "new \\1")
    text = page.read_text("utf-8")
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "new \\1" in text


def test_page_without_marks_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing here", "utf-8")
    with pytest.raises(ValueError, match="no place"):
        report.write_between(page, "bench", "new")


def test_both_pages_have_their_marks() -> None:
    for page in (report.PAGE, report.SCALE):
        text = page.read_text("utf-8")
        assert "<!-- bench: begin -->" in text
        assert "<!-- bench: end -->" in text


def test_scale_needs_all_costs() -> None:
    assert report.costs_of(made_up()) is None


def test_scale_counts_half_of_a_core() -> None:
    assert report.cores(1000, 500) == pytest.approx(1.0)


def test_scale_lists_each_size() -> None:
    costs = {
        figures.PRODUCT: [{"row_bytes": 4000.0, "worker_bytes": 9e7}],
        figures.LARGE: [{"policy_bytes": 2000.0}],
    }
    text = report.scale_as_markdown(made_up(**costs))
    assert all(name in text for name, *_ in report.SIZES)
