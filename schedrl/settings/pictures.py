"""The door to pictures: labels are drawn as they are written, whatever they hold.

matplotlib takes what stands between two dollar signs for a formula and stops where it is none, and can't draw
halves of characters, such as the name of a file in a locale without them. A character that its font lacks
becomes a box, without a warning for each.
"""

import contextlib
import warnings
from typing import Any

from schedrl.settings.printable import printable


def save_picture(figure: Any, target: Any, **options: Any) -> None:
    """Write a figure of matplotlib's, its texts made plain; `options` as for `savefig`."""
    plain_texts(figure)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(target, **options)


def plain_texts(figure: Any) -> None:
    """Make every text of a figure plain; figures on axes keep their form, which is ours."""
    from matplotlib.text import Text
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    ours = set()
    for axes in figure.findobj(lambda artist: hasattr(artist, "get_major_formatter")):
        named = isinstance(axes.get_major_formatter(), FixedFormatter | FuncFormatter)
        ours |= set() if named else set(map(id, axes.get_ticklabels()))
        ours |= set(map(id, axes.get_ticklabels(minor=True)))
    for text in figure.findobj(Text):
        if id(text) not in ours:
            text.set_parse_math(False)
            with contextlib.suppress(AttributeError):
                text.set_text(printable(text.get_text()))
