"""What an experiment says of the paper's claims, for people and for machines."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from msdnet.reproduce import Claim, Finding, Measurement

__all__ = ["claims_as_values", "judged", "show_claims"]


def judged(experiment: str, measured: "Mapping[str, Measurement]") -> "list[tuple[Claim, Finding | None]]":
    from msdnet.reproduce import CLAIMS, judge

    return [(claim, judge(claim, measured)) for claim in CLAIMS if claim.experiment == experiment]


def show_claims(claims: "Sequence[tuple[Claim, Finding | None]]") -> None:
    """Those that can be judged; how many cannot."""
    for claim, found in claims:
        if found is not None:
            verdict = {"yes": "holds", "in part": "holds in part", "no": "does not hold"}[found.verdict]
            typer.echo(f"\nThe paper: {claim.says}\n  {verdict}: {found.measured}")
    open_ones = sum(found is None for _, found in claims)
    if open_ones:
        typer.echo(f"\n{open_ones} of the paper's {len(claims)} claims that this touches cannot be judged yet.")


def claims_as_values(claims: "Sequence[tuple[Claim, Finding | None]]") -> list[dict[str, Any]]:
    """What could not be judged has a reason instead of a finding."""
    return [
        {
            "section": claim.section,
            "says": claim.says,
            "finding": found and found._asdict(),
            "reason": None if found else claim.otherwise,
        }
        for claim, found in claims
    ]
