"""Why scores are divided by the root of their width: variances by the moments alone; saturation.

No distribution is assumed: independence, means and variances decide, and each is broken once.
Source: Vaswani et al. (2017), Attention Is All You Need, section 3.2.1, footnote 4.
"""

from __future__ import annotations

from derive.building import build_system
from derive.equation import System
from derive.topics import Topic, claim

MEANINGS = {
    "q": "query",
    "k": "key",
    "mu_q": "means of the query",
    "mu_k": "means of the key",
    "v_q": "variances of the query",
    "v_k": "variances of the key",
    "shifted": "query of mean 1",
    "wide": "query of variance 2",
    "normal": "query whose fourth moment is a normal one's",
    "u": "exp of the other scores",
    "v": "exp of the largest score",
    "r": "bound of their ratio: exp of minus the gap",
    "p_w": "weight of the largest score",
    "p": "weights of the others",
    "z": "scores",
    "w": "weights of scores",
    "a": "the largest score",
}
UNIT = {"mean": "0", "variance": "1"}


def dot_system() -> System:
    """Return random queries and keys over d_k features, and queries that break an assumption."""
    return build_system(
        "dot",
        ("d_k",),
        {n: ("d_k",) for n in ("q", "k", "shifted", "wide", "normal")},
        (),
        parameters=(),
        random={
            "q": UNIT,
            "k": UNIT,
            "shifted": {"mean": "1", "variance": "1"},
            "wide": {"mean": "0", "variance": "2"},
            "normal": {**UNIT, "third": "0", "fourth": "3"},
        },
        meanings=MEANINGS,
    )


def general_system() -> System:
    """Return queries and keys of any means and variances."""
    names = ("mu_q", "mu_k", "v_q", "v_k", "q", "k")
    return build_system(
        "moments",
        ("d_k",),
        {n: ("d_k",) for n in names},
        (),
        parameters=(),
        random={
            "q": {"mean": "mu_q", "variance": "v_q"},
            "k": {"mean": "mu_k", "variance": "v_k"},
        },
        meanings=MEANINGS,
    )


def saturation_system() -> System:
    """Return the weights of one score and of C others, through their exponentials."""
    return build_system(
        "saturation",
        ("C",),
        {"u": ("C",), "v": (), "r": ()},
        ("p_w = v/(v + sum(c, u[c]))", "p[c] = u[c]/(v + sum(d, u[d]))"),
        nonnegative=("u", "v", "r"),
        parameters=(),
        meanings=MEANINGS,
        positions=(),
    )


def scores_system() -> System:
    """Return the weights of a score and C others, by their exponentials' definition."""
    return build_system(
        "gap_scores",
        ("C",),
        {"z": ("C",), "a": ()},
        (
            "u[c] = exp(z[c])",
            "v = exp(a)",
            "p_w = v/(v + sum(c, u[c]))",
            "p[c] = u[c]/(v + sum(d, u[d]))",
        ),
        parameters=(),
        meanings=MEANINGS,
        positions=(),
    )


