"""A place that will not do is refused before there is anything to write."""

from collections.abc import Callable
from pathlib import Path

import pytest

from msdnet.places import check_file_writable, check_folder_writable, check_svg_writable


def test_a_folder_that_cannot_be_made_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OSError, match=r"file: a file, not a folder$"):
        check_folder_writable(tmp_path / "file")
    with pytest.raises(OSError, match=r"file/below: this folder cannot be made \(.*file: a file, not a folder\)$"):
        check_folder_writable(tmp_path / "file/below")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(OSError, match=r"link: no such folder$"):
        check_folder_writable(tmp_path / "link")


def test_what_can_be_written_to_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "there.svg").write_text("drawn before")
    check_folder_writable(tmp_path / "new/folder")
    for check, name in (
        (check_file_writable, "new.html"),
        (check_svg_writable, "new.SVG"),
        (check_svg_writable, "stdout"),
    ):
        check(tmp_path / name)
    check_svg_writable(tmp_path / "there.svg")
    assert (tmp_path / "there.svg").read_text() == "drawn before"
    assert {path.name for path in tmp_path.rglob("*")} == {"there.svg"}


@pytest.mark.parametrize(
    ("check", "name", "why"),
    [
        (check_file_writable, ".", "is a folder, and a file is to be written"),
        (check_file_writable, "none/a.html", "there is no folder .*none"),
        (check_svg_writable, "a.png", "must end in .svg"),
        (check_svg_writable, "none/a.svg", "there is no folder .*none"),
    ],
)
def test_a_file_that_cannot_be_written_is_told_with_the_reason(
    check: Callable[[Path], None], name: str, why: str, tmp_path: Path
) -> None:
    with pytest.raises((ValueError, OSError), match=f"^{tmp_path / name}: {why}"):
        check(tmp_path / name)
