"""The command line: options reach the check, exit status and streams are as documented."""

import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch  # noqa: F401 - loaded once: in a test no helper process may cut its import short
from typer.testing import CliRunner

from derive.claim import Claim, Counterexample, Evidence, Result, Verdict
from derive.cli import app
from derive.errors import DeriveError
from derive.options import CheckOptions, read_sizes
from derive.report import Report
from derive.report.json import schema

RUN = CliRunner()
STATEMENT = "dL/dW_h = sum(t, g_z[t].T @ h[t-1])"
PROOF = Evidence("proof", "normal form", 3, None, None, "all sizes", 0.001, True)


def outcome(verdict: str, scope: str = "all sizes") -> Result:
    point = Counterexample({"T": 1}, {}, "0.21", "0", {}) if verdict == "refuted" else None
    evidence = (PROOF,) if verdict == "proved" else ()
    claim = Claim("bptt.x", "bptt", STATEMENT, "In words")
    return Result(claim, Verdict(verdict, scope, counterexample=point), evidence)  # type: ignore[arg-type]


class Fake:
    """Stands in for the pipeline, which has tests of its own."""

    def __init__(self) -> None:
        self.targets: list[str] = []
        self.options = CheckOptions()
        self.results: tuple[Result, ...] = (outcome("proved"),)
        self.error: BaseException | None = None

    def check(self, targets: list[str], options: CheckOptions) -> Report:
        self.targets, self.options = targets, options
        if self.error is not None:
            raise self.error
        return Report(self.results, {}, 0.5, " ".join(targets))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake()
    module: Any = types.ModuleType("derive.checking")
    module.check = made.check
    monkeypatch.setitem(sys.modules, "derive.checking", module)
    monkeypatch.setattr("derive.parallel.can_fork", lambda: False)
    return made


def run(*args: str, **more: Any) -> Any:
    return RUN.invoke(app, [*args], **more)


def test_every_option_reaches_the_check(fake: Fake) -> None:
    text = (
        "check bptt rnn --case none --claim bptt.x --system rnn --loss final --size T=5 --size H=3"
        " --seed 7 --dtype float32 --device cpu --jobs 2 --no-cache"
    )
    assert run(*text.split()).exit_code == 0
    assert fake.targets == ["bptt", "rnn"]
    assert fake.options == CheckOptions(
        case="none", claim="bptt.x", system="rnn", loss="final", sizes={"T": 5, "H": 3},
        seed=7, dtype="float32", device="cpu", jobs=2, cache=False,
    )  # fmt: skip


def test_a_statement_reaches_the_check(fake: Fake) -> None:
    assert run("check", "bptt", "--statement", STATEMENT).exit_code == 0
    assert fake.options.statement == STATEMENT
    assumed = ("--assume", "f, i held", "--assume", "h[-1,r] = 0")
    assert run("check", "bptt", "--statement", STATEMENT, *assumed).exit_code == 0
    assert fake.options.assumes == ("f, i held", "h[-1,r] = 0")
    alone = run("check", "bptt", *assumed)
    assert alone.exit_code == 2
    assert "--assume goes with --statement" in alone.stderr


STATUS = (
    (("proved",), (), 0),
    (("proved", "refuted"), (), 1),
    (("proved", "undecided"), (), 0),
    (("proved", "undecided"), ("--strict",), 1),
    ((), (), 2),
)


@pytest.mark.parametrize(("verdicts", "more", "status"), STATUS)
def test_exit_status(
    fake: Fake, verdicts: tuple[str, ...], more: tuple[str, ...], status: int
) -> None:
    fake.results = tuple(map(outcome, verdicts))
    assert run("check", "bptt", *more).exit_code == status


