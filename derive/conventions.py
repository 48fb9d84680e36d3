"""How this project's letters for gated networks read in torch, ONNX and cs231n.

One table for each topic: letters, the order in which gates are packed, biases, blend. Only what is
documented there stands here; "-" where a source has no such model.
Source: torch.nn.LSTM, torch.nn.GRU; ONNX operators LSTM and GRU; Stanford cs231n, assignment on
recurrent networks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from derive.errors import DeriveError, nearest

SOURCES = ("derive", "torch", "ONNX", "cs231n")
"""The columns: this project first."""


@dataclass(frozen=True)
class Convention:
    """One line of a card.

    Args:
        what: What is named or ordered.
        names: As it is in each of `SOURCES`.
    """

    what: str
    names: tuple[str, str, str, str]


@dataclass(frozen=True)
class Card:
    """What a topic's letters mean elsewhere.

    Args:
        title: One line.
        packing: The order of the gates in a packed weight, in this project's letters, by source.
        kinds: This project's tensors by torch's packed parameters.
        rows: The lines.
        notes: What the lines cannot say.
    """

    title: str
    packing: dict[str, tuple[str, ...]]
    kinds: dict[str, str]
    rows: tuple[Convention, ...]
    notes: tuple[str, ...]

    def lines(self) -> Iterator[Convention]:
        """Yield every line, the packing first."""
        orders = (" ".join(self.packing.get(source, ("-",))) for source in SOURCES[1:])
        yield Convention("packing, in our letters", ("separate tensors", *orders))  # type: ignore[arg-type]
        yield from self.rows


KINDS = {"weight_ih": "W_x", "weight_hh": "W_h", "bias_ih": "b_x", "bias_hh": "b_h"}
SHARED = (
    Convention("input weights of gate q", ("W_xq (H, D)", "weight_ih[q] (H, D)", "W[q] (H, D)",
                                           "Wx[:, q] (D, H)")),
    Convention("recurrent weights of gate q", ("W_hq (H, H)", "weight_hh[q] (H, H)",
                                               "R[q] (H, H)", "Wh[:, q] (H, H)")),
)  # fmt: skip

CARDS: dict[str, Card] = {
    "lstm": Card(
        "The long short-term memory",
        {
            "torch": ("i", "f", "g", "o"),
            "ONNX": ("i", "o", "f", "g"),
            "cs231n": ("i", "f", "o", "g"),
        },
        KINDS,
        (
            Convention("packing, in their letters", ("-", "i f g o", "i o f c", "i f o g")),
            Convention("input gate", ("i", "i", "i", "i")),
            Convention("forget gate", ("f", "f", "f", "f")),
            Convention("output gate", ("o", "o", "o", "o")),
            Convention("candidate", ("g", "g", "c", "g")),
            Convention("cell state, state", ("c, h", "c, h", "C, H", "c, h")),
            *SHARED,
            Convention("biases of a gate", ("b_xq + b_hq", "bias_ih + bias_hh", "Wb + Rb",
                                            "b (one)")),
            Convention("a vector is", ("a row", "a row", "a row", "a row, x Wx")),
            Convention("peepholes", ("p_i, p_f, p_o", "-", "P, in the order i o f", "-")),
            Convention("coupled, i = 1 - f", ("lstm_coupled", "-", "input_forget = 1", "-")),
        ),
        (
            "The two biases of a gate act as their sum; torch stores and trains both.",
            "ONNX calls the candidate the cell gate and packs it last, as c.",
        ),
    ),
    "gru": Card(
        "The gated recurrent unit",
        {"torch": ("r", "z", "n"), "ONNX": ("z", "r", "n")},
        KINDS,
        (
            Convention("packing, in their letters", ("-", "r z n", "z r h", "-")),
            Convention("reset gate", ("r", "r", "r", "-")),
            Convention("update gate", ("z", "z", "z", "-")),
            Convention("candidate", ("n", "n", "h", "-")),
            Convention("state", ("h", "h", "H", "-")),
            *(Convention(c.what, (*c.names[:3], "-")) for c in SHARED),
            Convention("biases of a gate", ("b_xq + b_hq", "bias_ih + bias_hh", "Wb + Rb", "-")),
            Convention("blend", ("(1-z)*n + z*h", "(1-z)*n + z*h", "(1-z)*h' + z*H", "-")),
            Convention("reset acts", ("after the map", "after the map",
                                      "before, by default", "-")),
            Convention("as here", ("system gru", "always", "linear_before_reset = 1", "-")),
            Convention("as in the 2014 paper", ("gru_reset_before", "-",
                                                "linear_before_reset = 0", "-")),
        ),
        (
            "Other texts blend z*n + (1-z)*h: the same family, with the gate's preactivation "
            "negated.",
            "b_hn stands behind the reset gate: it cannot be merged with b_xn where the reset acts "
            "after the map.",
        ),
    ),
}  # fmt: skip


def card(topic: str) -> Card:
    """Return a topic's card.

    Raises:
        DeriveError: If it has none.
    """
    if topic not in CARDS:
        raise DeriveError(f"no conventions are kept for {topic!r}", hint=nearest(topic, CARDS))
    return CARDS[topic]


def packed_order(topic: str, source: str = "torch") -> tuple[str, ...]:
    """Return the order in which a source packs the gates, in this project's letters."""
    return card(topic).packing[source]
