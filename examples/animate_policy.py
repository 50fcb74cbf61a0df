"""Make an animated GIF of a trained policy beside a heuristic, both on the same unseen jobs.

    python examples/animate_policy.py --model_dir models/ppo_deeprm --output policy.gif

A frame is one time step, shown when its jobs have been started. Each half is the picture of the paper: per
resource the machine and the job slots, time running downwards, and the backlog to the right. The number under
a half is the sum of the slowdowns so far: a job adds 1 / duration for every step it is in the system.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from schedrl import registry
from schedrl.settings import Parser, check_folder_writable, main_guard

SHRINK = 2
"""Every second pixel is kept: a cell of the picture is then 4 pixels wide, its grid line among them."""
CAPTION = 22  # pixels
FRAME_MS, LAST_FRAME_MS = 250, 4000


def frames(policy: Any, name: str, settings: Any, sequence: int, seed: int) -> Iterator[np.ndarray]:
    """Yield one captioned picture [height, width, 3] for each time step of an episode, and the last state."""
    from environment import make

    own = settings.to_dict() | {"representation": policy.representation}
    env = make("deeprm", render_mode="rgb_array", family="test", **own)
    obs, _ = env.reset(seed=seed, options={"sequence": sequence})
    noop, time, cost, over = env.action_space.n - 1, 0, 0.0, False
    while not over:
        action = policy.predict(obs)
        if action == noop:
            yield captioned(env.render(), f"{name}    step {time}    sum of slowdowns so far {cost:.1f}")
        obs, reward, terminated, truncated, info = env.step(action)
        over, time, cost = terminated or truncated, info["time"], cost - reward
    how = "cut off" if truncated else "all done"
    jobs = len(env.jobs()["job_id"])
    text = f"{name}    {how} at step {time}    mean slowdown of {jobs} jobs {cost / jobs:.2f}"
    yield captioned(env.render(), text)


def captioned(picture: np.ndarray, text: str) -> np.ndarray:
    """Return the picture at half size with a line of text below it."""
    from matplotlib import font_manager
    from PIL import Image, ImageDraw, ImageFont

    small = picture[::SHRINK, ::SHRINK]
    image = Image.new("RGB", (small.shape[1], small.shape[0] + CAPTION), "white")
    image.paste(Image.fromarray(small), (0, 0))
    font = ImageFont.truetype(font_manager.findfont("DejaVu Sans"), 13)
    ImageDraw.Draw(image).text((6, small.shape[0]), text, fill="black", font=font)
    return np.asarray(image)


def write_gif(films: list[list[np.ndarray]], path: Path) -> None:
    """Stack films of equal width, the shorter ones resting on their last frame, and write them."""
    from PIL import Image

    length = max(map(len, films))
    films = [film + [film[-1]] * (length - len(film)) for film in films]
    stacked = [Image.fromarray(np.concatenate(pictures)) for pictures in zip(*films, strict=True)]
    # One palette for all frames: the colours are few, and frames then differ where something moved only.
    palette = Image.fromarray(np.concatenate([np.asarray(image) for image in stacked[:: length // 6 or 1]]))
    palette = palette.quantize(colors=64, dither=Image.Dither.NONE)
    pages = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in stacked]
    durations = [FRAME_MS] * (length - 1) + [LAST_FRAME_MS]
    path.parent.mkdir(parents=True, exist_ok=True)
    pages[0].save(path, save_all=True, append_images=pages[1:], duration=durations, loop=0, optimize=False)


def make_parser() -> Parser:
    """Return the parser of this command."""
    parser = Parser(description="Make an animated GIF of a trained policy.")
    parser.add_argument("--model_dir", default="models/ppo_deeprm", help="folder of the training run")
    parser.add_argument("--output", default="policy.gif", help="the file to write")
    parser.add_argument("--beside", default="sjf", help="heuristic shown below the policy")
    parser.add_argument("--sequence", type=int, default=0, help="number of the test sequence")
    parser.add_argument("--seed", type=int, default=0, help="of the test sequences")
    return parser


@main_guard
def main(argv: list[str] | None = None) -> int:
    """Play both, write the file."""
    args = make_parser().parse_args(argv)
    output = Path(args.output)
    check_folder_writable(output.parent, "--output")

    from schedrl import heuristics
    from schedrl.learning.numpy_policy import load_policy

    policy, run = load_policy(args.model_dir)
    settings = registry.get("environment_settings", run["env"]).from_dict(run["settings"]["environment"])
    players = {run["algo"].upper(): policy, args.beside: heuristics.get(args.beside)}
    films = [list(frames(p, name, settings, args.sequence, args.seed)) for name, p in players.items()]
    write_gif(films, output)
    print(f"wrote {output}: {max(map(len, films))} frames, {output.stat().st_size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
