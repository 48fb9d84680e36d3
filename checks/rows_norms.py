"""The rows of torch code for normalisations."""

from __future__ import annotations

from derive.checks import forwards_norms as F
from derive.checks.rows import Module, Row

LAYER = (
    "mu[t] = mean(i, x[t,i])",
    "v[t] = var(i, x[t,i])",
    "sd[t] = sqrt(v[t] + eps)",
    "n[t,i] = (x[t,i] - mu[t])/sd[t]",
)
AFFINE = "y[t,i] = gamma[i]*n[t,i] + beta[i]"
RMS = ("r[t] = sqrt(mean(i, x[t,i]^2) + eps)", "n[t,i] = x[t,i]/r[t]")
LINEAR = {"linear": "sum(t, i, G[t,i]*y[t,i])"}
# torch takes eps as a number: no derivative by it
CLOSED = frozenset({"y", "eps"})


def beside(of: str) -> tuple[str, ...]:
    """Return the equations of the normalised rows of x and of another tensor."""
    return (
        *LAYER,
        of,
        "mu_z[t] = mean(i, z[t,i])",
        "sd_z[t] = sqrt(var(i, z[t,i]) + eps)",
        "n_z[t,i] = (z[t,i] - mu_z[t])/sd_z[t]",
    )


NORMS: dict[str, Row] = {
    "layernorm": Row(
        F.normed,
        (*LAYER, AFFINE),
        LINEAR,
        (Module("torch.nn.functional.layer_norm", F.layer_norm, CLOSED),),
    ),
    "layernorm_variance": Row(F.variance, (*LAYER, "s[t] = var(i, n[t,i])")),
    "layernorm_shifted": Row(F.shifted, beside("z[t,i] = x[t,i] + c[t]")),
    "layernorm_scaled": Row(F.scaled, beside("z[t,i] = a*x[t,i]")),
    "layernorm_variants": Row(
        F.variants,
        (
            *LAYER,
            "u[t,i] = (x[t,i] - mu[t])/sqrt(sum(j, (x[t,j] - mu[t])^2)/(D - 1) + eps)",
            "o[t,i] = (x[t,i] - mu[t])/(sqrt(v[t]) + eps)",
            "q[t,i] = x[t,i]/sqrt(mean(j, x[t,j]^2) + eps)",
        ),
    ),
    "layer_and_batch": Row(
        F.layer_and_batch,
        (*LAYER, "b[t,i] = (x[t,i] - mean(s, x[s,i]))/sqrt(var(s, x[s,i]) + eps)"),
    ),
    "rmsnorm": Row(
        F.rms,
        (*RMS, "y[t,i] = gamma[i]*n[t,i]"),
        LINEAR,
        (Module("torch.nn.functional.rms_norm", F.rms_norm, CLOSED),),
    ),
    "rmsnorm_moved": Row(
        F.rms_moved,
        (
            *RMS,
            "z[t,i] = a*x[t,i]",
            "n_z[t,i] = z[t,i]/sqrt(mean(j, z[t,j]^2) + eps)",
            "w[t,i] = x[t,i] + c[t]",
            "n_w[t,i] = w[t,i]/sqrt(mean(j, w[t,j]^2) + eps)",
        ),
    ),
    "batchnorm": Row(
        F.batch,
        (
            "mu[i] = mean(t, x[t,i])",
            "v[i] = var(t, x[t,i])",
            "sd[i] = sqrt(v[i] + eps)",
            "n[t,i] = (x[t,i] - mu[i])/sd[i]",
            AFFINE,
        ),
        LINEAR,
        (Module("torch.nn.functional.batch_norm", F.batch_norm, CLOSED),),
    ),
}
