"""A run folder as a real run leaves it, made in a second without TensorFlow, and mutants of its files."""

import io
import json
import math
import shutil

import numpy as np

import slow_down_cdf
from schedrl.launch.plan import read_plan
from schedrl.learning import networks, shards
from schedrl.learning.budget import Budget
from schedrl.learning.checkpoint import HEADER, save_arrays
from schedrl.learning.kept_logs import kept_logs
from schedrl.learning.replicas import ALONE
from schedrl.learning.run_folder import Run

COMMAND = [
    "--algo",
    "ppo",
    "--network",
    "mlp",
    "--hidden",
    "4",
    "--total_steps",
    "80",
    "--sequence_length",
    "5",
]
SPEC = {
    "network": "mlp", "hidden": [4], "leaves": {"backlog": [[4], "float32"], "cluster": [[20, 2], "float32"],
    "queue": [[10, 8], "float32"]}, "num_actions": 11, "num_values": 1, "normalised": ["backlog"],
    "representation": "slots",
}  # fmt: skip


class Model:
    """Has weights and statistics, and saves them as a policy."""

    def __init__(self, leaves):
        self.spec = SPEC | {"leaves": leaves}
        shapes = {name: tuple(shape) for name, (shape, _) in leaves.items()}
        network = networks.make_network("mlp", shapes, 11, [4])
        self.weights = networks.initial_vector(network, np.random.default_rng(0)).astype(np.float32)
        width = shapes["backlog"][-1]
        statistics = {"mean/backlog": np.zeros(width), "var/backlog": np.ones(width)}
        self.statistics = {"count": np.asarray(7), **statistics}

    def state(self):
        return {"weights": self.weights, "spec": self.spec, **self.statistics}

    def load_state(self, state):
        self.weights = np.asarray(state["weights"])

    def save_policy(self, path, **header):
        arrays = {"weights": self.weights, **self.statistics}
        save_arrays(path, arrays, {"kind": "policy", "spec": self.spec, **header})

    def export(self, path):
        path.mkdir(exist_ok=True)


def leaves_of(environment):
    from schedrl import registry

    space = registry.get("environment", "deeprm")(environment).observation_space
    named = ((name, space[name]) for name in space if name != "action_mask")
    return {name: [list(leaf.shape), str(leaf.dtype)] for name, leaf in named}


def start(folder, resume=False, total_steps=80, **options):
    """Return a run of COMMAND and its model."""
    flags = ["--resume"] * resume + ["--accept_changes"] * ("accept_changes" in options)
    plan = read_plan([*COMMAND, "--model_dir", str(folder), *flags])
    run = Run(
        Budget(total_steps), 0, folder, settings=plan.described, resume=resume, checkpoint_every=20, **options
    )
    model = Model(leaves_of(plan.environment))
    run.restore(model=model)
    return run, model


def learn(run, model, updates=100, die=False):
    """Make updates of 10 decisions; `die` as a kill would, without saving."""
    for _ in range(updates):
        if run.done:
            break
        number = run.budget.decisions / 10
        model.weights = model.weights + np.float32(0.125)
        episodes = {"r": np.array([-number]), "slowdown": np.array([1.0 + number])}
        run.log(10, 0.5, episodes, policy_loss=number, learning_rate=1.0 - run.budget.progress)
        run.checkpoint(model=model)
    if die:
        run.logger.flush()
    else:
        run.finish(model=model)


class Evaluated(Exception):
    """Carries what an evaluation would have played."""


def resumed(folder):
    """Return, as text, all that resuming would read of a folder."""
    plan = read_plan(["--model_dir", str(folder), "--resume"])
    state, _ = shards.load(folder, ALONE)
    kept = kept_logs(folder, state["logger"], state["budget"]["decisions"])
    rows = [line.split(",") for line in kept.metrics.decode().splitlines()]
    logs = [rows, *(history.tolist() for history in kept.histories.values())]
    return repr([plan.described, plan.launch.seed, as_text(state), logs, kept.changed])


def evaluated(folder):
    """Return, as text, what slow_down_cdf.py would play."""
    found = []

    def stop(args, policies, settings, *_):
        policy = next(iter(policies.values()))
        found.append([list(policies), policy.spec, policy.play, policy._scale, settings.to_dict()])
        found.append({name: array.tolist() for name, array in policy._weights.items()})
        raise Evaluated

    kept, slow_down_cdf._evaluate = slow_down_cdf._evaluate, stop
    try:
        slow_down_cdf.main.__wrapped__(
            ["--model_dir", str(folder), "--output_dir", str(folder.parent / "report")]
        )
    except Evaluated:
        return as_text(found)
    finally:
        slow_down_cdf._evaluate = kept
    raise AssertionError("nothing was evaluated")


def as_text(value):
    """Return arrays and all else as text that shows every value."""
    if isinstance(value, dict):
        return {str(name): as_text(inner) for name, inner in sorted(value.items())}
    if isinstance(value, list | tuple):
        return [as_text(inner) for inner in value]
    return [str(value.dtype), value.shape, value.tolist()] if isinstance(value, np.ndarray) else repr(value)


