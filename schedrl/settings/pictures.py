"""The door to pictures: labels are drawn as they are written, whatever they hold.

matplotlib takes what stands between two dollar signs for a formula and stops where it is none, and can't draw
halves of characters, such as the name of a file in a locale without them. A character that its font lacks
becomes a box, without a warning for each.
"""

import contextlib
import os
import warnings
from pathlib import Path
from typing import Any

from schedrl.settings.files import appearing
from schedrl.settings.printable import printable


def save_picture(figure: Any, target: Any, **options: Any) -> None:
    """Write a figure of matplotlib's, its texts made plain; `options` as for `savefig`.

    A file appears whole or not at all; without a suffix it is a .png.
    """
    plain_texts(figure)
    with warnings.catch_warnings(), _place(target) as place:
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(place, **options)


def _place(target: Any) -> contextlib.AbstractContextManager[Any]:
    """Return what gives the file to write to; a stream is that itself."""
    if not isinstance(target, str | os.PathLike):
        return contextlib.nullcontext(target)
    path = Path(target)
    return appearing(path if path.suffix else path.with_name(f"{path.name}.png"))


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
