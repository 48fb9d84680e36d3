r"""How LaTeX writes mathematics in a lecture's letters: ``\sum_{t} g^{z}_{t,j} h_{t-1,r}``."""

from __future__ import annotations

from derive.notation import ATOM, DRESSED, GREEK, Entry, Notation, Piece

COMMANDS = {name: "\\" + name for name in GREEK} | {
    "eps": r"\varepsilon",
    "lam": r"\lambda",
    "L": r"\mathcal{L}",
}


def _letters(text: str) -> str:
    """Return a name part: a command, a letter or number, else upright."""
    if text in COMMANDS:
        return COMMANDS[text]
    return text if len(text) == 1 or text.isdigit() else rf"\mathrm{{{text}}}".replace("_", r"\_")


def _index(text: str) -> str:
    """Return one index or subscript; a longer word is a name, not a product of letters."""
    return _letters(text) if text.isidentifier() else text


def _entry(entry: Entry) -> Piece:
    """Write ``W_h[j,r]`` as ``W_{h,jr}``: label, positions, then the other indices together."""
    features = entry.features
    if all(len(f) == 1 for f in features):
        features = ("".join(features),) if features else ()
    else:
        features = tuple(_index(f) for f in features)
    parts = [*map(_index, entry.positions), *features]
    if entry.label:
        parts.insert(0, _letters(entry.label))
    base = rf"g^{{{entry.adjoint}}}" if entry.adjoint else _letters(entry.base)
    text = base + (f"_{{{','.join(parts)}}}" if parts else "")
    return Piece(text, DRESSED if entry.adjoint else ATOM)


def _paren(text: str) -> str:
    """Return parentheses as high as what they hold."""
    tall = any(word in text for word in (r"\frac", r"\sum", r"\prod"))
    return rf"\left({text}\right)" if tall else f"({text})"


def _derivative(of: str, wrt: str, curly: bool) -> Piece:
    mark = r"\partial " if curly else r"\mathrm{d} "
    return Piece(rf"\frac{{{mark}{of}}}{{{mark}{wrt}}}", DRESSED)


def _big(func: str, limits: list[tuple[str, str, str]]) -> str:
    """Write adjoining indices without limits under one sign, as in a double sum."""
    sign, plain, out = {"sum": r"\sum", "prod": r"\prod"}[func], [], []
    for name, first, last in limits:
        if not first:
            plain.append(_index(name))
            continue
        if plain:
            out.append(f"{sign}_{{{','.join(plain)}}}")
        plain = []
        out.append(f"{sign}_{{{_index(name)}={first}}}^{{{last}}}")
    if plain:
        out.append(f"{sign}_{{{','.join(plain)}}}")
    return " ".join(out)


def _call(func: str, under: str, args: list[str]) -> Piece:
    """Write a function, an operator over an index, or a constructor."""
    inside = ", ".join(args)
    if func == "delta":
        short = all(len(a) == 1 for a in args)
        return Piece(rf"\delta_{{{('' if short else ',').join(args)}}}", ATOM)
    if func == "sqnorm":
        return Piece(rf"\lVert {inside} \rVert^{{2}}", DRESSED)
    if func == "where":
        test, yes, no = args
        rows = rf"{yes}, & {test} \\ {no}, & \text{{otherwise}}"
        return Piece(rf"\begin{{cases}} {rows} \end{{cases}}", ATOM)
    if func == "norm":
        return Piece(rf"\lVert {inside} \rVert", ATOM)
    if func == "abs":
        return Piece(rf"\lvert {inside} \rvert", ATOM)
    if func in ("min", "max"):
        return Piece(rf"\{func}({inside})", ATOM)
    if func == "sqrt":
        return Piece(rf"\sqrt{{{inside}}}", ATOM)
    if func == "eye":
        return Piece(rf"I_{{{inside}}}", ATOM)
    if func == "leq":
        return Piece("[" + r" \le ".join(args) + "]", ATOM)
    if func == "entry":
        return Piece(f"{_paren(args[0])}_{{{','.join(args[1:])}}}", ATOM)
    return Piece(_operator(func) + under + _paren(inside), ATOM)


def _operator(func: str) -> str:
    """Return the operator of a function, from its row where it is elementwise."""
    from derive.functions import TABLE

    if func in TABLE:
        return TABLE[func].latex
    name = {"var": "Var"}.get(func, func)
    return rf"\operatorname{{{name}}}"


LATEX = Notation(
    entry=_entry,
    fraction=lambda top, bottom: Piece(rf"\frac{{{top.text}}}{{{bottom.text}}}", DRESSED),
    derivative=_derivative,
    power=lambda base, exponent: f"{base}^{{{exponent}}}",
    big=_big,
    call=_call,
    under=lambda text: f"_{{{text}}}",
    paren=_paren,
    transpose=r"^{\top}",
    hadamard=r" \odot ",
    dot=r" \cdot ",
    relations=(r"\le", "<", r"\ge", ">"),
    where=r" \quad \text{for } ",
)
