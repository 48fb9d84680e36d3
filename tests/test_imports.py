"""Which module may import which, what is loaded when, and what is packaged."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"derive": "derive", "checks": "derive.checks", "cases": "derive.cases"}

# Commands and what stands behind them may import everything; nothing imports them back.
TOP = {
    "derive.cli",
    "derive.cli_options",
    "derive.cli_runs",
    "derive.console",
    "derive.listing",
    "derive.codes",
    "derive.checking",
    "derive.showing",
    "derive.new_case",
}
HEAVY = {"torch", "typer", "rich"}


def layer(module: str) -> int:
    """Return 0 for the symbolic side, 1 for the numeric side, 2 for reports, 3 for commands."""
    if module in TOP:
        return 3
    for place, package in (
        (1, "derive.checks"),
        (1, "derive.cases"),
        (2, "derive.report"),
        (2, "derive.plots"),
    ):
        if module == package or module.startswith(package + "."):
            return place
    return 0


def sources() -> Iterator[tuple[str, Path]]:
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            inner = path.relative_to(ROOT / folder)
            if folder == "derive" and inner.parts[0] in FOLDERS:
                continue  # links to the folders at the top
            yield ".".join((package, *inner.with_suffix("").parts)).removesuffix(".__init__"), path


def imports(tree: ast.AST, package: str) -> Iterator[tuple[str, ast.stmt]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{package} imports relatively"
            yield str(node.module), node
            yield from ((f"{node.module}.{alias.name}", node) for alias in node.names)


def wrong_arrows(module: str, text: str) -> list[str]:
    """Return the imports that go against derive <- checks <- report <- commands."""
    tree, own = ast.parse(text), layer(module)
    found = [n for n, _ in imports(tree, module) if n.startswith("derive") and layer(n) > own]
    outer = {name.split(".")[0] for name, _ in imports(tree, module)}
    allowed = {0: set(), 1: {"torch"}, 2: {"rich"}, 3: HEAVY}[own]
    eager = {n.split(".")[0] for n, node in imports(tree, module) if node in tree.body}
    return found + sorted(outer & HEAVY - allowed) + (["torch"] if "torch" in eager else [])


SOURCES = dict(sources())


@pytest.mark.parametrize("module", SOURCES)
def test_imports_follow_the_layers(module: str) -> None:
    assert wrong_arrows(module, SOURCES[module].read_text("utf-8")) == []


SABOTAGE = (
    ("derive.normal", "from derive.checks import evaluate"),
    ("derive.normal", "def f():\n    import derive.report"),
    ("derive.normal", "def f():\n    import torch"),
    ("derive.topics.rnn", "from derive import cli"),
    ("derive.checks.modules", "import torch"),
    ("derive.checks.modules", "from derive.report import Report"),
    ("derive.checks.modules", "import rich"),
    ("derive.report.text", "from derive.console import write"),
)


@pytest.mark.parametrize(("module", "text"), SABOTAGE)
def test_a_wrong_arrow_is_seen(module: str, text: str) -> None:
    assert wrong_arrows(module, text) != []


LOADED = (
    ("app(['--help'])", {"sympy", "numpy", "torch", "rich", "flint"}),
    ("app(['check', '--help'])", {"sympy", "numpy", "torch", "flint"}),
    ("app(['--version'])", {"sympy", "numpy", "torch", "flint"}),
    ("app(['check', 'bptt', '--format', 'jsn'])", {"sympy", "numpy", "torch", "flint"}),
    ("app(['list', 'claims', 'bptt'])", {"torch", "rich"}),
)


@pytest.mark.parametrize(("call", "absent"), LOADED, ids=[c for c, _ in LOADED])
def test_what_is_loaded(call: str, absent: set[str]) -> None:
    code = (
        f"import sys\nfrom derive.cli import app\ntry:\n    {call}\nexcept SystemExit:\n    pass\n"
        f"print('loaded', *sorted({absent!r} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded"


def test_every_folder_is_packaged() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    setup = project["tool"]["setuptools"]
    inits = (m for m, path in SOURCES.items() if path.name == "__init__.py")
    assert sorted(setup["packages"]) == sorted(inits)
    assert setup["package-dir"] == {"derive.checks": "checks", "derive.cases": "cases"}


def test_data_files_are_packaged() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    data = project["tool"]["setuptools"]["package-data"]
    packaged = {
        path
        for folder, package in FOLDERS.items()
        for path in (ROOT / folder).rglob("*")
        for owner, patterns in data.items()
        if path.parent == ROOT / owner.replace("derive.checks", "checks").replace(
            "derive.cases", "cases").replace(".", "/")
        for pattern in patterns
        if path.match(pattern) and owner.startswith(package)
    }  # fmt: skip
    others = {
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert others - packaged == set()


def test_the_version_is_said_once() -> None:
    from derive import __version__

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["version"] == __version__
