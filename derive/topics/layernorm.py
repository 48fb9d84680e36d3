"""Layer normalisation and its relatives: statistics, Jacobians, gradients, invariances.

Source: Ba, Kiros & Hinton (2016), Layer Normalization; Zhang & Sennrich (2019), Root Mean Square
Layer Normalization; Ioffe & Szegedy (2015), Batch Normalization.
"""

from __future__ import annotations

from derive.building import build_system
from derive.equation import System
from derive.topics import Topic, claim

MEANINGS = {
    "x": "rows of features",
    "mu": "mean of a row",
    "v": "population variance of a row",
    "sd": "root of the variance plus eps",
    "n": "normalised row",
    "y": "normalised, scaled and shifted row",
    "gamma": "scale of each feature",
    "beta": "shift of each feature",
    "eps": "what keeps the root from zero",
    "s": "population variance of a normalised row",
    "r": "root of the mean square plus eps",
    "G": "dL/dy from above",
    "c": "a number for each row",
    "a": "a factor",
    "L": "the loss",
}
LAYER = (
    "mu[t] = mean(i, x[t,i])",
    "v[t] = var(i, x[t,i])",
    "sd[t] = sqrt(v[t] + eps)",
    "n[t,i] = (x[t,i] - mu[t])/sd[t]",
    "y[t,i] = gamma[i]*n[t,i] + beta[i]",
)
RMS = ("r[t] = sqrt(mean(i, x[t,i]^2) + eps)", "n[t,i] = x[t,i]/r[t]", "y[t,i] = gamma[i]*n[t,i]")
BATCH = (
    "mu[i] = mean(t, x[t,i])",
    "v[i] = var(t, x[t,i])",
    "sd[i] = sqrt(v[i] + eps)",
    "n[t,i] = (x[t,i] - mu[i])/sd[i]",
    "y[t,i] = gamma[i]*n[t,i] + beta[i]",
)
LOSS = {"linear": "sum(t, i, G[t,i]*y[t,i])"}


def system(name: str, equations: tuple[str, ...], more: dict[str, tuple[str, ...]] | None = None,
           losses: dict[str, str] | None = None) -> System:  # fmt: skip
    """Return a system over T rows of D features."""
    shapes = {"x": ("T", "D"), "gamma": ("D",), "beta": ("D",), "eps": (), "G": ("T", "D")}
    text = " ".join((*equations, *(losses or {}).values()))
    used = {n: s for n, s in shapes.items() if n in text}
    return build_system(
        name,
        ("T", "D"),
        used | (more or {}),
        equations,
        losses=losses,
        parameters=tuple(n for n in ("gamma", "beta") if n in used),
        nonnegative=tuple(n for n in ("eps",) if n in used),
        meanings=MEANINGS,
    )


def beside(of: str) -> tuple[str, ...]:
    """Return the normalised rows of x and of another tensor."""
    return (
        *LAYER[:4],
        of,
        "mu_z[t] = mean(i, z[t,i])",
        "sd_z[t] = sqrt(var(i, z[t,i]) + eps)",
        "n_z[t,i] = (z[t,i] - mu_z[t])/sd_z[t]",
    )


def systems() -> tuple[System, ...]:
    """Return all systems."""
    return (
        system("layernorm", LAYER, losses=LOSS),
        system("layernorm_variance", (*LAYER[:4], "s[t] = var(i, n[t,i])")),
        system("layernorm_shifted", beside("z[t,i] = x[t,i] + c[t]"), {"c": ("T",)}),
        system("layernorm_scaled", beside("z[t,i] = a*x[t,i]"), {"a": ()}),
        system(
            "layernorm_variants",
            (
                *LAYER[:4],
                "u[t,i] = (x[t,i] - mu[t])/sqrt(sum(j, (x[t,j] - mu[t])^2)/(D - 1) + eps)",
                "o[t,i] = (x[t,i] - mu[t])/(sqrt(v[t]) + eps)",
                "q[t,i] = x[t,i]/sqrt(mean(j, x[t,j]^2) + eps)",
            ),
        ),
        system("rmsnorm", RMS, losses=LOSS),
        system(
            "rmsnorm_moved",
            (
                *RMS[:2],
                "z[t,i] = a*x[t,i]",
                "n_z[t,i] = z[t,i]/sqrt(mean(j, z[t,j]^2) + eps)",
                "w[t,i] = x[t,i] + c[t]",
                "n_w[t,i] = w[t,i]/sqrt(mean(j, w[t,j]^2) + eps)",
            ),
            {"a": (), "c": ("T",)},
        ),
        system("batchnorm", BATCH, losses=LOSS),
        system(
            "layer_and_batch",
            (*LAYER[:4], "b[t,i] = (x[t,i] - mean(s, x[s,i]))/sqrt(var(s, x[s,i]) + eps)"),
        ),
    )


