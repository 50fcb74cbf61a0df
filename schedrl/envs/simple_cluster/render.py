"""The present state of a cluster as text: a bar for each machine and resource, and the head of the queue."""

from collections.abc import Sequence

from schedrl.sim.cluster.devices import ONE
from schedrl.sim.cluster.state import ARRIVAL, CLOCK, ESTIMATE, RUNNING_JOBS, WAITING_JOBS
from schedrl.sim.cluster_decisions.state import DONE

from .clusters import Clusters

BAR = 10
MOST_MACHINES = 20


def text(clusters: Clusters, env: int, names: Sequence[str]) -> str:
    """Draw one environment; `names` of the resources."""
    a = clusters.state.arrays
    n, clock = a.n[env], a.x[env, CLOCK]
    lines = [
        f"time {clock:.1f}: {n[RUNNING_JOBS]} running, {n[WAITING_JOBS]} waiting, {n[DONE]} finished",
    ]
    count = a.free.shape[2]
    for m in range(min(count, MOST_MACHINES)):
        cells = []
        for r, name in enumerate(names):
            capacity = a.capacity[env, r, m]
            if capacity > 0:
                used = capacity - a.free[env, r, m]
                filled = round(BAR * used / capacity)
                bar = "#" * filled + "." * (BAR - filled)
                cells.append(f"{name} [{bar}] {used / ONE:g}/{capacity / ONE:g}")
        lines.append(f"  machine {m:2}  " + "  ".join(cells))
    if count > MOST_MACHINES:
        lines.append(f"  ... and {count - MOST_MACHINES} more machines")
    for k in range(min(int(n[WAITING_JOBS]), clusters.settings.num_job_slots)):
        job = a.queue[env, k]
        wants = ", ".join(f"{a.asked[env, job, r] / ONE:.3g} {name}" for r, name in enumerate(names))
        estimate, wait = a.times[env, job, ESTIMATE], clock - a.times[env, job, ARRIVAL]
        lines.append(f"  waits {wait:8.1f}: job {job} wants {wants} for {estimate:.1f}")
    return "\n".join(lines)
