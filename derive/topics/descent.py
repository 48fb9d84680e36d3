"""Derivatives by definition, gradient descent, its stochastic form, weight decay.

Source: Goodfellow, Bengio & Courville (2016), sections 4.3, 5.9 and 8.1; Boyd & Vandenberghe
(2004), section 9.3.
"""

from __future__ import annotations

from derive.building import build_system
from derive.claim import Claim
from derive.equation import System
from derive.topics import Topic, claim

MEANINGS = {
    "x": "a point",
    "e": "a step away from it",
    "y": "value of the function",
    "A": "matrix of the quadratic",
    "b": "linear part, or offset",
    "G": "gradient, written out",
    "value": "the function at x",
    "moved": "the function at x + e",
    "W": "weights of the first map",
    "V": "weights of the second map",
    "eta": "learning rate",
    "lam": "eigenvalues of the quadratic, one a coordinate",
    "theta": "parameters; theta[-1] is the start",
    "f": "the function before a step",
    "q": "a bound of |1 - eta lambda|",
    "l": "loss of one sample",
    "X": "samples, one a row",
    "pick": "1 at the sample that is drawn, else 0",
    "rate": "probability of drawing each sample",
    "decay": "weight of the penalty",
    "noise": "independent draws of mean 0 and variance 1",
    "one": "one draw of mean 0 and variance 1",
}


def power_system() -> System:
    """Return y = x^T: the positions stand for exponents."""
    return build_system(
        "power",
        ("T",),
        {"x": (), "a": ()},
        ("y = x^T",),
        parameters=("x",),
        meanings=MEANINGS | {"a": "another point"},
    )


def quadratic_system() -> System:
    """Return a quadratic, its gradient written out, and its value a step away."""
    return build_system(
        "quadratic",
        ("D",),
        {"x": ("D",), "e": ("D",), "A": ("D", "D"), "b": ("D",)},
        (
            "value = 1/2*sum(i, j, x[i]*A[i,j]*x[j]) - sum(i, b[i]*x[i])",
            "G[i] = 1/2*sum(j, (A[i,j] + A[j,i])*x[j]) - b[i]",
            "moved = 1/2*sum(i, j, (x[i] + e[i])*A[i,j]*(x[j] + e[j]))"
            " - sum(i, b[i]*(x[i] + e[i]))",
        ),
        losses={"quadratic": "value"},
        parameters=("x",),
        meanings=MEANINGS,
    )


def maps_system() -> System:
    """Return two maps, one after the other: y = V tanh(W x + b)."""
    return build_system(
        "maps",
        ("D", "H", "K"),
        {"x": ("D",), "W": ("H", "D"), "b": ("H",), "V": ("K", "H")},
        ("u[j] = tanh(sum(i, W[j,i]*x[i]) + b[j])", "y[k] = sum(j, V[k,j]*u[j])"),
        parameters=("W", "b", "V"),
        meanings=MEANINGS | {"u": "hidden vector"},
    )


def descent_system() -> System:
    """Return descent on 1/2 sum_i lambda_i theta_i^2: the diagonal of any quadratic."""
    return build_system(
        "descent",
        ("T", "D"),
        {"lam": ("D",), "eta": (), "q": (), "theta": ("T", "D")},
        (
            "theta[t,i] = theta[t-1,i] - eta*lam[i]*theta[t-1,i]",
            "f[t] = 1/2*sum(i, lam[i]*theta[t,i]^2)",
        ),
        parameters=(),
        meanings=MEANINGS | {"f": "the quadratic after each step"},
    )


def sgd_system() -> System:
    """Return N samples of a linear model; one is drawn with probabilities ``rate``."""
    return build_system(
        "sgd",
        ("N", "D"),
        {"X": ("N", "D"), "y": ("N",), "theta": ("D",), "rate": ("N",), "pick": ("N",),
         "eta": (), "decay": ()},
        ("l[n] = 1/2*(sum(i, X[n,i]*theta[i]) - y[n])^2",),
        losses={
            "mean": "mean(n, l[n])",
            "penalised": "mean(n, l[n]) + 1/2*decay*sum(i, theta[i]^2)",
        },
        parameters=("theta",),
        random={"pick": {"mean": "rate"}},
        meanings=MEANINGS | {"y": "targets"},
    )  # fmt: skip


