"""The command line, as a process of its own."""

import json
import os
import re
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from PIL import Image

import msdnet
from msdnet import MSDNetConfig, cli, samples
from msdnet.bundle import ImageSpec
from msdnet.cli import app
from msdnet.data.folder import FolderData
from msdnet.evaluation import evaluate
from msdnet.export import export_network
from msdnet.extras import BROUGHT_BY, install
from msdnet.networks import create_network
from msdnet.systems import SYSTEMS
from tests.helpers import SMALL_SYSTEMS, TINY, run_here, settle


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "msdnet", *arguments], capture_output=True, text=True, check=False)


def test_help_needs_no_torch_and_answers_at_once() -> None:
    """In half a second of a core, which other work on the machine does not lengthen."""
    seconds = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = run("--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    assert done.returncode == 0
    assert "presets" in done.stdout
    assert statistics.median(seconds) < 0.5


@pytest.mark.parametrize(
    "said",
    [
        "DataLoader worker (pid 7) is killed by signal: Killed. ",
        "DataLoader worker (pid(s) 7) exited unexpectedly",
        "Pin memory thread exited unexpectedly",
    ],
)
def test_readers_that_end_are_told_as_torch_tells_of_them(
    said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ends() -> None:
        raise RuntimeError(said)

    monkeypatch.setattr(cli, "_run", ends)
    monkeypatch.delenv("MSDNET_TRACEBACK", raising=False)
    with pytest.raises(SystemExit):
        cli.main()
    assert capsys.readouterr().err.startswith(
        f"msdnet: a process that reads images has ended: {said.rstrip('. ')}; if memory was short, a training with "
    )
    monkeypatch.setenv("MSDNET_TRACEBACK", "1")
    with pytest.raises(RuntimeError, match=r"worker|Pin"):
        cli.main()


WITHOUT_TORCH = "import sys; sys.modules['torch'] = None; from msdnet.cli import main; main()"


def test_what_needs_no_torch_runs_without_it(tmp_path: Path) -> None:
    for arguments in (
        ["--help"],
        ["presets"],
        ["presets", "--json"],
        ["models"],
        ["models", "--json"],
        ["show", "cifar_anytime", "--svg", str(tmp_path / "grid.svg")],
    ):
        subprocess.run([sys.executable, "-c", WITHOUT_TORCH, *arguments], check=True, capture_output=True)
    command = [sys.executable, "-c", WITHOUT_TORCH, "train", "fast", "--out", "x"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr == f"msdnet: this command needs torch: {install('train')}\n"


def test_an_option_that_needs_torch_is_named_before_anything_is_written(tmp_path: Path) -> None:
    arguments = ["show", "cifar_anytime", "--image-size", "32", "--svg", str(tmp_path / "grid.svg")]
    refused = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *arguments], capture_output=True, text=True, check=False
    )
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == f"msdnet: --image-size needs torch: {install('train')}\n"
    assert not (tmp_path / "grid.svg").exists()
    assert "needs torch" in " ".join(run_here("show", "--help").stdout.split())


def test_only_what_an_extra_brings_is_told_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_without(module: str) -> subprocess.CompletedProcess[str]:
        def fail() -> None:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)

        monkeypatch.setattr(cli, "app", fail)
        return run_here()

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert len(extras["train"]) == len(BROUGHT_BY)
    for module, (package, extra) in BROUGHT_BY.items():
        having = [name for name, brought in extras.items() if package in [one.partition(">=")[0] for one in brought]]
        assert extra == min(having, key=lambda name: len(extras[name])), "gigabytes of torch only for what needs it"
        assert run_without(module).stderr == f"msdnet: this command needs {package}: {install(extra)}\n"
    for other in ("readline", "torch.no_such_part", "msdnet.gone"):
        with pytest.raises(ModuleNotFoundError, match=other):
            run_without(other)


