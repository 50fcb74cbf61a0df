"""Amounts as Kubernetes writes them: `500m`, `1.5Gi`, `2e3`.

Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)
SUFFIXES = {
    "": Decimal(1),
    **{sign: Decimal(10) ** power for sign, power in zip("num", (-9, -6, -3), strict=True)},
    **{sign: Decimal(1000) ** power for power, sign in enumerate("kMGTPE", 1)},
    **{f"{sign}i": Decimal(1024) ** power for power, sign in enumerate("KMGTPE", 1)},
}


def quantity(value: Any) -> Decimal:
    """Return the amount, exactly; in cores, bytes or devices, whatever it is of.

    Raises:
        ValueError: no quantity: nothing is ever taken for 0.
    """
    found = FORM.fullmatch(value) if isinstance(value, str) and len(value) < 100 else None
    if type(value) is int:
        return Decimal(value)
    if found is None:
        raise ValueError(f"{value!r:.60} is no quantity, as 500m, 2 or 1.5Gi")
    digits, exponent, suffix = found.groups()
    return Decimal(digits + exponent) if exponent else Decimal(digits) * SUFFIXES[suffix or ""]
