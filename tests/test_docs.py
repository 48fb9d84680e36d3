"""The documentation's examples are true."""

import re
from pathlib import Path

import pytest

from derive.case_load import load_text
from derive.prove import prove
from derive.statement import read_statement
from derive.topics import load

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def fenced(path: Path, word: str) -> list[str]:
    """Return the blocks of a page that are marked with a word."""
    return re.findall(rf"^```{word}\n(.*?)^```", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)


STATEMENTS = [
    line for page in PAGES for block in fenced(page, "statement") for line in block.splitlines()
]


def holds(line: str) -> bool:
    """Tell whether the statement is proved for one of the losses of the recurrent network."""
    systems = (load("bptt").systems["rnn"].with_loss(loss) for loss in ("final", "per_position"))
    return any(prove(read_statement(system, line)).proved for system in systems)


@pytest.mark.parametrize("line", STATEMENTS)
def test_statements_are_theorems(line: str) -> None:
    assert holds(line)


def test_there_are_statements() -> None:
    assert len(STATEMENTS) > 15
    assert not holds("g_z[t] = g_h[t]*(1 - h[t])")


@pytest.mark.parametrize("page", PAGES, ids=[p.name for p in PAGES])
def test_case_files_can_be_read(page: Path) -> None:
    for block in fenced(page, "toml"):
        case = load_text(block, page.name)
        assert case.claims and case.expects


LINKS = [
    (page, link)
    for page in PAGES
    for link in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8"))
    if "://" not in link
]


@pytest.mark.parametrize(("page", "link"), LINKS, ids=[link for _, link in LINKS])
def test_links_lead_somewhere(page: Path, link: str) -> None:
    assert (page.parent / link).exists()
