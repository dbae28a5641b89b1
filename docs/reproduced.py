"""The page on the paper's experiments, from whatever there are results of: its figures, claims and tables.

It has a section for each topic: what stands there of an experiment is beside its figures, and the claims that it is
about follow.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from accuracy import read_result

from msdnet import samples
from msdnet.amounts import counted
from msdnet.report.charts import Lines, Pictures
from msdnet.reproduce import (
    EXPERIMENTS,
    GALLERY,
    Claim,
    Finding,
    Measurement,
    Shelf,
    charts,
    find_experiment,
    judge,
    judge_all,
    measured_of,
    read_gallery,
    read_measurement,
)
from msdnet.reproduce.claims.claim import NOT_YET
from msdnet.reproduce.studies import HEADS, STUDIED, relative_accuracy, why_names

RESULTS = Path(__file__).resolve().parents[1] / "results/reproduction"


class Topic(NamedTuple):
    """A section of the page."""

    heading: str
    experiments: tuple[str | None, ...]
    """Nothing for claims that no experiment is for: costs are counted, others are summed up, or it is not measured."""


TOPICS = {
    "anytime": Topic("Anytime prediction on CIFAR-100: figure 5", ("anytime-cifar100",)),
    "budgeted": Topic("Budgeted batch classification on CIFAR-100: figure 7", ("budgeted-cifar100",)),
    "densenet_star": Topic("DenseNet*: figure 8", ("densenet-star",)),
    "why": Topic("One intermediate classifier: figure 3", ("why",)),
    "ablation": Topic("What each part is good for: figure 10", ("ablation",)),
    "prior": Topic("Exits weighted by P(B)", ("prior",)),
    "cifar10": Topic("CIFAR-10: figure 11", ("anytime-cifar10", "budgeted-cifar10")),
    "imagenet": Topic("ImageNet: figures 5 and 7", ("anytime-imagenet", "budgeted-imagenet")),
    "gallery": Topic("Easy and hard images: figure 6", (GALLERY,)),
    "rest": Topic("Other claims", (None,)),
}


@cache
def _measured(name: str) -> dict[str, Measurement]:
    """Of an experiment."""
    experiment = find_experiment(name)
    return measured_of(experiment, Shelf(RESULTS / experiment.dataset, runs=RESULTS))


# --- figures


def drawn() -> dict[str, Lines | Pictures]:
    """Every figure that can be drawn, by the name of its file."""
    found: dict[str, Lines | Pictures] = {}
    for name in (*EXPERIMENTS, GALLERY):
        found |= _drawn_of(name)
    return found


def _drawn_of(name: str) -> Mapping[str, Lines | Pictures]:
    if name != GALLERY:
        return charts(find_experiment(name), _measured(name))
    gallery = RESULTS / f"{GALLERY}.json"
    return {GALLERY: read_gallery(gallery).chart(samples.cifar10())} if gallery.exists() else {}


def topic_figures(topic: Topic) -> Iterator[str]:
    """The figures of a section, and what they are to show and do not yet."""
    names = [name for name in topic.experiments if name]
    shown = {name: chart for experiment in names for name, chart in _drawn_of(experiment).items()}
    for name, chart in shown.items():
        yield f"\n![{chart.title}](figures/{name}.svg)"
    missing = list(dict.fromkeys(subject for name in names if name != GALLERY for subject in _missing(name)))
    if shown and missing:
        yield f"\nStill to be measured: {', '.join(f'`{subject}`' for subject in missing)}."
    yield "" if shown else "\nNo figure yet: nothing of it is measured.\n"


def _missing(name: str) -> list[str]:
    """The systems of an experiment that are not measured."""
    return [subject.name for subject in find_experiment(name).subjects if subject.name not in _measured(name)]


# --- claims


@cache
def _judged() -> dict[Claim, Finding | None]:
    return judge_all({name: _measured(name) for name in EXPERIMENTS})


def _of(topic: Topic) -> dict[Claim, Finding | None]:
    return {claim: finding for claim, finding in _judged().items() if claim.experiment in topic.experiments}


def verdicts() -> Iterator[str]:
    judged = {claim: finding for claim, finding in _judged().items() if finding}
    held = sum(finding.holds for finding in judged.values())
    in_part = sum(finding.in_part for finding in judged.values())
    open_ones = [claim for claim, finding in _judged().items() if finding is None]
    not_yet = sum(claim.otherwise == NOT_YET or bool(claim.parts) for claim in open_ones)
    at_once = sum(claim.experiment is None and not claim.parts for claim in judged)
    sums = sum(bool(claim.parts) and finding.verdict == "no" for claim, finding in judged.items())
    sum_up = f" ({counted(sums, 'of them only sums', 'of them only sum')} up others)" if sums else ""
    yield (
        f"\nOf the paper's {len(_judged())} claims, {len(judged)} have been judged: {held} hold, {in_part} hold in "
        f"part, and {len(judged) - held - in_part} do not{sum_up}.\n"
        f"{not_yet} are not measured yet, and {len(open_ones) - not_yet} cannot be judged by our experiments, for "
        f"reasons told beside each. {at_once} of the {len(judged)} needed no training: something was counted or "
        "calculated, or a model of the package was used.\n"
    )


def verdicts_by_topic() -> Iterator[str]:
    yield "| | hold | in part | do not | not judged |"
    yield "|---|---|---|---|---|"
    for topic in TOPICS.values():
        found = [finding.verdict if finding else None for finding in _of(topic).values()]
        counts = " | ".join(str(found.count(verdict)) for verdict in ("yes", "in part", "no", None))
        yield f"| [{_plain_text(topic.heading)}](#{_anchor(topic.heading)}) | {counts} |"


def _anchor(heading: str) -> str:
    """As both the site and GitHub make it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def topic_claims(topic: Topic) -> Iterator[str]:
    yield "| section | the paper says | measured | holds |"
    yield "|---|---|---|---|"
    for claim, finding in _of(topic).items():
        measured, holds = (finding.measured, finding.verdict) if finding else (_reason(claim), "-")
        yield f"| {claim.section} | {_plain_text(claim.says)} | {_plain_text(measured)} | {holds} |"