def sums_system() -> System:
    """Return N independent draws, and one draw taken N times."""
    return build_system(
        "sums",
        ("N",),
        {"noise": ("N",), "one": (), "mu": ("N",), "var_x": ("N",), "x": ("N",)},
        (),
        random={
            "noise": {"mean": "0", "variance": "1"},
            "one": {"mean": "0", "variance": "1"},
            "x": {"mean": "mu", "variance": "var_x"},
        },
        parameters=(),
        meanings=MEANINGS
        | {"mu": "means", "var_x": "variances", "x": "independent draws of any mean and variance"},
    )


def topic() -> Topic:
    """Return the topic."""
    return Topic(
        "descent",
        "Derivatives by definition and gradient descent",
        {
            "power": power_system(),
            "quadratic": quadratic_system(),
            "maps": maps_system(),
            "descent": descent_system(),
            "sgd": sgd_system(),
            "sums": sums_system(),
        },
        (*definitions(), *steps(), *rates(), *stochastic(), *sums()),
        "Goodfellow, Bengio & Courville (2016), sections 4.3, 5.9, 8.1; Boyd & Vandenberghe "
        "(2004), section 9.3",
    )


def definitions() -> tuple[Claim, ...]:
    """Return derivative, gradient, Jacobian and Hessian from what defines them."""
    p, q, m = "power", "quadratic", "maps"
    return (
        claim("descent.power-difference",
              "x^p = a^p - (a - x)*sum(k=0..p-1, a^k*x^(p-1-k))",
              "The difference of powers is the step a - x times a sum: no quotient is left", p),
        claim("descent.power-limit", "sum(k=0..p-1, x^k*x^(p-1-k)) = p*x^(p-1) for p >= 1",
              "At a step of zero the quotient is n x^(n-1)", p),
        claim("descent.power-derivative", "dy/dx = T*x^(T-1)",
              "The derivative of x^n is n x^(n-1)", p),
        claim("descent.power-lost-factor", "dy/dx = x^(T-1)", "The exponent comes down", p,
              expected="fails", reason="n factors contribute once each"),
        claim("descent.gradient", "dL/dx = G", "The gradient collects the partial derivatives", q,
              "quadratic"),
        claim("descent.gradient-unsymmetric", "dL/dx[i] = sum(j, A[i,j]*x[j]) - b[i]",
              "A x - b is the gradient of a symmetric A only", q, "quadratic", expected="fails",
              reason="the gradient is (A + A')x/2 - b"),
        claim("descent.hessian", "dG[i]/dx[j] = 1/2*(A[i,j] + A[j,i])",
              "The Hessian is the Jacobian of the gradient", q),
        claim("descent.hessian-symmetric", "dG[i]/dx[j] = dG[j]/dx[i]",
              "The Hessian is symmetric", q),
        claim("descent.expansion",
              "moved = value + sum(i, G[i]*e[i]) + 1/2*sum(i, j, e[i]*dG[i]/dx[j]*e[j])",
              "Value, gradient and Hessian give the function a step away, a quadratic exactly", q),
        claim("descent.jacobian-linear", "dy/du = V", "The Jacobian of a linear map is its matrix",
              m),
        claim("descent.jacobian-chain", "dy/dx = V @ diag(1 - u^2) @ W",
              "Jacobians of maps in series multiply, the last one first", m),
        claim("descent.jacobian-entries", "dy[k]/dx[i] = sum(j, V[k,j]*(1 - u[j]^2)*W[j,i])",
              "Entry (k, i) is the derivative of output k by input i", m),
    )  # fmt: skip


def steps() -> tuple[Claim, ...]:
    """Return one descent step."""
    s = "descent"
    return (
        claim("descent.closed-form", "theta[t,i] = (1 - eta*lam[i])^(t+1)*theta[-1,i]",
              "Each coordinate is multiplied by 1 - eta lambda a step", s),
        claim("descent.separate", "dtheta[t,i]/dtheta[-1,j] = delta(i,j)*(1 - eta*lam[i])^(t+1)",
              "No coordinate moves another: a start on one axis stays on it, whatever the other "
              "axes need", s),
        claim("descent.decreases", "f[t] <= f[t-1] for t >= 1",
              "A step of at most 2/lambda raises no quadratic", s,
              assumes=("eta >= 0", "eta*lam[i] <= 2", "lam[i] >= 0")),
        claim("descent.always-decreases", "f[t] <= f[t-1] for t >= 1",
              "A larger step does", s, expected="fails",
              reason="past 2/lambda a coordinate grows"),
    )  # fmt: skip


