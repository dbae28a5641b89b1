"""`msdnet classify` and what people give it: every picture is answered or named."""

import contextlib
import errno
import io
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import typer
from PIL import Image

import msdnet
from msdnet import samples
from msdnet.bundle import Bundle
from msdnet.cli.classify import _print_line, _tell_what_became_of, classify
from msdnet.cli.pictures import _beginning
from msdnet.machine import cores
from msdnet.policy import METHODS
from msdnet.runtime import Model, Result, SharedBudget
from tests.helpers import TINY, run_here, tiny_bundle


def run(*arguments: str, given: bytes | None = None, **variables: str) -> "subprocess.CompletedProcess[bytes]":
    command, environment = [sys.executable, "-m", "msdnet", *arguments], os.environ | variables
    return subprocess.run(command, capture_output=True, input=given, env=environment, check=False)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(tmp_path_factory.mktemp("pictures"))
    (folder / "odd").mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (40, 30, 3), dtype=np.uint8)
    for name in ("a.jpg", "b.png", "c.webp"):
        Image.fromarray(pixels).save(folder / name)
    Image.new("CMYK", (20, 30), (9, 99, 199, 0)).save(folder / "odd" / "cmyk.jpg")
    Image.fromarray(256 * pixels[..., 0].astype(np.uint16)).save(folder / "odd" / "deep.png")
    frames = [Image.new("P", (20, 20), colour) for colour in (1, 2)]
    frames[0].save(folder / "odd" / "moving.gif", save_all=True, append_images=frames[1:])
    Image.fromarray(pixels).convert("P").save(folder / "odd" / "palette.png")
    return folder


def blends(folder: Path, count: int) -> list[Path]:
    """Two pictures in one are unlike all that the model was made with, and harder."""
    images = samples.cifar10().images
    names = [folder / f"{k}.png" for k in range(count)]
    for k, name in enumerate(names):
        Image.blend(Image.fromarray(images[k]), Image.fromarray(images[count + k]), 0.5).save(name)
    return names


@pytest.mark.parametrize("options", [(), ("--budget", "60%"), ("--time", "1s"), ("--deadline", "1s")])
def test_every_kind_of_picture_is_answered(tiny: Bundle, pictures: Path, options: tuple[str, ...]) -> None:
    done = run("classify", str(pictures), "--model", str(tiny.folder), "--json", *options)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [Path(row["image"]).name for row in rows] == [
        *("a.jpg", "b.png", "c.webp", "cmyk.jpg", "deep.png", "moving.gif", "palette.png")
    ]
    for row in rows:
        assert row["label"] in tiny.manifest.classes
        assert row["multiply_adds"] == tiny.manifest.costs[row["exit"] - 1]
        assert row["seconds"] > 0
        assert 0 <= row["confidence"] <= 1


def test_nothing_is_written_at_home(tiny: Bundle, pictures: Path, tmp_path: Path) -> None:
    """ONNX Runtime would leave an identity and a data base of events there, to be sent."""
    environment = {key: value for key, value in os.environ.items() if key != "ORT_DISABLE_TELEMETRY"}
    command = [sys.executable, "-m", "msdnet", "classify", str(pictures / "a.jpg"), "--model", str(tiny.folder)]
    subprocess.run(command, env=environment | {"HOME": str(tmp_path)}, capture_output=True, check=True)
    assert list(tmp_path.iterdir()) == []


def test_one_picture_is_answered_soon(tiny: Bundle, pictures: Path) -> None:
    """The best of a few: whatever else the machine does only adds to it. results/startup_cpu.json has the median."""
    seconds: list[float] = []
    while not seconds or (min(seconds) >= 1.5 and len(seconds) < 6):
        start = time.perf_counter()
        done = run("classify", str(pictures / "a.jpg"), "--model", str(tiny.folder))
        seconds.append(time.perf_counter() - start)
        assert done.returncode == 0, done.stderr
    assert min(seconds) < 1.5


def test_the_table_ends_with_what_was_saved(tiny: Bundle, pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pictures)  # long names may be folded: readline may have set COLUMNS
    done = run("classify", "*.png", "--model", str(tiny.folder), "--budget", "60%", "--hard")
    assert done.returncode == 0, done.stderr
    assert b"b.png" in done.stdout
    assert b"a.jpg" not in done.stdout
    assert b"1 image in" in done.stdout
    assert b"left at exits 1 to 3:" in done.stdout


def test_broken_metadata_are_not_worth_a_word(tiny: Bundle, tmp_path: Path) -> None:
    Image.new("RGB", (20, 20)).save(tmp_path / "a.jpg", exif=b"Exif\0\0II*\0\xff\0\0\0")
    done = run("classify", str(tmp_path / "a.jpg"), "--model", str(tiny.folder), "--json")
    assert (done.returncode, done.stderr) == (0, b"")


