"""The position-wise MLP: ReLU and its kink, gradients, what is lost without an activation, counts.

Source: Vaswani et al. (2017), Attention Is All You Need, section 3.3; Goodfellow, Bengio &
Courville (2016), section 6.3.1; Hendrycks & Gimpel (2016), Gaussian Error Linear Units.
"""

from __future__ import annotations

from derive.building import build_system
from derive.claim import Claim
from derive.equation import System
from derive.topics import Topic, claim
from derive.topics._block_claims import Writer
from derive.topics._blocks import MEANINGS as BLOCK
from derive.topics._blocks import mlp

MEANINGS = BLOCK | {
    "X": "rows",
    "Y": "output rows",
    "z": "preactivations",
    "a": "a factor",
    "r": "relu of z",
    "e": "GELU of z, with the error function",
    "q": "GELU of z, with tanh",
    "s": "SiLU of z",
}
LINEAR = {"linear": "sum(t, i, G[t,i]*Y[t,i])"}
AFFINE = ("Z[t,f] = sum(i, W_1[f,i]*X[t,i]) + b_1[f]", "Y[t,i] = sum(f, W_2[i,f]*Z[t,f]) + b_2[i]")


def mlp_system(name: str, equations: tuple[str, ...]) -> System:
    """Return two affine maps over T rows, and a linear loss of their output."""
    shapes = mlp("X", "Y").shapes
    return build_system(
        name,
        ("T", "D", "F"),
        {"X": ("T", "D"), **shapes, "G": ("T", "D")},
        equations,
        losses=LINEAR,
        parameters=tuple(shapes),
        meanings=MEANINGS,
        positions=(),
    )


def units_system() -> System:
    """Return activations of F units."""
    return build_system(
        "units",
        ("F",),
        {"z": ("F",), "a": ()},
        (
            "r[f] = relu(z[f])",
            "e[f] = gelu(z[f])",
            "q[f] = gelu_tanh(z[f])",
            "s[f] = silu(z[f])",
        ),
        meanings=MEANINGS,
        positions=(),
    )


def gradients() -> tuple[Claim, ...]:
    """Return every gradient of the MLP."""
    w = Writer("mlp", "mlp")
    return (*w.mlp("X", "Y"), w.gradient("X", "t,i", w.mlp_input(), "The rows that enter"))


