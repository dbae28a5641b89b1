"""What a training takes of the machine: its share of the time, over all times that it goes on."""

from pathlib import Path

import pytest

from msdnet.bundle import RUN
from msdnet.reproduce import timekeeping
from msdnet.reproduce.timekeeping import machine_seconds, noting_time
from msdnet.training.side_by_side import SharedTime


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(timekeeping, "time", made)
    return made


def runs(folder: Path) -> tuple[Path, Path]:
    one, other = folder / "one", folder / "other"
    for run in (one, other):
        run.mkdir()
        (run / RUN).write_text("{}")
    return one, other


def test_shares_add_up_to_the_time_that_passed(tmp_path: Path, clock: Clock) -> None:
    (one, other), shared = runs(tmp_path), SharedTime(clock.monotonic)
    with noting_time(one, shared):
        clock.now += 10
        with noting_time(other, shared):
            clock.now += 20
    assert machine_seconds(one, 30) == 20
    assert machine_seconds(other, 20) == 10


def test_a_run_that_goes_on_adds_to_its_share(tmp_path: Path, clock: Clock) -> None:
    one, other = runs(tmp_path)
    first = SharedTime(clock.monotonic)

    def interrupted() -> None:
        with noting_time(one, first), noting_time(other, first):
            clock.now += 8
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with noting_time(one, SharedTime(clock.monotonic)):  # later, and alone
        clock.now += 5
    assert machine_seconds(one, 13) == 9


def test_time_that_was_not_noted_counts_whole(tmp_path: Path, clock: Clock) -> None:
    (one, other), shared = runs(tmp_path), SharedTime(clock.monotonic)
    with noting_time(one, shared), noting_time(other, shared):
        clock.now += 8
    assert machine_seconds(one, 8 + 3) == 4 + 3, "ended by force for a while"
    assert machine_seconds(tmp_path / "by_hand", 7) == 7


def test_where_no_run_has_begun_nothing_is_written(tmp_path: Path, clock: Clock) -> None:
    with noting_time(tmp_path / "none", SharedTime(clock.monotonic)):
        clock.now += 1
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("damaged", [b"{", b"[]", b"\xff", b'{"seconds": "long"}', b'{"hours": 1}'])
def test_a_damaged_file_is_told_of_before_anything_is_done(tmp_path: Path, clock: Clock, damaged: bytes) -> None:
    """Afterwards it would be told in place of what went wrong inside."""
    one, _ = runs(tmp_path)
    (one / "time.json").write_bytes(damaged)
    with pytest.raises((ValueError, TypeError), match=r"one/time\.json"), noting_time(one, SharedTime(clock.monotonic)):
        pytest.fail("something is done")
