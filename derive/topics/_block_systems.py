"""Encoder and decoder blocks as systems: pre-norm and post-norm, permuted, masked, stacked."""

from __future__ import annotations

from derive.building import build_system
from derive.equation import System
from derive.topics._block_claims import layered, permuted, renamed, values
from derive.topics._blocks import MEANINGS, Part, added, attention, mlp, norm

SIZES = ("T", "D", "N", "d_k", "d_v", "F")
LINEAR = {"linear": "sum(t, i, G[t,i]*Y[t,i])"}


def pre_norm(mask: str = "{}") -> Part:
    """Return U = h + MHA(LN(h)), Y = U + MLP(LN(U))."""
    return (
        norm("h", "X", 1)
        + attention("X", "B_att", mask=mask)
        + added("U", "h", "B_att")
        + norm("U", "R", 2)
        + mlp("R", "B_mlp")
        + added("Y", "U", "B_mlp")
    )


def post_norm(mask: str = "{}") -> Part:
    """Return X = LN(h + MHA(h)), Y = LN(X + MLP(X))."""
    return (
        attention("h", "B_att", mask=mask)
        + added("U", "h", "B_att")
        + norm("U", "X", 1)
        + mlp("X", "B_mlp")
        + added("R", "X", "B_mlp")
        + norm("R", "Y", 2)
    )


def pre_norm_decoder() -> Part:
    """Return causal self-attention, attention to the memory and the MLP, each on a norm."""
    return (
        norm("h", "X", 1)
        + attention("X", "B_att", mask="where(s <= t, {}, -oo)")
        + added("U", "h", "B_att")
        + norm("U", "C", 2)
        + attention("C", "B_mem", at="m", source="M")
        + added("E", "U", "B_mem")
        + norm("E", "R", 3)
        + mlp("R", "B_mlp")
        + added("Y", "E", "B_mlp")
    )


def post_norm_decoder() -> Part:
    """Return the same three parts, each sum normalised."""
    return (
        attention("h", "B_att", mask="where(s <= t, {}, -oo)")
        + added("U", "h", "B_att")
        + norm("U", "X", 1)
        + attention("X", "B_mem", at="m", source="M")
        + added("E", "X", "B_mem")
        + norm("E", "C", 2)
        + mlp("C", "B_mlp")
        + added("R", "C", "B_mlp")
        + norm("R", "Y", 3)
    )


def block(name: str, part: Part, memory: bool = False, more: tuple[str, ...] = (),
          binary: tuple[str, ...] = (), positions: tuple[str, ...] = ()) -> System:  # fmt: skip
    """Return a block over T rows of D features, and a linear loss of its output."""
    shapes = {"h": ("T", "D"), **part.shapes, "G": ("T", "D")}
    shapes |= {"M": ("T_s", "D")} if memory else {}
    return build_system(
        name,
        (*SIZES, *(("T_s",) if memory else ())),
        shapes | {n: ("T",) for n in binary},
        (*part.equations, *more),
        losses=LINEAR,
        parameters=tuple(n for n in part.shapes if n != "eps"),
        nonnegative=("eps",) if "eps" in part.shapes else (),
        binary=binary,
        meanings=MEANINGS,
        positions=positions,
    )


def both_norms() -> System:
    """Return a pre-norm and a post-norm block with the same input and parameters."""
    post = post_norm()
    other = tuple(renamed(e, values(post), "_post") for e in post.equations)
    return block("both_norms", pre_norm(), more=other)


def stack() -> System:
    """Return N_layers pre-norm blocks, each with parameters of its own; h[-1] is the input."""
    part, size = pre_norm(), "N_layers"
    given = {n: (size, *s) for n, s in part.shapes.items() if n != "eps"}
    return build_system(
        "stack",
        (size, *SIZES),
        {"h": (size, "T", "D"), **given, "eps": (), "G": ("T", "D")},
        tuple(map(layered, part.equations)),
        losses={"linear": f"sum(t, i, G[t,i]*h[{size}-1,t,i])"},
        parameters=tuple(given),
        nonnegative=("eps",) if "eps" in part.shapes else (),
        meanings=MEANINGS,
        positions=(size,),
    )


def two_copies(name: str, part: Part, more: tuple[str, ...] = (), binary: bool = False,
               positions: tuple[str, ...] = ()) -> System:  # fmt: skip
    """Return a block of h, and the same block of its rows in another order."""
    given: tuple[str, ...] = ("h", "m") if binary else ("h",)
    rows: tuple[str, ...] = ("hp[t,i] = sum(s, P[t,s]*h[s,i])",)
    rows += ("mp[t] = sum(s, P[t,s]*m[s])",) if binary else ()
    return build_system(
        name,
        SIZES,
        {
            "h": ("T", "D"),
            "P": ("T", "T"),
            **part.shapes,
            **({"m": ("T",)} if binary else {}),
            **({"E": ("T", "D")} if any("E[t" in e for e in part.equations) else {}),
        },
        (*part.equations, *rows, *permuted(part, given), *more),
        parameters=tuple(n for n in part.shapes if n != "eps"),
        nonnegative=("eps",) if "eps" in part.shapes else (),
        permutations=("P",),
        binary=("m",) if binary else (),
        meanings=MEANINGS,
        positions=positions,
    )