CLAIMS = (
    *gradients(),
    claim("mlp.rows-apart", "dY[t,i]/dX[s,j] = delta(t,s)*sum(f, W_2[i,f]*step(Z[t,f])*W_1[f,j])",
          "Rows do not mix: each has the product of both maps over its active units", "mlp"),
    claim("mlp.collapse", "Y[t,i] = sum(j, sum(f, W_2[i,f]*W_1[f,j])*X[t,j])"
          " + sum(f, W_2[i,f]*b_1[f]) + b_2[i]",
          "Two affine maps without an activation are one", "affine_twice"),
    claim("mlp.collapse-relu", "Y[t,i] = sum(j, sum(f, W_2[i,f]*W_1[f,j])*X[t,j])"
          " + sum(f, W_2[i,f]*b_1[f]) + b_2[i]", "With one between them they are not", "mlp",
          expected="fails", reason="ReLU cuts the negative units off"),
    claim("mlp.count", "count(W_1, b_1, W_2, b_2) = 2*D*F + F + D", "Numbers in both maps", "mlp"),
    claim("mlp.count-no-bias", "count(W_1, b_1, W_2, b_2) = 2*D*F", "The biases count too", "mlp",
          expected="fails", reason="F and D of them"),
    claim("mlp.relu-right", "dr[f]/dz[f] = 1", "The slope of ReLU right of zero", "units",
          assumes=("z[f] > 0",)),
    claim("mlp.relu-left", "dr[f]/dz[f] = 0", "And left of it", "units", assumes=("z[f] < 0",)),
    claim("mlp.relu-positive", "r[f] >= 0", "ReLU is not negative", "units"),
    claim("mlp.relu-halves", "r[f] - relu(-z[f]) = z[f]", "A number is its two halves", "units"),
    claim("mlp.relu-twice", "relu(r[f]) = r[f]", "ReLU twice is ReLU", "units"),
    claim("mlp.relu-scaled", "relu(a*z[f]) = a*r[f]", "A positive factor comes out", "units",
          assumes=("a > 0",)),
    claim("mlp.relu-scaled-negative", "relu(-2*z[f]) = -2*r[f]", "A negative one does not",
          "units", expected="fails", reason="it turns the sign of what is cut off"),
    claim("mlp.relu-sum", "relu(z[f] + a) = r[f] + relu(a)", "ReLU is not additive", "units",
          expected="fails", reason="a positive and a negative part cancel before it, not after"),
    claim("mlp.dZ-value", "dL/dZ[t,f] = g_J[t,f]*J[t,f]", "The slope is no value", "mlp",
          "linear", expected="fails", reason="ReLU's slope is 0 or 1"),
    claim("mlp.dZ-through", "dL/dZ[t,f] = g_J[t,f]", "Negative units pass nothing back", "mlp",
          "linear", expected="fails", reason="their slope is zero"),
    claim("mlp.dW_1-transposed", "dL/dW_1[f,i] = sum(t, g_J[t,f]*X[t,i])",
          "The inner map hears through the activation", "mlp", "linear", expected="fails",
          reason="ReLU's slope stands between"),
    claim("mlp.gelu", "e[f] = z[f]*(1 + erf(z[f]/sqrt(2)))/2",
          "GELU: a number times the normal probability below it", "units"),
    claim("mlp.gelu-slope", "de[f]/dz[f] = (1 + erf(z[f]/sqrt(2)))/2"
          " + z[f]*erf_slope(z[f]/sqrt(2))/(2*sqrt(2))", "Its slope: the probability, and z times "
          "the density", "units"),
    claim("mlp.silu-slope", "ds[f]/dz[f] = sigmoid(z[f])*(1 + z[f]*(1 - sigmoid(z[f])))",
          "The slope of SiLU", "units"),
    claim("mlp.gelu-tanh", "q[f] = e[f]", "The tanh form is another function", "units",
          expected="fails", reason="it is close to GELU, and not equal"),
    claim("mlp.gelu-relu", "e[f] = r[f]", "GELU is not ReLU", "units", expected="fails",
          reason="it is smooth, and negative between"),
    claim("mlp.gelu-slope-value", "de[f]/dz[f] = (1 + erf(z[f]/sqrt(2)))/2",
          "The product rule has two terms", "units", expected="fails",
          reason="the probability moves with z too"),
    claim("mlp.kink", "", "torch takes ReLU's slope at zero as 0", "", probe="relu.slope-at-zero"),
    claim("mlp.kink-one", "", "Not as 1", "", probe="relu.slope-at-zero-of-one", expected="fails",
          reason="both one-sided slopes exist; torch takes the left one"),
    claim("mlp.gelu-forms", "", "torch's two GELU forms differ by less than 0.0005", "",
          probe="gelu.forms-are-close"),
    claim("mlp.gelu-same", "", "They are not the same function", "", probe="gelu.forms-are-equal",
          expected="fails", reason="the tanh form is an approximation"),
)  # fmt: skip


def topic() -> Topic:
    """Return the topic."""
    systems = (
        mlp_system("mlp", mlp("X", "Y").equations),
        mlp_system("affine_twice", AFFINE),
        units_system(),
    )
    return Topic(
        "mlp",
        "The position-wise MLP and its activations",
        {s.name: s for s in systems},
        CLAIMS,
        "Vaswani et al. (2017), section 3.3; Goodfellow, Bengio & Courville (2016), section 6.3.1",
    )
