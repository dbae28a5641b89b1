"""What an experiment says of the paper's claims, for people and for machines."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from msdnet.reproduce import Claim, Finding
    from msdnet.reproduce.claims.claim import Measured

__all__ = ["claims_as_values", "judged", "show_claims"]


def judged(experiment: str, measured: "Measured") -> "list[tuple[Claim, Finding | None]]":
    from msdnet.reproduce import CLAIMS, judge

    return [(claim, judge(claim, measured)) for claim in CLAIMS if claim.experiment == experiment]


def show_claims(claims: "Sequence[tuple[Claim, Finding | None]]") -> None:
    for claim, found in claims:
        verdict = f"{'holds' if found.holds else 'does not hold'}: {found.measured}" if found else claim.otherwise
        typer.echo(f"\nThe paper: {claim.says}\n  {verdict}")


def claims_as_values(claims: "Sequence[tuple[Claim, Finding | None]]") -> list[dict[str, Any]]:
    return [{"says": claim.says, "finding": found and found._asdict()} for claim, found in claims]
