"""One training step of a pipeline: schedules, their times, their figures.

>>> from training.pipeline import schedule
>>> schedule("gpipe", p=2, m=2)
[['0F0', '0F1', '0B0', '0B1'], ['1F0', '1F1', '1B0', '1B1']]
"""

from .figures import Figures, bubble, figures_of
from .plan import PipelinePlan
from .schedules import SCHEDULES, Times
from .simulate import Durations, Timeline, simulate
from .spec import plan_of, schedule
