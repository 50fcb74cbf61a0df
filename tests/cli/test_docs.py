"""The documentation is true: commands parse, links lead somewhere, files exist, code does what it says.

Nothing heavy: commands are read by the parser of their front door, code that trains gets a tiny budget.
docs/extending.md has a test of its own.
"""

import importlib
import importlib.util
import re
import runpy
import shlex
import shutil
import subprocess

import pytest
from fences import PAGES, ROOT, blocks, commands, prose

import environment
import job_distribution
import parameters
import slow_down_cdf
from benchmarks.__main__ import BENCHMARKS
from examples import clairvoyant_optimum, reproduce_deeprm
from schedrl import registry
from schedrl.envs.workload_choice import generators
from schedrl.evaluation.steady_state import Windows
from schedrl.launch.comparing.plan import make_parser as comparison_parser
from schedrl.launch.comparing.plan import read_plan as read_comparison
from schedrl.launch.plan import make_parser, read_plan
from schedrl.launch.replay import request as replay
from schedrl.launch.replay.settings import ReplaySettings
from schedrl.launch.settings import LaunchSettings
from schedrl.launch.workload import guest_of
from schedrl.settings import Parser, add_arguments, resolve
from schedrl.settings.values import show

NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
COMMANDS = [(name, *command) for name, page in zip(NAMES, PAGES, strict=True) for command in commands(page)]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))


# ---- Commands ----------------------------------------------------------------------------------------------


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def launch(arguments):
    # The runs that are continued in the docs don't exist here; their settings are to be valid all the same.
    read_plan([argument for argument in arguments if argument != "--resume"])


def evaluate(arguments):
    args = slow_down_cdf.make_parser("deeprm").parse_args(arguments)
    resolve([registry.get("environment_settings", "deeprm"), Windows], args)
    for name in args.baselines.split(","):
        registry.find("heuristic", name)


def compare(arguments):
    if replay.is_replay(arguments):
        resolve([ReplaySettings], replay.make_parser().parse_args(arguments))
    else:
        read_comparison(arguments)


def script(path):
    return lambda arguments: load(path).make_parser().parse_args(arguments)


def reproduce(arguments):
    reproduce_deeprm.read_settings(reproduce_deeprm.make_parser().parse_args(arguments))


def clairvoyant(arguments):
    args = clairvoyant_optimum.make_parser().parse_args(arguments)
    resolve([clairvoyant_optimum.Clairvoyant], args)


def distribute(arguments):
    if arguments:
        job_distribution.make_parser(arguments)[0].parse_args(arguments[1:])


def ok(main):
    def check(arguments):
        assert main(arguments) == 0

    return check


def rendered(arguments):
    """Fill in the manifests, without what comes after the pipe."""
    end = arguments.index("|") if "|" in arguments else len(arguments)
    assert runpy.run_path(str(ROOT / "deploy" / "train" / "render.py"))["manifests"](arguments[:end])


READERS = {
    "launcher.py": launch,
    "slow_down_cdf.py": evaluate,
    "compare_algorithms.py": compare,
    "parameters.py": ok(parameters.main),
    "environment.py": ok(environment.main),
    "job_distribution.py": distribute,
    "examples/animate_policy.py": script(ROOT / "examples" / "animate_policy.py"),
    "examples/reproduce_deeprm.py": reproduce,
    "examples/clairvoyant_optimum.py": clairvoyant,
    "deploy/train/render.py": rendered,
}
ELSEWHERE = (
    *("python -m pytest", "python -m venv", "python -c", "python own_trace.py"),
    *("export ", ". .venv", "cd ", "mv ", "tensorboard ", "docker ", "kubectl "),
)
"""Beginnings of commands that are not ours; pytest's and pip's files are looked for."""


def check_module(module, arguments):
    """Look at `python -m module arguments`."""
    if module == "pip":
        assert all((ROOT / word).exists() for word in arguments if word.endswith(".txt"))
    elif module == "benchmarks":
        if arguments:
            door = importlib.import_module(f"benchmarks.{arguments[0]}")
            parser, settings = Parser(), getattr(door, BENCHMARKS[arguments[0]][0])
            add_arguments(parser, settings)
            resolve([settings], parser.parse_args(arguments[1:]))
    else:
        algorithm, _, door = module.partition(".")
        assert door == "train"
        launch(["--algo", algorithm, *arguments])


