"""`msdnet classify`: pictures within a budget, from the command line."""

import json
import math
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from msdnet.amounts import counted, four_digits, in_millions, parse_seconds
from msdnet.cli.options import DEFAULT_MODEL, ModelOption, Threads
from msdnet.cli.pictures import FoundImage, NamedImage, check_streams, find_pictures
from msdnet.cli.tables import on_terminal, print_table, progress_bar
from msdnet.naming import a_few, printable, shortened

if TYPE_CHECKING:
    from msdnet.policy import Method as PolicyMethod
    from msdnet.policy import Policy
    from msdnet.runtime import Model, SharedBudget

__all__ = ["classify"]

NOT_ALL = 3  # what the command ends with if a picture could not be read, or a path held none, and others were answered

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PICTURE", help="Files, folders, patterns; or - for standard input: one picture, or a list of paths."
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(metavar="AMOUNT", help="Multiply-adds per image, on average: 20M, 1.5G, 30% (of the full network)."),
]
Time = Annotated[str | None, typer.Option("--time", metavar="TIME", help="Time per image, on average: 3ms.")]
Deadline = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="For each image on its own: the best answer within this time, reading included: 5ms."
    ),
]
Method = Annotated[
    Literal["accuracy", "paper"],
    typer.Option(help="How a budget's thresholds are found: for the highest held-out accuracy, or as in the paper."),
]
Hard = Annotated[
    bool, typer.Option("--hard", help="Never spend more than the budget in total; a budget of time may be exceeded.")
]
Steady = Annotated[
    bool, typer.Option("--steady", help="Spend the budget on average over some thousands of images, whatever they are.")
]
Lines = Annotated[bool, typer.Option("--json", help="Print a line of JSON for each image.")]


def classify(
    paths: Paths,
    model: ModelOption = DEFAULT_MODEL,
    budget: Budget = None,
    time_each: Time = None,
    deadline: Deadline = None,
    method: Method = "accuracy",
    hard: Hard = False,
    steady: Steady = False,
    threads: Threads = None,
    as_json: Lines = False,
) -> None:
    """Classify pictures, within a budget if one is given.

    Each picture gets one of the model's classes, whatever it shows: `msdnet show MODEL` lists them. Without a budget
    every picture goes through the whole network. A budget holds on average, for pictures like those that the model was
    trained on; for others, add --steady or --hard.

    With --json, one line per picture: image (path as given), label (class name), confidence (0 to 1), exit (where it
    left, from 1), multiply_adds (spent on it), seconds (since its group was started; with --deadline, for this picture
    alone; either way, reading included). A picture that cannot be read has image and error (the reason).

    Exit status: 0 if all were classified, 3 if some could not be read or found (they are named), 1 if none was.

    Example: msdnet classify photos/ --budget 20M
    """
    import msdnet

    check_streams(paths)
    _check_limits(budget, time_each, deadline, method, kept=hard or steady)
    limit = None if deadline is None else parse_seconds(deadline, may_be_0=True)
    loaded = msdnet.load(model, threads=threads)
    policy = _policy(loaded, budget, time_each, method)
    shared = loaded.shared_budget(policy=policy, hard=hard, steady=steady)  # by all groups
    _get_ready(loaded, limit)
    start, unread, left = time.perf_counter(), 0, [0] * len(loaded.costs)  # how many leave at each exit
    rows: list[dict[str, Any]] = []
    late: list[int] = []  # the exits of those that came after the deadline
    empty: list[str] = []
    answered = _answered(find_pictures(paths, empty.append), loaded, shared, limit)
    for row in _printed(answered) if as_json else _awaited(answered):
        if "error" in row:
            unread += 1
            typer.echo(f"msdnet: {shortened(printable(row['image']))}: {row['error']}", err=True)
            continue
        left[row["exit"] - 1] += 1
        late += [row["exit"]] if limit is not None and row["seconds"] > limit else []
        if not as_json:
            rows.append(row)
    _tell_of_empty(empty, paths, among_others=bool(unread or any(left)))
    if not any(left):
        raise ValueError(f"nothing was classified: {unread:,} could not be read")
    if not as_json:
        enough = None if policy is None or hard or steady else _enough(loaded, policy)
        _print(rows, loaded, time.perf_counter() - start, unread, enough, timed=limit is not None)
    if late:
        _tell_of_deadline(loaded, late, sum(left))
    _tell_what_became_of(policy, left, shared.seconds, hard=hard, steady=steady)
    if unread or empty:
        sys.exit(NOT_ALL)


