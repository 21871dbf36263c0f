"""How amounts move: exactly, and just as they would come back from storage."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.decision import Charge
from engine.policy import PolicyRef
from engine.quantity import Quantity
from policies.ledger.arithmetic import as_stored, grown, moved, used_before, without_surplus

QUOTA = PolicyRef(kind="ResourceQuota", namespace="team", name="rq", revision=1)
SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "E", "Ki", "Mi", "Gi", "Ei", "e3", "e-3"]
quantities = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-"]),
    st.one_of(st.integers(0, 70), st.integers(0, 10**12)),
    st.sampled_from(["", ".5", ".125"]),
    st.sampled_from(SUFFIXES),
).map(Quantity.parse)


def amounts(**texts: str) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in texts.items()}


def decided(delta: dict[str, Quantity], whole: dict[str, Quantity]) -> Charge:
    return Charge(quota=QUOTA, delta=delta, amounts=whole)


@given(quantities, quantities)
def test_every_sum_is_what_storage_gives_back(a: Quantity, b: Quantity) -> None:
    for total in (a, a + b, a - b):
        kept, read = as_stored({"x": total})["x"], total.stored()
        assert (kept.nano, kept.format, str(kept)) == (read.nano, read.format, str(read))


@given(quantities, quantities, quantities)
def test_used_moves_by_the_difference(used: Quantity, held: Quantity, wanted: Quantity) -> None:
    found = moved({"x": used}, {"x": held}, {"x": wanted})["x"]
    expected = (used + (wanted - held)).stored() if wanted != held else used
    assert (found.nano, str(found)) == (expected.nano, str(expected))


def test_what_a_quota_does_not_track_moves_nothing() -> None:
    used = amounts(pods="1")
    assert moved(used, {}, amounts(cpu="1")) is used


def test_growth_ends_at_the_whole_usage_and_lowers_nothing() -> None:
    held = amounts(cpu="3", memory="1")
    growth = decided(amounts(cpu="2", memory="-1"), amounts(cpu="4", memory="0"))
    assert grown(held, growth) == amounts(cpu="4", memory="1")


def test_what_was_used_before_the_growth() -> None:
    growth = decided(amounts(cpu="2", pods="1"), amounts(cpu="5", pods="1", memory="1"))
    assert used_before(growth) == amounts(cpu="3", memory="1")


def test_only_what_goes_beyond_the_old_object_is_taken_off() -> None:
    used, held = amounts(cpu="9", pods="2"), amounts(cpu="4", pods="1", other="1")
    assert without_surplus(used, held, amounts(cpu="1", pods="1")) == amounts(cpu="6", pods="2")
    assert without_surplus(used, held, amounts(cpu="5", pods="1")) is used
