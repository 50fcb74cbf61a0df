"""Units of times and amounts, and what they are worth in the ones used here: seconds, cores, GB or GiB."""

from schedrl.settings import UserError

LOADS = (1e-6, 1000.0)
"""Loads that jobs may be drawn at or scaled to. Beyond them all come at once, times lose their last digits,
or drawing a few takes minutes."""

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
"""Unit of time -> seconds."""

AMOUNTS = {
    "milli": (1e-3, "cores"),
    "percent": (1e-2, "cores"),
    "B": (1e-9, "GB"),
    "KB": (1e-6, "GB"),
    "MB": (1e-3, "GB"),
    "TB": (1e3, "GB"),
    "KiB": (2.0**-20, "GiB"),
    "MiB": (2.0**-10, "GiB"),
    "TiB": (2.0**10, "GiB"),
}
"""Unit of an amount -> (factor, unit used here); any other unit is kept as it is."""

USUAL = {"cpu": "cores", "memory": "GB", "gpu": "gpus"}
"""Resource -> its unit where none is stated."""


def seconds(unit: str) -> float:
    """Return the length of a unit of time.

    Raises:
        UserError: it is none.
    """
    if unit not in SECONDS:
        raise UserError(f"{unit!r} is no unit of time; use one of {', '.join(SECONDS)}, hms, hm, iso")
    return SECONDS[unit]


def amount(resource: str, unit: str) -> tuple[float, str]:
    """Return the factor to, and the name of, the unit in which a resource is kept; `unit` may be empty."""
    factor, kept = AMOUNTS.get(unit, (1.0, unit or USUAL.get(resource, "units")))
    return factor, "gpus" if kept == "cores" and resource == "gpu" else kept
