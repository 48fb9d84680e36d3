"""Residual routes: the identity beside any function, products of I + J, pre-norm and post-norm.

A branch is any differentiable function of all rows. At a point it is given by its value V and its
Jacobian J there, F(h) = V + J (h - h0) with h0 = h held constant: to first order that is every
such function, and nothing else is known of it.
Source: He et al. (2016), Identity Mappings in Deep Residual Networks, section 2; Xiong et al.
(2020), On Layer Normalization in the Transformer Architecture.
"""

from __future__ import annotations

from derive.building import build_system
from derive.equation import System
from derive.topics import Topic, claim

MEANINGS = {
    "h": "input rows, or the state of each layer",
    "F": "a branch: any differentiable function of all rows",
    "V": "the branch's value at this point",
    "J": "the branch's Jacobian at this point",
    "K": "the second branch's Jacobian",
    "W": "the second branch's value",
    "U": "after the first branch",
    "Y": "after the second branch",
    "n": "normalised rows",
    "sd_h": "root of the variance of a row of h plus eps",
    "sd_r": "root of the variance of a row of r plus eps",
    "y": "post-norm output",
    "r": "sum before the norm",
    "E": "second branch",
    "gamma": "scale of the norm",
    "beta": "shift of the norm",
    "eps": "what keeps the root from zero",
    "G": "gradient from above",
    "a": "slope of a branch",
    "x": "a number",
    "L": "the loss",
}
AROUND = "{v}[t,i] + sum(s, j, {j}[t,i,s,j]*({of}[s,j] - detach({of}[s,j])))"


def branch(value: str, jacobian: str, of: str) -> str:
    """Return a branch to first order around this point."""
    return AROUND.format(v=value, j=jacobian, of=of)


SQUARE = ("T", "D", "T", "D")
ROUTE = (
    f"F[t,i] = {branch('V', 'J', 'h')}",
    "U[t,i] = h[t,i] + F[t,i]",
    f"E[t,i] = {branch('W', 'K', 'U')}",
    "Y[t,i] = U[t,i] + E[t,i]",
)
DEPTH = ("h[l,i] = h[l-1,i] + V[l,i] + sum(j, J[l,i,j]*(h[l-1,j] - detach(h[l-1,j])))",)
NORMS = (
    "sd_h[t] = sqrt(var(j, h[t,j]) + eps)",
    "n[t,i] = gamma[i]*(h[t,i] - mean(j, h[t,j]))/sd_h[t] + beta[i]",
    f"F[t,i] = {branch('V', 'J', 'n')}",
    "U[t,i] = h[t,i] + F[t,i]",
    f"r[t,i] = h[t,i] + {branch('V', 'J', 'h')}",
    "sd_r[t] = sqrt(var(j, r[t,j]) + eps)",
    "y[t,i] = gamma[i]*(r[t,i] - mean(j, r[t,j]))/sd_r[t] + beta[i]",
)


def route_system() -> System:
    """Return two residual branches, one after the other."""
    return build_system(
        "residual",
        ("T", "D"),
        {"h": ("T", "D"), "V": ("T", "D"), "J": SQUARE, "W": ("T", "D"), "K": SQUARE,
         "G": ("T", "D")},
        ROUTE,
        losses={"linear": "sum(t, i, G[t,i]*Y[t,i])"},
        parameters=(),
        meanings=MEANINGS,
        positions=(),
    )  # fmt: skip


def depth_system(name: str, convention: str) -> System:
    """Return N residual layers over one axis of D numbers (rows and features in one)."""
    return build_system(
        name,
        ("N", "D"),
        {"h": ("N", "D"), "V": ("N", "D"), "J": ("N", "D", "D"), "G": ("D",)},
        DEPTH,
        losses={"linear": "sum(i, G[i]*h[N-1,i])"},
        parameters=(),
        meanings=MEANINGS,
        positions=("N",),
        convention=convention,
    )


def norms_system() -> System:
    """Return one branch in a pre-norm and in a post-norm block."""
    return build_system(
        "residual_norms",
        ("T", "D"),
        {"h": ("T", "D"), "gamma": ("D",), "beta": ("D",), "eps": (), "V": ("T", "D"),
         "J": SQUARE},
        NORMS,
        parameters=("gamma", "beta"),
        nonnegative=("eps",),
        meanings=MEANINGS,
        positions=(),
    )  # fmt: skip


def scalar_system() -> System:
    """Return one number and a branch of slope a."""
    return build_system("residual_scalar", (), {"x": (), "a": ()}, ("U = x + a*x",),
                        meanings=MEANINGS)  # fmt: skip


