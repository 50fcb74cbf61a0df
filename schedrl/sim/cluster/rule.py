"""Rules by name: order + placement + discipline, as `sjf+best_fit+strict`; each part has a default."""

from typing import NamedTuple

from schedrl.settings import UserError, one_of
from schedrl.settings.names import nearest

DISCIPLINES = {"strict": 0, "skip": 1, "easy": 2, "conservative": 3, "hold": 4}
"""What may start when the first job of the queue can't.

* `strict`: nothing.
* `skip`: whatever fits.
* `easy`: what does not delay the first job, by estimates (Lifka, "The ANL/IBM SP scheduling system", 1995).
  The first job gets a reservation: the earliest time at which all its instances fit, first fit by machine. A
  later job starts on a machine if it ends by then, or fits beside the reservation (the extra-nodes rule).
* `conservative`: what delays no job before it in the queue; every visible job gets a reservation, anew in
  each pass.
* `hold`: as easy, but a long job must leave room, see `Hold`.
"""
STRICT, SKIP, EASY, CONSERVATIVE, HOLD = range(5)
PLANNING = (EASY, CONSERVATIVE, HOLD)
"""Those that make reservations."""


class Hold(NamedTuple):
    """Numbers of `hold`: what a long job must leave free over the cluster, unless nothing runs.

    A job with an estimate above `long_from` starts only if afterwards a fraction of at least keep +
    slope ln(estimate / long_from), at most `MOST_KEPT`, of every resource that it uses stays free. While the
    first job of the queue fits and is held, nothing behind it starts.
    """

    long_from: float = 60.0
    keep: float = 0.05
    slope: float = 0.2


MOST_KEPT = 0.85


class Rule(NamedTuple):
    """How jobs are chosen and placed."""

    order: str = "fifo"
    placement: str = "first_fit"
    discipline: str = "skip"

    @property
    def name(self) -> str:
        """The full name, as `parse` takes it."""
        return "+".join(self)


DEFAULT = Rule()
"""First come, first fit, and who does not fit lets others pass."""


def parse(name: str) -> Rule:
    """Return the rule of a name; its parts may stand in any order. `hold` alone is `sjf+best_fit+hold`.

    Raises:
        UserError: a part that is unknown, or two parts of one kind.
    """
    from .orders import ORDERS
    from .placements import PLACEMENTS

    kinds = {"order": ORDERS, "placement": PLACEMENTS, "discipline": DISCIPLINES}
    known = {part: kind for kind, names in kinds.items() for part in names}
    chosen: dict[str, str] = {}
    for part in name.split("+"):
        if part.strip() not in known and not nearest(part.strip(), known):
            all_parts = "; ".join(f"{kind}s: {', '.join(names)}" for kind, names in kinds.items())
            raise UserError(f"unknown part of a rule {part.strip()!r}; {all_parts}")
        kind = known[one_of("part of a rule", part.strip(), known)]
        if kind in chosen:
            raise UserError(f"rule {name!r} has two of one kind: {chosen[kind]} and {part}; leave one out")
        chosen[kind] = part.strip()
    if chosen.get("discipline") == "hold":
        chosen = {"order": "sjf", "placement": "best_fit"} | chosen
    return Rule(**chosen)
