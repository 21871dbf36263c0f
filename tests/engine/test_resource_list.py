"""Resource lists: what the vectors leave out."""

from __future__ import annotations

from engine import resource_list as rl


def test_subtraction_without_negatives_ends_at_zero() -> None:
    a, b = rl.parse({"cpu": "1", "memory": "1Gi"}), rl.parse({"cpu": "3", "pods": "1"})
    rest = rl.subtract_with_non_negative_result(a, b)
    assert rl.to_json(rest) == {"cpu": "0", "memory": "1Gi", "pods": "0"}


def test_subtracting_what_is_missing_turns_negative() -> None:
    rest = rl.subtract({}, rl.parse({"pods": "2"}))
    assert rl.to_json(rest) == {"pods": "-2"}
    assert rl.negative_names(rest) == ["pods"]


def test_the_larger_amount_wins_and_of_equal_ones_the_second() -> None:
    largest = rl.max_of(rl.parse({"cpu": "1"}), rl.parse({"cpu": "1000m", "pods": "2"}))
    assert rl.to_json(largest) == {"cpu": "1", "pods": "2"}
    assert rl.max_of(rl.parse({"cpu": "2"}), rl.parse({"cpu": "1"})) == rl.parse({"cpu": "2"})


def test_names_that_only_one_list_has_do_not_exceed() -> None:
    used, hard = rl.parse({"cpu": "2", "pods": "9"}), rl.parse({"cpu": "1", "memory": "1Gi"})
    assert rl.less_than_or_equal(used, hard) == (False, ["cpu"])


def test_mask_keeps_only_the_names_asked_for() -> None:
    assert rl.mask(rl.parse({"cpu": "1", "pods": "2"}), {"pods"}) == rl.parse({"pods": "2"})


def test_round_up_and_storage() -> None:
    rounded = rl.round_up(rl.parse({"cpu": "100u", "memory": "+1Gi"}))
    assert rl.to_json(rounded) == {"cpu": "1m", "memory": "+1Gi"}
    assert rl.to_json(rl.stored(rl.parse({"cpu": "10e-1"}))) == {"cpu": "1"}


def test_arguments_stay_as_they_are() -> None:
    a, b = rl.parse({"cpu": "1"}), rl.parse({"cpu": "2", "pods": "1"})
    for function in (rl.add, rl.subtract, rl.max_of):
        function(a, b)
    assert (rl.to_json(a), rl.to_json(b)) == ({"cpu": "1"}, {"cpu": "2", "pods": "1"})


def test_equal_amounts_are_equal_in_any_format() -> None:
    assert rl.equals(rl.parse({"memory": "1Gi"}), rl.parse({"memory": "1073741824"}))
    assert not rl.equals(rl.parse({"cpu": "1"}), rl.parse({"cpu": "1", "pods": "0"}))


def test_zeros_are_no_amounts() -> None:
    assert rl.is_zero({})
    assert rl.is_zero(rl.parse({"cpu": "0", "pods": "0m"}))
    assert not rl.is_zero(rl.parse({"cpu": "0", "pods": "1"}))
    assert rl.to_json(rl.remove_zeros(rl.parse({"cpu": "0", "pods": "1"}))) == {"pods": "1"}


def test_names_are_compared_as_sets() -> None:
    assert rl.contains_prefix(("requests.", "limits."), "limits.cpu")
    assert not rl.contains_prefix(("requests.",), "cpu")
    assert rl.intersection(("pods", "cpu", "memory"), ("memory", "pods")) == ["memory", "pods"]
    assert rl.difference(("pods", "cpu"), ("cpu",)) == ["pods"]