def test_where_folders_cannot_be_locked_training_says_what_it_needs(tmp_path: Path) -> None:
    """As on Windows, which has no fcntl."""
    program = "import sys; sys.modules['fcntl'] = None; from msdnet.cli import main; main()"
    command = [sys.executable, "-c", program, "train", "fast", "--out", str(tmp_path / "run")]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.stderr == "msdnet: training needs Linux or macOS; on Windows, use WSL\n"
    assert refused.returncode == 1
    assert not (tmp_path / "run").exists()


def test_of_several_processes_others_wait_for_the_first_to_speak(monkeypatch: pytest.MonkeyPatch) -> None:
    """torchrun ends them meanwhile, unless the fault is their own: then it is told after all."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")  # without it nobody else would speak
    for arguments, code, told in (
        (["show", "nothing"], 1, "msdnet: no network, model or folder is called 'nothing'"),
        (["show", "--bad"], 2, "Usage: "),
        (["presets"], 0, ""),
    ):
        monkeypatch.delenv("LOCAL_RANK", raising=False)
        first = run_here(*arguments)
        assert (first.returncode, waited) == (code, [])
        assert first.stderr.startswith(told)
        monkeypatch.setenv("LOCAL_RANK", "1")
        other = run_here(*arguments)
        assert (other.returncode, other.stdout, other.stderr) == (first.returncode, first.stdout, first.stderr)
        assert waited == ([cli.PATIENCE] if code else [])
        waited.clear()


def test_a_rank_without_torchrun_is_no_reason_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waits"))
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    for rank in ("1", "x"):
        monkeypatch.setenv("LOCAL_RANK", rank)
        assert run_here("show", "nothing").stderr.startswith("msdnet: no network, model or folder is called 'nothing'")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert run_here("presets").stderr == "msdnet: LOCAL_RANK must be a number, as torchrun sets it; got 'x'\n"


def test_version() -> None:
    assert run("--version").stdout == f"msdnet {msdnet.__version__}\n"


def test_presets_lists_them_all() -> None:
    listing = run("presets").stdout
    assert all(name in listing for name in msdnet.PRESETS)
    told = {network.pop("name"): network for network in json.loads(run("presets", "--json").stdout)}
    assert set(told) == {*msdnet.PRESETS, *SYSTEMS}
    small = {"kind": "msdnet", "layers": 15, "scales": 3, "classes": 100, "exits": [1, 3, 6, 10, 15]}
    assert told["cifar_batch_5"] == small
    assert told["resnet_20"] == {"kind": "resnet", "layers": 20, "scales": None, "classes": 100, "exits": [20]}


def test_show_draws_in_the_terminal_and_to_a_file(tmp_path: Path) -> None:
    target = tmp_path / "grid.svg"
    done = run("show", "cifar_batch_5", "--svg", str(target))
    assert done.returncode == 0
    assert done.stdout.startswith("cifar_batch_5: 5 exits, 15 layers, 3 scales\n")
    assert target.read_text().startswith("<svg")


def test_show_draws_a_network_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(TINY.to_json())
    shown = run_here("show", str(tmp_path / "mine.json"))
    assert shown.stdout.startswith(f"{tmp_path / 'mine.json'}: {len(TINY.exits)} exits, ")
    missing = run_here("show", str(tmp_path / "other.json"))
    assert missing.stderr == f"msdnet: {tmp_path / 'other.json'}: No such file or directory\n"
    refused = run_here("show", "cifar_anytime", "--svg", str(tmp_path / "grid.png"))
    assert (refused.returncode, refused.stderr.count("must end in .svg")) == (1, 1)


def test_show_counts_what_exits_cost() -> None:
    shown = run_here("show", "cifar_anytime", "--image-size", "32")
    first = next(line.split() for line in shown.stdout.splitlines() if line.split()[:1] == ["1"])
    assert first == ["1", "13.26", "M", "14.97", "M"]  # lazily, and as the authors' code counts
    assert shown.stdout.endswith(" M parameters; images of 32 x 32, 100 classes\n")
    too_small = run_here("show", "cifar_small", "--image-size", "5")
    assert (too_small.returncode, too_small.stdout) == (1, ""), "nothing is shown before it is refused"
    small = run_here("show", "resnet_20", "--image-size", "3")
    assert (small.returncode, small.stderr.count("at least 4 pixels")) == (1, 1)
    assert run_here("show", "cifar10-small", "--image-size", "32").returncode == 0
    model = run_here("show", "cifar10-small", "--image-size", "64")
    assert (model.returncode, model.stdout) == (1, "")
    assert "--image-size is for networks" in model.stderr


def test_a_network_without_a_grid_is_shown_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = settle(create_network(SMALL_SYSTEMS["resnet_mc"]))
    spec = ImageSpec(side=32, resize=32, mean=(0.5,) * 3, std=(0.2,) * 3)
    bundle = export_network(network, tmp_path / "mine", name="mine", classes=list("abcde"), images=spec)
    shown = run_here("show", str(bundle.folder))
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(f"{bundle.folder}: resnet, 4 exits\n")
    assert f"{bundle.manifest.costs[2] / 1e6:,.2f} M" in shown.stdout
    assert shown.stdout.endswith("classes: a, b, c, d, e\n")
    monkeypatch.chdir(tmp_path)
    Path("resnet_110").mkdir()  # such as a run's
    assert run_here("show", "resnet_110").stdout == "resnet_110: resnet, 1 exit\n"
    refused = run_here("show", str(bundle.folder), "--svg", str(tmp_path / "grid.svg"))
    assert refused.returncode == 1
    assert (
        refused.stderr
        == f"msdnet: {bundle.folder}: --svg draws the grid of an MSDNet, and this network (resnet) has none\n"
    )
    assert not (tmp_path / "grid.svg").exists()


def test_errors_are_one_line_on_stderr(tmp_path: Path) -> None:
    unknown = run("show", "cifar_anytme")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert (
        unknown.stderr
        == "msdnet: no network, model or folder is called 'cifar_anytme'; did you mean 'cifar_anytime'?\n"
    )
    nowhere = run("show", "cifar_anytime", "--svg", str(tmp_path / "no" / "grid.svg"))
    assert nowhere.returncode == 1
    assert nowhere.stderr.count("\n") == 1
    assert f"there is no folder {tmp_path / 'no'}" in nowhere.stderr


def test_a_config_that_is_none_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "network.json"
    for content, why in (("{", "must be JSON"), ('{"exit": [1]}', "did you mean 'exits'"), ("[]", "a table of fields")):
        path.write_text(content)
        refused = run_here(
            "train", "fast", "--network", str(path), "--data", str(tmp_path), "--out", str(tmp_path / "run")
        )
        assert refused.returncode == 1
        assert refused.stderr.startswith(f"msdnet: {path}: a network config")
        assert why in refused.stderr
        assert refused.stderr.count("\n") == 1
    missing = run_here("train", "fast", "--network", "no.json", "--data", str(tmp_path), "--out", str(tmp_path / "run"))
    assert missing.stderr == "msdnet: no.json: No such file or directory\n"


@pytest.mark.parametrize(
    "option",
    [["--image-size", "64"], ["--colour-jitter", "0.4"], ["--workers", "0"], ["--skip-unreadable"]],
    ids="".join,
)
def test_what_is_for_folders_is_not_passed_over_with_cifar(option: list[str], tmp_path: Path) -> None:
    train = ("train", "fast", "--dataset", "cifar10", "--data", str(tmp_path), "--out", str(tmp_path / "run"))
    refused = run_here(*train, *option)
    assert refused.returncode == 1
    assert refused.stderr == f"msdnet: {option[0]} is of no use for cifar10\n"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train --resume RUN --skip-unreadable", "--skip-unreadable is of no use for a run on cifar10"),
        ("train --resume RUN --workers 2", "--workers is of no use for a run on cifar10"),
        ("export RUN --out new --skip-unreadable", "--skip-unreadable is of no use for a run on cifar10"),
        ("export RUN --out new --no-held-out --data x", "--data is of no use for a bundle for which no images are"),
        ("report RUN --skip-unreadable", "--skip-unreadable is of no use for a report without --data"),
        ("report cifar10-small --dataset cifar10", "--dataset is of no use for a report without --data"),
        ("report cifar10-small --data samples --skip-unreadable", "--skip-unreadable is of no use for cifar10 test"),
        ("evaluate cifar10-small --data samples --skip-unreadable", "--skip-unreadable is of no use for cifar10 test"),
    ],
)
def test_what_would_change_nothing_is_refused(
    arguments: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "RUN").mkdir()
    facts = {"data": {"dataset": "cifar10"}, "network": {}, "recipe": {}, "seed": 0, "images": {}}
    (tmp_path / "RUN/run.json").write_text(json.dumps(facts | {"precision": "float32", "resize": 32}))
    refused = run_here(*arguments.split())
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"msdnet: {message}")
    assert [path.name for path in tmp_path.iterdir()] == ["RUN"]


def test_who_forgot_to_name_the_data_is_told_what_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MSDNET_DATA", raising=False)
    refused = run_here("train", "fast", "--image-size", "64", "--out", str(tmp_path / "run"))
    assert refused.stderr == "msdnet: --image-size is of no use for cifar100, which is taken where no --data is named\n"


def test_models_that_do_not_fit_the_images_are_told_of_before_any_has_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("msdnet.evaluation.every_exit", lambda *_: pytest.fail("a model was asked"))
    refused = run_here("evaluate", "cifar10-small", "cifar100-anytime", "--data", "samples")
    assert refused.stderr.startswith("msdnet: cifar100-anytime: ")
    assert "10 classes (airplane, automobile, bird, ...) where the model knows 100" in refused.stderr
    with pytest.raises(TypeError, match=r"model must be one that msdnet\.load has loaded, got 'cifar10-small'"):
        evaluate("cifar10-small", samples.cifar10())  # type: ignore[arg-type]


def test_samples_are_of_cifar10() -> None:
    refused = run_here("evaluate", "cifar10-small", "--data", "samples", "--dataset", "cifar100")
    assert refused.stderr == "msdnet: the samples are of cifar10: --dataset cifar100 goes with other data\n"


def test_images_have_a_side(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (20, 20)).save(tmp_path / name / "1.png")
    refused = run_here("train", "fast", "--data", str(tmp_path), "--image-size", "0", "--out", str(tmp_path / "run"))
    assert refused.stderr == "msdnet: crop_size must be at least 1, got 0\n"


VALUE_TYPES = r"(?:TEXT|PATH|INTEGER|FLOAT|<(?:str|path|int|float)>)"


def test_help_says_what_an_option_takes() -> None:
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        shown = command.get_help(command.make_context(name, [], resilient_parsing=True))
        assert not re.findall(rf"^ +--[\w-]+ {VALUE_TYPES}", shown, re.MULTILINE), f"{name}: a word says more"
        assert "Example: msdnet " in shown
    for field in ("image", "label", "confidence", "exit", "multiply_adds", "seconds"):
        assert f"{field} (" in re.sub(r"\s+", " ", group.commands["classify"].help), "the JSON line is told of"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(("typed", "found"), [("msdnet cla", "classify"), ("msdnet show cifar_any", "cifar_anytime")])
def test_shells_can_complete(shell: str, typed: str, found: str) -> None:
    """What `msdnet --install-completion` puts into the shell's configuration, and what that then asks for."""
    environment = {**os.environ, "_MSDNET_COMPLETE": f"complete_{shell}"}
    environment |= {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    environment |= {"_TYPER_COMPLETE_ARGS": typed, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    program = "import sys; sys.argv[0] = 'msdnet'; from msdnet.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert found in done.stdout, done.stderr


def test_summaries_of_the_commands_are_not_cut() -> None:
    wide = subprocess.run(
        [sys.executable, "-m", "msdnet", "--help"],
        env=os.environ | {"COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    _, found, summaries = wide.stdout.partition("Commands:")
    assert found
    assert "..." not in summaries


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of pictures, a run that was trained on them, and a bundle of it, by the commands alone."""
    folder, random = tmp_path_factory.mktemp("place"), np.random.default_rng(0)
    for name, level in (("dark", 40), ("light", 200)):
        (folder / "photos" / name).mkdir(parents=True)
        for number in range(40):
            pixels = np.clip(level + 30 * random.standard_normal((24, 24, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / "photos" / name / f"{number}.png")
    config = MSDNetConfig(exits=(1, 2), scales=2, channel_factors=(1, 2), bottleneck_factors=(1, 2), head_width=8)
    (folder / "network.json").write_text(config.to_json())
    trained = run(
        *("train", "fast", "--data", str(folder / "photos"), "--out", str(folder / "run"), "--image-size", "16"),
        *("--network", str(folder / "network.json"), "--epochs", "6", "--batch-size", "8", "--workers", "0"),
        *("--device", "cpu"),
    )
    assert trained.returncode == 0, trained.stderr
    assert trained.stdout.endswith(next_step(folder))
    options = ("--half", "--calibrate", "--averaging", "0.5", "--test", "--device", "cpu")
    done = run("export", str(folder / "run"), "--out", str(folder / "bundle"), *options)
    assert done.returncode == 0, done.stderr
    assert "agree at every exit" in done.stdout
    assert re.search(r"^test accuracy of the exits, on \d+ images: [\d.]+ [\d.]+%$", done.stdout, re.MULTILINE)
    assert "few held-out images to fit thresholds to" in done.stdout
    assert done.stdout.endswith(f"classify with it: msdnet classify PICTURES --model {folder / 'bundle'}\n")
    return folder


def next_step(folder: Path) -> str:
    return f"next, make a bundle to classify with: msdnet export {folder / 'run'} --out bundles/run\n"


def test_a_finished_run_says_so_and_what_comes_next(place: Path) -> None:
    again = run("train", "--resume", str(place / "run"))
    assert again.returncode == 0, again.stderr
    assert f"{place / 'run'} was finished already: nothing was left to train" in again.stdout
    assert f"msdnet train --resume {place / 'run'} --test\n" in again.stdout
    assert again.stdout.endswith(next_step(place))
    # What is to be typed next imports what this did.
    imported = run_here("--import", "json", "train", "--resume", str(place / "run"))
    assert f"msdnet --import json train --resume {place / 'run'} --test\n" in imported.stdout
    assert imported.stdout.endswith(next_step(place).replace("msdnet", "msdnet --import json"))


def test_averaging_is_chosen_on_held_out_images(place: Path, tmp_path: Path) -> None:
    best = run("export", str(place / "run"), "--out", str(tmp_path / "best"), "--averaging", "best")
    assert best.returncode == 0, best.stderr
    assert len(re.findall(r"^(?:none|0|0\.5|1|2) .*\d", best.stdout, re.MULTILINE)) == 5
    assert len(re.findall(r"\d +best *$", best.stdout, re.MULTILINE)) == 1
    refused = run("export", str(place / "run"), "--out", str(tmp_path / "x"), "--averaging", "bset")
    assert refused.stderr == "msdnet: --averaging must be best, or a power like 0, 0.5 or 1, got 'bset'\n"


def test_what_cannot_be_exported_is_refused(place: Path, tmp_path: Path) -> None:
    again = run_here("export", str(place / "run"), "--out", str(place / "bundle"))
    assert again.returncode == 1
    assert "is there already" in again.stderr
    nothing = run_here("export", str(place), "--out", str(tmp_path / "x"))
    assert nothing.stderr.startswith(f"msdnet: {place}: no training run")
    (place / "photos").rename(place / "moved")
    try:
        lost = run_here("export", str(place / "run"), "--out", str(tmp_path / "second"))
    finally:
        (place / "moved").rename(place / "photos")
    assert lost.returncode == 1
    assert "--data" in lost.stderr


def test_a_training_that_an_unreadable_image_ends_names_the_command_that_goes_on(place: Path, tmp_path: Path) -> None:
    """Its folder is taken, and the same command would be refused."""
    photos, run_folder = tmp_path / "my photos", tmp_path / "run"
    shutil.copytree(place / "photos", photos)
    data = FolderData(photos, crop_size=16, workers=0)
    for part in ("train", "test"):
        (photos / data.paths(part)[0]).write_bytes(b"no image")
    options = ["--network", str(place / "network.json"), "--image-size", "16", "--epochs", "1", "--batch-size", "8"]
    again = ["--data", str(photos), "--workers", "0", "--device", "cpu", "--test"]
    failed = run_here("train", "fast", "--out", str(run_folder), *options, *again)
    message, _, command = failed.stderr.splitlines()[-1].partition("; go on without it: ")
    assert message == f"msdnet: unreadable image {photos / data.paths('train')[0]}: not an image"
    name, *arguments = shlex.split(command)
    assert name == "msdnet"
    assert arguments[:4] == ["train", "--resume", str(run_folder), "--skip-unreadable"]
    assert sorted(arguments[4:]) == sorted(again)
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("unreadable image") == 2, "the one that ended it, and a test image"


@pytest.mark.slow
def test_unreadable_images_stop_nothing_after_training(place: Path, tmp_path: Path) -> None:
    """One of the held-out and one of the test images: told of, left out, and counted."""
    photos, run_folder = tmp_path / "photos", tmp_path / "run"
    shutil.copytree(place / "photos", photos)
    shutil.copytree(place / "run", run_folder)
    data = FolderData(photos, crop_size=16, workers=0)
    held_out, test = (photos / data.paths(part)[0] for part in ("held_out", "test"))
    for path in (held_out, test):
        path.write_bytes(b"no image")
    moved, skip = ("--data", str(photos)), "--skip-unreadable"

    export = ("export", str(run_folder), *moved, "--device", "cpu", "--out", str(tmp_path / "bundle"))
    assert f"unreadable image {held_out}: not an image (--skip-unreadable" in run(*export).stderr
    done = run(*export, skip)
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"msdnet: unreadable image {held_out}: not an image\n"
    assert f"on {data.size('held_out') - 1} images (1 more could not be read)" in done.stdout

    measure = ("evaluate", str(tmp_path / "bundle"), *moved)
    assert f"{test}: cannot be read" in run(*measure).stderr
    done = run(*measure, skip, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"msdnet: unreadable image 0: {test}: cannot be read (not an image)\n"
    found = json.loads(done.stdout)["models"][0]
    assert found["images"] == data.size("test") - 1
    assert found["data"].endswith("; 1 could not be read")

    report = ("report", str(run_folder), *moved, "--out", str(tmp_path / "report.html"))
    assert run(*report).returncode == 1
    done = run(*report, skip)
    assert done.returncode == 0, done.stderr
    assert f"On {data.size('test') - 1} images" in (tmp_path / "report.html").read_text()


def test_a_run_is_reported_on_by_the_images_of_another_folder(place: Path, tmp_path: Path) -> None:
    """Its own, which its bundle is made with, are where they were."""
    other = tmp_path / "other"
    for photo in sorted((place / "photos").rglob("*.png"))[::7]:
        (other / photo.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copy(photo, other / photo.parent.name / f"other{photo.name}")
    count = len(list(other.rglob("*.png")))
    done = run("report", str(place / "run"), "--data", str(other), "--out", str(tmp_path / "report.html"))
    assert done.returncode == 0, done.stderr
    assert f"On {count} images" in (tmp_path / "report.html").read_text()


def test_a_run_whose_folder_was_emptied_is_reported_on_by_what_was_in_it(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "run", tmp_path / "run")
    facts = json.loads((tmp_path / "run/run.json").read_text())
    facts["data"]["root"] = str(tmp_path / "empty")
    (tmp_path / "empty").mkdir()
    (tmp_path / "run/run.json").write_text(json.dumps(facts))
    done = run("report", str(tmp_path / "run"), "--data", str(place / "photos"), "--out", str(tmp_path / "report.html"))
    assert done.returncode == 0, done.stderr


def test_a_model_is_measured_on_all_images_of_another_folder(place: Path, tmp_path: Path) -> None:
    """Of its own, only on those that it was not trained on."""
    own = run_here("evaluate", str(place / "bundle"), "--data", str(place / "photos"), "--json")
    assert own.stderr == ""
    tests = json.loads(own.stdout)["models"][0]["images"]
    assert 0 < tests < 20
    grown = tmp_path / "grown"
    shutil.copytree(place / "photos", grown)
    shutil.copy(next((grown / "light").iterdir()), grown / "light" / "another.png")
    again = run_here("evaluate", str(place / "bundle"), "--data", str(grown), "--json")
    assert again.stderr == "", "an image more makes no other folder of it"
    assert json.loads(again.stdout)["models"][0]["images"] in (tests, tests + 1)
    shutil.rmtree(grown)
    (tmp_path / "light").mkdir()
    for path in sorted((place / "photos" / "light").iterdir())[:15]:
        (tmp_path / "light" / path.name).write_bytes(path.read_bytes())
    new = run("evaluate", str(place / "bundle"), "--data", str(tmp_path), "--json")
    assert new.returncode == 0, new.stderr
    assert "all 15 images are taken" in new.stderr
    assert json.loads(new.stdout)["models"][0]["images"] == 15
    (tmp_path / "lihgt").mkdir()
    refused = run_here("evaluate", str(place / "bundle"), "--data", str(tmp_path))
    assert refused.stderr == f"msdnet: {tmp_path}: 'lihgt' not among the 2 classes: 'dark', 'light'\n"


def test_a_run_becomes_a_bundle_that_classifies(place: Path) -> None:
    model = msdnet.load(place / "bundle")
    paths = sorted((place / "photos").glob("*/*.png"))
    result = model.classify(paths, budget=float(model.costs[-1]))
    right = [path.parent.name == name for path, name in zip(paths, result.names, strict=True)]
    assert np.mean(right) > 0.9, "dark and light are told apart"
    assert model.manifest.provenance["recipe"]["name"] == "fast"
    assert str(place) not in model.manifest.to_json(), "a bundle does not tell where things were"
    card = (place / "bundle/card.md").read_text()
    assert "tells 2 classes apart in images of 16 x 16 pixels" in card
    assert "| accuracy in %, " in card


def test_a_bundle_is_evaluated_as_it_was_when_made(place: Path) -> None:
    bundle, photos = str(place / "bundle"), str(place / "photos")
    measured = run("evaluate", bundle, "--data", photos, "--json")
    assert measured.returncode == 0, measured.stderr
    (found,) = json.loads(measured.stdout)["models"]
    tested = msdnet.load(bundle).manifest.test
    assert tested is not None
    assert found["images"] == tested.images
    assert found["accuracy"] == pytest.approx(tested.accuracy, abs=1e-6)
    assert {point["method"] for point in found["points"]} == {"accuracy", "paper"}
    shown = run("evaluate", bundle, "--data", photos, "--budgets", "100%", "--whole-layers").stdout
    assert "the paper's thresholds" in shown
    other = run("evaluate", bundle, "--data", "samples")
    assert other.returncode == 1
    assert "10 classes (airplane, automobile, bird, ...) where the model knows 2" in other.stderr


@pytest.mark.parametrize(
    ("arguments", "begins", "ends"),
    [
        (
            ["cifar100-anytime", "--data", "/nowhere"],
            "/nowhere: no such folder; expected one with a folder of images for each class",
            "or with CIFAR's binary files",
        ),
        (["cifar100-anytime", "--data", __file__], f"{__file__}: a file, not a folder; expected one", "binary files"),
        (
            ["cifar100-anytime", "--data", str(Path(__file__).parent), "--dataset", "cifar100"],
            f"{Path(__file__).parent}: no cifar-100-binary/fine_label_names.txt here; --data or MSDNET_DATA must name",
            "(to be had at https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz)",
        ),
        (
            ["cifar10-small"],
            "no data are named or were downloaded: there is no --data, and MSDNET_DATA is not set; --data or",
            "cifar-10-binary.tar.gz); --data samples takes 1,000 images of the package",
        ),
    ],
)
def test_where_cifar_is_not_found_it_is_told_where_it_was_looked_for_and_where_it_is(
    arguments: list[str], begins: str, ends: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("MSDNET_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # who tests may have downloaded it
    refused = run_here("evaluate", *arguments)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"msdnet: {begins}")
    assert refused.stderr.endswith(f"{ends}\n")
