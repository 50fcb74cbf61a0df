"""Rules by name: order + placement + discipline, as `sjf+best_fit+strict`; each part has a default."""

from typing import NamedTuple

from schedrl.settings import UserError, one_of

DISCIPLINES = {"strict": 0, "skip": 1}
"""What may start when the first job of the queue can't: nothing, or whatever fits."""
STRICT, SKIP = 0, 1


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
    """Return the rule of a name; its parts may stand in any order.

    Raises:
        UserError: a part that is unknown, or two parts of one kind.
    """
    from .orders import ORDERS
    from .placements import PLACEMENTS

    kinds = {"order": ORDERS, "placement": PLACEMENTS, "discipline": DISCIPLINES}
    known = {part: kind for kind, names in kinds.items() for part in names}
    chosen: dict[str, str] = {}
    for part in name.split("+"):
        kind = known[one_of("part of a rule", part.strip(), known)]
        if kind in chosen:
            raise UserError(f"rule {name!r} has two of one kind: {chosen[kind]} and {part}; leave one out")
        chosen[kind] = part.strip()
    return Rule(**chosen)
