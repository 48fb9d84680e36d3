"""Whole processes: `derive check bptt` and `derive --help` beside the imports that they need."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from timing import alternating, row

PYTHON = sys.executable
DERIVE = shutil.which("derive", path=str(Path(PYTHON).parent)) or "derive"


def main() -> None:
    """Print the ratios."""
    times = alternating(
        {
            "check": [DERIVE, "check", "bptt", "--format", "json"],
            "imports": [PYTHON, "-c", "import torch, sympy"],
            "help": [DERIVE, "--help"],
            "console": [PYTHON, "-c", "import typer, rich"],
        }
    )
    row("derive check bptt / python -c 'import torch, sympy'", times["check"] / times["imports"],
        "at most 1.3")  # fmt: skip
    row("derive --help / python -c 'import typer, rich'", times["help"] / times["console"],
        "at most 1.5")  # fmt: skip


if __name__ == "__main__":
    main()