GAP = ("u[c] <= r*v",)
DOT = "sum(i, q[i]*k[i])"
SUM = "sum(i, v_q[i]*v_k[i] + mu_q[i]^2*v_k[i] + mu_k[i]^2*v_q[i])"
CLAIMS = (
    claim("scaling_variance.mean", f"E({DOT}) = 0", "A score of independent features has mean zero",
          "dot"),
    claim("scaling_variance.product", "Var(q[i]*k[i]) = 1", "One product has variance one", "dot"),
    claim("scaling_variance.dot", f"Var({DOT}) = d_k", "A score's variance grows with its width",
          "dot"),
    claim("scaling_variance.scaled", f"Var({DOT}/sqrt(d_k)) = 1",
          "Divided by the root of the width it is one", "dot"),
    claim("scaling_variance.by-width", f"Var({DOT}/d_k) = 1/d_k",
          "Divided by the width it falls to zero", "dot"),
    claim("scaling_variance.two-scores", f"Cov({DOT}, sum(i, normal[i]*k[i])) = 0",
          "Two queries' scores of one key are uncorrelated", "dot"),
    claim("scaling_variance.general", f"Var(sum(i, q[i]*k[i])) = {SUM}",
          "For any means and variances", "moments"),
    claim("scaling_variance.general-mean", "E(sum(i, q[i]*k[i])) = sum(i, mu_q[i]*mu_k[i])",
          "And any means", "moments"),
    claim("scaling_variance.shifted", "Var(sum(i, shifted[i]*k[i])) = 2*d_k",
          "A mean of one doubles it", "dot"),
    claim("scaling_variance.wide", "Var(sum(i, wide[i]*k[i])) = 2*d_k",
          "So does a variance of two", "dot"),
    claim("scaling_variance.same", "Var(sum(i, normal[i]*normal[i])) = 2*d_k",
          "A normal query with itself: its fourth moment counts", "dot"),
    claim("scaling_variance.needs-zero-mean", "Var(sum(i, shifted[i]*k[i])) = d_k",
          "Zero means are needed", "dot", expected="fails",
          reason="a mean of one adds the other's variance"),
    claim("scaling_variance.needs-unit-variance", "Var(sum(i, wide[i]*k[i])) = d_k",
          "Unit variances are needed", "dot", expected="fails",
          reason="variances multiply"),
    claim("scaling_variance.needs-independence", "Var(sum(i, normal[i]*normal[i])) = d_k",
          "Independence is needed", "dot", expected="fails",
          reason="a query with itself has the variance of its square"),
    claim("scaling_variance.unscaled", f"Var({DOT}) = 1", "Without scaling it is not one", "dot",
          expected="fails", reason="d_k products of variance one are added"),
    claim("scaling_variance.root", f"Var({DOT}) = sqrt(d_k)", "The root is of the deviation",
          "dot", expected="fails", reason="the standard deviation is sqrt(d_k)"),
    claim("scaling_variance.width-is-one", f"Var({DOT}/d_k) = 1", "The width is too much", "dot",
          expected="fails", reason="the variance is divided by its square"),
    claim("scaling_variance.rest", "sum(c, p[c]) = 1 - p_w", "What one weight leaves",
          "saturation"),
    claim("scaling_variance.diagonal", "p_w*(1 - p_w) <= 1 - p_w",
          "The slope of a weight by its own score is at most what it leaves", "saturation"),
    claim("scaling_variance.other-diagonal", "p[c]*(1 - p[c]) <= 1 - p_w",
          "So is that of any other weight", "saturation"),
    claim("scaling_variance.cross", "p[c]*p_w <= 1 - p_w", "So are the slopes across",
          "saturation"),
    claim("scaling_variance.others", "p[c]*p[d] <= 1 - p_w",
          "And those between others: no entry of the Jacobian is above 1 - p_w", "saturation"),
    claim("scaling_variance.gap", "1 - p_w <= C*r",
          "A gap leaves at most (n-1) exp(-gap): every slope falls to zero as it grows",
          "saturation", assumes=GAP),
    claim("scaling_variance.gap-weight", "p[c] <= r", "Every other weight is below exp(-gap)",
          "saturation", assumes=GAP),
    claim("scaling_variance.gap-slope", "p_w*(1 - p_w) <= C*r", "And so is the slope of the first",
          "saturation", assumes=GAP),
    claim("scaling_variance.quarter", "p_w*(1 - p_w) <= 1/4", "No slope is above one quarter",
          "saturation"),
    claim("scaling_variance.slope", "dp_w/da = p_w*(1 - p_w)",
          "These are the slopes: of the first weight by its score", "gap_scores"),
    claim("scaling_variance.slope-across", "dp[c]/da = -p[c]*p_w", "Of another by that score",
          "gap_scores"),
    claim("scaling_variance.slope-others", "dp[c]/dz[d] = p[c]*(delta(c,d) - p[d])",
          "Of another by another", "gap_scores"),
    claim("scaling_variance.ties", "1 - p_w <= C*r", "Without a gap nothing saturates",
          "saturation", expected="fails", reason="tied scores share the weight, however large"),
    claim("scaling_variance.slope-above-quarter", "p_w*(1 - p_w) <= 1/5",
          "A slope may be one quarter", "saturation", expected="fails",
          reason="at p = 1/2 it is 1/4"),
)  # fmt: skip


def topic() -> Topic:
    """Return the topic."""
    systems = (dot_system(), general_system(), saturation_system(), scores_system())
    return Topic(
        "scaling_variance",
        "The scaling of scores, and saturation",
        {s.name: s for s in systems},
        CLAIMS,
        "Vaswani et al. (2017), section 3.2.1, footnote 4",
    )