def _check_limits(budget: str | None, time_each: str | None, deadline: str | None, method: str, *, kept: bool) -> None:
    if sum(given is not None for given in (budget, time_each, deadline)) > 1:
        raise ValueError("give one of --budget, --time and --deadline, not several")
    if kept and budget is None and time_each is None:
        raise ValueError("--hard and --steady say how a budget is kept: give --budget or --time with them")
    if method != "accuracy" and budget is None and time_each is None:
        raise ValueError("--method says how a budget's thresholds are found: give --budget or --time with it")


def _policy(model: "Model", budget: str | None, seconds: str | None, method: "PolicyMethod") -> "Policy | None":
    if seconds is not None:
        _warm_up(model)
    return None if budget is None and seconds is None else model.policy(budget, seconds=seconds, method=method)


def _warm_up(model: "Model") -> None:
    """Decoders are loaded before the clock runs, by what none of them can read: few images would seem slow."""
    model.classify([b""], unreadable="skip")


def _get_ready(model: "Model", limit: float | None) -> None:
    """For single images by a deadline, if there is one."""
    if limit is not None:
        _warm_up(model)
        model.profile([1], seconds=0.3)


def _print_line(line: str) -> None:
    try:
        typer.echo(line)
    except BrokenPipeError:  # nobody reads on, as behind `| head`: other tools end by the signal, and without a word
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python writes when it ends
        sys.exit(128 + getattr(signal, "SIGPIPE", 13))  # its number where there is one; Windows has none


def _tell_of_deadline(model: "Model", late: Sequence[int], answers: int) -> None:
    """Threads wait for each other: one that has to wait for its core makes all of them late.

    - late: the exits of late answers; those after the first were expected to be in time
    """
    fewer = sum(exit > 1 for exit in late) > 0.1 * answers and getattr(model.engine, "threads", 1) > 1
    hint = "; where other programs want the cores, too, fewer --threads are often faster" if fewer else ""
    typer.echo(f"msdnet: {len(late):,} of {answers:,} answers came after the deadline{hint}", err=True)


def _tell_what_became_of(
    policy: "Policy | None", left: Sequence[int], seconds: float, *, hard: bool, steady: bool
) -> None:
    if policy is None:
        return
    if policy.unit_ == "seconds":
        _tell_if_late(policy, seconds / sum(left), kept=hard or left[0] == sum(left))
    else:
        _tell_if_missed(policy, left, steady=steady)


def _enough(model: "Model", policy: "Policy") -> float | None:
    """What the policy spends on the held-out images, where it is less than it may, and more would be for nothing."""
    if policy.unit_ == "seconds" or policy.cost_ >= 0.95 * min(policy.budget_, model.costs[-1]):
        return None
    return policy.cost_ if model.policy("100%", method=policy.method).accuracy_ <= policy.accuracy_ else None


def _tell_if_late(policy: "Policy", each: float, *, kept: bool) -> None:
    """Time is not as exact as multiply-adds: stages were measured alone, and when the machine was as busy as it was."""
    if each > 1.1 * policy.budget_:
        times, keep = each / policy.budget_, "" if kept else "; --hard watches the clock"
        typer.echo(
            f"msdnet: an image took {four_digits(1e3 * each)} ms on average, reading included: {times:.1f} times the "
            f"{four_digits(1e3 * policy.budget_)} ms that were asked for{keep}",
            err=True,
        )


def _tell_if_missed(policy: "Policy", left: Sequence[int], *, steady: bool) -> None:
    """An average that was meant for other images: more was spent than chance explains."""
    images = sum(left)
    spent = sum(count * cost for count, cost in zip(left, policy.costs_, strict=True)) / images
    spread = sum(share * (cost - policy.cost_) ** 2 for share, cost in zip(policy.shares_, policy.costs_, strict=True))
    if spent > 1.1 * policy.budget_ and spent > policy.budget_ + 2 * math.sqrt(spread / images):
        keep = "--hard keeps it" if steady else "--steady keeps it over many images, --hard over any"
        typer.echo(
            f"msdnet: {spent / policy.budget_:.1f} times the budget was spent: these images are harder than the "
            f"held-out images; {keep}",
            err=True,
        )


