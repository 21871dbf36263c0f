"""Laws of quantities, held against fractions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.quantity import Quantity, QuantityError
from engine.quantity.text import read, read_any

pytestmark = pytest.mark.no_cover  # thousands of cases: tracing each line of them takes minutes
POWERS = {
    **{s: Fraction(10) ** (3 * i - 9) for i, s in enumerate(["n", "u", "m", "", "k", "M", "G"])},
    **{s: Fraction(1024) ** i for i, s in enumerate(["Ki", "Mi", "Gi"], 1)},
    **{f"e{e}": Fraction(10) ** e for e in (-12, -3, 0, 4, 15)},
}
SUFFIXES = [*"num", "", *"kMGTPE", *(f"{letter}i" for letter in "KMGTPE")]
digits = st.text("0123456789", min_size=1, max_size=8)
fractions = st.one_of(st.just(""), st.text("0123456789", max_size=12).map(lambda t: f".{t}"))
texts = st.tuples(st.sampled_from(["", "-", "+"]), digits, fractions, st.sampled_from(list(POWERS)))
quantities = texts.map("".join).map(Quantity.parse)


@given(texts)
def test_value_is_the_fraction_rounded_away_from_zero(parts: tuple[str, ...]) -> None:
    sign, whole, fraction, suffix = parts
    nano = Fraction(f"{whole}{fraction if fraction != '.' else ''}") * POWERS[suffix] * 10**9
    expected = -(-nano.numerator // nano.denominator)
    found = Quantity.parse("".join(parts)).nano
    assert found == (-expected if sign == "-" else expected)


@given(st.integers(0, 10**20), st.integers(0, 6), st.sampled_from(SUFFIXES))
def test_plain_amounts_are_read_as_all_others(number: int, zeros: int, suffix: str) -> None:
    text = f"{number}{'0' * zeros}{suffix}"
    assert read(text) == read_any(text)


@given(quantities)
def test_printing_and_reading_gives_the_same_value(quantity: Quantity) -> None:
    assert quantity.stored() == quantity
    assert Quantity.parse(quantity.canonical()) == quantity
    assert Quantity.parse(quantity.canonical()).canonical() == quantity.canonical()


@given(quantities, quantities, quantities)
def test_addition_is_that_of_numbers(a: Quantity, b: Quantity, c: Quantity) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert (a + b) - b == a
    assert a - b == -(b - a)


@given(quantities, quantities)
def test_a_stored_sum_is_the_sum_as_it_is_stored(a: Quantity, b: Quantity) -> None:
    quick, sum_ = a.stored_sum(b), (a + b).stored()
    assert (quick.nano, quick.format, quick.text) == (sum_.nano, sum_.format, sum_.text)


@given(quantities, quantities)
def test_order_agrees_with_the_difference(a: Quantity, b: Quantity) -> None:
    assert (a < b) == ((a - b).sign < 0)
    assert (a <= b) == ((a - b).sign <= 0)
    assert (a == b) == (a - b).is_zero
    assert (hash(a) == hash(b)) or a != b


@given(quantities)
def test_rounding_goes_up_less_than_a_step_and_once(quantity: Quantity) -> None:
    rounded = quantity.round_up_milli()
    assert rounded.round_up_milli() == rounded
    assert 0 <= abs(rounded.nano) - abs(quantity.nano) < 10**6
    assert abs(quantity.ceil()) * 10**9 - abs(quantity.nano) in range(10**9)


@given(st.text("0123456789.+-eEinumkKMGTP \n\u0661", max_size=30))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except QuantityError:
        return
    assert quantity.stored() == quantity
