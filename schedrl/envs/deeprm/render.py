"""Pictures of one cluster: text for a terminal and the paper's Fig. 2 as pixels."""

from typing import Any

import numpy as np

from schedrl.sim.deeprm.state import BACKLOG, NO_JOB, TIME, State

from .settings import DeepRMSettings

CELL = 8  # pixels
PALETTE = np.array(
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
EMPTY, PAPER, WAITING = (np.array(c, np.uint8) for c in ([235, 235, 235], [255, 255, 255], [90, 90, 90]))


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
    """Describe the cluster: each row of the machine ahead, then the slots and the backlog."""
    symbols = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    grids = machine_cells(state, env)
    lines = [f"time {state.column(TIME)[env]}"]
    for h in range(state.spec.horizon):
        rows = ["".join("." if j == NO_JOB else symbols[j % len(symbols)] for j in grid[h]) for grid in grids]
        lines.append(f"  +{h:<3}" + "  ".join(rows))
    for s, job in enumerate(state.slot_job[env]):
        if job != NO_JOB:
            demand = ",".join(map(str, state.demand[env, job]))
            waited = state.column(TIME)[env] - state.arrival[env, job]
            lines.append(
                f"  slot {s}: job {symbols[job % len(symbols)]} duration {state.duration[env, job]} demand {demand} "
                f"waited {waited}"
            )
    lines.append(f"  backlog {state.column(BACKLOG)[env]}")
    return "\n".join(lines)


def picture(state: State, settings: DeepRMSettings, env: int = 0) -> np.ndarray:
    """Draw machine, slots and backlog, a row of panels per resource: [height, width, 3] uint8."""
    rows, jobs = state.spec.horizon, state.slot_job[env]
    bands = []
    for r, grid in enumerate(machine_cells(state, env)):
        panels = [_panel(grid)]
        for job in jobs:
            block = np.full((rows, settings.max_job_demand), NO_JOB)
            if job != NO_JOB:
                block[: state.duration[env, job], : state.demand[env, job, r]] = job
            panels.append(_panel(block))
        bands.append(_beside(panels))
    width = max(1, -(-settings.backlog_size // rows))
    width = min(width, settings.max_job_demand)
    waiting = np.full(rows * width, NO_JOB)
    waiting[: state.column(BACKLOG)[env]] = 0
    backlog = _panel(waiting.reshape(rows, width), WAITING)
    backlog = np.concatenate(
        [backlog, np.full(((len(bands) - 1) * (backlog.shape[0] + CELL), *backlog.shape[1:]), 255)]
    )
    gap = np.full((CELL, bands[0].shape[1], 3), 255)
    stacked = np.concatenate([part for band in bands for part in (band, gap)][:-1])
    return _framed(np.concatenate([stacked, np.full((stacked.shape[0], CELL, 3), 255), backlog], axis=1))


def _panel(jobs: np.ndarray, colour: np.ndarray | None = None) -> np.ndarray:
    """Colour a grid of jobs, each cell CELL pixels wide with a hair line around it."""
    colours = PALETTE[jobs % len(PALETTE)] if colour is None else np.broadcast_to(colour, (*jobs.shape, 3))
    pixels = np.where((jobs == NO_JOB)[..., None], EMPTY, colours)
    pixels = pixels.repeat(CELL, axis=0).repeat(CELL, axis=1)
    pixels[::CELL] = pixels[:, ::CELL] = PAPER
    return pixels


def _beside(panels: list[np.ndarray]) -> np.ndarray:
    gap = np.full((panels[0].shape[0], CELL, 3), 255)
    return np.concatenate([part for panel in panels for part in (panel, gap)][:-1], axis=1)


def _framed(pixels: Any) -> np.ndarray:
    return np.pad(pixels, ((CELL, CELL), (CELL, CELL), (0, 0)), constant_values=255).astype(np.uint8)
