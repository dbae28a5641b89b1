"""The command line, as a process of its own."""

import statistics
import subprocess
import sys
import time
from pathlib import Path

import msdnet


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "msdnet", *arguments], capture_output=True, text=True, check=False)


def test_help_needs_no_torch_and_answers_at_once() -> None:
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        done = run("--help")
        seconds.append(time.perf_counter() - start)
    assert done.returncode == 0
    assert "presets" in done.stdout
    assert statistics.median(seconds) < 0.5


WITHOUT_TORCH = "import sys; sys.modules['torch'] = None; from msdnet.cli import main; main()"


def test_what_needs_no_torch_runs_without_it(tmp_path: Path) -> None:
    for arguments in (["--help"], ["presets"], ["show", "cifar_anytime", "--svg", str(tmp_path / "grid.svg")]):
        subprocess.run([sys.executable, "-c", WITHOUT_TORCH, *arguments], check=True, capture_output=True)
    command = [sys.executable, "-c", WITHOUT_TORCH, "train", "fast", "--out", "x"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr == "msdnet: this command needs torch: pip install 'msdnet[train]'\n"


def test_version() -> None:
    assert run("--version").stdout == f"msdnet {msdnet.__version__}\n"


def test_presets_lists_them_all() -> None:
    listing = run("presets").stdout
    assert all(name in listing for name in msdnet.PRESETS)


def test_show_draws_in_the_terminal_and_to_a_file(tmp_path: Path) -> None:
    target = tmp_path / "grid.svg"
    done = run("show", "cifar_batch_5", "--svg", str(target))
    assert done.returncode == 0
    assert done.stdout.startswith("cifar_batch_5: 5 exits, 15 layers, 3 scales\n")
    assert target.read_text().startswith("<svg")


def test_errors_are_one_line_on_stderr(tmp_path: Path) -> None:
    unknown = run("show", "cifar_anytme")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert unknown.stderr == "msdnet: unknown preset 'cifar_anytme'; did you mean 'cifar_anytime'?\n"
    nowhere = run("show", "cifar_anytime", "--svg", str(tmp_path / "no" / "grid.svg"))
    assert nowhere.returncode == 1
    assert nowhere.stderr.count("\n") == 1
    assert "No such file or directory" in nowhere.stderr
