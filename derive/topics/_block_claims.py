"""What is claimed of every Transformer block: each gradient, and what permuted rows do.

The gradients are one a parameter and one a value, in the order of the backward pass; nothing here
is composed by hand: each is the derivative of the whole block's loss.
"""

from __future__ import annotations

import re

from derive.claim import Claim
from derive.topics import claim
from derive.topics._blocks import Part

CARRIED = re.compile(r"\b([A-Za-z]\w*)\[")


class Writer:
    """Writes claims about one system with one loss.

    Args:
        topic: Whose claims.
        system: About which system; its name ends the ids.
    """

    def __init__(self, topic: str, system: str):
        self.topic, self.system = topic, system

    def gradient(self, name: str, indices: str, value: str, title: str) -> Claim:
        """Return the claim of one gradient."""
        at = f"[{indices}]" if indices else ""
        return claim(f"{self.topic}.{self.system}-d{name}", f"dL/d{name}{at} = {value}", title,
                     self.system, "linear")  # fmt: skip

    def norm(self, of: str, to: str, at: int, more: str = "", rows: str = "t") -> tuple[Claim, ...]:
        """Return the gradients of a LayerNorm: scale, shift, input (with what else reaches it)."""
        g = f"gamma_{at}[{{0}}]*g_{to}[{rows},{{0}}]"
        i, j = g.format("i"), g.format("j")
        inside = f"{i} - mean(j, {j}) - H_{at}[{rows},i]*mean(j, {j}*H_{at}[{rows},j])"
        return (
            self.gradient(f"gamma_{at}", "i", f"sum({rows}, g_{to}[{rows},i]*H_{at}[{rows},i])",
                          f"The scale of norm {at}"),
            self.gradient(f"beta_{at}", "i", f"sum({rows}, g_{to}[{rows},i])",
                          f"The shift of norm {at}"),
            self.gradient(of, f"{rows},i", f"{more}({inside})/sd_{at}[{rows}]",
                          f"Through norm {at}" + (", and past it" if more else "")),
        )  # fmt: skip

    def mlp(self, of: str, to: str) -> tuple[Claim, ...]:
        """Return the gradients of the MLP, down to its input."""
        return (
            self.gradient("b_2", "i", f"sum(t, g_{to}[t,i])", "The outer bias"),
            self.gradient("W_2", "i,f", f"sum(t, g_{to}[t,i]*J[t,f])", "The outer map"),
            self.gradient("J", "t,f", f"sum(i, g_{to}[t,i]*W_2[i,f])", "The activated units"),
            self.gradient("Z", "t,f", "g_J[t,f]*step(Z[t,f])", "ReLU lets positive units through"),
            self.gradient("b_1", "f", "sum(t, g_Z[t,f])", "The inner bias"),
            self.gradient("W_1", "f,i", f"sum(t, g_Z[t,f]*{of}[t,i])", "The inner map"),
        )

    def mlp_input(self) -> str:
        """Return the MLP's share of the gradient of its input."""
        return "sum(f, g_Z[t,f]*W_1[f,i])"

    def attention(self, of: str, to: str, at: str = "", source: str = "") -> tuple[Claim, ...]:
        """Return the gradients of attention, down to its queries, keys and values."""
        q, k, v, s, a, o = (f"{n}{at}" for n in "QKVSAO")
        source, weight = source or of, f"{a}[n,t,s]"
        return (
            self.gradient(f"b_O{at}", "i", f"sum(t, g_{to}[t,i])", "The output bias"),
            self.gradient(f"W_O{at}", "i,n,v", f"sum(t, g_{to}[t,i]*{o}[n,t,v])",
                          "The output projection"),
            self.gradient(o, "n,t,v", f"sum(i, g_{to}[t,i]*W_O{at}[i,n,v])", "A head's output"),
            self.gradient(a, "n,t,s", f"sum(v, g_{o}[n,t,v]*{v}[n,s,v])", "Its weights"),
            self.gradient(s, "n,t,s", f"{weight}*(g_{a}[n,t,s] - sum(r, {a}[n,t,r]*g_{a}[n,t,r]))",
                          "Its scores"),
            self.gradient(v, "n,s,v", f"sum(t, {a}[n,t,s]*g_{o}[n,t,v])", "Its values"),
            self.gradient(q, "n,t,k", f"sum(s, g_{s}[n,t,s]*{k}[n,s,k])/sqrt(d_k)", "Its queries"),
            self.gradient(k, "n,s,k", f"sum(t, g_{s}[n,t,s]*{q}[n,t,k])/sqrt(d_k)", "Its keys"),
            self.gradient(f"W_Q{at}", "n,k,i", f"sum(t, g_{q}[n,t,k]*{of}[t,i])",
                          "The query projection"),
            self.gradient(f"W_K{at}", "n,k,i", f"sum(s, g_{k}[n,s,k]*{source}[s,i])",
                          "The key projection"),
            self.gradient(f"W_V{at}", "n,v,i", f"sum(s, g_{v}[n,s,v]*{source}[s,i])",
                          "The value projection"),
            self.gradient(f"b_Q{at}", "n,k", f"sum(t, g_{q}[n,t,k])", "The query bias"),
            self.gradient(f"b_K{at}", "n,k", "0",
                          "The key bias: it shifts each row of scores, so nothing depends on it"),
            self.gradient(f"b_V{at}", "n,v", f"sum(s, g_{v}[n,s,v])", "The value bias"),
        )  # fmt: skip