@pytest.mark.parametrize(("page", "line", "command"), COMMANDS, ids=lambda value: str(value)[:60])
def test_every_command_is_valid(page, line, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page == "docs/extending.md":
        pytest.skip("run by test_extending.py")
    words = shlex.split(re.sub(r"^(\.venv/bin/)?python3?(?= )", "python", command))
    if words[0] == "make":
        assert {word for word in words[1:] if "=" not in word} <= TARGETS
    elif " ".join(words).startswith(ELSEWHERE):
        assert all((ROOT / word).exists() for word in words if re.match(r"(tests|docs)/", word))
    elif words[:2] == ["python", "-m"]:
        check_module(words[2], words[3:])
    else:
        assert words[0] == "python", f"{page}:{line}: what runs {command!r}?"
        assert words[1] in READERS, f"{page}:{line}: {words[1]} is no front door"
        READERS[words[1]](words[2:])


def flags():
    """Every option of every front door and benchmark."""
    settings = [registry.get("environment_settings", "deeprm")]
    settings += [registry.get("algorithm_settings", name) for name in registry.names("algorithm")]
    parsers = [make_parser([LaunchSettings, *settings]), slow_down_cdf.make_parser("deeprm")]
    parsers.append(make_parser([LaunchSettings, registry.get("environment_settings", "simple_cluster")]))
    parsers.append(comparison_parser(settings[0], settings[1:]))
    for name in generators():
        guest = guest_of(["--workload", name], settings[0], [LaunchSettings])
        parsers.append(make_parser([LaunchSettings, settings[0]], guest))
    parsers += [reproduce_deeprm.make_parser(), clairvoyant_optimum.make_parser()]
    parsers += [job_distribution.make_parser([command])[0] for command in job_distribution.COMMANDS]
    parsers.append(replay.make_parser())
    for name in job_distribution.GENERATORS:
        parsers.append(job_distribution.make_parser(["generate", "--distribution", name])[0])
    for name, (settings_class, *_) in BENCHMARKS.items():
        parsers.append(Parser())
        add_arguments(parsers[-1], getattr(importlib.import_module(f"benchmarks.{name}"), settings_class))
    return set().union(*(parser.flags() for parser in parsers))


@pytest.mark.parametrize("name", NAMES)
def test_flags_in_the_text_exist(name):
    foreign = {"--logdir", "--presets", "--glossary", "--exp_type", "--unseen", "--help"}
    foreign |= {"--num_nw", "--new_job_rate", "--max_job_len"}  # the original's: aliases here, or gone
    text = prose(ROOT / name)
    found = {flag for code in re.findall(r"`([^`]+)`", text) for flag in re.findall(r"--\w+(?:\.\w+)?", code)}
    assert found <= flags() | foreign


@pytest.mark.parametrize("name", NAMES)
def test_make_targets_in_the_text_exist(name):
    found = re.findall(r"`make(?: [A-Z]+=\S+)?(?: ([a-z]+))?`", prose(ROOT / name))
    assert set(found) - {""} <= TARGETS


@pytest.mark.skipif(not shutil.which("make"), reason="no make")
@pytest.mark.parametrize("target", ["demo", "test"])
def test_the_plain_lines_are_those_of_make(target):
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", target], cwd=ROOT, capture_output=True, text=True, check=True
    )
    printed = [line.replace(" -q", "") for line in done.stdout.splitlines()]
    text = (ROOT / "readme.md").read_text(encoding="utf-8")
    section = text[text.index(f"### `make {target}`") :]
    plain = re.search(r"```sh\n(.*?)```", section, re.DOTALL)[1].splitlines()
    for line in plain:
        if line.startswith("export "):
            assert re.search(rf"^export {line.split()[1].replace('=', ' .?= ')}", MAKEFILE, re.MULTILINE)
        else:
            assert line in printed


