"""The gated recurrent unit in PyTorch's form: gates, Jacobian, adjoints, gradient sums.

The reset gate acts after the recurrent affine map; each gate has two biases. Other forms (a reset
before the map, the opposite blend) are compared with it.
Source: Cho et al. (2014); torch.nn.GRU.
"""

from __future__ import annotations

from derive.claim import Claim
from derive.topics import Topic, claim
from derive.topics import _gru_bounds as bounds
from derive.topics import _gru_forms as forms
from derive.topics import _gru_sums as gradients
from derive.topics import _gru_systems as systems


def topic() -> Topic:
    """Return the topic."""
    return Topic(
        "gru",
        "The gated recurrent unit",
        {
            "gru": systems.gru_system(),
            "gru_cell": systems.cell_system(),
            "gru_reset_before": systems.reset_before_system(),
            "gru_gates": systems.gates_system(),
            "gru_resets": systems.resets_system(),
            "gru_blends": systems.blends_system(),
        },
        (
            *forward(),
            *slopes(),
            *jacobians(),
            *held(),
            *gradients.recursions(),
            *gradients.sums(),
            *gradients.biases(),
            *forms.resets(),
            *forms.reset_before(),
            *forms.blends(),
            *forms.programs(),
            *bounds.gates(),
            *bounds.states(),
            *bounds.paths(),
        ),
        "Cho et al. (2014), arXiv:1406.1078; torch.nn.GRU",
    )


def forward() -> tuple[Claim, ...]:
    """Return the forward equations in row form, and what the blend is."""
    s = "gru"
    return (
        claim("gru.reset-gate", "r[t] = sigmoid(x[t] @ W_xr.T + b_xr + h[t-1] @ W_hr.T + b_hr)",
              "The reset gate reads the input and the previous state", s),
        claim("gru.update-gate", "z[t] = sigmoid(x[t] @ W_xz.T + b_xz + h[t-1] @ W_hz.T + b_hz)",
              "The update gate reads the same", s),
        claim("gru.candidate",
              "n[t] = tanh(x[t] @ W_xn.T + b_xn + r[t]*(h[t-1] @ W_hn.T + b_hn))",
              "The reset gate scales the recurrent part of the candidate", s),
        claim("gru.blend", "h[t] = (1 - z[t])*n[t] + z[t]*h[t-1]",
              "The new state blends the candidate and the previous state", s),
        claim("gru.blend-towards-memory", "h[t] = n[t] + z[t]*(h[t-1] - n[t])",
              "The same, as a step from the candidate towards the memory", s),
        claim("gru.blend-towards-candidate", "h[t] = h[t-1] + (1 - z[t])*(n[t] - h[t-1])",
              "The same, as a step from the memory towards the candidate", s),
        claim("gru.blend-swapped", "h[t] = z[t]*n[t] + (1 - z[t])*h[t-1]",
              "With the same gate the swapped blend is another function", s, expected="fails",
              reason="torch and ONNX keep the memory where z is 1; other texts where it is 0"),
    )  # fmt: skip


def slopes() -> tuple[Claim, ...]:
    """Return the local derivatives of each equation."""
    s = "gru"
    return (
        claim("gru.sigmoid-slope",
              "partial r[t,i]/partial s_r[t,j] = delta(i,j)*r[t,j]*(1 - r[t,j])",
              "A gate's slope is r(1 - r)", s),
        claim("gru.update-slope",
              "partial z[t,i]/partial s_z[t,j] = delta(i,j)*z[t,j]*(1 - z[t,j])",
              "and z(1 - z)", s),
        claim("gru.candidate-slope",
              "partial n[t,i]/partial s_n[t,j] = delta(i,j)*(1 - n[t,j]^2)",
              "The candidate's slope is 1 - n^2", s),
        claim("gru.candidate-by-reset", "partial s_n[t]/partial r[t] = diag(m[t])",
              "The reset gate multiplies the recurrent part m", s),
        claim("gru.candidate-by-memory", "partial s_n[t]/partial m[t] = diag(r[t])",
              "and lets it through where it is open", s),
        claim("gru.blend-by-candidate", "partial h[t]/partial n[t] = diag(1 - z[t])",
              "The blend's weight on the candidate", s),
        claim("gru.blend-by-gate", "partial h[t]/partial z[t] = diag(h[t-1] - n[t])",
              "The update gate moves the state by h[t-1] - n", s),
        claim("gru.blend-by-memory", "partial h[t]/partial h[t-1] = diag(z[t])",
              "The direct path to the previous state", s),
        claim("gru.gate-by-memory", "partial s_z[t]/partial h[t-1] = W_hz",
              "The update gate reads the previous state through W_hz", s),
    )  # fmt: skip


