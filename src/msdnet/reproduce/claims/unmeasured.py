"""Claims that no experiment here judges, each with the reason."""

from msdnet.reproduce.claims.claim import Claim

__all__ = ["CLAIMS"]

CLAIMS = (
    Claim(
        "very large models seem necessary to classify the hard examples that make up most of the remaining errors",
        "1",
        otherwise="an observation that the paper begins with, and measures nothing of; the line on its figure 6 "
        "(section 5.2) tells how often images that leave late are wrong",
    ),
    Claim(
        "it is the first architecture that adapts to resources with a single model and is competitive throughout",
        "1",
        otherwise="not a matter of measurement: who was first",
    ),
    Claim(
        "MSDNets are at least ten times more efficient than neural fabrics, and typically more accurate",
        "2",
        otherwise="not measured: neural fabrics are not built here; the paper quotes an error of 7.43% with over 20 M "
        "parameters, and the model of the line on CIFAR-10 below has less than a twentieth of these, and a lower error",
    ),
    Claim(
        "Feedback Networks are less efficient in sharing computation",
        "2",
        otherwise="not measured: they are not built here, and the paper shows no numbers",
    ),
    Claim(
        "FractalNets are not explicitly optimised for computational efficiency, which is why MSDNets outperform them",
        "2",
        otherwise="a reason; what FractalNets cost and reach is in the line on them (section 2)",
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
        "an early classifier makes layers collapse information that later ones need; dense connections recover it",
        "4",
        otherwise="a reason; its effect, what the last classifier loses by an early one, is in the lines on figure 3",
    ),
    Claim(
        "ResNet-MC and DenseNet-MC both take about 1.3e8 multiply-adds",
        "5.1",
        otherwise="here 1.54e8 and 1.26e8, by choices that the paper leaves open: the heads of both, and the growth of "
        "the second (see below); without its heads the first takes 1.40e8",
    ),
    Claim(
        "ResNet-MC and DenseNet-MC are more competitive than the original deeply supervised network",
        "5.1",
        otherwise="not measured: that network is not built here, and the paper shows no numbers",
    ),
    Claim(
        "an ensemble has to compute similar low-level features again in each of its networks",
        "5.1",
        otherwise="a reason: so by construction, since networks of an ensemble share nothing; how similar their "
        "features are was not looked at",
    ),
    Claim(
        "MSDNet is above ResNet-MC and DenseNet-MC since it has coarse maps after a few layers (also in 5.2)",
        "5.1",
        otherwise="a reason, which no experiment of the paper shows by itself: figure 3 (section 4) and the ablation "
        "without several scales (B.1) are about it",
    ),
    Claim(
        "budgets cannot be set precisely with single ResNets and DenseNets",
        "5.2",
        otherwise="so by construction: a network with one classifier has one cost",
    ),
    Claim(
        "early classifiers recognise prototypical images of a class, the last one non-typical images",
        "5.2",
        experiment="gallery",
        otherwise="for the eye: `msdnet reproduce gallery` shows those of a model",
    ),
    Claim(
        "coarse features make it possible to introduce intermediate classifiers even at early layers",
        "6",
        otherwise="a reason: what early classifiers of MSDNet reach is in the lines on figure 3 (section 4)",
    ),
    Claim(
        "the result is an architecture with an unprecedented range of efficiency",
        "6",
        otherwise="not a matter of measurement: what there was before; how wide the range of one network is here is in "
        "the line on a single network (section 6)",
    ),
)
