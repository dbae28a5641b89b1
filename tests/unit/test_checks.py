"""Checks that errors name what is wrong, and no more than somebody reads."""

import pytest

from msdnet.checks import check_same


def test_what_is_the_same_passes() -> None:
    check_same("a run", {"recipe": {"epochs": 1}}, {"recipe": {"epochs": 1}})


@pytest.mark.parametrize(
    ("found", "expected", "told"),
    [
        (1, 2, "a run is 1, not 2"),
        ({"recipe": {"epochs": 1}}, {"recipe": {"epochs": 2}}, "a run: recipe: epochs is 1, not 2"),
        (
            {"b": {"c": 1}, "a": 1},
            {"b": {"c": 2}, "d": 4},
            "a run: a is 1, not None, b: c is 1, not 2, d is None, not 4",
        ),
        (dict.fromkeys("abcde", 1), {}, "a run: a is 1, not None, b is 1, not None, c is 1, not None, and 2 more"),
    ],
)
def test_fields_that_differ_are_named_a_few_at_most(found: object, expected: object, told: str) -> None:
    with pytest.raises(ValueError, match="a run") as refused:
        check_same("a run", found, expected)
    assert str(refused.value) == told


def test_long_values_are_shortened() -> None:
    with pytest.raises(ValueError, match=r"^classes is \[.*\.\.\..*\], not \[\]$") as refused:
        check_same("classes", [f"class {k}" for k in range(1000)], [])
    assert len(str(refused.value)) < 150
