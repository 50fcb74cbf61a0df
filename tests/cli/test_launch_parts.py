"""Progress lines, signals and the closing sentence, each by itself."""

import io
import math
import signal

import pytest

from schedrl import registry
from schedrl.launch.able import able_in
from schedrl.launch.comparing.watching import Watch
from schedrl.launch.interrupts import Interrupts
from schedrl.launch.local import resume_command
from schedrl.launch.plan import read_plan
from schedrl.launch.progress import Progress, Recent, clock
from schedrl.learning.budget import Budget
from schedrl.settings import UserError


def record(episodes, value=math.nan, **more):
    numbers = {"episodes": episodes, "episode_return": -value, "slowdown": value, "decisions_per_second": 1e4}
    return numbers | {"entropy": 0.5, "approx_kl": 0.01} | more


def test_plain_lines_have_the_promised_form():
    budget, file = Budget(num_episodes=1000), io.StringIO()
    progress = Progress(budget, file)
    budget.spend(5000, 100)
    progress.update(record(100, 4.0), {"sjf": 4.9})
    line = file.getvalue()
    assert line.startswith(
        "Episode 100/1000 | Avg Reward -4.0 | Avg Slowdown 4.00 (sjf 4.90) | Decisions 5000 |"
    )
    assert " | Time 0:00 | ETA -" in line
    progress.update(record(110, 4.0), {})
    assert file.getvalue() == line, "the next line isn't due yet"
    budget.spend(45000, 900)
    progress.update(record(1000, 4.0), {})
    assert file.getvalue().count("\n") == 2, "the last line is always shown"


def test_recent_means_weigh_episodes_and_forget_old_ones():
    recent = Recent()
    assert math.isnan(recent.mean("slowdown"))
    recent.add(record(0))
    recent.add(record(100, 10.0))
    recent.add(record(400, 2.0))
    assert recent.mean("slowdown") == pytest.approx(4.0)
    recent.add(record(1000, 1.0))
    assert recent.mean("slowdown") == pytest.approx(1.0)


def test_clock():
    assert [clock(7), clock(83), clock(3723), clock(math.nan)] == ["0:07", "1:23", "1:02:03", "-"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 42)])
def test_the_first_signal_asks_the_second_ends(number, code):
    said, asked, before = [], [], signal.getsignal(number)
    with Interrupts(said.append) as interrupts:
        interrupts.on_stop = lambda: asked.append(True)
        signal.raise_signal(number)
        assert (interrupts.exit_code, asked, len(said)) == (code, [True], 1)
        with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else SystemExit):
            signal.raise_signal(number)
    assert asked == [True]
    assert signal.getsignal(number) is before


def test_without_anything_to_save_the_first_signal_ends():
    with Interrupts(print), pytest.raises(SystemExit) as ended:
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 42


def test_the_command_to_go_on_keeps_what_follows_the_training(tmp_path):
    folder = str(tmp_path / "a run")
    plain = resume_command(read_plan(["--model_dir", folder]))
    assert plain == f"python launcher.py --algo ppo --model_dir '{folder}' --resume"
    more = resume_command(read_plan(["--model_dir", folder, "--num_eval_episodes", "20", "--render", "True"]))
    assert more == f"{plain} --render True --num_eval_episodes 20"


def test_an_algorithm_that_cannot_act_there_is_refused_and_those_that_can_are_named(monkeypatch):
    monkeypatch.setattr(registry.get("algorithm_settings", "pg"), "actions", ("continuous",))
    with pytest.raises(UserError, match="pg can't act in deeprm, whose actions are discrete.*a2c.*ppo"):
        read_plan(["--algo", "pg"])
    assert "pg" not in able_in("deeprm")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--algo pg", "pg has none: leave it out, or set privileged off"),
        ("--algo ppo --network mlp", "mlp would show it to the policy"),
        ("--algo ppo --termination continuing", "none where termination continuing cuts an episode off"),
    ],
)
def test_the_truth_is_for_a_critic_that_can_read_it_alone(flags, says):
    shown = ["--env", "simple_cluster", "--preset", "cluster", "--privileged"]
    with pytest.raises(UserError, match=says):
        read_plan([*shown, *flags.split()])
    assert read_plan([*shown, "--algo", "a2c"]).environment.privileged


def test_a_run_that_compiles_is_not_shown_as_training(tmp_path):
    said, notes = [], tmp_path / "0.json"
    request = {"algo": "ppo", "seed": 3, "resume": False, "progress": str(notes)}
    watch = Watch(said.append)
    with watch.over([request]):
        notes.write_text('{"state": "loading", "progress": 0.0}')
        watch._look()
        watch._remind()
        notes.write_text('{"state": "training", "progress": 0.25}')
        watch._look()
        watch._remind()
    assert said[0] == "ppo seed 3: begins (run 1 of 1)"
    assert "ppo seed 3 is loading" in said[1]
    assert "ppo seed 3 25%" in said[2]
