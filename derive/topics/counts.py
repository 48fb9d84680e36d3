"""Parameter counts from shapes alone: recurrent layers, heads, embeddings.

A gated layer has the shapes of a plain one once for each gate. The tensors of all layers stand in
one system, so that they can be compared.
Source: torch.nn.RNN, GRU, LSTM, Linear, Embedding.
"""

from __future__ import annotations

from derive.building import build_system
from derive.claim import Claim
from derive.equation import System
from derive.topics import Topic, claim

GATES = {"RNN": ("",), "GRU": ("r", "z", "n"), "LSTM": ("i", "f", "g", "o")}
WEIGHTS, ONE_BIAS = {"W_x": ("H", "D"), "W_h": ("H", "H")}, {"b_x": ("H",)}
BOTH = ONE_BIAS | {"b_h": ("H",)}
WORDS = {"W_x": "input weights", "W_h": "recurrent weights", "b_x": "input bias",
         "b_h": "recurrent bias"}  # fmt: skip
SYSTEM = "layers"


def layers_system() -> System:
    """Return the parameters of every layer, over D inputs, H units, C classes, V tokens."""
    gated = {
        kind + gate: (shape, f"{WORDS[kind]}, {model}{' gate ' + gate if gate else ''}")
        for model, gates in GATES.items()
        for gate in gates
        for kind, shape in (WEIGHTS | BOTH).items()
    }
    others = {
        "W_out": (("C", "H"), "output head weights"),
        "b_out": (("C",), "output head bias"),
        "E": (("V", "D"), "embedding table"),
    }
    every = gated | others
    return build_system(
        SYSTEM,
        ("D", "H", "C", "V"),
        {name: shape for name, (shape, _) in every.items()},
        (),
        parameters=tuple(every),
        positions=(),
        meanings={name: words for name, (_, words) in every.items()},
    )


BLOCK = {
    **{f"W_{n}": ("D", "D") for n in "QKVO"},
    **{f"b_{n}": ("D",) for n in "QKVO"},
    "W_1": ("F", "D"),
    "b_1": ("F",),
    "W_2": ("D", "F"),
    "b_2": ("D",),
    **{f"{n}_{at}": ("D",) for n in ("gamma", "beta") for at in (1, 2)},
}
ATTENTION = ", ".join(f"{kind}_{n}" for kind in "Wb" for n in "QKVO")
EVERY = ", ".join(BLOCK)


def transformer_system() -> System:
    """Return the parameters of one encoder block of width D, embeddings, positions, a head."""
    return build_system(
        "transformer",
        ("V", "T", "D", "F", "C"),
        {**BLOCK, "E": ("V", "D"), "pos": ("T", "D"), "W_c": ("C", "D"), "b_c": ("C",)},
        (),
        parameters=(*BLOCK, "E", "pos", "W_c", "b_c"),
        positions=(),
        meanings={"E": "embedding table", "pos": "learned positions", "W_c": "head weights",
                  "b_c": "head bias"},
    )  # fmt: skip


def stack_system() -> System:
    """Return the parameters of N encoder blocks."""
    return build_system(
        "transformer_stack",
        ("N", "D", "F"),
        {n: ("N", *s) for n, s in BLOCK.items()},
        (),
        parameters=tuple(BLOCK),
        positions=(),
    )


def transformer() -> tuple[Claim, ...]:
    """Return the counts of a Transformer encoder."""
    s = "transformer"
    block = "4*D^2 + 4*D + 2*D*F + F + D + 4*D"
    return (
        claim("counts.attention", f"count({ATTENTION}) = 4*D^2 + 4*D",
              "Attention: four square maps and their biases, whatever the number of heads", s),
        claim("counts.mlp", "count(W_1, b_1, W_2, b_2) = 2*D*F + F + D", "The MLP", s),
        claim("counts.norm", "count(gamma_1, beta_1) = 2*D", "A LayerNorm", s),
        claim("counts.block", f"count({EVERY}) = {block}", "An encoder block", s),
        claim("counts.positions", "count(pos) = T*D", "Learned positions: one row each", s),
        claim("counts.tokens", "count(E) = V*D", "The embedding table", s),
        claim("counts.class-head", "count(W_c, b_c) = C*D + C", "A classification head", s),
        claim("counts.encoder", f"count({EVERY}, E, pos, W_c, b_c) = {block} + (V + T + C)*D + C",
              "One block, embeddings, positions and head together", s),
        claim("counts.stack", f"count({EVERY}) = N*({block})", "N blocks: N times one",
              "transformer_stack"),
        claim("counts.attention-three", f"count({ATTENTION}) = 3*D^2 + 3*D",
              "The output projection counts", s, expected="fails",
              reason="queries, keys, values and W_O are four maps"),
        claim("counts.block-no-norms", f"count({EVERY}) = 4*D^2 + 4*D + 2*D*F + F + D",
              "So do the norms", s, expected="fails", reason="two of them with 2 D numbers each"),
    )  # fmt: skip


