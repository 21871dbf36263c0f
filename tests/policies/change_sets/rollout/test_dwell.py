"""Times of stages are read as people write them, and written so that they are read again."""

from __future__ import annotations

import pytest

from policies.change_sets.rollout.dwell import dwell_text, dwell_words, read_dwell


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2h", 7200), ("30m", 1800), (" 1 H 30 min ", 5400), ("1d2h3m4s", 93_784), ("0", 0)],
)
def test_a_time_is_read(text: str, seconds: int) -> None:
    assert read_dwell(text) == seconds
    assert read_dwell(dwell_text(seconds)) == seconds


@pytest.mark.parametrize(
    "text", ["", " ", "2", "h", "2 weeks", "30m2h", "-1h", "1.5h", "²h", "1h" * 30]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^$"):
        read_dwell(text)


def test_seconds_are_shown_in_words() -> None:
    assert [dwell_words(each) for each in (0, 5400, 86_405)] == ["none", "1 h 30 min", "1 d 5 s"]
