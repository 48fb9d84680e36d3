"""Forward functions in torch of what gradients do on their way: factors, perturbations, clipping.

Written from the models' definitions with torch alone; conventions as in `.forwards`.
"""

from __future__ import annotations

from typing import Any

from derive.checks.forwards import Keep, Values, layer


def scalar_tanh(v: Values, keep: Keep, loss: str) -> None:
    """h_t = tanh(w h_{t-1} + x_t) with the factor w (1 - h_t^2) of each transition."""
    import torch

    h = v["h_init"][:, -1]
    for x in v["x"].unbind(1):
        h = keep("h", torch.tanh(keep("z", v["w"] * h + x)))
        keep("f", v["w"] * (1 - h**2))
    if loss:
        keep("L", h)


def scalar_factors(v: Values, keep: Keep, loss: str) -> None:
    """h_t = f_t h_{t-1} + x_t."""
    h = v["h_init"][:, -1]
    for x, f in zip(v["x"].unbind(1), v["f"].unbind(1), strict=True):
        h = keep("h", f * h + x)
    if loss:
        keep("L", h)


def rnn_tangent(v: Values, keep: Keep, loss: str) -> None:
    """The tanh network, and a perturbation that its Jacobians carry along."""
    import torch

    h, moved = v["h_init"][:, -1], v["v_init"][:, -1]
    inward, again, plain = layer(v["W_x"], v["b_h"]), layer(v["W_h"]), layer(v["W_h"])
    for x in v["x"].unbind(1):
        h = keep("h", torch.tanh(keep("z", inward(x) + again(h))))
        moved = keep("v", (1 - h**2) * keep("u", plain(moved)))


def linear_tangent(v: Values, keep: Keep, loss: str) -> None:
    """v_t = W_h v_{t-1}, once for each position."""
    moved, again = v["v_init"][:, -1], layer(v["W_h"])
    for _ in range(v["#T"]):
        moved = keep("v", again(moved))


def least(a: Any, b: Any) -> Any:
    """Return the smaller of two values, entry by entry."""
    import torch

    return torch.minimum(torch.as_tensor(a, dtype=b.dtype), b)


def clip(v: Values, keep: Keep, loss: str) -> None:
    """A gradient clipped by its norm, by torch's factor, and entry by entry."""
    import torch

    g, c, eps = v["g"], v["c"], v["eps"]
    norm = torch.linalg.vector_norm
    n = keep("n", norm(g, dim=1))
    q = keep("q", keep("s", least(1.0, c / n))[:, None] * g)
    keep("again", least(1.0, c / keep("m", norm(q, dim=1)))[:, None] * q)
    q_t = keep("q_t", keep("s_t", least(1.0, c / (n + eps)))[:, None] * g)
    m_t = keep("m_t", norm(q_t, dim=1))
    keep("again_t", least(1.0, c / (m_t + eps))[:, None] * q_t)
    keep("e", torch.maximum(-c[:, None], torch.minimum(c[:, None], g)))
