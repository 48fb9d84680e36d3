"""The plots: found by listing, deterministic, legible in a terminal, clear about matplotlib."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from derive import plots
from derive.checks.jacobians import Curve
from derive.cli import app
from derive.errors import DeriveError
from derive.plots import attention, saturation, vanishing
from derive.report import View

RUN = CliRunner()
SMALL = {"T": 12, "H": 4, "D": 3}
FADING = vanishing.data(SMALL, 0)


def test_the_folder_is_the_list() -> None:
    assert plots.names() == ["attention", "saturation", "vanishing"]
    assert "vanishing   how far back" in " ".join(RUN.invoke(app, ["plot"]).stdout.split("\n"))
    with pytest.raises(DeriveError, match="did you mean 'vanishing'"):
        plots.load("vanishin")


@pytest.mark.parametrize("name", plots.names())
@pytest.mark.parametrize("suffix", plots.FORMATS)
def test_the_same_data_gives_the_same_bytes(name: str, suffix: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot = plots.load(name)
    first, again = (plots.drawn(plot, plot.data(SMALL, 0), suffix) for _ in range(2))
    assert first == again != plots.drawn(plot, plot.data(SMALL, 1), suffix)
    assert first.startswith(b"\x89PNG" if suffix == "png" else b"<?xml")
    assert b"<dc:date>" not in first


def test_the_users_matplotlib_settings_do_not_take_part() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    plot = plots.load("vanishing")
    before = plots.drawn(plot, FADING, "svg")
    with matplotlib.rc_context({"font.size": 30, "axes.grid": False}):
        assert plots.drawn(plot, FADING, "svg") == before


def test_a_product_that_underflows_can_be_drawn() -> None:
    pytest.importorskip("matplotlib")
    gone = Curve("RNN", np.array([1.0, 1e-300, 0.0]))
    found = vanishing.Fading((gone, *FADING.curves[1:]), gone, SMALL, 0)
    assert plots.drawn(plots.load("vanishing"), found, "png")
    assert "0.0e+00" in vanishing.table(found, View())


def test_labels_do_not_overlap() -> None:
    heights = vanishing.spread([1e-9, 1e-9, 1.0, 0.9, 1e-20], -20, 0)
    assert max(heights) <= 1 and min(heights) >= 0
    assert min(np.diff(sorted(heights))) > 0.06
    assert sorted(heights)[0] == heights[4]


@pytest.mark.parametrize("width", [80, 160])
def test_the_table_fits_a_terminal(width: int) -> None:
    text = vanishing.table(vanishing.data({}, 0), View(width=width))
    assert max(map(len, text.splitlines())) <= width
    assert "LSTM, forget bias 2" in text and "seed 0" in text and "█" in text


def test_the_table_can_be_ascii() -> None:
    assert vanishing.table(FADING, View(unicode=False)).isascii()


def test_bars_follow_the_logarithm() -> None:
    curve = Curve("x", np.array([1.0, 1e-4, 1e-8, 0.0]))
    assert vanishing.bars(curve, 4, (-8, 0), True) == "█▅▁▁"


@pytest.mark.parametrize("name", plots.names())
@pytest.mark.parametrize(("width", "unicode"), [(80, True), (160, True), (160, False)])
def test_every_table_fits_a_terminal(name: str, width: int, unicode: bool) -> None:
    plot = plots.load(name)
    text = plot.table(plot.data({}, 0), View(width=width, unicode=unicode))
    assert max(map(len, text.splitlines())) <= width
    assert unicode or text.isascii(), name


def test_the_weights_are_those_of_the_lecture() -> None:
    found = attention.data({}, 0)
    np.testing.assert_allclose(found.full[1], [0.2483, 0.5035, 0.2483], atol=5e-5)
    np.testing.assert_allclose(found.causal[1], [0.3302, 0.6698, 0], atol=5e-5)
    np.testing.assert_allclose(attention.data({"T": 5}, 1).causal.sum(1), 1)


def test_scaled_scores_saturate_less() -> None:
    found = saturation.data({}, 0)
    plain, scaled, _ = found.slopes
    # at width 512 the two means differ by far more than their standard errors
    assert scaled[-1] - plain[-1] > 5 * (found.errors[0, -1] + found.errors[1, -1])
    assert abs(scaled[-1] - scaled[4]) < 4 * (found.errors[1, -1] + found.errors[1, 4])


@pytest.mark.parametrize("name", ["attention", "saturation"])
@pytest.mark.parametrize("sizes", [{"Q": 3}, {"T": 0}])
def test_a_bad_size_is_refused(name: str, sizes: dict[str, int]) -> None:
    with pytest.raises(DeriveError, match=r"size|sources"):
        plots.load(name).data(sizes, 0)


# the command


def test_a_figure_is_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    target = tmp_path / "v.svg"
    done = RUN.invoke(app, ["plot", "vanishing", "-o", str(target), "--size", "T=9"])
    assert done.exit_code == 0 and done.stdout == "" and b"</svg>" in target.read_bytes()


def test_without_a_file_there_is_a_table() -> None:
    done = RUN.invoke(app, ["plot", "vanishing", "--size", "T=9", "--size", "H=3", "--seed", "4"])
    assert done.exit_code == 0 and "T=9 H=3 D=32" in done.stdout and "seed 4" in done.stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["-o", "x.pdf"], "a plot is written as .png or .svg; found '.pdf'"),
        (["-o", "x.pdf"], "name it x.svg"),
        (["-o", "nowhere/x.png"], "there is no folder nowhere"),
        (["--size", "Q=3"], "a plot has no size 'Q'"),
    ],
)
def test_errors_name_the_way_out(args: list[str], said: str) -> None:
    done = RUN.invoke(app, ["plot", "vanishing", *args])
    assert done.exit_code == 2 and said in done.stderr


def test_without_matplotlib_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = RUN.invoke(app, ["plot", "vanishing", "-o", "x.png"])
    assert done.exit_code == 2
    assert "drawing needs matplotlib, which is not installed" in done.stderr
    assert "pip install 'derive-check[plot]'" in done.stderr and "leave out -o" in done.stderr
    assert RUN.invoke(app, ["plot", "vanishing", "--size", "T=5"]).exit_code == 0


def test_a_table_needs_neither_torch_nor_matplotlib() -> None:
    code = (
        "import sys\nfrom derive.cli import app\ntry:\n    app(['plot', 'vanishing'])\n"
        "except SystemExit:\n    pass\nprint({'torch', 'matplotlib'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"
