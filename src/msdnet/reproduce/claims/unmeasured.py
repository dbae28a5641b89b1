"""Claims that no experiment here judges, each with the reason."""

from msdnet.reproduce.claims.claim import Claim

__all__ = ["CLAIMS"]

CLAIMS = (
    Claim(
        "MSDNets are at least ten times more efficient than neural fabrics, and typically more accurate",
        "2",
        otherwise="not measured: neural fabrics are not built here; the paper quotes 7.43 % with over 20 M parameters",
    ),
    Claim(
        "Feedback Networks are less efficient in sharing computation",
        "2",
        otherwise="not measured: they are not built here, and the paper shows no numbers",
    ),
    Claim(
        "pruning and distillation can be combined with MSDNet and may improve it further",
        "2",
        otherwise="distillation is: the recipes `best` and `taught`, and docs/log.md; pruning is not built here",
    ),
    Claim(
        "early classifiers recognise prototypical images of a class, the last one non-typical images",
        "5.2",
        experiment="gallery",
        otherwise="for the eye: `msdnet reproduce gallery` shows those of a model",
    ),
)
