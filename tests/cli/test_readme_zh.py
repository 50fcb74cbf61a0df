"""readme.zh.md, the Chinese readme, keeps step with readme.md: commands, output, code, tables, figures.

Apart from test_docs.py, which checks each page by itself (its commands parse, its links lead somewhere). To
mend what is found here takes little Chinese: every message names the line and what stands there.
"""

import ast
import re
from collections import Counter
from difflib import SequenceMatcher

import pytest
from fences import PAGES, ROOT, blocks, commands

ENGLISH, CHINESE = ROOT / "readme.md", ROOT / "readme.zh.md"
FIGURE = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?")


def emptied(pattern, text):
    """Take out what matches, but keep its line breaks, so that line numbers stay those of the page."""
    return re.sub(
        pattern, lambda match: " " + "\n" * match[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL
    )


def prose(page):
    """Return a page without its fenced blocks."""
    return emptied(r"^```.*?^```$", page.read_text("utf-8"))


def lines(text):
    return list(enumerate(text.splitlines(), 1))


# ---- What is compared: of each page a list of (line number, what must be equal, what to show) --------------


def shell_commands(page):
    return [(n, " ".join(command.split()), command) for n, command in commands(page)]


def output_lines(page):
    found = [block for block in blocks(page) if block.language == "text"]
    return [(b.line + i, line, line) for b in found for i, line in enumerate(b.text.splitlines())]


def code(page):
    """Python, statement by statement, without its comments and docstrings, which are translated."""
    found = []
    for block in (block for block in blocks(page) if block.language == "python"):
        for statement in ast.parse(block.text).body:
            shown = ast.get_source_segment(block.text, statement)
            if isinstance(statement, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(statement):
                statement.body = statement.body[1:]
            found.append((block.line + statement.lineno - 1, ast.dump(statement), shown))
    return found


def headings(page):
    """Headings by their level; the words are translated."""
    return [(n, re.match("#+", line)[0], line) for n, line in lines(prose(page)) if re.match("#+ ", line)]


def table_rows(page):
    """Rows by their number of cells and their figures; the words are translated."""
    rows = [(n, line) for n, line in lines(prose(page)) if line.startswith("|")]
    return [(n, (line.count("|"), *FIGURE.findall(line)), line) for n, line in rows]


def links(page):
    """Where links lead, but for those to a heading of the same page or to the other language."""
    found = [
        (n, link) for n, line in lines(prose(page)) for link in re.findall(r"\]\(([^)#\s][^)\s]*)\)", line)
    ]
    return [(n, link, link) for n, link in found if link not in (ENGLISH.name, CHINESE.name)]


KINDS = {
    "command": shell_commands,
    "line of output": output_lines,
    "statement of code": code,
    "heading": headings,
    "table row": table_rows,
    "link": links,
}


def differences(kind, english, chinese):
    """Say what of a kind one page has, at that place, and the other hasn't."""
    ours, theirs = KINDS[kind](english), KINDS[kind](chinese)
    keys = [[key for _, key, _ in found] for found in (ours, theirs)]
    said = []
    for tag, i, j, k, m in SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        if tag != "equal":
            place = f"line {theirs[k][0]}" if k < len(theirs) else "its end"
            lacking = f"readme.zh.md lacks, about {place}, the {kind}"
            said += [f"{lacking} of readme.md:{n}: {shown}" for n, _, shown in ours[i:j]]
            extra = f"has a {kind} that readme.md hasn't at that place"
            said += [f"readme.zh.md:{n} {extra}: {shown}" for n, _, shown in theirs[k:m]]
    return said


def figures(page):
    """Return section by section the (figure, line number) outside of tables, code and addresses of links."""
    text = emptied(r"`[^`]*`|\]\([^)]*\)|^\|.*?$", prose(page))
    sections = [[]]
    for n, line in lines(text):
        if re.match("#+ ", line):
            sections.append([])
        sections[-1] += [(figure, n) for figure in FIGURE.findall(line)]
    return sections


def figure_differences(english, chinese):
    """Say which figures of the text one page has more often than the other in the same section."""
    if len(figures(english)) != len(figures(chinese)):
        return ["the headings differ (the test of headings says where), so figures can't be compared"]
    said = []
    for ours, theirs in zip(figures(english), figures(chinese), strict=True):
        for name, these, those in (("readme.md", ours, theirs), ("readme.zh.md", theirs, ours)):
            surplus = Counter(figure for figure, _ in these) - Counter(figure for figure, _ in those)
            for figure in surplus:
                where = ", ".join(f"{name}:{n}" for f, n in these if f == figure)
                said.append(f"{figure} (at {where}) is missing in the same section of the other readme")
    return said


def names_in_text(page):
    """Return the set of what stands between backticks in the text."""
    return {" ".join(name.split()) for name in re.findall(r"`([^`]+)`", prose(page))}


# ---- The tests ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_both_readmes_have_the_same(kind):
    assert KINDS[kind](ENGLISH), f"found no {kind} in readme.md"
    said = differences(kind, ENGLISH, CHINESE)
    assert not said, "\n".join(["", *said])


def test_figures_in_the_text_are_the_same():
    said = figure_differences(ENGLISH, CHINESE)
    assert not said, "\n".join(["", *said])


def test_names_in_the_text_are_the_same():
    english, chinese = names_in_text(ENGLISH), names_in_text(CHINESE)
    said = f"only in readme.md: {english - chinese}; only in readme.zh.md: {chinese - english}"
    assert english == chinese, said


def test_each_leads_to_the_other_at_its_top():
    for page, other in ((ENGLISH, CHINESE), (CHINESE, ENGLISH)):
        assert f"]({other.name})" in "".join(page.read_text("utf-8").splitlines()[:3])


def test_links_of_the_chinese_readme_are_checked():
    assert CHINESE in PAGES  # by test_docs.py: every link leads to a file and a heading that exist
    english, chinese = (re.findall(r"\]\(#[^)]+\)", prose(page)) for page in (ENGLISH, CHINESE))
    assert len(english) == len(chinese), f"links within the page: {english} and {chinese}"


@pytest.fixture
def changed(tmp_path):
    """A function: the Chinese readme with its first `old` made `new`."""

    def change(old, new):
        text = CHINESE.read_text("utf-8")
        assert old in text
        page = tmp_path / CHINESE.name
        page.write_text(text.replace(old, new, 1), "utf-8")
        return page

    return change


@pytest.mark.parametrize("kind", KINDS)
def test_a_loss_is_named(kind, changed):
    # The Chinese readme against itself, so that this holds while the two are out of step.
    line, _, shown = next(found for found in KINDS[kind](CHINESE) if len(found[2]) > 10)
    said = differences(kind, CHINESE, changed(shown, ""))
    (lacking,) = [text for text in said if text.startswith("readme.zh.md lacks")]
    assert lacking.endswith(f"the {kind} of readme.md:{line}: {shown}")


def test_a_changed_row_is_named(changed):
    line, _, shown = next(row for row in table_rows(CHINESE) if re.search(r"\d\.\d", row[2]))
    other = re.sub(r"\d\.\d", "9.9", shown, count=1)
    lacking, extra = differences("table row", CHINESE, changed(shown, other))
    assert lacking.endswith(f"of readme.md:{line}: {shown}")
    assert extra.startswith(f"readme.zh.md:{line} ")
    assert extra.endswith(other)


def test_a_changed_figure_is_named(changed):
    figure, line = next(found for section in figures(CHINESE) for found in section if "." in found[0])
    text = CHINESE.read_text("utf-8").splitlines()[line - 1]
    lacking, extra = figure_differences(CHINESE, changed(text, text.replace(figure, "77.7", 1)))
    assert lacking.startswith(f"{figure} (at readme.md:{line})")
    assert extra.startswith(f"77.7 (at readme.zh.md:{line})")
