"""What is rewarded: terms with weights, written `makespan=-1,utilisation=0.5`, or the name of a preset.

Imports nothing heavy. What each term counts is in `schedrl.sim.cluster_decisions.rewards`.
"""

import math

from schedrl.settings import UserError, one_of
from schedrl.sim.cluster_decisions.spec import WEIGHTED

PRESETS: dict[str, dict[str, float]] = {
    "slowdown": {"slowdown": -1.0},
    "batch": {"makespan": -1.0, "utilisation": 0.5},
    "balanced": {"completion_time": -0.5, "utilisation": 0.3, "fragmentation": -0.2, "sla": -0.1},
    "operations": {"finished": 1.0, "waiting": -1.0, "fragmentation": -0.5},
}
"""Name -> weights. The published form of the third one's waiting term, +exp(-0.1 wait), rewards keeping jobs
waiting beside a penalty, so 1 - exp(-0.1 wait) is charged."""


def weights_of(text: str) -> dict[str, float]:
    """Return term -> weight, 0 where the text doesn't name the term.

    Raises:
        UserError: an unknown preset or term, a term given twice, a weight that is no number, or none above 0.
    """
    chosen = PRESETS.get(text.strip())
    if chosen is None:
        chosen = {}
        for part in text.split(","):
            name, sign, value = (piece.strip() for piece in part.partition("="))
            if not sign:
                one_of("reward", name, [*PRESETS, *WEIGHTED])
                raise UserError(f"reward {text!r}: {name} needs a weight, for example {name}=-1")
            if one_of("term of the reward", name, WEIGHTED) in chosen:
                raise UserError(f"reward {text!r} has {name} twice; keep one")
            chosen[name] = _number(text, value)
        if not any(chosen.values()):
            raise UserError(f"reward {text!r} is always 0; give a term a weight, for example slowdown=-1")
    return {name: chosen.get(name, 0.0) for name in WEIGHTED}


def _number(text: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UserError(
            f"reward {text!r}: {value!r} is no number; write term=weight, for example slowdown=-1"
        )
    return number