WRONG = (
    (("check",), "Missing argument"),
    (("check", "bptt", "--sed", "1"), "--seed"),
    (("check", "bptt", "--seed", "-1"), "--seed"),
    (
        ("check", "bptt", "--size", "T"),
        "--size takes a name and a whole number, as in T=5; found 'T'",
    ),
    (("check", "bptt", "--size", "T=0"), "a size is at least 1; found 'T=0'"),
    (("check", "bptt", "--size", "T=1", "--size", "T=2"), "--size T is given twice: 1 and 2"),
    (("check", "bptt", "--dtype", "float46"), "did you mean 'float64'?"),
    (("check", "bptt", "--format", "jsn"), "did you mean 'json'?"),
    (("check", "bptt", "--claim", "x", "--statement", "y"), "give one of them"),
    (("check", "bptt", "-o", "nowhere/x.json"), "there is no folder nowhere"),
    (("check", "bptt", "-o", "."), "is a folder"),
    (("list", "toics"), "did you mean 'topics'?"),
    (("list", "claims", "bpt"), "did you mean 'bptt'?"),
    (("list", "quantities"), "whose quantities? name a topic"),
    (("list", "coverage"), "whose coverage? name a case"),
    (("list", "cases", "nothing"), "no case 'nothing'"),
    (("explain", "provd"), "did you mean 'proved'?"),
    (("chek",), "chek"),
)


