"""Quantities: what is read, what is printed, what is never expanded."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from engine.quantity import FORMAT, NULL, NUMERIC, SUFFIX, ZERO, Quantity, QuantityError


def q(text: str) -> Quantity:
    return Quantity.parse(text)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0.1", "100m"),
        ("5.", "5."),
        (".", "0"),
        ("-", "0"),
        ("e3", "0"),
        ("+1", "+1"),
        ("-0", "0"),
        ("007", "007"),
        ("1e5", "100e3"),
        ("1E", "1E"),
        ("8Ei", "9223372036854775807"),
        ("-9Ei", "-9223372036854775807"),
        ("12345678901234567890123Ki", "9223372036854775807"),
        ("1.500", "1.500"),
        ("3.1415", "3141500u"),
        ("0.1Gi", "107374182400m"),
        ("1000", "1k"),
        ("1000Ki", "1000Ki"),
        ("1024Ki", "1Mi"),
        ("1Pi", "1Pi"),
        ("-2048", "-2048"),
        (".000000000001Ki", "2n"),
        ("1000E", "1e21"),
        ("1500e-9", "1500e-9"),
        ("15000e-10", "1500e-9"),
        ("1e60", "1e60"),
        ("0." + "0" * 5000 + "1", "1n"),
        ("0" * 5000 + "7", "0" * 5000 + "7"),
        ("1." + "0" * 5000 + "1Ki", "1024000000001n"),
        ("1." + "0" * 5000 + "Ki", "1Ki"),
        ("0." + "0" * 90 + "Ki", "0"),
    ],
)
def test_printed_text(text: str, printed: str) -> None:
    assert str(q(text)) == printed


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("", FORMAT),
        (" 1", FORMAT),
        ("1\n", FORMAT),
        ("\u0661", FORMAT),
        ("1Gi ", FORMAT),
        ("1.2.3", FORMAT),
        ("0x10", FORMAT),
        ("1K", SUFFIX),
        ("1e", SUFFIX),
        ("1e+", SUFFIX),
        ("1m5", SUFFIX),
        ("1ee5", SUFFIX),
        ("1e2147483648", SUFFIX),
        ("1e-2147483649", SUFFIX),
        ("1e99999999999999999999", SUFFIX),
        ("Pi", NUMERIC),
        ("-Ei", NUMERIC),
        ("e-20", NUMERIC),
    ],
)
def test_text_that_is_no_quantity(text: str, detail: str) -> None:
    with pytest.raises(QuantityError) as caught:
        q(text)
    assert caught.value.detail == str(caught.value) == detail


@pytest.mark.parametrize(
    ("value", "nano"),
    [
        pytest.param(" 1Gi ", 2**30 * 10**9, id="spaces"),
        pytest.param("\xa01\u2003", 10**9, id="spaces of other alphabets"),
        pytest.param(5, 5 * 10**9, id="an int"),
        pytest.param("1e3", 10**12, id="text of a number"),
        pytest.param(None, 0, id="null"),
    ],
)
def test_json_value(value: object, nano: int) -> None:
    assert Quantity.parse_json(value).nano == nano


@pytest.mark.parametrize("value", [True, [], {}, "1\n", "\t1", "1\x1f"])
def test_json_value_of_another_shape_is_a_format_error(value: object) -> None:
    with pytest.raises(QuantityError, match="regular expression"):
        Quantity.parse_json(value)


def test_null_has_no_format_and_takes_that_of_what_is_added() -> None:
    assert (NULL.format, str(NULL)) == ("", "0")
    assert str(NULL + q("1Gi")) == "1Gi"
    assert str(q("1Gi") - q("1Gi")) == "0"
    assert Quantity(1500 * 10**9, "").canonical() == "1500"


@pytest.mark.parametrize(
    ("a", "b", "total", "rest"),
    [
        ("1Gi", "1G", "2073741824", "73741824"),
        ("500m", "500m", "1", "0"),
        ("0.5", "512Ki", "524288500m", "-524287500m"),
        ("0", "1Gi", "1Gi", "-1Gi"),
        ("4Ei", "4Ei", "8Ei", "0"),
        ("+1", "0", "1", "1"),
    ],
)
def test_sums_and_differences(a: str, b: str, total: str, rest: str) -> None:
    assert str(q(a) + q(b)) == total
    assert str(q(a) - q(b)) == rest


def test_a_binary_sum_beyond_its_suffixes_keeps_the_largest() -> None:
    assert str(q("7Ei") + Quantity.from_int(1017 * 2**60)) == "1024Ei"


@pytest.mark.parametrize(
    ("text", "whole", "milli"),
    [
        ("100m", 1, 100),
        ("-100m", -1, -100),
        ("1n", 1, 1),
        ("-1n", -1, -1),
        ("2", 2, 2000),
        ("10E", 10**19, 10**22),
    ],
)
def test_projections_round_away_from_zero_and_never_wrap(text: str, whole: int, milli: int) -> None:
    assert (q(text).ceil(), q(text).ceil_milli()) == (whole, milli)


def test_only_the_value_counts_for_equality_order_and_hash() -> None:
    assert q("1024Mi") == q("1Gi")
    assert len({q("1"), q("1000m"), q("+1"), q("1e0")}) == 1
    assert q("1") <= q("1000m") >= q("1")
    assert q("1") != "1"
    assert [q("-1").sign, ZERO.sign, q("1n").sign] == [-1, 0, 1]
    assert ZERO.is_zero
    assert str(-q("+1")) == "-1"


@pytest.mark.parametrize(
    ("text", "stored"), [("+1", "+1"), ("10e-1", "1"), ("0.1Gi", "107374182400m"), ("1e99", "1e99")]
)
def test_storage_keeps_the_text_alone(text: str, stored: str) -> None:
    again = q(text).stored()
    assert str(again) == stored
    assert again == q(text)


def test_a_stored_binary_sum_is_decimal() -> None:
    total = Quantity.from_int(2_500_000_000, "BinarySI")
    assert (str(total), str(total.stored())) == ("2500000000", "2500M")


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1e999999999", "1e999999999"),
        ("1e1000000000", "10e999999999"),
        ("-10e400", "-100e399"),
        ("9" * 62, "9" * 62 + "e0"),
        ("9" * 5000, "10e60"),
    ],
)
def test_absurd_amounts_are_infinite_and_keep_a_short_text(text: str, printed: str) -> None:
    assert q(text).is_infinite
    assert str(q(text)) == printed
    assert q(text).stored() == q(text)


def test_infinity_absorbs_and_opposites_cancel() -> None:
    inf, one = q("1e100"), q("1")
    assert inf == q("1e999") > q("9e60")
    assert inf + one == one + inf == inf - one == inf
    assert one - inf == -inf
    assert (inf - inf).is_zero
    assert (q("9e60") + q("9e60")).is_infinite
    assert Quantity.from_int(-(10**400)) == -inf
    assert not one.is_infinite


@pytest.mark.parametrize("text", ["9" * 10**6, "0" * 10**6 + "x", "1e" + "0" * 10**6, "e" * 10**6])
def test_a_megabyte_of_digits_is_read_at_once(text: str) -> None:
    started = time.process_time()
    with suppress(QuantityError):
        q(text)
    assert time.process_time() - started < 2