def asked(at: str = "") -> str:
    """Return the share of the gradient of the rows that ask."""
    return f"sum(n, k, g_Q{at}[n,t,k]*W_Q{at}[n,k,i])"


def answered(rows: str, at: str = "") -> str:
    """Return the share of the gradient of the rows that answer: as keys and as values."""
    return (f"sum(n, k, g_K{at}[n,{rows},k]*W_K{at}[n,k,i])"
            f" + sum(n, v, g_V{at}[n,{rows},v]*W_V{at}[n,v,i])")  # fmt: skip


def renamed(text: str, names: set[str], end: str) -> str:
    """Return a text whose values of these names have another ending."""
    return CARRIED.sub(lambda m: f"{m[1]}{end}[" if m[1] in names else m[0], text)


def values(part: Part) -> set[str]:
    """Return the names that a part computes."""
    return {e.split("[")[0] for e in part.equations}


def layered(text: str) -> str:
    """Return a text about one block as one about layer l of a stack: h is what enters, Y leaves."""
    inside = {"h": "h[l-1,", "Y": "h[l,", "g_h": "g_h[l-1,", "g_Y": "g_h[l,", "dh": "dh[l-1,"}
    return CARRIED.sub(lambda m: inside.get(m[1], f"{m[1]}[l,"), text)


def permuted(part: Part, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return a part's equations over other names: those of values end in p, weights are shared."""
    return tuple(renamed(e, values(part) | set(given), "p") for e in part.equations)


def causal(topic: str, system: str, part: Part) -> tuple[Claim, ...]:
    """Return for each value of a causal block that no later input row reaches its rows."""
    out: list[Claim] = []
    ids: dict[str, str] = {}
    for equation in part.equations:
        name, indices = re.match(r"(\w+)\[([^\]]*)\]", equation).groups()  # type: ignore[union-attr]
        rows = [i for i in indices.split(",") if i in "ts"]
        # a weight of a row reads earlier sources only: what hides the others stands in its mask;
        # the index s of the second attention runs over the memory
        alone = name.endswith("m") or equation.split("= ")[1].startswith("softmax")
        rows = [r for r in rows if r == "t"] if alone else rows
        reads = {n for n in CARRIED.findall(equation.split("=", 1)[1]) if n in ids}
        ids[name] = f"{topic}.{system}-causal-{name}"
        before = " for " + ", ".join(f"{r} < j" for r in rows) if rows else ""
        out.append(
            claim(ids[name], f"d{name}[{indices}]/dh[j,c] = 0{before}",
                  f"No later input row reaches {name}", system,
                  using=tuple(sorted(ids[n] for n in reads)))
        )  # fmt: skip
    return tuple(out)


def carried(topic: str, system: str, part: Part, given: tuple[str, ...]) -> tuple[Claim, ...]:
    """Return for each value of a block that its rows go along with permuted input rows."""
    out: list[Claim] = []
    ids: dict[str, str] = {}
    for equation in part.equations:
        name, indices = re.match(r"(\w+)\[([^\]]*)\]", equation).groups()  # type: ignore[union-attr]
        rows = [i for i in indices.split(",") if i in "ts"]
        moved = {row: f"{row}_" for row in rows}
        old = ",".join(moved.get(i, i) for i in indices.split(","))
        factors = "*".join(f"P[{row},{moved[row]}]" for row in rows)
        right = f"sum({', '.join(moved.values())}, {factors}*{name}[{old}])"
        reads = {n for n in CARRIED.findall(equation.split("=", 1)[1]) if n in ids}
        ids[name] = f"{topic}.{system}-rows-{name}"
        out.append(
            claim(ids[name], f"{name}p[{indices}] = {right}",
                  f"Permuted input rows permute {name}", system,
                  using=tuple(sorted(ids[n] for n in reads)))
        )  # fmt: skip
    return tuple(out)
