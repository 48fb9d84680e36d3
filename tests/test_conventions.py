"""The card of conventions: torch is run by what it says; it fits where it is shown."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from derive import topics
from derive.checks.sizes import random_givens
from derive.checks.table import Ours
from derive.cli import app
from derive.conventions import CARDS, SOURCES, card, packed_order
from derive.errors import DeriveError
from derive.report import View
from derive.report._conventions import as_rich, as_text

CELLS = {"lstm": torch.nn.LSTMCell, "gru": torch.nn.GRUCell}
SIZES = {"D": 2, "H": 3}


def cell_by_card(topic, order, kinds, givens):
    """Run torch's cell with our weights, packed as the card says."""
    cell = CELLS[topic](SIZES["D"], SIZES["H"], dtype=torch.float64)
    packed = {
        name: torch.from_numpy(np.concatenate([givens[kind + gate] for gate in order]))
        for name, kind in kinds.items()
    }
    cell.load_state_dict(packed)
    x, *states = (torch.from_numpy(givens[n])[None] for n in ("x", "h_prev", "c_prev")
                  if n in givens)  # fmt: skip
    with torch.no_grad():
        out = cell(x, tuple(states) if len(states) > 1 else states[0])
    return [o[0].numpy() for o in (out if isinstance(out, tuple) else (out,))]


def ours(topic, givens):
    """Evaluate the equations of the topic's single step."""
    table = Ours(topics.load(topic).systems[f"{topic}_cell"], givens, SIZES)
    return [table.tensor(n) for n in ("h", "c") if n in table.values]


def agree(topic, order, kinds):
    """Tell whether torch's cell, packed so, is the topic's single step."""
    givens = random_givens(topics.load(topic).systems[f"{topic}_cell"], SIZES, 5)
    pairs = zip(cell_by_card(topic, order, kinds, givens), ours(topic, givens), strict=True)
    return all(np.abs(a - b).max() < 1e-14 for a, b in pairs)


@pytest.mark.parametrize("topic", CARDS)
def test_torch_runs_as_the_card_says(topic):
    assert agree(topic, packed_order(topic), card(topic).kinds)


@pytest.mark.parametrize(
    ("topic", "source"), [(t, s) for t in CARDS for s in card(t).packing if s != "torch"]
)
def test_the_packing_of_another_source_is_not_torchs(topic, source):
    assert sorted(packed_order(topic, source)) == sorted(packed_order(topic))
    assert not agree(topic, packed_order(topic, source), card(topic).kinds)


def test_the_candidates_biases_of_the_gru_cannot_be_exchanged():
    kinds = card("gru").kinds
    swapped = kinds | {"bias_ih": kinds["bias_hh"], "bias_hh": kinds["bias_ih"]}
    assert not agree("gru", packed_order("gru"), swapped)


@pytest.mark.parametrize("topic", CARDS)
def test_the_card_names_systems_and_tensors_that_exist(topic):
    found = topics.load(topic)
    tensors = {n for s in found.systems.values() for n in s.tensors}
    for line in card(topic).lines():
        assert len(line.names) == len(SOURCES)
    for gate in packed_order(topic):
        assert gate in tensors
        assert all(kind + gate in tensors for kind in card(topic).kinds.values())
    text = as_text(card(topic), View(width=160))
    for name in ("lstm_coupled",) if topic == "lstm" else ("gru_reset_before",):
        assert name in found.systems
        assert name in text


@pytest.mark.parametrize("topic", CARDS)
@pytest.mark.parametrize("width", (80, 160))
@pytest.mark.parametrize("render", (as_text, as_rich))
def test_it_fits_its_width_and_loses_nothing(topic, width, render):
    text = render(card(topic), View(width=width))
    assert max(map(len, text.splitlines())) <= width
    for line in card(topic).lines():
        assert line.what in text
        assert all(name in text for name in line.names)
    assert all(source in text for source in SOURCES)


def test_the_option_shows_the_card():
    result = CliRunner().invoke(app, ["show", "gru", "--conventions"])
    assert result.exit_code == 0
    assert "linear_before_reset = 1" in result.output
    alone = CliRunner().invoke(app, ["show", "gru", "--conventions", "--steps"])
    assert alone.exit_code == 2
    assert "--conventions stands alone" in alone.output


def test_a_topic_without_a_card_says_which_have_one():
    with pytest.raises(DeriveError, match="no conventions are kept for 'rnn'") as caught:
        card("rnn")
    assert "gru, lstm" in str(caught.value)


def test_a_card_can_be_wrong():
    wrong = replace(card("lstm"), packing={"torch": ("f", "i", "g", "o")})
    assert not agree("lstm", wrong.packing["torch"], wrong.kinds)
