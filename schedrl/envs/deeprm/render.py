"""Pictures of one cluster: text for a terminal and the paper's Fig. 2 as pixels."""

import numpy as np

from schedrl.sim.deeprm.state import BACKLOG, NO_JOB, TIME, State

from .settings import DeepRMSettings

SYMBOLS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
CELL = 8  # pixels
STRONG = np.array(
    [
        [0, 114, 178],
        [230, 159, 0],
        [0, 158, 115],
        [204, 121, 167],
        [86, 180, 233],
        [213, 94, 0],
        [240, 228, 66],
    ],
    np.uint8,
)  # Okabe and Ito: told apart with any colour vision
PALETTE = np.concatenate([STRONG, STRONG // 2 + 112])
EMPTY, PAPER, WAITING = (np.array(c, np.uint8) for c in ([235, 235, 235], [255, 255, 255], [90, 90, 90]))


def symbol(job: int) -> str:
    """Return the letter that stands for a job in `text`."""
    return SYMBOLS[job % len(SYMBOLS)]


def machine_cells(state: State, env: int = 0) -> list[np.ndarray]:
    """Return for each resource the job in each cell [H, capacity] of the machine, NO_JOB where free."""
    now = int(state.column(TIME)[env])
    start, finish = state.start[env], state.finish[env]
    jobs = np.flatnonzero((start >= 0) & (finish > now))
    cells = []
    for r, capacity in enumerate(state.capacity):
        grid = np.full((state.spec.horizon, capacity), NO_JOB)
        used = np.zeros(state.spec.horizon, int)
        for job in jobs[np.argsort(state.booking[env][jobs])]:
            for h in range(max(0, start[job] - now), finish[job] - now):
                grid[h, used[h] : used[h] + state.demand[env, job, r]] = job
                used[h] += state.demand[env, job, r]
        cells.append(grid)
    return cells


def text(state: State, env: int = 0) -> str:
    """Describe the cluster: the rows of the machine ahead that are in use, the slots and the backlog."""
    now, grids = int(state.column(TIME)[env]), machine_cells(state, env)
    busy = max(
        (int(np.flatnonzero((grid != NO_JOB).any(axis=1)).max(initial=-1)) + 1 for grid in grids), default=0
    )
    lines = [f"time {now}"]
    for h in range(min(busy + 1, state.spec.horizon)):
        rows = ["".join("." if job == NO_JOB else symbol(job) for job in grid[h]) for grid in grids]
        lines.append(f"  +{h:<3}" + "  ".join(rows) + (" and so on" if h == busy else ""))
    for slot, job in enumerate(state.slot_job[env]):
        if job != NO_JOB:
            demand = ", ".join(map(str, state.demand[env, job]))
            lines.append(
                f"  slot {slot}: job {symbol(job)}, duration {state.duration[env, job]}, demand {demand}, "
                f"waited {now - state.arrival[env, job]}"
            )
    lines.append(f"  backlog: {state.column(BACKLOG)[env]}")
    return "\n".join(lines)


def picture(state: State, settings: DeepRMSettings, env: int = 0) -> np.ndarray:
    """Draw machine, slots and backlog, a row of panels per resource: [height, width, 3] uint8.

    Time runs downwards, a row per step; a job has one colour wherever it is seen.
    """
    rows, jobs = state.spec.horizon, state.slot_job[env]
    bands = []
    for r, grid in enumerate(machine_cells(state, env)):
        narrower = max(state.capacity) - grid.shape[1]
        panels = [np.pad(_panel(grid), ((0, 0), (0, narrower * CELL), (0, 0)), constant_values=255)]
        for job in jobs:
            block = np.full((rows, settings.max_job_demand), NO_JOB)
            if job != NO_JOB:
                block[: state.duration[env, job], : state.demand[env, job, r]] = job
            panels.append(_panel(block))
        bands.append(_joined(panels, axis=1))
    width = min(max(1, -(-settings.backlog_size // rows)), settings.max_job_demand)
    waiting = np.full(rows * width, NO_JOB)
    waiting[: state.column(BACKLOG)[env]] = 0
    machine = _joined(bands, axis=0)
    backlog = _panel(waiting.reshape(rows, width), WAITING)
    below = machine.shape[0] - backlog.shape[0]
    backlog = np.pad(backlog, ((0, below), (0, 0), (0, 0)), constant_values=255)
    framed = np.pad(
        _joined([machine, backlog], axis=1), ((CELL, CELL), (CELL, CELL), (0, 0)), constant_values=255
    )
    return framed.astype(np.uint8)


def _panel(jobs: np.ndarray, colour: np.ndarray | None = None) -> np.ndarray:
    """Colour a grid of jobs, each cell CELL pixels wide with a hair line around it."""
    colours = PALETTE[jobs % len(PALETTE)] if colour is None else np.broadcast_to(colour, (*jobs.shape, 3))
    pixels = np.where((jobs == NO_JOB)[..., None], EMPTY, colours)
    pixels = pixels.repeat(CELL, axis=0).repeat(CELL, axis=1)
    pixels[::CELL] = pixels[:, ::CELL] = PAPER
    return pixels


def _joined(panels: list[np.ndarray], axis: int) -> np.ndarray:
    """Put panels beside (1) or below (0) one another, two cells apart."""
    shape = list(panels[0].shape)
    shape[axis] = 2 * CELL
    gap = np.full(shape, 255)
    return np.concatenate([part for panel in panels for part in (panel, gap)][:-1], axis=axis)