def rates() -> tuple[Claim, ...]:
    """Return when descent converges: if and only if 0 < eta < 2/lambda."""
    s, inside = "descent", ("eta > 0", "lam[i] > 0", "eta*lam[i] < 2")
    return (
        claim("descent.contracts", "abs(1 - eta*lam[i]) < 1",
              "For 0 < eta < 2/lambda the factor is below 1 in size", s, assumes=inside),
        claim("descent.contracts-only-below", "eta*lam[i] < 2",
              "and only then: a factor below 1 needs eta < 2/lambda", s,
              assumes=("abs(1 - eta*lam[i]) < 1",)),
        claim("descent.contracts-only-above", "eta*lam[i] > 0", "and eta lambda > 0", s,
              assumes=("abs(1 - eta*lam[i]) < 1",)),
        claim("descent.converges", "abs(theta[t,i]) <= q^(t-s)*abs(theta[s,i]) for s <= t",
              "A factor of at most q < 1 makes every start converge, at the rate q", s,
              assumes=("abs(1 - eta*lam[i]) <= q",)),
        claim("descent.diverges", "abs(theta[t,i]) >= abs(theta[s,i]) for s <= t",
              "From eta = 2/lambda on no start comes closer", s, assumes=("eta*lam[i] >= 2",)),
        claim("descent.any-rate", "abs(theta[t,i]) <= abs(theta[s,i]) for s <= t",
              "Not every learning rate converges", s, assumes=("eta > 0", "lam[i] > 0"),
              expected="fails", reason="a learning rate past 2/lambda overshoots and grows"),
    )  # fmt: skip


def stochastic() -> tuple[Claim, ...]:
    """Return the stochastic gradient's mean, and weight decay."""
    s, drawn = "sgd", "E(sum(n, pick[n]*dl[n]/dtheta[i]))"
    return (
        claim("descent.full-gradient", "dL/dtheta[i] = mean(n, dl[n]/dtheta[i])",
              "The gradient of a mean loss is the mean of the samples' gradients", s, "mean"),
        claim("descent.unbiased", f"{drawn} = dL/dtheta[i]",
              "The gradient of a sample that is drawn uniformly is unbiased", s, "mean",
              assumes=("rate[n] = 1/N",)),
        claim("descent.drawn-mean", f"{drawn} = sum(n, rate[n]*dl[n]/dtheta[i])",
              "In general it is the gradient of the loss weighted by the rates", s, "mean"),
        claim("descent.biased", f"{drawn} = dL/dtheta[i]",
              "Drawn with other probabilities it is biased", s, "mean", expected="fails",
              reason="the rates must be those of the mean, 1/N"),
        claim("descent.weight-decay",
              "theta[i] - eta*dL/dtheta[i] = (1 - eta*decay)*theta[i] "
              "- eta*mean(n, dl[n]/dtheta[i])",
              "A squared penalty shrinks the weights by 1 - eta decay a step", s, "penalised"),
        claim("descent.weight-decay-doubled",
              "theta[i] - eta*dL/dtheta[i] = (1 - 2*eta*decay)*theta[i] "
              "- eta*mean(n, dl[n]/dtheta[i])",
              "With the half in the penalty there is no factor 2", s, "penalised",
              expected="fails", reason="the half cancels the exponent"),
    )  # fmt: skip


def sums() -> tuple[Claim, ...]:
    """Return means and variances of sums."""
    s = "sums"
    return (
        claim("descent.sum-variance", "Var(sum(i, noise[i])) = N",
              "The sum of n independent draws of variance 1 has variance n", s),
        claim("descent.sum-mean", "E(sum(i, noise[i])) = 0", "and mean 0", s),
        claim("descent.sum-variance-general", "Var(sum(i, x[i])) = sum(i, var_x[i])",
              "Variances of independent draws add, whatever their means", s),
        claim("descent.mean-variance", "Var(mean(i, noise[i])) = 1/N",
              "The mean of n draws has variance 1/n: why a batch steadies a gradient", s),
        claim("descent.zero-guess", "E(sum(i, noise[i])^2) = N",
              "Always guessing 0 for the sum costs n on average", s),
        claim("descent.one-draw", "Var(N*one) = N",
              "One draw counted n times is no sum of independent ones", s, expected="fails",
              reason="its variance is n^2: independence is needed"),
    )  # fmt: skip
