"""Models and networks as people name them, and what a shell completes a name to."""

from typing import Annotated

import typer

__all__ = ["ModelArgument", "ModelOption", "ModelsArgument", "NetworkArgument", "complete_models"]

_HELP = "A model of the package (`msdnet models`), or a bundle's folder."


def complete_models(incomplete: str) -> list[str]:
    from msdnet.models import model_names

    return [name for name in model_names() if name.startswith(incomplete)]


def _networks(incomplete: str) -> list[str]:
    from msdnet.presets import PRESETS

    return [name for name in PRESETS if name.startswith(incomplete)] + complete_models(incomplete)


ModelOption = Annotated[str, typer.Option("--model", metavar="MODEL", help=_HELP, autocompletion=complete_models)]
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help=_HELP, autocompletion=complete_models)]
ModelsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL",
        help="Of the package (see `msdnet models`), or folders of bundles.",
        autocompletion=complete_models,
    ),
]
NetworkArgument = Annotated[
    str,
    typer.Argument(
        metavar="NETWORK",
        help="A preset (`msdnet presets`), a model (`msdnet models`), or a bundle's folder.",
        autocompletion=_networks,
    ),
]