ONE = "delta(t,s)*delta(i,j)"
CLAIMS = (
    claim("residual.jacobian", f"dU[t,i]/dh[s,j] = {ONE} + J[t,i,s,j]",
          "The identity beside the branch's Jacobian, across rows too", "residual"),
    claim("residual.branch", "dF[t,i]/dh[s,j] = J[t,i,s,j]", "The branch's own Jacobian",
          "residual"),
    claim("residual.two", f"dY[t,i]/dh[s,j] = {ONE} + J[t,i,s,j] + K[t,i,s,j]"
          " + sum(u, k, K[t,i,u,k]*J[u,k,s,j])",
          "Two branches: neither, one, the other, both, the later one on the left", "residual"),
    claim("residual.gradient", "dL/dh[s,j] = g_U[s,j] + sum(t, i, g_U[t,i]*J[t,i,s,j])",
          "A gradient arrives unchanged, and through the branch", "residual", "linear"),
    claim("residual.gradient-two", "dL/dU[s,j] = G[s,j] + sum(t, i, G[t,i]*K[t,i,s,j])",
          "At each addition", "residual", "linear"),
    claim("residual.product", "dh[l]/dh[k] = prod(n=l..k+1, eye(D) + J[n]) for k <= l",
          "Through a depth of layers: a product of I + J, the last on the left", "residual_depth"),
    claim("residual.product-column", "g_h[k] = prod(n=k+1..N-1, eye(D) + J[n].T) @ G",
          "The gradient as a column: transposed, the first on the left", "residual_column",
          "linear"),
    claim("residual.product-row", "g_h[k] = G @ prod(n=N-1..k+1, eye(D) + J[n])",
          "The gradient as a row", "residual_depth", "linear"),
    claim("residual.step", "g_h[l-1] = g_h[l] + g_h[l] @ J[l]", "One layer back",
          "residual_depth", "linear"),
    claim("residual.pre-norm", f"dU[t,i]/dh[s,j] = {ONE} + sum(k, J[t,i,s,k]*dn[s,k]/dh[s,j])",
          "Pre-norm: I + J_F J_LN, the norm within its row", "residual_norms"),
    claim("residual.post-norm",
          f"dy[t,i]/dh[s,j] = sum(k, dy[t,i]/dr[t,k]*({ONE.replace('i,', 'k,')} + J[t,k,s,j]))",
          "Post-norm: J_LN (I + J_F), the bypass is normalised too", "residual_norms"),
    claim("residual.no-identity", "dU[t,i]/dh[s,j] = J[t,i,s,j]", "The bypass has a Jacobian",
          "residual", expected="fails", reason="the identity"),
    claim("residual.rows-apart", "dU[t,i]/dh[s,j] = delta(t,s)*(delta(i,j) + J[t,i,s,j])",
          "A branch may mix rows", "residual", expected="fails",
          reason="attention reads other rows"),
    claim("residual.two-no-product", f"dY[t,i]/dh[s,j] = {ONE} + J[t,i,s,j] + K[t,i,s,j]",
          "The route through both branches counts", "residual", expected="fails",
          reason="the second branch reads what the first added"),
    claim("residual.two-order", f"dY[t,i]/dh[s,j] = {ONE} + J[t,i,s,j] + K[t,i,s,j]"
          " + sum(u, k, J[t,i,u,k]*K[u,k,s,j])", "The later branch stands on the left", "residual",
          expected="fails", reason="the chain rule: K after J"),
    claim("residual.ascending", "dh[l]/dh[k] = prod(n=k+1..l, eye(D) + J[n]) for k <= l",
          "The factors descend", "residual_depth", expected="fails",
          reason="the last layer acts last: it stands on the left"),
    claim("residual.power", "dh[l]/dh[k] = eye(D) for k <= l", "The branches count",
          "residual_depth", expected="fails", reason="each layer adds its Jacobian"),
    claim("residual.norms-agree", "U[t,i] = y[t,i]", "Pre-norm and post-norm differ",
          "residual_norms", expected="fails", reason="post-norm normalises the sum"),
    claim("residual.bounded-above", "abs(dU/dx) <= 1", "The bypass bounds nothing from above",
          "residual_scalar", expected="fails", reason="a branch of slope 1 makes it 2"),
    claim("residual.bounded-below", "abs(dU/dx) >= 1", "Nor from below", "residual_scalar",
          expected="fails", reason="a branch of slope -1 cancels it"),
    claim("residual.scalar", "dU/dx = 1 + a", "One number: one plus the branch's slope",
          "residual_scalar"),
)  # fmt: skip


def topic() -> Topic:
    """Return the topic."""
    systems = (
        route_system(),
        depth_system("residual_depth", "row"),
        depth_system("residual_column", "column"),
        norms_system(),
        scalar_system(),
    )
    return Topic(
        "residual",
        "Residual routes",
        {s.name: s for s in systems},
        CLAIMS,
        "He et al. (2016), section 2; Xiong et al. (2020)",
    )