# ---- Links and files ---------------------------------------------------------------------------------------


def anchors(page):
    """Return the anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name):
    page = ROOT / name
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page).replace("\n", " ")):
        if target.startswith("http"):
            continue
        file, _, anchor = target.partition("#")
        linked = (page.parent / file).resolve() if file else page
        assert linked.exists(), f"{name} links to {target}"
        assert not anchor or anchor in anchors(linked), f"{name} links to {target}"


@pytest.mark.parametrize("name", NAMES)
def test_files_in_the_text_exist(name):
    folders = r"(?:docs|schedrl|tests|examples|benchmarks|ppo)/"
    text = (ROOT / name).read_text(encoding="utf-8")
    for code in re.findall(r"`([^`\s]+)`", prose(ROOT / name)):
        shown = f"\n`{code}`:\n\n```python\n" in text  # the page makes it
        if re.match(folders, code) and not code.endswith("-v0") and not shown:
            assert (ROOT / code).exists(), f"{name} names {code}"


# ---- Code --------------------------------------------------------------------------------------------------

RUN_ELSEWHERE = ("docs/extending.md", "readme.zh.md")
"""Run by test_extending.py; proved by test_readme_zh.py to be the code of readme.md."""
SMALLER = {"2_000_000": "16_384", "1_000_000": "16_384"}
CODE = [
    (name, i)
    for name, page in zip(NAMES, PAGES, strict=True)
    for i, block in enumerate(blocks(page))
    if block.language == "python" and name not in RUN_ELSEWHERE
]


@pytest.mark.parametrize(("name", "index"), CODE)
def test_code_runs_and_prints_what_follows_it(name, index, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = blocks(ROOT / name)
    code = found[index].text
    for large, small in SMALLER.items():
        code = code.replace(large, small)
    # Line numbers of a traceback are those of the page.
    exec(compile("\n" * (found[index].line - 1) + code, name, "exec"), {"__name__": "documentation"})
    shown = capsys.readouterr().out
    printed = [block.text for block in found[index + 1 : index + 2] if block.language == "text"]
    if printed and code == found[index].text:
        assert shown == printed[0]
    elif printed:
        assert shown.splitlines()[0] == printed[0].splitlines()[0]


def test_the_episode_shown_is_the_one_played(capsys):
    found = blocks(ROOT / "readme.md")
    index = next(i for i, block in enumerate(found) if block.text == "python environment.py\n")
    assert environment.main([]) == 0
    played = capsys.readouterr().out.splitlines()
    assert {line for line in found[index + 1].text.splitlines() if line.strip() != "..."} <= set(played)


# ---- Tables of settings ------------------------------------------------------------------------------------


def rows(name, heading):
    """Yield (setting, default as written) of the tables of a section."""
    text = (ROOT / name).read_text(encoding="utf-8")
    section = text[text.index(f"\n## {heading}\n") + 1 :].split("\n## ")[0]
    for line in re.findall(r"^\| (`.*)\|$", section, re.MULTILINE):
        cells = [cell.strip() for cell in line.split("|")]
        settings = re.findall(r"`(\w+)`", cells[0].split("(")[0])
        defaults = re.sub(r"(?<=\d),(?=\d{3})", "", cells[1]).split(", ")
        yield from zip(settings, defaults, strict=False)


@pytest.mark.parametrize(
    ("name", "heading"), [("docs/algorithms/ppo.md", "Settings"), ("docs/deeprm.md", "The cluster")]
)
def test_defaults_in_the_tables_are_the_defaults(name, heading):
    defaults = registry.get("environment_settings", "deeprm").defaults()
    defaults |= registry.get("algorithm_settings", "ppo").defaults()
    found = dict(rows(name, heading))
    assert len(found) > 5
    for setting, written in found.items():
        value = written.split()[0]
        same = show(defaults[setting]) == value or (
            re.match(r"[\d.]+(e-?\d+)?$", value) and float(value) == defaults[setting]
        )
        assert same, f"{name}: {setting} is {show(defaults[setting])}, not {value}"