def _answered(
    groups: Iterable[list[NamedImage]], model: "Model", shared: "SharedBudget", limit: float | None
) -> Iterator[dict[str, Any]]:
    """What is told of each picture, group after group."""
    for group in groups:
        found = [(name, image) for name, image in group if not isinstance(image, OSError)]
        answered = _within_budget(shared, found) if limit is None else _by_deadline(model, found, limit)
        for name, image in group:
            yield _failure(name, str(image.strerror)) if isinstance(image, OSError) else next(answered)


def _printed(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        _print_line(json.dumps(row))
        yield row


def _awaited(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """None is printed before the last is there: on a terminal, their number is shown meanwhile."""
    try:
        yield from _numbered(rows) if on_terminal() else rows
    except KeyboardInterrupt:
        typer.echo("msdnet: interrupted before the table was printed; --json prints answers as they come", err=True)
        raise


def _numbered(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    with progress_bar(counting=True) as shown:
        task = shown.add_task("classifying", total=None)
        for number, row in enumerate(rows, 1):
            shown.update(task, description=counted(number, "picture"))
            yield row


def _tell_of_empty(empty: Sequence[str], paths: Sequence[str], *, among_others: bool) -> None:
    """Of folders and patterns without pictures; where nothing else was given, that is an error."""
    from msdnet.pixels import ENDINGS

    without = list(dict.fromkeys(empty)) if among_others else paths
    folders = any(Path(path).is_dir() for path in without)
    searched = f" (folders are searched for {' '.join(ENDINGS)})" if folders else ""
    told = f"no pictures found: {a_few(map(printable, without))}{searched}"
    if not among_others:
        raise ValueError(told)
    if without:
        typer.echo(f"msdnet: {told}", err=True)


def _within_budget(shared: "SharedBudget", found: list[FoundImage]) -> Iterator[dict[str, Any]]:
    result = shared.classify([image for _, image in found], unreadable="skip")
    for (name, _), one in zip(found, result, strict=True):
        if one.error is not None:
            yield _failure(name, one.error)
        else:
            yield _row(name, one.name, one.confidence, one.exit, one.cost, one.seconds)


def _by_deadline(model: "Model", found: list[FoundImage], seconds: float) -> Iterator[dict[str, Any]]:
    for name, image in found:
        try:
            step = model.answer(image, deadline_ms=1e3 * seconds)
        except ValueError as error:
            yield _failure(name, str(error))
        else:
            yield _row(name, step.name, step.confidence, step.exit, step.cost, step.seconds)


def _failure(image: str, why: str) -> dict[str, Any]:
    """The name of the image, which the reason may begin with (`file` is one that was in a pipe), is told once."""
    return {"image": image, "error": why.removeprefix(f"{image}: ").removeprefix("file: ")}


def _row(image: str, label: str, sure: float, exit: int, cost: float, seconds: float) -> dict[str, Any]:
    return {
        "image": image,
        "label": label,
        "confidence": round(sure, 4),
        "exit": exit,
        "multiply_adds": int(cost),
        "seconds": round(seconds, 6),
    }


def _print(
    rows: list[dict[str, Any]], model: "Model", took: float, unread: int, enough: float | None, *, timed: bool
) -> None:
    from rich.table import Column, Table

    names = ("sure", "exit", "multiply-adds", *(["time"] if timed else []))
    right = [Column(name, justify="right") for name in names]
    table = Table(Column("image", overflow="fold"), "label", *right, box=None)
    for row in rows:
        table.add_row(
            printable(row["image"]),
            row["label"],
            f"{100 * row['confidence']:.0f}%",
            str(row["exit"]),
            f"{in_millions(row['multiply_adds'])} M",
            *([f"{1e3 * row['seconds']:.1f} ms"] if timed else []),
        )
    print_table(table)
    spent, full = sum(row["multiply_adds"] for row in rows) / len(rows), model.costs[-1]
    left = " ".join(str(sum(row["exit"] == exit for row in rows)) for exit in range(1, len(model.costs) + 1))
    others = f"; {unread:,} could not be read" if unread else ""
    typer.echo(
        f"\n{counted(len(rows), 'image')} in {took:.2g} s, reading included{others}; {in_millions(spent)} M "
        f"multiply-adds per image, {spent / full:.0%} of the full network's {in_millions(full)} M; left at exits 1 to "
        f"{len(model.costs)}: {left}"
    )
    if enough is not None:  # said of harder images, too, which take more by the same thresholds
        typer.echo(
            f"by these thresholds the held-out images took {in_millions(enough)} M each: more gained nothing on them"
        )