# -- mutants -------------------------------------------------------------------------------------------------

ODD = (
    None, True, -1, 0, 1e308, math.nan, math.inf, "", "x", "\x1b[31m", "\0", [], {}, [[]], {"a": 1}, 10**400,
    [1, 2], "ppo", "slots", 3,
)  # fmt: skip


def json_mutant(value, rng):
    """Return a JSON value with one thing in it changed, missing or of another kind; and where it was."""
    place, at = [], value
    while isinstance(at, dict | list) and at and (not place or rng.random() < 0.75):
        key = rng.choice(sorted(at) if isinstance(at, dict) else range(len(at)))
        place.append(key)
        at = at[key]
    changed = json.loads(json.dumps(value))
    if not place:
        return rng.choice(ODD)
    holder = changed
    for key in place[:-1]:
        holder = holder[key]
    kind = rng.randrange(3)
    if kind == 0:
        del holder[place[-1]]
    elif kind == 1 and isinstance(at, int | float) and not isinstance(at, bool):
        holder[place[-1]] = at + rng.choice([1, -1, 0.5, 10])
    else:
        holder[place[-1]] = rng.choice(ODD)
    return changed


def bytes_mutant(content, rng):
    """Return bytes that a disk, a kill or an editor might have left."""
    place, kind = rng.randrange(len(content) + 1), rng.randrange(7)
    if kind == 0:
        return content[:place]
    if kind == 1:
        return content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]
    if kind == 2:
        return content[:place] + bytes(rng.randrange(1, 64)) + content[place + 32 :]
    if kind == 3:
        return b""
    if kind == 4:
        return content[:place] + content[place + rng.randrange(1, 9) :]
    if kind == 5:
        return content[place:] + content[:place]
    return content + rng.randbytes(rng.randrange(1, 40))


def rows_mutant(content, rng):
    """Return a CSV with rows lost, doubled, swapped or changed."""
    rows = content.decode().splitlines()
    one, two, kind = rng.randrange(len(rows)), rng.randrange(len(rows)), rng.randrange(5)
    if kind == 0:
        del rows[one]
    elif kind == 1:
        rows.insert(one, rows[two])
    elif kind == 2:
        rows[one], rows[two] = rows[two], rows[one]
    else:
        cells = rows[one].split(",")
        cells[rng.randrange(len(cells))] = rng.choice(["", "nan", "x", "7", "1e999", '"', "-1"])
        rows[one] = ",".join(cells)
    return ("\n".join(rows) + "\n").encode()


def array_mutant(content, rng):
    """Return another array in NumPy's format, or something else than one."""
    array = np.load(io.BytesIO(content))
    others = (
        array[:-1], array + 1, array[::-1], array.astype(np.float64), array.reshape(1, -1), array[:0],
        np.array("x"), array * np.float32(np.nan), np.array([1, 2, 3], dtype=np.int8),
    )  # fmt: skip
    stream = io.BytesIO()
    np.save(stream, rng.choice(others))
    return stream.getvalue()


def header_mutant(content, rng):
    """Return an archive of arrays whose header is other JSON."""
    return _with_header(content, lambda header: json_mutant(header, rng))


def old_header_mutant(content, rng):
    """Return the same as an earlier version wrote it, where nothing but its shape can be checked."""

    def changed(header):
        header = json_mutant(header, rng)
        if isinstance(header, dict):
            header.pop("digest", None)
            header.pop("run_id", None)
        return header

    return _with_header(content, changed)


def _with_header(content, change):
    with np.load(io.BytesIO(content)) as file:
        arrays = {name: file[name] for name in file.files}
    header = change(json.loads(arrays.pop(HEADER).tobytes()))
    arrays[HEADER] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def description_mutant(content, rng):
    return json.dumps(json_mutant(json.loads(content), rng)).encode()


KINDS = {
    "run.json": (bytes_mutant, description_mutant, description_mutant),
    "metrics.csv": (bytes_mutant, rows_mutant),
    ".npy": (bytes_mutant, array_mutant),
    ".npz": (bytes_mutant, header_mutant, old_header_mutant),
    "": (bytes_mutant,),
}
"""Ending of a file's name -> how it may be changed."""


def mutate(folder, path, rng):
    """Change one file of a run's folder, or take it away."""
    content = path.read_bytes()
    if rng.random() < 0.03:
        path.unlink()
        return "missing"
    if rng.random() < 0.03:
        path.unlink()
        path.mkdir(exist_ok=True)
        return "a folder"
    ways = next(ways for ending, ways in KINDS.items() if path.name.endswith(ending))
    way = rng.choice(ways)
    path.write_bytes(way(content, rng))
    return way.__name__


def copied(source, target):
    shutil.rmtree(target, ignore_errors=True)
    return shutil.copytree(source, target)
