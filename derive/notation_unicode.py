"""How Unicode on one terminal line writes mathematics: ``Σₜ gᶻₜ[j] hₜ₋₁[r]``.

Where a character has no raised or lowered form, ``_{T-1}`` and ``^{W_h}`` stand in its place.
"""

from __future__ import annotations

from derive.notation import (
    ATOM,
    DRESSED,
    FRACTION,
    GREEK,
    MUL,
    POW,
    Entry,
    Notation,
    Piece,
)

SUBSCRIPTS = dict(
    zip("0123456789+-=aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True)
)
SUPERSCRIPTS = dict(
    zip("0123456789-abcdefghijklmnoprstuvwxyz", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True)
)


def _raised(text: str, table: dict[str, str], mark: str) -> str:
    """Return text as sub- or superscript characters, else ``_x`` or ``_{x+1}``."""
    if all(c in table for c in text):
        return "".join(table[c] for c in text)
    return mark + (text if len(text) == 1 else "{" + text + "}")


def _lowered(parts: tuple[str, ...]) -> str:
    """Return subscripts: single characters side by side, longer ones with commas in braces."""
    if not parts:
        return ""
    joined = "".join(parts) if all(len(p) == 1 for p in parts) else ",".join(parts)
    return _raised(joined, SUBSCRIPTS, "_")


def _unicode_entry(entry: Entry) -> Piece:
    base = GREEK.get(entry.base, entry.base) + (f"_{entry.label}" if entry.label else "")
    if entry.adjoint:
        base = "g" + _raised(entry.adjoint, SUPERSCRIPTS, "^")
    features = f"[{','.join(entry.features)}]" if entry.features else ""
    return Piece(base + _lowered(entry.positions) + features, DRESSED if entry.adjoint else ATOM)


def _unicode_fraction(top: Piece, bottom: Piece) -> Piece:
    if (top.text, bottom.text) == ("1", "2"):
        return Piece("½", DRESSED)
    over = top.text if top.level >= MUL and not top.open else f"({top.text})"
    under = bottom.text if bottom.level >= POW else f"({bottom.text})"
    simple = top.text.isdigit() and bottom.text.isalnum()  # 1/T in front of a sum reads well
    return Piece(f"{over}/{under}", MUL if simple else FRACTION)


def _unicode_derivative(of: str, wrt: str, curly: bool) -> Piece:
    mark = "∂" if curly else "d"
    return Piece(f"{mark}{of}/{mark}{wrt}", FRACTION)


def _unicode_power(base: str, exponent: str) -> str:
    if exponent.lstrip("-").isdigit():
        return base + _raised(exponent, SUPERSCRIPTS, "^")
    return f"{base}^{exponent}" if exponent.isalnum() else f"{base}^({exponent})"


def _unicode_big(func: str, limits: list[tuple[str, str, str]]) -> str:
    sign = {"sum": "Σ", "prod": "Π"}[func]
    if any(first for _, first, _ in limits):
        inside = ", ".join(f"{n}={a}..{b}" if a else n for n, a, b in limits)
        return f"{sign}_{{{inside}}}"
    return sign + _lowered(tuple(name for name, _, _ in limits))


AROUND = {
    "delta": ("δ(", ")"),
    "sqnorm": ("‖", "‖²"),
    "norm": ("‖", "‖"),
    "abs": ("|", "|"),
    "eye": ("I_", ""),
    "sigmoid": ("σ(", ")"),
    "sqrt": ("√(", ")"),
    "leq": ("[", "]"),
}


def _unicode_call(func: str, under: str, args: list[str]) -> Piece:
    """Write a function, an operator over an index, or a constructor."""
    if func == "delta" and all(len(a) == 1 and a in SUBSCRIPTS for a in args):
        return Piece("δ" + _lowered(tuple(args)), ATOM)
    if func == "entry":
        return Piece(f"({args[0]})[{','.join(args[1:])}]", ATOM)
    before, after = AROUND.get(func, (f"{func}{under}(", ")"))
    inside = (" ≤ " if func == "leq" else ", ").join(args)
    return Piece(before + inside + after, DRESSED if func == "sqnorm" else ATOM)


UNICODE = Notation(
    entry=_unicode_entry,
    fraction=_unicode_fraction,
    derivative=_unicode_derivative,
    power=_unicode_power,
    big=_unicode_big,
    call=_unicode_call,
    under=lambda text: _lowered(tuple(text.split(","))),
    paren=lambda text: f"({text})",
    transpose="ᵀ",
    hadamard=" ⊙ ",
    dot="·",
    relations=("≤", "<", "≥", ">"),
    where="  for ",
)
