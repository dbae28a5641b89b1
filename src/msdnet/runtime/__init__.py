"""Running a bundle inside a budget, without torch: the stage contract, ONNX Runtime, batches, anytime answers."""

from msdnet.policy import Answers
from msdnet.runtime.anytime import Running, Step
from msdnet.runtime.batching import answers
from msdnet.runtime.engine import Engine, Room, State
from msdnet.runtime.model import Model
from msdnet.runtime.onnx_engine import OnnxEngine
from msdnet.runtime.profile import Profile, StageTimes, profile
from msdnet.runtime.result import One, Result
from msdnet.runtime.shared import SharedBudget

__all__ = [
    "Answers",
    "Engine",
    "Model",
    "One",
    "OnnxEngine",
    "Profile",
    "Result",
    "Room",
    "Running",
    "SharedBudget",
    "StageTimes",
    "State",
    "Step",
    "answers",
    "profile",
]
