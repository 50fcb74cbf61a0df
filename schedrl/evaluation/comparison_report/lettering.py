"""How wide text is on paper: apart, because pages and pictures both leave room for it."""

from __future__ import annotations

import functools
from typing import Any

from schedrl.settings import printable

MEASURED_AT = 200  # dots per inch


@functools.cache
def _measure() -> Any:
    from matplotlib.backends.backend_agg import RendererAgg

    return RendererAgg(1, 1, MEASURED_AT)


@functools.lru_cache(maxsize=20_000)
def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Return how wide a line of text is, in inches."""
    from matplotlib.font_manager import FontProperties

    font = FontProperties(size=size, weight=weight)
    text = printable(text)
    return _measure().get_text_width_height_descent(text, font, False)[0] / MEASURED_AT if text else 0.0
