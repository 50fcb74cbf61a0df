"""Machinery of validated, frozen settings and of the command lines generated from them.

The settings themselves live beside what they set (``schedrl/envs/deeprm/settings.py``, ``ppo/config.py``);
here is only what all of them share, with no import heavier than ``argparse``, so that ``--help`` answers at
once:

* ``base``: ``Settings``, the frozen dataclass with a docstring under each field, and ``UserError``;
* ``values``: text and TOML values to the annotated type and back;
* ``names``: other spellings of a name (other libraries, the original DeepRM), nearest names;
* ``command_line``: parser, presets, ``--config file.toml``;
* ``guard``: exit codes, and folders checked before anything is written; ``files``: what can be read, and is
  written whole;
* ``printable``: what reaches a terminal, and cells of tables; ``pictures``: labels.
"""

from schedrl.settings.base import Settings, UserError, one_of
from schedrl.settings.command_line import (
    Guest,
    Parser,
    Resolved,
    add_arguments,
    add_own_arguments,
    peek,
    preset_values,
    presets_of,
    resolve,
    section,
    whole_number,
)
from schedrl.settings.files import appearing, check_plain_file, read_plain
from schedrl.settings.guard import check_folder_writable, main_guard
from schedrl.settings.names import ALIASES, LEGACY, nearest
from schedrl.settings.pictures import save_picture
from schedrl.settings.printable import commanding, counted, error_line, line_of, printable, safe_cell

__all__ = [
    "ALIASES",
    "LEGACY",
    "commanding",
    "Guest",
    "Parser",
    "Resolved",
    "Settings",
    "UserError",
    "add_arguments",
    "add_own_arguments",
    "appearing",
    "check_folder_writable",
    "check_plain_file",
    "counted",
    "error_line",
    "line_of",
    "main_guard",
    "nearest",
    "one_of",
    "peek",
    "preset_values",
    "presets_of",
    "printable",
    "read_plain",
    "resolve",
    "safe_cell",
    "save_picture",
    "section",
    "whole_number",
]