PLAIN = (
    claim("layernorm.zero-mean", "mean(i, n[t,i]) = 0", "A normalised row has mean zero",
          "layernorm"),
    claim("layernorm.variance-positive", "v[t] >= 0", "A variance is not negative",
          "layernorm_variance"),
    claim("layernorm.variance", "s[t] = v[t]/(v[t] + eps)",
          "The variance of a normalised row is a little below one", "layernorm_variance"),
    claim("layernorm.unit-variance", "s[t] = 1", "It is one only without eps",
          "layernorm_variance", assumes=("eps = 0",), using=("layernorm.variance",)),
    claim("layernorm.mean-is-beta", "mean(i, y[t,i]) = mean(i, gamma[i]*n[t,i]) + mean(i, beta[i])",
          "Scale and shift move the mean again", "layernorm"),
    claim("layernorm.jacobian",
          "dy[t,i]/dx[t,j] = gamma[i]*(delta(i,j) - 1/D - n[t,i]*n[t,j]/D)/sd[t]",
          "The Jacobian of a row", "layernorm"),
    claim("layernorm.rows-apart", "dy[t,i]/dx[s,j] = 0 for s < t", "Rows do not mix", "layernorm"),
    claim("layernorm.jacobian-rows", "sum(j, dy[t,i]/dx[t,j]) = 0",
          "A common shift of a row has no effect: its Jacobian's rows sum to zero", "layernorm"),
    claim("layernorm.jacobian-self", "sum(j, dn[t,i]/dx[t,j]*n[t,j]) = eps*n[t,i]/sd[t]^3",
          "Along the row itself only eps lets anything through", "layernorm"),
    claim("layernorm.dx", "dL/dx[t,i] = (gamma[i]*G[t,i] - mean(j, gamma[j]*G[t,j])"
          " - n[t,i]*mean(j, gamma[j]*G[t,j]*n[t,j]))/sd[t]", "The gradient of the input",
          "layernorm", "linear"),
    claim("layernorm.dgamma", "dL/dgamma[i] = sum(t, G[t,i]*n[t,i])", "The gradient of the scale",
          "layernorm", "linear"),
    claim("layernorm.dbeta", "dL/dbeta[i] = sum(t, G[t,i])", "The gradient of the shift",
          "layernorm", "linear"),
    claim("layernorm.dx-sums-to-zero", "sum(i, dL/dx[t,i]) = 0",
          "The gradient of a row sums to zero", "layernorm", "linear"),
    claim("layernorm.unit-mean", "mean(i, n[t,i]) = 1", "Not a mean of one", "layernorm",
          expected="fails", reason="the mean is subtracted: it is zero"),
    claim("layernorm.variance-one", "var(i, n[t,i]) = 1", "Nor a variance of exactly one",
          "layernorm", expected="fails", reason="eps stands in the root: v/(v + eps)"),
    claim("layernorm.jacobian-diagonal", "dy[t,i]/dx[t,j] = gamma[i]*delta(i,j)/sd[t]",
          "The statistics depend on the row too", "layernorm", expected="fails",
          reason="mean and variance of the row move with each feature"),
    claim("layernorm.jacobian-no-mean",
          "dy[t,i]/dx[t,j] = gamma[i]*(delta(i,j) - n[t,i]*n[t,j]/D)/sd[t]",
          "The mean's path is missing", "layernorm", expected="fails",
          reason="-1/D is the path through the mean"),
    claim("layernorm.jacobian-scale-of-j",
          "dy[t,i]/dx[t,j] = gamma[j]*(delta(i,j) - 1/D - n[t,i]*n[t,j]/D)/sd[t]",
          "The scale belongs to the output", "layernorm", expected="fails",
          reason="gamma multiplies after the row is normalised"),
    claim("layernorm.dx-gamma-outside", "dL/dx[t,i] = gamma[i]*(G[t,i] - mean(j, G[t,j])"
          " - n[t,i]*mean(j, G[t,j]*n[t,j]))/sd[t]", "The scale comes before the means",
          "layernorm", "linear", expected="fails",
          reason="what is averaged is the gradient of the normalised row, gamma G"),
    claim("layernorm.dgamma-outputs", "dL/dgamma[i] = sum(t, G[t,i]*y[t,i])",
          "The scale hears from normalised rows, not from outputs", "layernorm", "linear",
          expected="fails", reason="y = gamma n + beta: its slope by gamma is n"),
)  # fmt: skip
INVARIANT = (
    claim("layernorm.shift", "n_z[t,i] = n[t,i]", "A shift of a row changes nothing, at any eps",
          "layernorm_shifted"),
    claim("layernorm.scale", "n_z[t,i] = n[t,i]", "A positive factor changes nothing without eps",
          "layernorm_scaled", assumes=("eps = 0", "a > 0")),
    claim("layernorm.scale-negative", "n_z[t,i] = -n[t,i]", "A negative one turns the sign",
          "layernorm_scaled", assumes=("eps = 0", "a < 0")),
    claim("layernorm.scale-roots", "n_z[t,i]*sd_z[t] = a*sd[t]*n[t,i]",
          "At any eps the rows are as the roots are", "layernorm_scaled"),
    claim("layernorm.scale-gap", "(a*sd[t])^2 - sd_z[t]^2 = eps*(a^2 - 1)",
          "The roots agree, for a > 0 and a row that varies, iff eps (a^2 - 1) = 0",
          "layernorm_scaled"),
    claim("layernorm.scale-one", "n_z[t,i] = n[t,i]", "A factor of one changes nothing",
          "layernorm_scaled", assumes=("a = 1",)),
    claim("layernorm.scale-any-eps", "n_z[t,i] = n[t,i]", "With eps a factor does change it",
          "layernorm_scaled", assumes=("a > 0",), expected="fails",
          reason="the variance grows by a^2 and eps does not"),
    claim("layernorm.constant-row", "y[t,i] = beta[i]", "Of a constant row only the shift is left",
          "layernorm", assumes=("x[t,i] = 1",)),
    claim("layernorm.unbiased", "u[t,i] = n[t,i]", "The variance divides by D, not by D - 1",
          "layernorm_variants", expected="fails", reason="the population variance is meant"),
    claim("layernorm.eps-outside", "o[t,i] = n[t,i]", "eps stands under the root",
          "layernorm_variants", expected="fails",
          reason="sqrt(v) + eps is another number than sqrt(v + eps)"),
    claim("layernorm.rms-is-layer", "q[t,i] = n[t,i]", "RMSNorm is another function",
          "layernorm_variants", expected="fails", reason="it subtracts no mean"),
    claim("layernorm.batch-is-layer", "b[t,i] = n[t,i]", "BatchNorm is another axis",
               "layer_and_batch", expected="fails",
               reason="it normalises each feature over the rows"),
)  # fmt: skip
RELATIVES = (
    claim("layernorm.rms-square", "mean(i, n[t,i]^2) = 1 - eps/r[t]^2",
          "RMSNorm: the mean square is a little below one", "rmsnorm"),
    claim("layernorm.rms-jacobian",
          "dy[t,i]/dx[t,j] = gamma[i]*(delta(i,j) - n[t,i]*n[t,j]/D)/r[t]", "Its Jacobian",
          "rmsnorm"),
    claim("layernorm.rms-dx", "dL/dx[t,i] = (gamma[i]*G[t,i]"
          " - n[t,i]*mean(j, gamma[j]*G[t,j]*n[t,j]))/r[t]", "Its gradient of the input",
          "rmsnorm", "linear"),
    claim("layernorm.rms-dgamma", "dL/dgamma[i] = sum(t, G[t,i]*n[t,i])",
          "Its gradient of the scale", "rmsnorm", "linear"),
    claim("layernorm.rms-scale", "n_z[t,i] = n[t,i]",
          "A positive factor changes nothing at eps = 0",
          "rmsnorm_moved", assumes=("eps = 0", "a > 0")),
    claim("layernorm.rms-shift", "n_w[t,i] = n[t,i]", "A shift does", "rmsnorm_moved",
          expected="fails", reason="RMSNorm subtracts no mean"),
    claim("layernorm.batch-mean", "mean(t, n[t,i]) = 0",
          "BatchNorm: each feature has mean zero over the rows", "batchnorm"),
    claim("layernorm.batch-variance", "var(t, n[t,i]) = v[i]/(v[i] + eps)", "Its variance",
          "batchnorm"),
    claim("layernorm.batch-dx", "dL/dx[t,i] = gamma[i]*(G[t,i] - mean(s, G[s,i])"
          " - n[t,i]*mean(s, G[s,i]*n[s,i]))/sd[i]", "Its gradient couples the rows", "batchnorm",
          "linear"),
    claim("layernorm.batch-rows-mix", "dy[t,i]/dx[s,i] = -gamma[i]*(1 + n[t,i]*n[s,i])/(T*sd[i])"
          " for s < t", "Every row depends on every other", "batchnorm"),
    claim("layernorm.batch-rows-apart", "dy[t,i]/dx[s,i] = 0 for s < t", "Its rows do mix",
          "batchnorm", expected="fails", reason="the statistics are over the rows"),
)  # fmt: skip


def topic() -> Topic:
    """Return the topic."""
    return Topic(
        "layernorm",
        "Layer normalisation and its relatives",
        {s.name: s for s in systems()},
        PLAIN + INVARIANT + RELATIVES,
        "Ba, Kiros & Hinton (2016); Zhang & Sennrich (2019); Ioffe & Szegedy (2015)",
    )