def _reason(claim: Claim) -> str:
    """Why a claim is not judged on this page."""
    if claim.experiment in ("anytime-imagenet", "budgeted-imagenet") and not (RESULTS / "imagenet").exists():
        reason = f"{claim.otherwise}: ImageNet was not at hand. `msdnet reproduce {claim.experiment}` measures it"
        return reason + _elsewhere(claim)
    if claim.experiment == GALLERY and (RESULTS / f"{GALLERY}.json").exists():
        shown = read_gallery(RESULTS / f"{GALLERY}.json")
        first, last = (f"{shown.left[exit]} left at the {name}" for exit, name in ((0, "first exit"), (-1, "last")))
        return (
            f"{claim.otherwise}. Of {shown.images:,} images of CIFAR-10, {first}, {shown.right[0]} of them rightly, "
            f"and {last}, {shown.right[-1]} of them rightly"
        )
    if claim.otherwise == NOT_YET and claim.experiment is not None:
        systems, missing = find_experiment(claim.experiment).subjects, _missing(claim.experiment)
        return (
            f"{claim.otherwise}: of the {len(systems)} systems of `{claim.experiment}` {len(missing)} are "
            "still to be measured"
        )
    return claim.otherwise


def _elsewhere(claim: Claim) -> str:
    """The same, asked of other images."""
    if claim.elsewhere is None or claim.elsewhere.experiment is None:
        return ""
    experiment = claim.elsewhere.experiment
    finding = judge(claim.elsewhere, _measured(experiment))
    dataset = find_experiment(experiment).dataset.replace("cifar", "CIFAR-")
    return f". On {dataset}, where the paper does not say it: {finding.measured}" if finding else ""


def _plain_text(words: str) -> str:
    """For a cell of a table: a star, as in DenseNet*, is a star, and no emphasis."""
    return words.replace("|", r"\|").replace("*", r"\*")


# --- tables


def training_time() -> Iterator[str]:
    """By what trained them: an hour of a processor is not one of a GPU."""
    records = [read_measurement(path) for path in sorted(RESULTS.glob("*/*.json"))]
    trainings: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        if record.training:
            trainings.setdefault(record.made_by["hardware"], []).append(record.training)
    told = [f"{len(ones)} in {_machine_hours(ones)} on {hardware}" for hardware, ones in trainings.items()]
    count = sum(map(len, trainings.values()))
    yield (
        f"\n{count} networks were trained for this: {', '.join(told)}.\n"
        if told
        else "\nNo networks are trained yet.\n"
    )


def _machine_hours(trainings: Sequence[Mapping[str, Any]]) -> str:
    """What was trained side by side shared the machine; of older results it is not known what was."""
    hours = sum(one.get("machine_seconds", one["seconds"]) for one in trainings) / 3600
    about = "" if all("machine_seconds" in one for one in trainings) else "at most "
    return f"{about}{hours:,.1f} hours"


def imagenet_time() -> Iterator[str]:
    """From the images/s of training steps; what is read more slowly than that is trained as slowly."""
    found, reading = read_result("imagenet_h200"), read_result("folder_h200")["results"][-1]
    read = reading["ours_images_per_second"]
    yield "| network | images/s | hours |"
    yield "|---|---|---|"
    for name, one in found["networks"].items():
        yield f"| `{name}` | {one['images_per_second']:,.0f} | {one['hours']:.1f} |"
    for name, networks in found["experiments"].items():
        trained = [found["networks"][network] for network in networks]
        waiting = sum(one["hours"] * max(1.0, one["images_per_second"] / read) for one in trained)
        yield (
            f"| **all of `{name}`** | | **{found['hours'][name]:.0f}**, or {waiting:.0f} where {reading['workers']} "
            f"processes read {read:,.0f} images/s |"
        )


def why_table() -> Iterator[str]:
    """Of each network with each kind of classifiers: the first one, and what those at all six places do to the last."""
    measured = _measured("why")
    yield (
        "| network | intermediate classifiers | accuracy without (three seeds) | the first, % of that "
        "| the last, % of that, by place of the other |"
    )
    yield "|---|---|---|---|---|"
    for family, heads in STUDIED:
        found = [measured[name] for name in why_names(family, heads) if name in measured]
        first, last = ([100 * place.y for place in relative_accuracy(found, exit)] for exit in (0, -1))
        alone = sorted(100 * one.test_accuracy[-1] for one in found if len(one.costs) == 1)
        if first:
            yield (
                f"| {family} | {HEADS[heads]} | {alone[0]:.1f} to {alone[-1]:.1f}% | {first[0]:.1f} "
                f"| {' '.join(f'{one:.1f}' for one in last)} |"
            )


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "verdicts": verdicts,
    "verdicts_by_topic": verdicts_by_topic,
    **{
        f"figures_{name}": partial(topic_figures, topic)
        for name, topic in TOPICS.items()
        if None not in topic.experiments
    },
    **{f"claims_{name}": partial(topic_claims, topic) for name, topic in TOPICS.items()},
    "training_time": training_time,
    "imagenet_time": imagenet_time,
    "why": why_table,
}
