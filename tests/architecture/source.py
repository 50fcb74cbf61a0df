"""The project's Python files, parsed: what the architecture tests look at, importing nothing."""

import ast
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FRONT_DOORS = ("parameters", "environment", "job_distribution")
COMMAND_LINES = ("launcher", "slow_down_cdf", "compare_algorithms")


@dataclass(frozen=True)
class Source:
    """One file: its path relative to the root, dotted module name, text and tree."""

    path: str
    module: str
    text: str
    tree: ast.Module

    def imports(self) -> list[tuple[str, int, bool]]:
        """List (module imported, line, whether it happens when this module is imported)."""
        lazy = {
            id(inner)
            for outer in ast.walk(self.tree)
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)) or _guarded(outer, "TYPE_CHECKING")
            for inner in ast.walk(outer)
        }
        found = []
        # What stands under `if __name__ == "__main__"` is a command line, not the module.
        body = [
            inner for node in self.tree.body if not _guarded(node, "__name__") for inner in ast.walk(node)
        ]
        for node in body:
            if isinstance(node, ast.Import):
                found += [(alias.name, node.lineno, id(node) not in lazy) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = self._absolute(node)
                names = [f"{base}.{alias.name}" for alias in node.names]
                found += [(name, node.lineno, id(node) not in lazy) for name in names]
        return found

    def _absolute(self, node: ast.ImportFrom) -> str:
        package = self.module.split(".")
        if not self.path.endswith("__init__.py"):
            package = package[:-1]
        kept = package[: len(package) - node.level + 1] if node.level else []
        return ".".join([*kept, *([node.module] if node.module else [])])


def _guarded(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.If) and name in ast.unparse(node.test)


@cache
def sources() -> tuple[Source, ...]:
    """Parse every Python file that git tracks or would track."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    paths = sorted({path for path in listing.stdout.splitlines() if (ROOT / path).exists()})
    return tuple(_parse(path) for path in paths)


def product() -> tuple[Source, ...]:
    """Those of ``sources`` that users run: neither tests nor benchmarks nor examples."""
    return tuple(
        s for s in sources() if s.path.split("/")[0] not in ("tests", "benchmarks", "examples", "docs")
    )


def algorithms() -> list[str]:
    """List the algorithms' folders, by the registry's rule."""
    return sorted(p.parent.name for p in ROOT.glob("*/config.py") if (p.parent / "train.py").exists())


def _parse(path: str) -> Source:
    text = (ROOT / path).read_text(encoding="utf-8")
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return Source(path, module, text, ast.parse(text, path))