def renamed(bundle: Bundle, folder: Path, **facts: object) -> str:
    """A copy of a bundle with other facts in its manifest."""
    shutil.copytree(bundle.folder, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | facts))
    return str(folder)


def test_names_are_printed_as_they_are(
    tiny: Bundle, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not read as rich's markup: it would leave [old] out, fail at [/b], and draw a cat."""
    monkeypatch.chdir(tmp_path)
    classes = ["[red]", "x[/b]", ":cat:"]
    model = renamed(tiny, tmp_path / "odd", classes=classes)
    names = [f"photos [old]/{name}" for name in ("[bold].png", "a.png", "x[/b].png", ":cat:.png")]
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes((pictures / "b.png").read_bytes())
    done = run_here("classify", "photos [old]", "--model", model)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()[1:5]
    assert sorted(row[: row.index(".png")].strip() + ".png" for row in rows) == sorted(names)
    assert {row.partition(".png")[2].split()[0] for row in rows} <= set(classes)


def test_a_models_name_is_printed_as_it_is(tiny: Bundle, tmp_path: Path) -> None:
    bundles = [renamed(tiny, tmp_path / str(number), name=f"a[/b]:cat:{number}") for number in (1, 2)]
    Path(tmp_path / "images/test").mkdir(parents=True)
    for name in tiny.manifest.classes:
        (tmp_path / "images/test" / name).mkdir()
        Image.new("RGB", (14, 14), name).save(tmp_path / "images/test" / name / "1.png")
    shown = run_here("evaluate", *bundles, "--data", str(tmp_path / "images"))
    assert shown.returncode == 0, shown.stderr
    assert "  a[/b]:cat:1\n" in shown.stdout.partition("best on held-out images")[2]
    assert "a[/b]:cat:1 classified 3 images in " in shown.stdout


def test_what_cannot_be_read_is_named_and_the_rest_goes_on(tiny: Bundle, pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "text.jpg").write_text("not an image")
    Image.new("1", (20_000, 20_000)).save(tmp_path / "huge.png")
    given = [str(tmp_path), str(tmp_path / "nowhere.png"), str(pictures / "a.jpg")]
    done = run("classify", *given, "--model", str(tiny.folder), "--json")
    assert done.returncode == 3
    *failed, answered = map(json.loads, done.stdout.splitlines())
    assert [set(row) for row in failed] == [{"image", "error"}] * 3
    assert answered["label"] in tiny.manifest.classes
    assert failed[1] == {"image": str(tmp_path / "text.jpg"), "error": "cannot be read (not an image)"}
    lines = done.stderr.decode().splitlines()
    for name, why in (
        ("huge.png", "cannot be read (more than 89,478,485 pixels"),
        ("text.jpg", "cannot be read (not an image"),
        ("nowhere.png", "no such file or folder"),
    ):
        assert lines.pop(0).startswith(f"msdnet: {tmp_path / name}: {why}")
    assert not lines
    assert b"1 image in " in (table := run("classify", *given, "--model", str(tiny.folder)).stdout)
    assert b"; 3 could not be read;" in table
    nothing = run("classify", str(tmp_path), "--model", str(tiny.folder))
    assert nothing.returncode == 1
    assert b"nothing was classified: 2 could not be read" in nothing.stderr


def test_formats_that_are_not_read_are_called_by_their_names(tiny: Bundle, pictures: Path, tmp_path: Path) -> None:
    Image.new("RGB", (20, 20)).save(tmp_path / "scan.tif")
    (tmp_path / "phone.heic").write_bytes(b"\0\0\0\x18ftypheic" + bytes(8))
    done = run("classify", str(tmp_path), str(pictures / "a.jpg"), "--model", str(tiny.folder), "--json")
    assert (done.returncode, len(done.stdout.splitlines())) == (3, 2 + 1)
    assert done.stderr.decode().splitlines() == [
        f"msdnet: {tmp_path / name}: cannot be read ({kind}, which is not read: convert it to JPEG or PNG)"
        for name, kind in (("phone.heic", "HEIC"), ("scan.tif", "TIFF"))
    ]
    piped = run("classify", "-", "--model", str(tiny.folder), given=(tmp_path / "scan.tif").read_bytes())
    assert piped.returncode == 1
    assert b"TIFF, which is not read" in piped.stderr


def test_a_folder_without_permission_is_named(
    tiny: Bundle, pictures: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    list_folder = os.scandir

    def refuse(folder: str) -> "os._ScandirIterator[str]":  # root may look into every folder: there is no other way
        if Path(folder).name == "odd":
            raise PermissionError(errno.EACCES, "Permission denied", folder)
        return list_folder(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(SystemExit) as ended:
        classify([str(pictures)], model=str(tiny.folder), as_json=True)
    assert ended.value.code == 3
    told = capsys.readouterr()
    assert told.err == f"msdnet: {pictures / 'odd'}: Permission denied\n"
    assert len(told.out.splitlines()) == 3 + 1
    with pytest.raises(ValueError, match="nothing was classified: 1 could not be read"):
        classify([str(pictures / "odd")], model=str(tiny.folder))


def test_what_is_hidden_is_left_out_and_links_are_followed(
    tiny: Bundle, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in training."""
    monkeypatch.chdir(tmp_path)
    Path("photos/.thumbnails").mkdir(parents=True)
    Path("elsewhere").mkdir()
    for name in ("photos/a.jpg", "photos/.a.jpg", "photos/.thumbnails/a.jpg", "elsewhere/b.jpg"):
        Path(name).write_bytes((pictures / "a.jpg").read_bytes())
    Path("photos/linked").symlink_to("../elsewhere")
    Path("elsewhere/back").symlink_to("../photos")  # nobody walks in a circle
    done = run_here("classify", "photos", "--model", str(tiny.folder), "--json")
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["image"] for line in done.stdout.splitlines()] == ["photos/a.jpg", "photos/linked/b.jpg"]
    hidden = run_here("classify", "photos/.thumbnails", "--model", str(tiny.folder), "--json")
    assert json.loads(hidden.stdout)["image"] == "photos/.thumbnails/a.jpg", "who asks for it gets it"
    Path("photos/itself.png").symlink_to("itself.png")
    told = run_here("classify", "photos", "--model", str(tiny.folder), "--json")
    assert told.returncode == 3
    assert "itself.png: cannot be read" in told.stderr
    assert len(told.stdout.splitlines()) == 2 + 1


@pytest.mark.parametrize("options", [(), ("--budget", "90%", "--hard"), ("--deadline", "1s")])
def test_paths_are_answered_as_they_come(tiny: Bundle, pictures: Path, options: tuple[str, ...]) -> None:
    """The second path is sent only when the first is answered."""
    command = [sys.executable, "-m", "msdnet", "classify", "-", "--model", str(tiny.folder), "--json", *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for sent, name in ((b"%s\n", "a.jpg"), (b"%s\r\n", "b.png"), (b"%s", "c.webp")):
            process.stdin.write(sent % str(pictures / name).encode())
            process.stdin.flush()
            if name == "c.webp":  # the last line has no end
                process.stdin.close()
            assert json.loads(process.stdout.readline())["image"] == str(pictures / name)
    assert process.returncode == 0


@pytest.mark.parametrize("kept", ["--hard", "--steady"])
def test_a_budget_is_kept_over_all_that_a_pipe_brings(tmp_path: Path, kept: str) -> None:
    """One path at a time: by itself, no image can pay for the second exit, nor does a steady budget know of others."""
    names = blends(tmp_path, 30)
    model, allowed = msdnet.load("cifar10-small"), 12e6
    assert allowed < model.costs[1]
    command = [sys.executable, "-m", "msdnet", "classify", "-", "--model", "cifar10-small", "--json"]
    costs = []
    with subprocess.Popen(
        [*command, "--budget", "12M", kept], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for name in names:
            process.stdin.write(f"{name}\n".encode())
            process.stdin.flush()
            costs.append(json.loads(process.stdout.readline())["multiply_adds"])
        process.stdin.close()
    apart = [model.classify(str(name), budget=12e6, **{kept[2:]: True})[0].cost for name in names]  # type: ignore[arg-type]
    assert costs != apart
    assert len(names) * model.costs[0] < sum(costs) <= (len(names) + 12 * (kept == "--steady")) * allowed


def test_a_path_may_begin_like_a_picture_and_come_in_parts(
    tiny: Bundle, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BMW.jpg", "GIF8.jpg"):
        (tmp_path / name).write_bytes((pictures / "a.jpg").read_bytes())
    monkeypatch.chdir(tmp_path)
    done = run("classify", "-", "--model", str(tiny.folder), "--json", given=b"BMW.jpg\n\nGIF8.jpg\n" * 900)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["image"] for line in done.stdout.splitlines()] == ["BMW.jpg", "GIF8.jpg"] * 900


HEADS = {
    "HEIC": b"\0\0\0\x18ftypheic",
    "AVIF": b"\0\0\0\x20ftypavif",
    "JPEG 2000": b"\0\0\0\x0cjP  \r\n\x87\n",
    "TIFF": b"MM\0+",
}


@pytest.mark.parametrize(("kind", "head"), HEADS.items(), ids=HEADS)
def test_pictures_of_other_formats_come_by_a_pipe(tiny: Bundle, kind: str, head: bytes) -> None:
    done = run("classify", "-", "--model", str(tiny.folder), given=head + bytes(range(10, 100)))
    told = f"msdnet: -: cannot be read ({kind}, which is not read: convert it to JPEG or PNG)\n"
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == told + "msdnet: nothing was classified: 1 could not be read\n"


def test_a_picture_may_come_bit_by_bit() -> None:
    reads, writes = os.pipe()
    parts = [b"\x89P", b"NG\r", b"\x1a0123456789"]  # the last ones make it long enough to tell

    def write() -> None:
        for part in parts:
            time.sleep(0.05)
            os.write(writes, part)

    writer = threading.Thread(target=write)
    writer.start()
    assert _beginning(reads) == b"".join(parts)
    writer.join()
    for end in (reads, writes):
        os.close(end)


@pytest.mark.parametrize("end", [b"\n", b"\0"])
def test_a_short_path_does_not_wait_for_more(
    tiny: Bundle, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a").write_bytes((pictures / "a.jpg").read_bytes())
    command = [sys.executable, "-m", "msdnet", "classify", "-", "--model", str(tiny.folder), "--json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"a" + end)
        assert json.loads(process.stdout.readline())["image"] == "a"
        process.stdin.close()


def test_a_pattern_of_folders_answers_each_picture_once(tiny: Bundle, pictures: Path) -> None:
    done = run("classify", str(pictures / "**"), "--model", str(tiny.folder), "--json")
    names = [json.loads(line)["image"] for line in done.stdout.splitlines()]
    assert str(pictures / "odd" / "cmyk.jpg") in names
    assert len(names) == len(set(names))


def test_spaces_belong_to_a_name(tiny: Bundle, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["photo ", "  other.jpg", "c.jpg"]
    for name in names:
        Path(name).write_bytes((pictures / "a.jpg").read_bytes())
    done = run("classify", "-", "--model", str(tiny.folder), "--json", given="\r\n".join(names).encode())
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["image"] for line in done.stdout.splitlines()] == names


def test_a_pipe_in_a_folder_or_a_list_is_not_waited_for(tiny: Bundle, pictures: Path, tmp_path: Path) -> None:
    """Nobody writes into it: to open it would take for ever."""
    (tmp_path / "a.jpg").write_bytes((pictures / "a.jpg").read_bytes())
    os.mkfifo(tmp_path / "b.jpg")
    why = f"msdnet: {tmp_path / 'b.jpg'}: cannot be read (not a regular file)\n"
    listed = "".join(f"{tmp_path / name}\n" for name in ("a.jpg", "b.jpg")).encode()
    for argument, given in ((str(tmp_path), None), (str(tmp_path / "*.jpg"), None), ("-", listed)):
        done = run("classify", argument, "--model", str(tiny.folder), "--json", given=given)
        assert (done.returncode, done.stderr.decode()) == (3, why)
    with pytest.raises(ValueError, match="not a regular file"):
        msdnet.load(tiny.folder).classify(tmp_path / "b.jpg")


def test_a_pipe_that_is_named_is_read(tiny: Bundle, pictures: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    content = (pictures / "a.jpg").read_bytes()
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[content])
    writer.start()
    for name, given in ((str(tmp_path / "pipe"), None), ("/dev/stdin", content)):
        done = run("classify", name, "--model", str(tiny.folder), "--json", given=given)
        assert (done.returncode, done.stderr) == (0, b"")
        assert json.loads(done.stdout)["image"] == name
    writer.join()


def test_streams_that_are_closed_are_told(tiny: Bundle, pictures: Path) -> None:
    command = f"{sys.executable} -m msdnet classify {{}} --model {tiny.folder} --json"
    for closed, message in (
        ("- <&-", "- stands for the standard input, which is closed"),
        (f"{pictures} >&-", "the standard output is closed: nobody would see the answers"),
    ):
        done = subprocess.run(command.format(closed), shell=True, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", f"msdnet: {message}\n")


def test_a_folder_is_answered_in_groups(
    tiny: Bundle, pictures: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever stops it has the answers so far."""
    monkeypatch.setattr("msdnet.cli.pictures._TOGETHER", 3)
    read, groups = SharedBudget.classify, []

    def classify_some(shared: SharedBudget, images: Any, **options: Any) -> Result:
        groups.append(len(capsys.readouterr().out.splitlines()))
        return read(shared, images, **options)

    monkeypatch.setattr(SharedBudget, "classify", classify_some)
    classify([str(pictures)], model=str(tiny.folder), budget="80%", hard=True, as_json=True)
    assert groups == [0, 3, 3]
    assert len(capsys.readouterr().out.splitlines()) == 1


def seen_on_terminal(*arguments: str, piped: bool = False) -> str:
    """What a terminal gets to see of a command; its answers may go into a pipe instead."""
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "msdnet", *arguments]
    out = subprocess.PIPE if piped else end
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=end) as process:
        os.close(end)
        seen = b""
        with contextlib.suppress(OSError):  # Linux's way to say that nobody writes any more
            while more := os.read(terminal, 8192):
                seen += more
        process.communicate()
    os.close(terminal)
    assert process.returncode == 0, seen
    return seen.decode()


def test_on_a_terminal_answers_are_counted_until_they_are_printed(tiny: Bundle, pictures: Path) -> None:
    asked = ("classify", str(pictures), "--model", str(tiny.folder))
    seen = seen_on_terminal(*asked)
    assert seen.index("7 pictures") < seen.index("multiply-adds") < seen.index("7 images in")
    assert "\x1b[" not in seen_on_terminal(*asked, "--json")
    assert seen_on_terminal(*asked, piped=True) == ""


def test_who_interrupts_before_the_table_is_told_how_to_see_answers_earlier(
    tiny: Bundle, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(SharedBudget, "classify", interrupt)
    asked = ("classify", str(pictures), "--model", str(tiny.folder))
    done = run_here(*asked)
    hint = "msdnet: interrupted before the table was printed; --json prints answers as they come\n"
    assert (done.returncode, done.stdout, done.stderr) == (130, "", hint)
    lines = run_here(*asked, "--json")
    assert (lines.returncode, lines.stdout, lines.stderr) == (130, "", "")


def test_lists_of_many_kinds(tiny: Bundle, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    odd = "two\nlines\x1b.jpg\r"
    for name in (odd, "a.jpg"):
        Path(name).write_bytes((pictures / "a.jpg").read_bytes())

    def names(given: bytes) -> list[str]:
        done = run("classify", "-", "--model", str(tiny.folder), "--json", given=given)
        assert done.returncode == 0, done.stderr
        return [json.loads(line)["image"] for line in done.stdout.splitlines()]

    assert names(f"a.jpg\0{odd}\0".encode()) == ["a.jpg", odd]  # find -print0
    assert names(b"\xef\xbb\xbfa.jpg\r\n") == ["a.jpg"]  # an editor's mark
    assert names(f"{pictures / 'odd'}\n".encode()) == [str(path) for path in sorted((pictures / "odd").iterdir())]
    shown = run("classify", odd, "--model", str(tiny.folder)).stdout.decode().splitlines()[1]
    assert shown.startswith(r" two\nlines\x1b.jpg\r ")


def test_of_two_pictures_in_a_pipe_the_second_is_told_of(tiny: Bundle, pictures: Path) -> None:
    for names in (("a.jpg", "b.png"), ("b.png", "a.jpg")):
        both = b"".join((pictures / name).read_bytes() for name in names)
        done = run("classify", "-", "--model", str(tiny.folder), "--json", given=both)
        answered, told = map(json.loads, done.stdout.splitlines())
        assert (done.returncode, answered["image"], told["image"]) == (3, "-", "-")
        assert told["error"] == "only the first picture of a pipe is read; to classify several, send their paths"
    of_a_phone, picture = io.BytesIO(), Image.new("RGB", (20, 20))
    picture.save(of_a_phone, "MPO", save_all=True, append_images=[picture])
    assert of_a_phone.getvalue().count(b"\xff\xd9\xff\xd8\xff") == 1
    assert run("classify", "-", "--model", str(tiny.folder), given=of_a_phone.getvalue()).returncode == 0


def test_what_is_no_list_is_not_taken_for_one(tiny: Bundle) -> None:
    noise = np.random.default_rng(1).bytes(20_000)
    done = run("classify", "-", "--model", str(tiny.folder), given=noise)
    assert done.returncode == 1
    told = done.stderr.decode().splitlines()
    assert told == [
        "msdnet: -: neither a picture nor a list of paths",
        "msdnet: nothing was classified: 1 could not be read",
    ]
    done = run("classify", "-", "--model", str(tiny.folder), given=b"long\x07" * 1000)
    assert done.returncode == 1
    long = run("classify", "x" * 5000, "--model", str(tiny.folder)).stderr
    assert 300 < len(long) < 400


def test_pictures_come_by_a_pipe(tiny: Bundle, pictures: Path) -> None:
    one = run("classify", "-", "--model", str(tiny.folder), "--json", given=(pictures / "a.jpg").read_bytes())
    assert json.loads(one.stdout)["image"] == "-"
    paths = f"{pictures / 'a.jpg'}\n{pictures / 'b.png'}\n".encode()
    several = run("classify", "-", "--model", str(tiny.folder), "--json", given=paths)
    assert len(several.stdout.splitlines()) == 2
    broken = run("classify", "-", "--model", str(tiny.folder), given=(pictures / "a.jpg").read_bytes()[:100])
    assert broken.returncode == 1
    assert b"cannot be read" in broken.stderr


def test_an_open_file_is_an_image_in_python(tiny: Bundle, pictures: Path) -> None:
    model = msdnet.load(tiny.folder)
    content = io.BytesIO((pictures / "b.png").read_bytes())
    assert model.classify(content).labels == model.classify(pictures / "b.png").labels


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--budget", "20Q"), "a budget must be written like 20M, 1.5G or 30%, got '20Q'"),
        (("--time", "3"), "a time must be written like 3ms, 0.2s or 500us, got '3'"),
        (("--deadline", "-1ms"), "a time must be at least 0, got '-1ms'"),
        (("--time", "0ms"), "a time must be above 0, got '0ms'"),
        (("--budget", "1k"), "a budget must be at least"),
        (("--budget", "3%"), "a budget must be at least"),
        (("--budget", "101%"), "a budget must be at most 100%"),
        (("--budget", "50%", "--deadline", "3ms"), "give one of --budget, --time and --deadline"),
        (("--hard",), "--hard and --steady say how a budget is kept"),
        (("--method", "paper"), "--method says how a budget's thresholds are found"),
    ],
)
def test_refuses_budgets(tiny: Bundle, pictures: Path, options: tuple[str, ...], message: str) -> None:
    done = run("classify", str(pictures), "--model", str(tiny.folder), *options)
    assert (done.returncode, done.stdout) == (1, b"")
    assert message in done.stderr.decode()


def test_a_missed_budget_is_told_and_may_be_kept(tmp_path: Path) -> None:
    blends(tmp_path, 40)
    given = ("classify", str(tmp_path), "--model", "cifar10-small", "--budget", "25%")
    missed, kept = run_here(*given), run_here(*given, "--hard")
    assert "times the budget was spent" in missed.stderr
    assert "--steady keeps it over many images" in missed.stderr
    assert missed.returncode == kept.returncode == 0
    assert kept.stderr == ""
    assert "times the budget was spent" in run_here(*given, "--json").stderr


def test_time_that_was_not_kept_is_told_as_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = blends(tmp_path, 4)
    monkeypatch.setattr(SharedBudget, "seconds", 1.0)
    given = ("classify", *map(str, names), "--model", "cifar10-small", "--time", "50ms", "--threads", "1")
    told = run_here(*given)
    assert "took 250 ms on average, reading included: 5.0 times the 50 ms that were asked for; --hard" in told.stderr
    assert "harder" not in told.stderr
    assert "that were asked for\n" in run_here(*given, "--hard").stderr


def test_few_images_are_timed_when_all_is_warm(tiny: Bundle, pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original, read = SharedBudget.classify, []

    def noted(shared: SharedBudget, images: Any, **options: Any) -> Result:
        read.append(images)
        return original(shared, images, **options)

    monkeypatch.setattr(SharedBudget, "classify", noted)
    given = ("classify", str(pictures / "a.jpg"), "--model", str(tiny.folder), "--time", "1s")
    assert run_here(*given).returncode == 0
    warmed, asked = read
    assert asked == [str(pictures / "a.jpg")] != warmed


def test_no_clock_is_watched_where_all_have_left_at_once(tiny: Bundle, capsys: pytest.CaptureFixture[str]) -> None:
    policy = msdnet.load(tiny.folder).policy(seconds="1s")
    for left, told in (
        ([7, 0, 0], " times the 1,000 ms that were asked for\n"),
        ([6, 1, 0], " times the 1,000 ms that were asked for; --hard watches the clock\n"),
    ):
        _tell_what_became_of(policy, left, 1e4, hard=False, steady=False)
        assert capsys.readouterr().err.endswith(told)


def test_whoever_reads_no_further_ends_it(tiny: Bundle, pictures: Path) -> None:
    command = f"{sys.executable} -m msdnet classify - --model {tiny.folder} --json"
    names = f"{pictures / 'a.jpg'}\n" * 3000
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -1; exit ${{PIPESTATUS[0]}}"],
        input=names.encode(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (141, b"")


def test_where_there_is_no_such_signal_whoever_reads_no_further_ends_it_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on Windows."""

    def broken(_: str) -> None:
        raise BrokenPipeError

    monkeypatch.delattr(signal, "SIGPIPE")
    monkeypatch.setattr(typer, "echo", broken)
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    with pytest.raises(SystemExit) as end:
        _print_line("{}")
    assert end.value.code == 141


def test_what_an_encoding_lacks_is_escaped_and_no_answer_lost(tiny: Bundle, tmp_path: Path) -> None:
    for name in ("a.png", "\u5199\u771f.png"):
        Image.new("RGB", (12, 12)).save(tmp_path / name)
    done = run("classify", str(tmp_path), "--model", str(tiny.folder), PYTHONIOENCODING="cp1252")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"a.png" in done.stdout
    assert rb"\u5199\u771f.png" in done.stdout
    bars = run("budget", str(tiny.folder), PYTHONIOENCODING="cp1252")
    assert (bars.returncode, b"##" in bars.stdout, b"\\u" in bars.stdout) == (0, True, False)


def test_a_budget_that_brings_nothing_more_is_said_not_to_be_spent(tmp_path: Path) -> None:
    for k, image in enumerate(samples.cifar10().images[:40]):
        Image.fromarray(image).save(tmp_path / f"{k}.png")
    given = ("classify", str(tmp_path), "--model", "cifar10-small", "--budget")
    assert run_here(*given, "100%").stdout.endswith("M each: more gained nothing on them\n")
    assert "gained nothing" not in run_here(*given, "20%").stdout


def test_the_papers_thresholds_from_the_command_line(tmp_path: Path) -> None:
    images, model = samples.cifar10().images[:200], msdnet.load("cifar10-small", threads=1)
    for k, image in enumerate(images):
        Image.fromarray(image).save(tmp_path / f"{k:03}.png")
    given = ("classify", str(tmp_path), "--model", "cifar10-small", "--budget", "70%", "--threads", "1", "--json")
    exits = {}
    for method in METHODS:
        done = run_here(*given, "--method", method)
        assert done.returncode == 0, done.stderr
        exits[method] = [json.loads(line)["exit"] for line in done.stdout.splitlines()]
        assert exits[method] == model.classify(images, budget="70%", method=method).exits.tolist()
    assert exits["paper"] != exits["accuracy"]


def test_times_are_shown_of_images_that_have_their_own(pictures: Path) -> None:
    alone, together = (
        run_here("classify", str(pictures / "a.jpg"), "--model", "cifar10-small", *options).stdout
        for options in (("--deadline", "1s"), ())
    )
    assert " ms" in alone
    assert " ms" not in together


def test_one_image_misses_no_average(pictures: Path) -> None:
    assert run_here("classify", str(pictures / "a.jpg"), "--model", "cifar10-small", "--budget", "25%").stderr == ""


def test_late_answers_are_counted(tiny: Bundle, pictures: Path) -> None:
    done = run_here("classify", str(pictures), "--model", str(tiny.folder), "--deadline", "1us")
    assert done.stderr == "msdnet: 7 of 7 answers came after the deadline\n", "nothing would be in time"
    none_left = run_here("classify", str(pictures), "--model", str(tiny.folder), "--deadline", "0ms", "--json")
    assert {json.loads(line)["exit"] for line in none_left.stdout.splitlines()} == {1}


@pytest.mark.skipif(cores() == 1, reason="there are no fewer threads than one")
def test_fewer_threads_are_suggested_where_many_answers_are_late(
    tiny: Bundle, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = Model.answer
    monkeypatch.setattr(Model, "answer", lambda *given, **options: replace(answer(*given, **options), seconds=2.0))
    hint = "; where other programs want the cores, too, fewer --threads are often faster"
    for threads, told in ((cores(), hint), (1, "")):
        given = ("classify", str(pictures), "--model", str(tiny.folder), "--deadline", "1s", "--threads", str(threads))
        assert run_here(*given).stderr == f"msdnet: 7 of 7 answers came after the deadline{told}\n"


def test_a_steady_budget_from_the_command_line(pictures: Path) -> None:
    done = run_here("classify", str(pictures), "--model", "cifar10-small", "--budget", "50%", "--steady", "--json")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 7


def test_tables_have_no_spaces_at_the_end(pictures: Path) -> None:
    for command in (("classify", str(pictures), "--model", "cifar10-small"), ("models",), ("show", "cifar10-small")):
        shown = run_here(*command).stdout
        assert shown
        assert all(line == line.rstrip() for line in shown.splitlines())


def test_lines_are_whole_in_a_pipe(tiny: Bundle, tmp_path: Path) -> None:
    name = tmp_path / f"{'long' * 40}.png"
    Image.new("RGB", (8, 8)).save(name)
    command = [sys.executable, "-m", "msdnet", "classify", str(name), "--model", str(tiny.folder)]
    there = {key: value for key, value in os.environ.items() if key != "COLUMNS"}  # readline may have set it
    assert str(name) in subprocess.run(command, env=there, capture_output=True, text=True, check=True).stdout


def test_refuses_an_unknown_model_and_no_pictures(tiny: Bundle, tmp_path: Path) -> None:
    assert b"no model of the package is called 'cifar'" in run("classify", "x.jpg", "--model", "cifar").stderr
    empty = run("classify", str(tmp_path), "--model", str(tiny.folder))
    assert empty.returncode == 1
    endings = "(folders are searched for .jpg .jpeg .png .webp .bmp .gif)"
    assert empty.stderr.decode() == f"msdnet: no pictures found: {tmp_path} {endings}\n"


def test_what_has_no_pictures_is_told_beside_what_has(tiny: Bundle, pictures: Path, tmp_path: Path) -> None:
    """And noticed by a script: a pattern may be mistyped."""
    (tmp_path / "empty").mkdir()
    asked, pattern = ("classify", "--model", str(tiny.folder), "--json"), str(tmp_path / "*.jpg")
    endings = "(folders are searched for .jpg .jpeg .png .webp .bmp .gif)"
    told = f"msdnet: no pictures found: {tmp_path / 'empty'}, {pattern} {endings}\n"
    done = run_here(*asked, str(tmp_path / "empty"), str(pictures / "a.jpg"), pattern)
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (3, 1, told)
    piped = run(*asked, "-", given=f"{tmp_path / 'empty'}\n{pictures / 'a.jpg'}\nnowhere\n".encode())
    assert piped.returncode == 3
    assert piped.stderr.decode().splitlines() == [
        "msdnet: nowhere: no such file or folder",
        f"msdnet: no pictures found: {tmp_path / 'empty'} {endings}",
    ]
    nowhere = run_here(*asked, "nowhere")
    assert nowhere.returncode == 1
    assert nowhere.stderr.splitlines() == [
        "msdnet: nowhere: no such file or folder",
        "msdnet: nothing was classified: 1 could not be read",
    ]


def test_the_nearest_name_of_a_model_is_told(tiny: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msdnet.models._here", lambda: tiny.folder.parent)  # as if it came with the package
    with pytest.raises(FileNotFoundError, match="no model of the package is called 'tinny'; did you mean 'tiny'"):
        msdnet.load("tinny")


def test_a_model_that_cannot_keep_a_budget_has_no_figures_for_it(tiny: Bundle, tmp_path: Path) -> None:
    wide = replace(TINY, growth=12)
    large = renamed(tiny_bundle(tmp_path / "wide", config=wide), tmp_path / "large", name="large")
    alone = renamed(tiny_bundle(tmp_path / "bare", held_out=False), tmp_path / "alone", name="alone")
    for name in tiny.manifest.classes:
        (tmp_path / "images" / "test" / name).mkdir(parents=True)
        Image.new("RGB", (14, 14), name).save(tmp_path / "images" / "test" / name / "1.png")
    data = ("--data", str(tmp_path / "images"))
    first, least = tiny.manifest.costs[0], Bundle(large).manifest.costs[0]
    assert first < 3e5 < least < 2e6
    done = run_here("evaluate", large, str(tiny.folder), *data, "--budgets", "300k,2M", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"msdnet: large has no figures for 0.3 M: its first exit takes {least:,} multiply-adds\n"
    found = {one["model"]: {point["budget"] for point in one["points"]} for one in json.loads(done.stdout)["models"]}
    assert found == {"large": {2e6}, "tiny": {3e5, 2e6}}
    alone_too_low = run_here("evaluate", large, *data, "--budgets", "2M,300k,100%", "--json")
    assert alone_too_low.returncode == 0, alone_too_low.stderr
    assert alone_too_low.stderr == done.stderr
    asked = [point["budget"] for point in json.loads(alone_too_low.stdout)["models"][0]["points"]]
    assert asked == sorted(asked[:2]) * 2, "from the least to the most, by each method"
    shown = run_here("budget", large, "--budgets", "2M,300k", "--json")
    assert shown.returncode == 0, shown.stderr
    assert (shown.stderr, [row["budget"] for row in json.loads(shown.stdout)]) == (done.stderr, [2e6])
    only = run_here("evaluate", large, str(tiny.folder), *data, "--budgets", "300k")
    assert only.returncode == 0, only.stderr
    for models, why in (((large,), "a budget must be at least"), ((alone,), "--budgets needs a model with held-out")):
        refused = run_here("evaluate", *models, "--data", "nowhere", "--budgets", "300k")  # before data are looked at
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr.startswith(f"msdnet: {why}")


def test_several_models_are_compared(tiny: Bundle, tmp_path: Path) -> None:
    other = tiny_bundle(tmp_path / "bundles" / "other", seed=3).folder
    manifest = json.loads((other / "manifest.json").read_text())
    (other / "manifest.json").write_text(json.dumps(manifest | {"name": "other"}))
    for name in tiny.manifest.classes:
        (tmp_path / "images" / "test" / name).mkdir(parents=True)
        Image.new("RGB", (14, 14), name).save(tmp_path / "images" / "test" / name / "1.png")
    command = ("evaluate", str(tiny.folder), str(other), "--data", str(tmp_path / "images"))
    shown = run(*command)
    assert shown.returncode == 0, shown.stderr
    assert b"best on held-out images" in shown.stdout
    assert b"thresholds" in shown.stdout
    found = json.loads(run(*command, "--json").stdout)
    assert {point["model"] for point in found["best"]} <= {"tiny", "other"}
    same = run("evaluate", str(tiny.folder), str(tiny.folder), "--data", str(tmp_path / "images"))
    assert b"models of the same name" in same.stderr
