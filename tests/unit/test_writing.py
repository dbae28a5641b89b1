"""What is written is whole or not there, whatever happens on the way."""

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

import msdnet
from msdnet.bundle import Bundle
from msdnet.places import check_file_writable, check_folder_writable
from msdnet.report import write_report
from msdnet.writing import new_folder, write_atomically, write_output
from tests.helpers import run_here


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_leaves_nothing_of_a_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"new: cannot be written \(No space left on device\)$"):
        write_atomically(tmp_path / "new", b"one", new=True)
    assert list(tmp_path.iterdir()) == []


def make_folder(folder: Path) -> None:
    with new_folder(folder):
        pass


@pytest.mark.parametrize(
    ("write", "asked"),
    [(check_folder_writable, "out"), (check_file_writable, "out/r.html"), (make_folder, "out/bundle")],
)
def test_a_disk_that_is_read_only_is_told_by_what_was_asked_for(
    write: Callable[[Path], None], asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(tmp_path / "out/tmp1234"))

    (tmp_path / "out").mkdir()
    for name in ("TemporaryFile", "TemporaryDirectory"):
        monkeypatch.setattr(tempfile, name, refuse)
    with pytest.raises(OSError, match="Read-only file system") as told:
        write(tmp_path / asked)
    assert told.value.filename == str(tmp_path / asked)


def test_what_is_new_takes_no_ones_place(tmp_path: Path) -> None:
    path = tmp_path / "new"
    write_atomically(path, b"one", new=True)
    with pytest.raises(FileExistsError):
        write_atomically(path, b"two", new=True)
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_needs_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which exFAT and some others do not have."""
    monkeypatch.setattr(os, "link", full)
    write_atomically(tmp_path / "new", b"one", new=True)
    assert (tmp_path / "new").read_bytes() == b"one"


def test_a_new_file_is_never_there_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is killed while it is written leaves none."""
    path, seen = tmp_path / "new", []
    fsync = os.fsync

    def noting(descriptor: int) -> None:
        seen.append(path.exists())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    write_atomically(path, b"one", new=True)
    assert seen[0] is False
    assert list(tmp_path.iterdir()) == [path]


def while_writing(act: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let another process act while the next file is being written."""
    fsync, left = os.fsync, [act]

    def disturbed(descriptor: int) -> None:
        fsync(descriptor)
        if left:
            left.pop()()

    monkeypatch.setattr(os, "fsync", disturbed)


@pytest.mark.parametrize("links", [True, False])
def test_of_two_that_make_a_file_one_succeeds_with_its_own_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    path = tmp_path / "new"
    if not links:
        monkeypatch.setattr(os, "link", full)
    while_writing(lambda: write_atomically(path, b"two", new=True), monkeypatch)
    with pytest.raises(FileExistsError):
        write_atomically(path, b"one", new=True)
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


def test_two_that_replace_a_file_do_not_write_into_each_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "one.json"
    seen = []

    def other() -> None:
        write_atomically(path, b"two")
        seen.append(path.read_bytes())

    while_writing(other, monkeypatch)
    write_atomically(path, b"one")
    assert seen == [b"two"]
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_what_killed_processes_have_left_is_cleared_away(tmp_path: Path) -> None:
    path, fresh, other = tmp_path / "a.json", tmp_path / ".a.json.7.partial", tmp_path / ".b.json.8.partial"
    abandoned = [tmp_path / ".a.json.partial", tmp_path / ".a.json.8.partial"]
    for scratch in (fresh, other, *abandoned):
        scratch.touch()
    for scratch in (other, *abandoned):
        os.utime(scratch, (0, 0))
    write_atomically(path, b"one")
    assert set(tmp_path.iterdir()) == {path, fresh, other}


@pytest.mark.parametrize("name", ["a" * 255, "\N{SNAKE}" * 63], ids=["ascii", "wide"])
def test_any_name_that_a_file_can_have_will_do(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"plain")
    write_atomically(tmp_path / name, b"one")
    assert (tmp_path / name).read_bytes() == b"one"
    (tmp_path / name).unlink()
    write_atomically(tmp_path / name, b"two", new=True)
    (tmp_path / name).unlink()
    with new_folder(tmp_path / name):
        pass
    assert list(tmp_path.iterdir()) == [tmp_path / name]


# Files that people name


def test_a_full_disk_leaves_the_report_that_was_there(
    tiny: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("before")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device\); the previous report.html is untouched"):
        write_report(msdnet.load(tiny.folder), path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_policy_and_the_plot_that_were_there(
    tiny: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, plot = tmp_path / "policy.json", tmp_path / "plot.svg"
    for path in (policy, plot):
        path.write_text("before")
    model = msdnet.load(tiny.folder)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"the previous policy.json is untouched"):
        model.policy(model.costs[1]).save(policy)
    assert "the previous plot.svg is untouched" in run_here("budget", str(tiny.folder), "--plot", str(plot)).stderr
    assert (policy.read_text(), plot.read_text()) == ("before", "before")


def test_a_place_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"report.html: cannot be written"):
        write_output(tmp_path / "nowhere/report.html", b"one")


def test_a_link_still_leads_to_what_is_written(tmp_path: Path) -> None:
    path, link = tmp_path / "report.html", tmp_path / "link.html"
    path.write_bytes(b"one")
    link.symlink_to(path)
    write_output(link, b"two")
    assert link.is_symlink()
    assert path.read_bytes() == b"two"


def test_what_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_bytes(b"one")
    path.chmod(0o640)
    write_output(path, b"two")
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE) as reader:
        write_output(path, b"one")
        assert reader.communicate()[0] == b"one"
    assert path.is_fifo()


@pytest.mark.parametrize("to_file", [True, False])
def test_what_the_shell_redirects_goes_where_it_should(tmp_path: Path, to_file: bool) -> None:
    """A file that took the place of the shell's would miss what is printed later."""
    script = """
import sys
from pathlib import Path
from msdnet.writing import write_output
write_output(Path("/dev/stdout"), b"one")
"""
    command = [sys.executable, "-c", script]
    if to_file:
        path = tmp_path / "printed"
        with path.open("wb") as file:
            inode = path.stat().st_ino
            subprocess.run(command, stdout=file, check=True)
        assert path.stat().st_ino == inode
        assert path.read_bytes() == b"one"
    else:
        assert subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout == b"one"


def test_writing_needs_no_torch() -> None:
    script = "import msdnet.writing, sys; print('torch' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "False\n"
    )


