"""What an experiment says of the paper's claims, for people and for machines."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from msdnet.amounts import counted

if TYPE_CHECKING:
    from msdnet.reproduce import Claim, Finding, Measurement

__all__ = ["claims_as_values", "judged", "show_claims"]


def judged(
    experiment: str, measured: "Mapping[str, Measurement]", why_not: str | None = None
) -> "list[tuple[Claim, Finding | None]]":
    """The claims that an experiment is about, and what was found of each; nothing where there is a reason not to."""
    from msdnet.reproduce import CLAIMS, judge

    touched = [claim for claim in CLAIMS if claim.experiment == experiment]
    return [(claim, None if why_not else judge(claim, measured)) for claim in touched]


def show_claims(claims: "Sequence[tuple[Claim, Finding | None]]", why_not: str | None = None) -> None:
    """Each with its verdict, if it can be judged."""
    if claims and why_not:
        typer.echo(f"\nThe paper's {counted(len(claims), 'claim')} that this touches cannot be judged: {why_not}.")
        return
    verdicts = {"yes": "holds", "in part": "holds in part", "no": "does not hold"}
    for claim, found in claims:
        said = f"{verdicts[found.verdict]}: {found.measured}" if found else "cannot be judged until more is measured"
        typer.echo(f"\nThe paper: {claim.says}\n  {said}")


def claims_as_values(
    claims: "Sequence[tuple[Claim, Finding | None]]", why_not: str | None = None
) -> list[dict[str, Any]]:
    """What could not be judged has a reason instead of a finding."""
    return [
        {
            "section": claim.section,
            "says": claim.says,
            "finding": found and found._asdict(),
            "reason": None if found else why_not or claim.otherwise,
        }
        for claim, found in claims
    ]
