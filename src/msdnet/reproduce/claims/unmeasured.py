"""Claims that no experiment here judges, each with the reason."""

from msdnet.reproduce.claims.claim import Claim

__all__ = ["CLAIMS"]

CLAIMS = (
    Claim(
        "it is the first architecture that adapts to resources with a single model and is competitive throughout",
        "1",
        otherwise="not a matter of measurement: who was first",
    ),
    Claim(
        "MSDNets are at least ten times more efficient than neural fabrics, and typically more accurate",
        "2",
        otherwise="not measured: neural fabrics are not built here; the paper quotes 7.43% with over 20 M parameters",
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
        "it is the first paper to find that dense connections are important to early classifiers",
        "4",
        otherwise="not a matter of measurement: who was first",
    ),
    Claim(
        "MSDNet is above ResNet-MC and DenseNet-MC since it has coarse maps after a few layers",
        "5.1",
        otherwise="a reason, which no experiment of the paper shows by itself: figure 3 (section 4) and the ablation "
        "without several scales (B.1) are about it",
    ),
    Claim(
        "budgets cannot be set precisely with single ResNets and DenseNets",
        "5.2",
        otherwise="so by their making: a network with one classifier has one cost",
    ),
    Claim(
        "early classifiers recognise prototypical images of a class, the last one non-typical images",
        "5.2",
        experiment="gallery",
        otherwise="for the eye: `msdnet reproduce gallery` shows those of a model",
    ),
)
