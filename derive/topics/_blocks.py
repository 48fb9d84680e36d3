"""The equations of Transformer blocks, put together from attention, LayerNorm and the MLP.

Source: Vaswani et al. (2017), Attention Is All You Need, sections 3.1 to 3.3 (post-norm); Xiong et
al. (2020), On Layer Normalization in the Transformer Architecture (pre-norm).
"""

from __future__ import annotations

from dataclasses import dataclass

Shapes = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Part:
    """Equations and the shapes of the parameters that they read."""

    equations: tuple[str, ...]
    shapes: Shapes

    def __add__(self, other: Part) -> Part:
        """Return both, one after the other."""
        return Part(self.equations + other.equations, self.shapes | other.shapes)


def norm(of: str, to: str, at: int) -> Part:
    """Return LayerNorm of the rows of `of`, number `at` of its block."""
    return Part(
        (
            f"mu_{at}[t] = mean(i, {of}[t,i])",
            f"sd_{at}[t] = sqrt(var(i, {of}[t,i]) + eps)",
            f"H_{at}[t,i] = ({of}[t,i] - mu_{at}[t])/sd_{at}[t]",
            f"{to}[t,i] = gamma_{at}[i]*H_{at}[t,i] + beta_{at}[i]",
        ),
        {f"gamma_{at}": ("D",), f"beta_{at}": ("D",), "eps": ()},
    )


def attention(of: str, to: str, at: str = "", source: str = "", mask: str = "{}") -> Part:
    """Return multi-head attention of `of` over itself or a source, with biases.

    Args:
        of: The rows that ask.
        to: The output's name.
        at: What the names of this attention end in.
        source: The rows that answer; those that ask where empty.
        mask: A text that holds a score, `{}`.
    """
    source = source or of
    q, k, v, s, a, o = (f"{name}{at}" for name in ("Q", "K", "V", "S", "A", "O"))
    w = {name: (f"W_{name}{at}", f"b_{name}{at}") for name in "QKVO"}
    score = mask.format(f"{s}[n,t,s]")
    return Part(
        (
            f"{q}[n,t,k] = sum(i, {w['Q'][0]}[n,k,i]*{of}[t,i]) + {w['Q'][1]}[n,k]",
            f"{k}[n,s,k] = sum(i, {w['K'][0]}[n,k,i]*{source}[s,i]) + {w['K'][1]}[n,k]",
            f"{v}[n,s,v] = sum(i, {w['V'][0]}[n,v,i]*{source}[s,i]) + {w['V'][1]}[n,v]",
            f"{s}[n,t,s] = sum(k, {q}[n,t,k]*{k}[n,s,k])/sqrt(d_k)",
            f"{a}[n,t,s] = softmax(s, {score})",
            f"{o}[n,t,v] = sum(s, {a}[n,t,s]*{v}[n,s,v])",
            f"{to}[t,i] = sum(n, v, {w['O'][0]}[i,n,v]*{o}[n,t,v]) + {w['O'][1]}[i]",
        ),
        {
            w["Q"][0]: ("N", "d_k", "D"),
            w["Q"][1]: ("N", "d_k"),
            w["K"][0]: ("N", "d_k", "D"),
            w["K"][1]: ("N", "d_k"),
            w["V"][0]: ("N", "d_v", "D"),
            w["V"][1]: ("N", "d_v"),
            w["O"][0]: ("D", "N", "d_v"),
            w["O"][1]: ("D",),
        },
    )


def mlp(of: str, to: str) -> Part:
    """Return the position-wise MLP with ReLU."""
    return Part(
        (
            f"Z[t,f] = sum(i, W_1[f,i]*{of}[t,i]) + b_1[f]",
            "J[t,f] = relu(Z[t,f])",
            f"{to}[t,i] = sum(f, W_2[i,f]*J[t,f]) + b_2[i]",
        ),
        {"W_1": ("F", "D"), "b_1": ("F",), "W_2": ("D", "F"), "b_2": ("D",)},
    )


def added(to: str, first: str, second: str) -> Part:
    """Return a residual addition."""
    return Part((f"{to}[t,i] = {first}[t,i] + {second}[t,i]",), {})


MEANINGS = {
    "h": "input rows",
    "M": "rows of the memory",
    "X": "normalised input rows",
    "R": "rows that enter the MLP, or leave it",
    "C": "rows that ask the memory",
    "U": "after the attention branch",
    "E": "after the memory branch",
    "Y": "output rows",
    "B_att": "attention branch",
    "B_mem": "memory branch",
    "B_mlp": "MLP branch",
    "Q": "queries of each head",
    "K": "keys of each head",
    "V": "values of each head",
    "S": "scores of each head",
    "A": "weights of each head",
    "O": "output of each head",
    "Z": "MLP preactivations",
    "J": "activated MLP units",
    "W_1": "inner MLP map",
    "b_1": "inner MLP bias",
    "W_2": "outer MLP map",
    "b_2": "outer MLP bias",
    "P": "permutation of the rows",
    "m": "1 for a real row, 0 for padding",
    "G": "dL/dY from above",
    "eps": "what keeps the roots of the norms from zero",
    "L": "the loss",
}
