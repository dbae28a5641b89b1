"""Checks that errors name what is wrong, and no more than somebody reads."""

import pytest

from msdnet.checks import check_same

PLACES = ("here", "in the file")


def test_what_is_the_same_passes() -> None:
    check_same("a run", {"recipe": {"epochs": 1}}, {"recipe": {"epochs": 1}}, places=PLACES)


@pytest.mark.parametrize(
    ("found", "expected", "told"),
    [
        (1, 2, "a run: 1 here, 2 in the file"),
        ({"recipe": {"epochs": 1}}, {"recipe": {"epochs": 2}}, "a run: recipe: epochs: 1 here, 2 in the file"),
        (
            {"b": {"c": 1}, "a": 1},
            {"b": {"c": 2}, "d": 4},
            "a run: a: 1 here, nothing in the file; b: c: 1 here, 2 in the file; d: nothing here, 4 in the file",
        ),
        (
            dict.fromkeys("abcde", 1),
            dict.fromkeys("abcde", 2),
            "a run: a: 1 here, 2 in the file; b: 1 here, 2 in the file; c: 1 here, 2 in the file; and 2 more",
        ),
    ],
)
def test_fields_that_differ_are_named_a_few_at_most(found: object, expected: object, told: str) -> None:
    with pytest.raises(ValueError, match="a run") as refused:
        check_same("a run", found, expected, places=PLACES)
    assert str(refused.value) == told


def test_long_values_are_shortened() -> None:
    with pytest.raises(ValueError, match=r"^classes: \[.*\.\.\..*\] here, \[\] in the file$") as refused:
        check_same("classes", [f"class {k}" for k in range(1000)], [], places=PLACES)
    assert len(str(refused.value)) < 150