def counted(model: str, biases: int = 2) -> str:
    """Return ``count(...)`` of a layer's tensors, with one, two or no biases for each gate."""
    kinds = [*WEIGHTS, *list(BOTH)[:biases]]
    return f"count({', '.join(kind + gate for gate in GATES[model] for kind in kinds)})"


def topic() -> Topic:
    """Return the topic."""
    return Topic(
        "counts",
        "Parameter counts",
        {s.name: s for s in (layers_system(), transformer_system(), stack_system())},
        (*plain(), *gated(), *transformer(), *wrong(), *programs()),
        "torch.nn.RNN, GRU, LSTM, Linear, Embedding, TransformerEncoderLayer",
    )


def plain() -> tuple[Claim, ...]:
    """Return the counts of the parts."""
    s = SYSTEM
    return (
        claim("counts.input-weights", "count(W_x) = H*D", "Input weights: a row for each unit", s),
        claim("counts.recurrent-weights", "count(W_h) = H^2", "Recurrent weights: a square", s),
        claim("counts.rnn", f"{counted('RNN', 1)} = H*(D + H + 1)", "RNN, one bias", s),
        claim("counts.rnn-two-biases", f"{counted('RNN')} = H*(D + H) + 2*H",
              "RNN, torch's two biases", s),
        claim("counts.head", "count(W_out, b_out) = C*(H + 1)", "Output head", s),
        claim("counts.embedding", "count(E) = V*D", "Embedding: no bias", s),
    )  # fmt: skip


def gated() -> tuple[Claim, ...]:
    """Return the counts of the gated layers, absolutely and as multiples of the plain one."""
    s, rows = SYSTEM, []
    for model in ("GRU", "LSTM"):
        n, name = len(GATES[model]), model.lower()
        rows += [
            claim(f"counts.{name}", f"{counted(model, 1)} = {n}*H*(D + H + 1)",
                  f"{model}, one bias for each gate", s),
            claim(f"counts.{name}-two-biases", f"{counted(model)} = {n}*H*(D + H) + {2 * n}*H",
                  f"{model}, torch's two biases for each gate", s),
            claim(f"counts.{name}-no-bias", f"{counted(model, 0)} = {n}*H*(D + H)",
                  f"{model}, bias=False", s),
            claim(f"counts.{name}-multiple", f"{counted(model)} = {n}*{counted('RNN')}",
                  f"{model}: {n} times the RNN", s),
            claim(f"counts.{name}-second-bias",
                  f"{counted(model)} = {counted(model, 1)} + {n}*H",
                  f"{model}: what the second bias adds", s),
        ]  # fmt: skip
    return (
        *rows,
        claim("counts.lstm-to-gru", f"3*{counted('LSTM')} = 4*{counted('GRU')}",
              "LSTM to GRU is four to three", s),
        claim("counts.embedded-lstm-classifier",
              f"{counted('LSTM')[:-1]}, E, W_out, b_out) = V*D + 4*H*(D + H + 2) + C*(H + 1)",
              "Embedding, LSTM and head together", s),
    )  # fmt: skip


def wrong() -> tuple[Claim, ...]:
    """Return the counts that are often written and false."""
    s = SYSTEM
    return (
        claim("counts.lstm-three-times", f"{counted('LSTM')} = 3*{counted('RNN')}",
              "LSTM is not three times the RNN", s, expected="fails",
              reason="three gates and the candidate are four maps"),
        claim("counts.gru-twice", f"{counted('GRU')} = 2*{counted('RNN')}",
              "GRU is not twice the RNN", s, expected="fails",
              reason="two gates and the candidate are three maps"),
        claim("counts.lstm-one-bias", f"{counted('LSTM')} = 4*H*(D + H + 1)",
              "torch's LSTM has more than one bias for each gate", s, expected="fails",
              reason="bias_ih and bias_hh are parameters of their own"),
        claim("counts.lstm-squared-sum", f"{counted('LSTM', 1)} = 4*(D + H)^2",
              "The input is not mapped to itself", s, expected="fails",
              reason="each gate has H rows, not D + H"),
        claim("counts.rnn-no-recurrence", f"{counted('RNN', 1)} = H*(D + 1)",
              "The recurrent weights count too", s, expected="fails",
              reason="W_h has H^2 entries"),
    )  # fmt: skip


def programs() -> tuple[Claim, ...]:
    """Return how many numbers torch's modules hold when they are made."""
    return (
        *(
            claim(f"counts.program-{name}", "", f"torch.nn.{name.upper()} holds two biases a gate",
                  "", probe=f"numel.{name}")
            for name in ("rnn", "gru", "lstm")
        ),
        claim("counts.program-lstm-one-bias", "", "torch.nn.LSTM does not hold one bias a gate",
              "", probe="numel.lstm-with-one-bias", expected="fails",
              reason="bias_ih and bias_hh are parameters of their own: 4H numbers more"),
    )  # fmt: skip