@pytest.mark.parametrize(("args", "message"), WRONG, ids=[" ".join(w[0]) for w in WRONG])
def test_wrong_input_is_status_2_and_says_what(
    fake: Fake, args: tuple[str, ...], message: str
) -> None:
    done = run(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_of_the_check_is_a_message(fake: Fake) -> None:
    fake.error = DeriveError("unknown name 'hh'", text="hh[t] = 1", at=0, hint="did you mean 'h'?")
    done = run("check", "bptt")
    assert done.exit_code == 2
    assert done.stderr.splitlines() == [
        "error: unknown name 'hh'", "  hh[t] = 1", "  ^", "  hint: did you mean 'h'?",
    ]  # fmt: skip


def test_an_unexpected_error_is_one_line(fake: Fake) -> None:
    fake.error = ZeroDivisionError("division by zero")
    done = run("check", "bptt")
    assert (done.exit_code, done.stdout) == (2, "")
    line, rest = done.stderr.split("\n", 1)
    assert line.startswith("error: internal: ZeroDivisionError: division by zero (run again with")
    assert rest == ""


def test_debug_shows_where(fake: Fake) -> None:
    fake.error = ZeroDivisionError("division by zero")
    done = run("check", "bptt", "--debug")
    assert done.exception is fake.error


def test_an_interrupt_is_no_verdict(fake: Fake) -> None:
    fake.error = KeyboardInterrupt()
    assert run("check", "bptt").exit_code == 130


def test_json_is_alone_on_stdout(fake: Fake) -> None:
    done = run("check", "bptt", "--format", "json")
    assert json.loads(done.stdout)["summary"]["proved_all_sizes"] == 1
    assert done.stderr == ""


def test_a_pipe_gets_plain_text(fake: Fake) -> None:
    done = run("check", "bptt")
    assert done.stdout.startswith("derive check bptt\n")
    assert "─" not in done.stdout and "\x1b" not in done.stdout


@pytest.mark.parametrize(("env", "color"), [({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
                                            ({"FORCE_COLOR": "1"}, True), ({}, False)])  # fmt: skip
def test_no_color_is_respected(
    fake: Fake, env: dict[str, str], color: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    done = run("check", "bptt", "--format", "rich", env=env)
    assert ("\x1b[" in done.stdout) == color


def test_output_goes_to_a_file_whole(fake: Fake, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    done = run("check", "bptt", "--format", "json", "-o", str(path))
    assert (done.exit_code, done.stdout) == (0, "")
    assert json.loads(path.read_text())["schema"] == "derive-report/1"
    assert done.stderr.startswith("1 claim: 1 proved for all sizes")


def test_an_output_that_fails_leaves_the_old_file(fake: Fake, tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old")
    fake.error = DeriveError("no")
    assert run("check", "bptt", "-o", str(path)).exit_code == 2
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def test_a_write_that_fails_leaves_nothing(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    done = run("check", "bptt", "-o", str(tmp_path / "r.txt"))
    assert done.exit_code == 2
    assert "r.txt: No space left on device" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_read_sizes() -> None:
    assert read_sizes(["T=5", " H = 3"]) == {"T": 5, "H": 3}
    for text in ("T=x", "=5", "T=-1", "T=1.5", "T=²", "5=T", ""):
        with pytest.raises(DeriveError, match="--size takes"):
            read_sizes([text])


LISTINGS = (
    (("list",), ("bptt", "rnn", "softmax_ce")),
    (("list", "claims", "bptt"), ("bptt.final-seed", "false: g_h[t]")),
    (("list", "quantities", "bptt"), ("W_h  (H, H)", "recurrent weights", "losses final")),
    (("list", "cases"), ("innopolis-week06  bptt",)),
    (("list", "coverage", "innopolis-week06"), ("unaccounted for: nothing",)),
    (("explain", "proved"), ("proved (verdict)", "for the sizes in its scope")),
    (("explain", "contract-deltas"), ("rule of the normal form",)),
    (("explain", "bptt.final-seed"), ("g_h[T-1] = h[T-1] - y", "h[t,j] = tanh(z[t,j])")),
    (("--version",), ("derive 0.1.0 (python 3.", "torch 2.", "python-flint ")),
)


@pytest.mark.parametrize(("args", "parts"), LISTINGS, ids=[" ".join(x[0]) for x in LISTINGS])
def test_listings(args: tuple[str, ...], parts: tuple[str, ...]) -> None:
    done = run(*args)
    assert done.exit_code == 0
    assert [p for p in parts if p not in done.stdout] == []


def test_an_ascii_terminal_gets_ascii() -> None:
    code = "from derive.console import write; write('\u2202L')"
    env = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
    assert done.stdout == b"\\u2202L\n"


# with the real pipeline


def test_a_claim_end_to_end() -> None:
    done = run("check", "bptt", "--claim", "hidden-weights-gradient", "--format", "json")
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema())
    (found,) = document["results"]
    assert (found["verdict"], found["scope"]) == ("proved", "all sizes")
    kinds = {e["kind"] for e in found["evidence"] if e["count"]}
    assert {"proof", "module", "finite_difference", "complex_step", "random_sizes"} <= kinds


def test_a_wrong_statement_end_to_end() -> None:
    wrong = "dL/dW_h = sum(t, g_z[t].T @ h[t])"
    done = run("check", "bptt", "--statement", wrong, "--loss", "final")
    assert done.exit_code == 1
    assert "✗ ∂L/∂W_h = Σₜ (gᶻₜ)ᵀ hₜ\n    refuted at T=1 " in done.stdout
    assert "did you mean" in done.stdout and "t-1" in done.stdout


def test_an_unknown_name_end_to_end() -> None:
    done = run("check", "bptt", "--statement", "g_hh[t] = g_h[t]")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "error: unknown name 'g_hh'", "  g_hh[t] = g_h[t]", "  ^", "  hint: did you mean 'g_h'?",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("assumed", "status", "message"),
    (
        (("--assume", "f, i, g held"), 0, "if f, i, g held  all sizes"),
        (("--assume", "f, i held"), 1, "refuted at T=2"),
        ((), 1, "refuted at T=2"),
        (("--assume", "f, i, gg held"), 2, "cannot hold gg: lstm has no intermediate 'gg'"),
    ),
)
def test_an_assumption_end_to_end(assumed: tuple[str, ...], status: int, message: str) -> None:
    text = "dc[t]/dc[t-1] = diag(f[t])"
    done = run("check", "lstm", "--case", "none", "--statement", text, *assumed)
    assert done.exit_code == status
    assert message in (done.stderr if status == 2 else done.stdout)


PAGE = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
MINE = PAGE.split("```toml\n")[1].split("```")[0]


@pytest.mark.parametrize(("old", "new", "status", "message"), [
    ("", "", 0, "1 printed number certified"),
    ("0.1974", "0.1975", 1, "printed 0.1975, exact 0.1973753"),
    ('expected = "fails"', "", 1, "refuted at T="),
    ("- y\"", "- x\"", 2, "error: "),
    ("quantity", "quantitty", 2, "did you mean 'quantity'?"),
])  # fmt: skip
def test_the_case_of_the_readme(
    old: str, new: str, status: int, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE.replace(old, new) if old else MINE, "utf-8")
    done = run("check", str(path))
    assert done.exit_code == status
    assert message in (done.stderr if status == 2 else done.stdout)
