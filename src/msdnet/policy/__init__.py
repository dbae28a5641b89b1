"""Budgets and thresholds: who may leave at which exit, so that a set of images costs no more than it should.

Pure numpy. Sees confidences, right and wrong answers, and costs; never an image or a network.
"""

from msdnet.policy.confidence import MEASURES, Measure, confidence, fit_temperatures, soften
from msdnet.policy.judging import Judged, accuracy_of, judge_logits, judge_probabilities
from msdnet.policy.outcomes import Outcomes
from msdnet.policy.paper import exit_shares
from msdnet.policy.policy import METHODS, Method, Policy, PolicyFamily, Unit, that_differ, usual_budgets
from msdnet.policy.spending import Answers, FixedThresholds, HardBudget, SpendingRule, SteadyBudget

__all__ = [
    "MEASURES",
    "METHODS",
    "Answers",
    "FixedThresholds",
    "HardBudget",
    "Judged",
    "Measure",
    "Method",
    "Outcomes",
    "Policy",
    "PolicyFamily",
    "SpendingRule",
    "SteadyBudget",
    "Unit",
    "accuracy_of",
    "confidence",
    "exit_shares",
    "fit_temperatures",
    "judge_logits",
    "judge_probabilities",
    "soften",
    "that_differ",
    "usual_budgets",
]
