"""Markdown, as far as the tests of the documentation read it: fenced blocks, links, file names."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("[a-z]*/README.md")})


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the line it starts at, the file named just above it."""

    language: str
    text: str
    line: int
    file: str = ""


def blocks(page: Path) -> list[Block]:
    """List the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    pattern = r"(?:^`([\w./]+)`:\n+)?^```(\w*)\n(.*?)^```$"
    return [
        Block(m[2], m[3], text.count("\n", 0, m.start(3)) + 1, m[1] or "")
        for m in re.finditer(pattern, text, re.MULTILINE | re.DOTALL)
    ]


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[tuple[int, str]]:
    """List (line, command) of the shell blocks, comments cut off, and of the commands within the text."""
    found = []
    for block in blocks(page):
        if block.language in ("sh", "bash"):
            joined = block.text.replace("\\\n", "  ")
            for offset, line in enumerate(joined.splitlines()):
                command = re.sub(r"(^|\s+)#.*", "", line).strip()
                if command:
                    found.append((block.line + offset, command))
    whole, text = page.read_text(encoding="utf-8"), prose(page)
    for code in re.findall(r"`((?:\.venv/bin/)?python3? [^`]+)`", text):
        found.append((whole.count("\n", 0, whole.index(code)) + 1, " ".join(code.split())))
    return found