GATE_PATH = "diag((h[t-1] - n[t])*z[t]*(1 - z[t])) @ W_hz"
THROUGH = "diag((1 - z[t])*(1 - n[t]^2))"
CANDIDATE_PATH = f"{THROUGH} @ (diag(r[t]) @ W_hn + diag(m[t]*r[t]*(1 - r[t])) @ W_hr)"
JACOBIAN = f"diag(z[t]) + {GATE_PATH} + {CANDIDATE_PATH}"


def jacobians() -> tuple[Claim, ...]:
    """Return the Jacobian of one step with every path."""
    s = "gru"
    return (
        claim("gru.state-jacobian", f"dh[t]/dh[t-1] = {JACOBIAN}",
              "Four paths: direct, update gate, candidate, reset gate", s),
        claim("gru.state-jacobian-entries",
              "dh[t,i]/dh[t-1,q] = delta(i,q)*z[t,i]"
              " + (h[t-1,i] - n[t,i])*z[t,i]*(1 - z[t,i])*W_hz[i,q]"
              " + (1 - z[t,i])*(1 - n[t,i]^2)*(r[t,i]*W_hn[i,q]"
              " + m[t,i]*r[t,i]*(1 - r[t,i])*W_hr[i,q])",
              "The same, entry by entry", s),
        claim("gru.cell-jacobian",
              "dh/dh_prev = " + JACOBIAN.replace("h[t-1]", "h_prev").replace("[t]", ""),
              "The same for a single step", "gru_cell"),
        claim("gru.input-jacobian",
              "dh[t]/dx[t] = diag((h[t-1] - n[t])*z[t]*(1 - z[t])) @ W_xz"
              f" + {THROUGH} @ (W_xn + diag(m[t]*r[t]*(1 - r[t])) @ W_xr)",
              "The input acts through both gates and the candidate", s),
        claim("gru.jacobian-direct-only", "dh[t]/dh[t-1] = diag(z[t])",
              "The direct path alone is not the Jacobian", s, expected="fails",
              reason="the gates and the candidate read the previous state too"),
        claim("gru.jacobian-without-reset",
              f"dh[t]/dh[t-1] = diag(z[t]) + {GATE_PATH} + {THROUGH} @ diag(r[t]) @ W_hn",
              "Nor is it without the path through the reset gate", s, expected="fails",
              reason="r depends on h[t-1]"),
    )  # fmt: skip


def held() -> tuple[Claim, ...]:
    """Return what holds when gates count as constants."""
    s = "gru"
    return (
        claim("gru.direct-path", "dh[t]/dh[t-1] = diag(z[t])",
              "With the gates and the candidate held, the direct path is left", s,
              assumes=("z, n held",)),
        claim("gru.direct-path-product",
              "dh[t]/dh[s] = prod(k=t..s+1, diag(z[k])) for s <= t",
              "Over many steps it is the product of the update gates", s, assumes=("z, n held",)),
        claim("gru.gates-held", f"dh[t]/dh[t-1] = diag(z[t]) + {THROUGH} @ diag(r[t]) @ W_hn",
              "With both gates held, memory and candidate are left", s, assumes=("r, z held",)),
        claim("gru.direct-path-with-candidate", "dh[t]/dh[t-1] = diag(z[t])",
              "Holding the gates alone does not remove the candidate", s, expected="fails",
              assumes=("r, z held",), reason="the candidate reads h[t-1] through W_hn"),
    )  # fmt: skip
