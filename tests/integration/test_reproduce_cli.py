"""`msdnet reproduce`, the command."""

import itertools
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from PIL import Image

from msdnet.cli.claims import judged
from msdnet.cli.reproduce import _find, _tried
from msdnet.data import DataConfig, open_data
from msdnet.extras import install
from msdnet.reproduce import Experiment, Failure, Workshop, find_experiment, why_not_judged
from msdnet.reproduce.imagenet import MSDNETS
from msdnet.reproduce.measure import describe_test
from msdnet.reproduce.subjects import Joint, Trained, trained_for
from msdnet.training.record import describe_data
from tests.helpers import run_here
from tests.unit.test_reproduce import measured, point


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_here("reproduce", *arguments)


def test_experiments_are_listed() -> None:
    names = [line.split()[0] for line in run("--list").stdout.splitlines()]
    assert {"anytime-cifar100", "budgeted-cifar100", "densenet-star"} <= set(names)
    listed = json.loads(run("--list", "--json").stdout)
    assert [one["name"] for one in listed] == names
    assert [one["name"] for one in listed if not one["systems"]] == ["gallery"], "which trains nothing"


def test_the_list_does_not_wait_for_torch() -> None:
    """Which takes seconds to import."""
    without = "import sys; sys.modules['torch'] = None; from msdnet.cli import main; main()"
    command = [sys.executable, "-c", without, "reproduce"]
    done = subprocess.run([*command, "--list"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, run("--list").stdout, "")
    needs = subprocess.run([*command, "ablation", "--plan"], capture_output=True, text=True, check=False)
    assert needs.stderr == f"msdnet: this command needs torch: {install('train')}\n"


def test_the_gallery_needs_no_torch(tmp_path: Path) -> None:
    without = "import sys; sys.modules['torch'] = None; from msdnet.cli import main; main()"
    command = [sys.executable, "-c", without, "reproduce", "gallery", "--results", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "for the eye to judge" in done.stdout


def test_the_systems_of_an_experiment_are_listed() -> None:
    title, *systems = run("ablation", "--list").stdout.splitlines()
    assert title.startswith("ablation ")
    assert systems[0].strip() == "ablation_msdnet"
    (listed,) = json.loads(run("ablation", "--list", "--json").stdout)
    assert listed["systems"] == [system.strip() for system in systems]
    assert run("gallery", "--list").stdout.startswith("gallery ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["anytime"], "did you mean 'anytime-cifar10', 'anytime-cifar100' or 'anytime-imagenet'?"),
        (["anytime-cifar"], "unknown experiment 'anytime-cifar'; did you mean"),
        (["anytime-cifar", "--list"], "unknown experiment 'anytime-cifar'; did you mean"),
        (["densenet-star", "--only", "resnet_20", "--data", "nowhere"], "densenet-star has no system 'resnet_20'"),
        (
            ["densenet-star", "--data", "nowhere", "--results", "none", "--runs", "none"],
            "nowhere: no such folder; --data or MSDNET_DATA must name the folder that holds cifar-100-binary/",
        ),
        (
            ["densenet-star", "--draw", "--results", "nowhere"],
            "nowhere: nothing is measured there yet of densenet-star",
        ),
        (["anytime-imagenet"], "no folder of images is named: --data (in Python, root) or MSDNET_DATA must name it"),
        (["densenet-star", "--draw", "--results", __file__], "test_reproduce_cli.py: a file, not a folder for results"),
        (["densenet-star", "--at-once", "0"], "at_once (--at-once) must be at least 1, got 0"),
        (["densenet-star", "--epochs", "0"], "epochs must be at least 1, got 0"),
        (
            ["densenet-star", "--draw", "--only", "densenet_star_16_8"],
            "--only is of no use for --draw, which draws all that there is",
        ),
        (["densenet-star", "--class", "cat"], "--class is of no use for densenet-star"),
        (["densenet-star", "--workers", "0"], "--workers is of no use for cifar100"),
        (["anytime-cifar10", "--skip-unreadable"], "--skip-unreadable is of no use for cifar10"),
        (["--draw"], "--draw needs an experiment: msdnet reproduce --list names them"),
        (["--plan"], "--plan needs an experiment: msdnet reproduce --list names them"),
        (["gallery", "--skip-unreadable"], "--skip-unreadable is of no use for gallery"),
        (["why", "--list", "--plan"], "--list, --plan and --draw: one of them"),
        (["--list", "--data", "nowhere"], "--data is of no use for a list"),
        (["why", "--list", "--epochs", "3"], "--epochs is of no use for a list"),
        (["--results", "nowhere"], "--results is of no use for a list"),
        (["gallery", "--runs", "nowhere"], "--runs is of no use for gallery"),
        (["gallery", "--at-once", "4"], "--at-once is of no use for gallery"),
        (["gallery", "--batch-size", "3"], "--batch-size is of no use for gallery"),
        (["gallery", "--draw", "--results", "nowhere"], "nothing is there yet to be drawn"),
        (["gallery", "--draw", "--class", "cat"], "gallery_cat.json: nothing is there yet to be drawn"),
        (["gallery", "--model", "nowhere"], "no folder and no model of the package is called 'nowhere'"),
    ],
)
def test_what_cannot_be_done_is_one_line(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def make_up_results(folder: Path, name: str) -> None:
    """For every system of an experiment, with all that a figure must know of how they came about."""
    experiment = find_experiment(name)
    for subject in experiment.subjects:
        layers = subject.network.exit_layers
        costs = tuple(20_000_000 * (k + 1) for k in range(len(layers))) if len(layers) > 1 else (90_000_000,)
        accuracy = tuple(0.5 + 0.2 * layer / layers[-1] for layer in layers)
        points = tuple(point(subject.name, million * 1e6, right, right) for million, right in ((20, 0.6), (120, 0.7)))
        made = replace(
            measured(subject.name, costs, accuracy, points),
            network=subject.network.to_dict(),
            recipe=asdict(subject.recipe),
            seeds=tuple(one.seed for one in trained_for(subject)),
            training=None if isinstance(subject, Joint) else {"seconds": 7200.0, "machine_seconds": 1800.0},
            made_by={"msdnet": "1.0", "hardware": "a GPU"},
        )
        made.save(folder / experiment.dataset / f"{subject.name}.json")


def test_figures_are_drawn_from_results(tmp_path: Path) -> None:
    make_up_results(tmp_path / "results", "densenet-star")
    done = run("densenet-star", "--draw", "--results", str(tmp_path / "results"), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["missing"] == []
    assert {Path(file).name for file in told["files"]} >= {"densenet_star_anytime.svg", "densenet_star_budgeted.svg"}
    assert all(Path(file).exists() for file in told["files"])
    table = run("densenet-star", "--draw", "--results", str(tmp_path / "results")).stdout
    assert "ensemble: DenseNets*, varying" in table


def test_a_plan_says_that_nothing_is_to_be_trained_and_which_ensembles_are_to_be_measured(tmp_path: Path) -> None:
    make_up_results(tmp_path / "results", "densenet-star")
    plan = ["densenet-star", "--plan", "--results", str(tmp_path / "results"), "--runs", str(tmp_path / "runs")]
    assert run(*plan).stdout.endswith("\n\nNothing to train.\n")
    assert json.loads(run(*plan, "--json").stdout)["ensembles"] == []
    ensemble = next(one for one in find_experiment("densenet-star").subjects if isinstance(one, Joint))
    (tmp_path / f"results/cifar100/{ensemble.name}.json").unlink()
    for member in ensemble.members:
        folder = tmp_path / "runs/cifar100" / member.name
        folder.mkdir(parents=True)
        (folder / "summary.json").touch()
    told = run(*plan).stdout.splitlines()
    assert told[-3:] == [
        "Nothing to train.",
        f"Before that, {len(ensemble.members)} runs of these must be mended or removed: see above.",  # they are empty
        f"Ensembles to measure, by the runs of all their members in {tmp_path / 'runs'}: {ensemble.name}",
    ]
    assert json.loads(run(*plan, "--json").stdout)["ensembles"] == [ensemble.name]


def test_a_plan_says_what_its_times_are_worth(tmp_path: Path) -> None:
    places = ["--results", str(tmp_path / "results"), "--runs", str(tmp_path / "runs"), "--device", "cpu"]
    told = run("anytime-cifar100", "--plan", "--only", "resnet_mc", *places).stdout
    assert told.endswith("This is an estimate by a few steps of each, on this machine, as busy as it is now.\n")
    assert "Ensembles" not in told


def test_what_makes_a_try_is_told_in_words() -> None:
    experiment = find_experiment("ablation")
    assert _tried(experiment, None, None, None) == experiment
    for made, told in (
        ((1, 32, 3000), "1 epoch, batches of 32, 3,000 images"),
        ((21, None, None), "21 epochs"),
        ((None, None, 999_999), "45,000 images"),
    ):
        assert _tried(experiment, *made).title == f"{experiment.title} (a try: {told})"


def test_a_try_has_places_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_up_results(tmp_path / "results/reproduction", "densenet-star")
    monkeypatch.chdir(tmp_path)
    for options, message in (([], ""), (["--epochs", "1"], "msdnet: results/try: nothing is measured there yet")):
        done = run("densenet-star", "--draw", *options)
        assert done.stderr.startswith(message)
        assert bool(done.returncode) == bool(message)


def paint_photos(folder: Path, images: int = 10, classes: Sequence[str] = ("ant", "bee")) -> Path:
    """In ImageNet's layout, so many of each class."""
    for part, name in itertools.product(("train", "val"), classes):
        (folder / part / name).mkdir(parents=True)
        for number in range(images):
            Image.new("RGB", (8, 8)).save(folder / part / name / f"{number}.png")
    return folder


def test_how_images_are_read_makes_no_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    paint_photos(tmp_path / "photos")
    shops: list[Workshop] = []

    def carry_out(shop: Workshop, *_: object, **__: object) -> list[Failure]:
        shops.append(shop)
        return []

    monkeypatch.setattr(Workshop, "carry_out", carry_out)
    assert run("anytime-imagenet", "--data", "photos", "--workers", "2", "--skip-unreadable").returncode == 0
    assert run("anytime-imagenet", "--data", "photos").returncode == 0
    assert [(shop.data.workers, shop.data.unreadable) for shop in shops] == [(2, "skip"), (None, "fatal")]
    assert {str(shop.results) for shop in shops} == {"results/reproduction"}


def make_up_folder_results(folder: Path, data: Path, **changes: object) -> None:
    """Of the MSDNets and the rest of anytime-imagenet on this folder."""
    opened = open_data(DataConfig(dataset="folder", root=str(data)))
    experiment = find_experiment("anytime-imagenet", classes=opened.classes)
    for subject in experiment.everyone.values():
        exits = 1 if isinstance(subject, Trained) and subject.name not in MSDNETS else 5
        made = replace(
            measured(subject.name, tuple(range(10_000_000, 60_000_000, 10_000_000))[:exits], (0.5,) * exits),
            network=subject.network.to_dict(),
            recipe=asdict(subject.recipe),
            seeds=tuple(one.seed for one in trained_for(subject)),
            images=describe_data(opened) | describe_test(opened) | changes,
        )
        made.save(folder / "imagenet" / f"{subject.name}.json")


def test_results_of_other_images_are_refused_also_where_nothing_is_to_be_trained(tmp_path: Path) -> None:
    photos, results = paint_photos(tmp_path / "photos"), tmp_path / "results"
    make_up_folder_results(results, photos)
    command = ["anytime-imagenet", "--results", str(results), "--runs", str(tmp_path / "runs"), "--device", "cpu"]
    for options in ([], ["--draw"], ["--plan"]):
        assert run(*command, *options, "--data", str(photos)).returncode == 0
        others = paint_photos(tmp_path / f"others{len(options)}{options}", classes=("ant", "cat"))
        done = run(*command, *options, "--data", str(others))
        assert done.returncode == 1
        assert "made of other images than those here" in done.stderr
        assert "classes: ['ant', 'bee'] in the results, ['ant', 'cat'] in the data" in done.stderr
    tested = sorted((photos / "val").rglob("*.*"))[0]
    tested.write_bytes(tested.read_bytes() + b"another picture")
    done = run(*command, "--draw", "--data", str(photos))
    assert done.returncode == 1
    assert "which images are for testing: " in done.stderr


def test_results_of_a_folder_of_ones_own_are_drawn_with_its_name(tmp_path: Path) -> None:
    make_up_folder_results(tmp_path / "results", paint_photos(tmp_path / "photos"))
    done = run("anytime-imagenet", "--draw", "--results", str(tmp_path / "results"))
    assert done.stderr.startswith("msdnet: no folder of images is named (--data), so results must be of ImageNet: ")
    assert "classes: 2 here, 1000 in this experiment" in done.stderr


def test_claims_are_judged_neither_by_another_folder_nor_by_a_try(tmp_path: Path) -> None:
    photos, results = paint_photos(tmp_path / "photos"), tmp_path / "results"
    make_up_folder_results(results, photos)
    draw = ["anytime-imagenet", "--draw", "--results", str(results), "--data", str(photos)]
    why = "the paper's are of ImageNet's 1,000 classes, and these are 2 of another folder"
    assert f"The paper's 2 claims that this touches cannot be judged: {why}.\n" in run(*draw).stdout
    assert {claim["reason"] for claim in json.loads(run(*draw, "--json").stdout)["claims"]} == {why}
    a_try = find_experiment("densenet-star").tried_with("1 epoch")
    assert why_not_judged(a_try, {}) == "this is a try"
    assert {found for _, found in judged(a_try.name, {}, "this is a try")} == {None}
    assert why_not_judged(find_experiment("densenet-star"), {}) is None


def test_where_too_little_is_measured_for_a_figure_it_is_told(tmp_path: Path) -> None:
    make_up_results(tmp_path, "why")
    for file in (tmp_path / "cifar100").iterdir():
        if file.stem != "why_resnet_56_at_4":
            file.unlink()
    done = run("why", "--draw", "--results", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == (
        f"msdnet: {tmp_path}: what is measured (why_resnet_56_at_4) makes no figure without others; not measured yet: "
        "why_cifar_anytime, why_cifar_anytime_seed1, why_cifar_anytime_seed2, why_cifar_anytime_at_4, "
        "why_cifar_anytime_at_7 and 33 more\n"
    )


def test_batches_that_no_image_is_left_for_stop_it_at_once(tmp_path: Path) -> None:
    photos = paint_photos(tmp_path / "photos")
    options = ("--data", str(photos), "--results", str(tmp_path / "results"), "--runs", str(tmp_path / "runs"))
    done = run("anytime-imagenet", "--batch-size", "5000", "--epochs", "1", *options, "--device", "cpu")
    assert done.returncode == 1
    told = r"msdnet: the recipe's batches of 5000 are more than the (\d+) training images: .* must be at most \1\n"
    assert re.fullmatch(told, done.stderr)
    assert not (tmp_path / "runs" / "imagenet").exists()


def test_where_nothing_is_measured_the_way_to_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nothing = (
        "msdnet: results/reproduction: nothing is measured there yet of densenet-star; the same command without --draw "
        "measures it, and --plan tells how long that takes; --results names another folder of result files (those of a "
        "clone: results/reproduction in its root)"
    )
    done = run("densenet-star", "--draw", "--json", "--figures", "drawn")
    assert (done.returncode, done.stderr) == (1, f"{nothing}\n")
    assert list(tmp_path.iterdir()) == [], "no folder for what was not drawn"
    told = json.loads(done.stdout)
    assert told["missing"] == [one.name for one in find_experiment("densenet-star").subjects]
    assert told["files"] == []
    make_up_results(tmp_path / "results/try", "densenet-star")
    hint = "there is a try in results/try, which is drawn with the options that made it (--epochs, ...)"
    assert run("densenet-star", "--draw").stderr == f"{nothing}; {hint}\n"


def test_a_figure_of_which_nothing_is_known_has_no_heading(tmp_path: Path) -> None:
    make_up_results(tmp_path, "densenet-star")
    for path in (tmp_path / "cifar100").iterdir():
        if path.stem != "densenet_bc_28_12":
            path.unlink()
    anytime, budgeted = (figure.title for figure in find_experiment("densenet-star").figures)
    told = run("densenet-star", "--draw", "--results", str(tmp_path)).stdout
    assert budgeted in told
    assert anytime not in told


def test_cifar_too_must_be_where_it_is_named(tmp_path: Path) -> None:
    make_up_results(tmp_path / "results", "densenet-star")
    done = run("densenet-star", "--draw", "--results", str(tmp_path / "results"), "--data", str(tmp_path))
    assert done.returncode == 1
    assert "no cifar-100-binary/" in done.stderr


def test_a_plan_tells_that_cifar_is_not_where_it_will_be_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msdnet.reproduce.plan._training_seconds", lambda *_: 1.0)
    places = ["--results", str(tmp_path / "results"), "--runs", str(tmp_path / "runs"), "--device", "cpu"]
    plan = ["densenet-star", "--plan", "--only", "densenet_bc_16_12", *places]
    for place, wrong in ((tmp_path, "no cifar-100-binary/"), (tmp_path / "gone", "no such folder")):
        monkeypatch.setenv("MSDNET_DATA", str(place))
        told = run(*plan)
        assert (told.returncode, "training images: 45,000\n" in told.stdout) == (0, True)
        assert told.stderr.startswith(f"msdnet: {place}: {wrong}")
        assert told.stderr.endswith("; this plan is made as if it were there\n")
    monkeypatch.delenv("MSDNET_DATA")
    assert run(*plan).stderr == ""


def test_options_that_change_nothing_make_no_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msdnet.reproduce.plan._training_seconds", lambda *_: 1.0)
    places = ["--results", str(tmp_path / "results"), "--runs", str(tmp_path / "runs"), "--device", "cpu"]
    plan = ["anytime-cifar10", "--plan", "--only", "resnet_mc", *places]
    assert "a try" not in run(*plan, "--epochs", "100", "--batch-size", "256").stdout
    assert "(a try: 99 epochs);" in run(*plan, "--epochs", "99", "--batch-size", "256").stdout


def test_a_plan_tells_of_runs_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = paint_photos(tmp_path / "photos", images=30)
    places = ["--results", str(tmp_path / "results"), "--runs", str(tmp_path / "runs"), "--device", "cpu"]
    small = ["--epochs", "1", "--batch-size", "8", "--only", "imagenet_resnet_10", "--data", str(photos), *places]
    monkeypatch.setenv("MSDNET_KERNELS", "torch")
    assert run("budgeted-imagenet", *small, "--subset", "16").returncode == 0
    next((tmp_path / "results").rglob("imagenet_resnet_10.json")).unlink()
    told = run("budgeted-imagenet", *small, "--subset", "16", "--plan").stdout
    assert "imagenet_resnet_10           trained" in told
    assert "must be mended" not in told
    told = run("budgeted-imagenet", *small, "--plan").stdout
    assert "imagenet_resnet_10: trained in another way" in told
    assert "images: training images: 16 in the run, 54 in this experiment" in told
    assert "Before that, 1 run of these must be mended or removed" in told
    model = next((tmp_path / "runs").rglob("model.safetensors"))
    model.write_bytes(model.read_bytes()[:100])
    assert "not a whole safetensors file" in run("budgeted-imagenet", *small, "--subset", "16", "--plan").stdout


def test_a_plan_counts_the_images_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = paint_photos(tmp_path / "photos", images=30)
    places = ["--results", str(tmp_path / "results"), "--runs", str(tmp_path / "runs"), "--device", "cpu"]
    seconds: list[int] = []

    def note(_trained: Trained, _side: int, images: int, _device: object) -> float:
        seconds.append(images)
        return float(images)

    monkeypatch.setattr("msdnet.reproduce.plan._training_seconds", note)
    plan = ["anytime-imagenet", "--plan", "--only", "imagenet_4", *places]
    assert "training images: 54\n" in run(*plan, "--data", str(photos)).stdout
    assert "(a try: 54 images); training images: 54\n" in run(*plan, "--data", str(photos), "--subset", "99999").stdout
    assert "training images: 1,231,167, ImageNet's, since no folder is named (--data)\n" in run(*plan).stdout
    monkeypatch.setenv("MSDNET_DATA", str(photos))
    told = json.loads(run(*plan, "--subset", "20", "--json").stdout)
    assert (told["seconds"], told["training_images"], told["images_known"]) == (20, 20, True)
    assert seconds == [54, 54, 1_231_167, 20]


def classes_of(experiment: Experiment) -> set[int]:
    return {trained.network.classes for subject in experiment.subjects for trained in trained_for(subject)}


def test_networks_have_the_classes_of_the_folder_however_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flat, divided = ("photos/ant", "photos/bee", "photos/train"), ("all/train/ant", "all/train/bee", "all/val/ant")
    for folder in (*flat, *divided, "all/cifar-100-binary"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setenv("MSDNET_DATA", str(tmp_path / "photos"))
    for name in ("anytime-imagenet", "budgeted-imagenet"):
        assert classes_of(_find(name, None, None, None)) == {3}
        assert classes_of(_find(name, tmp_path / "all", None, None)) == {2}
    assert classes_of(_find("densenet-star", None, None, None)) == {100}


@pytest.mark.parametrize("place", [".", "cifar-100-binary"])
def test_a_place_of_cifars_says_nothing_of_imagenets_classes(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("cifar-100-binary", "bundles"):
        (tmp_path / folder).mkdir()
    monkeypatch.setenv("MSDNET_DATA", str(tmp_path / place))
    assert classes_of(_find("anytime-imagenet", None, None, None)) == {1000}


@pytest.mark.slow
def test_imagenets_experiments_run_from_end_to_end_on_photos(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every system, by a few real photos of four classes: begun by one process, which is stopped; two go on."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for part, count in (("train", 10), ("val", 4)):
        for folder in sorted((photos / part).iterdir())[:4]:
            Path("photos", part, folder.name).mkdir(parents=True)
            for photo in sorted(folder.iterdir())[:count]:
                Path("photos", part, folder.name, photo.name).symlink_to(photo)
    options = ["--data", "photos", "--epochs", "2", "--batch-size", "12", "--results", "results", "--runs", "runs"]
    command = ["-m", "msdnet", "reproduce", "budgeted-imagenet", "--device", "cpu", *options]
    assert "stopped by SIGINT" in _stopped_when_there_is("runs/imagenet/*/metrics.jsonl", command)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run([*torchrun, *command], capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, done.stderr
    assert "goes on, epochs done: " in done.stdout
    assert "not measured yet" not in done.stdout
    assert json.loads(run("anytime-imagenet", *options, "--draw", "--json").stdout)["missing"] == []
    assert {path.stem for path in Path("results/figures").iterdir()} == {"budgeted_imagenet", "anytime_imagenet"}
    values = json.loads(Path("results/imagenet/imagenet_4.json").read_text())
    assert (values["dataset"], values["network"]["classes"]) == ("photos", 4)
    assert (values["images"]["training"], values["images"]["held_out"], values["images"]["test"]) == (36, 4, 16)
    assert len(values["test_accuracy"]) == 5
    assert {point["method"] for point in values["points"]} == {"paper", "accuracy"}
    assert min(point["budget"] for point in values["points"]) >= values["whole_costs"][0]


def _stopped_when_there_is(file: str, command: Sequence[str]) -> str:
    """What Python with this command says when it gets a signal just then; the file's name is a pattern."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 300
    try:
        while not list(Path().glob(file)):
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode != 0
    return told