# Folders


def test_a_folder_appears_when_it_is_whole(tmp_path: Path) -> None:
    folder = tmp_path / "deep/bundle"
    with new_folder(folder) as scratch:
        (scratch / "a").write_text("a")
        assert not folder.exists()
    assert [path.name for path in folder.parent.iterdir()] == ["bundle"]
    assert (folder / "a").read_text() == "a"
    (tmp_path / "usual").mkdir()
    assert folder.stat().st_mode == (tmp_path / "usual").stat().st_mode, "others may read it as they may any other"


def fill(folder: Path, content: str, meanwhile: Callable[[], object] = lambda: None) -> None:
    with new_folder(folder) as scratch:
        (scratch / "a").write_text(content)
        meanwhile()


def test_a_full_disk_is_told_by_the_folder_that_was_asked_for(tmp_path: Path) -> None:
    """A write to a file that is open already is refused without a name."""
    with pytest.raises(OSError, match="No space left on device") as refused, new_folder(tmp_path / "made"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert refused.value.filename == str(tmp_path / "made")
    assert not list(tmp_path.iterdir())


def test_what_fails_leaves_nothing_of_a_folder(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        fill(tmp_path / "bundle", "one", meanwhile=full)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", [True, False])
def test_of_two_that_make_a_folder_the_first_to_end_succeeds(tmp_path: Path, file: bool) -> None:
    folder = tmp_path / "bundle"
    with pytest.raises(FileExistsError, match="bundle: is there already; remove it or choose another place"):
        fill(folder, "one", meanwhile=lambda: folder.write_text("two") if file else fill(folder, "two"))
    assert (folder if file else folder / "a").read_text() == "two"
    assert list(tmp_path.iterdir()) == [folder]


def test_folders_that_killed_processes_have_left_are_cleared_away(tmp_path: Path) -> None:
    abandoned, fresh = tmp_path / ".bundle.x.partial", tmp_path / ".bundle.y.partial"
    for scratch in (abandoned, fresh):
        (scratch / "bundle").mkdir(parents=True)
    os.utime(abandoned, (0, 0))
    with new_folder(tmp_path / "bundle"):
        pass
    assert set(tmp_path.iterdir()) == {tmp_path / "bundle", fresh}
