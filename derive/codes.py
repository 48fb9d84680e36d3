"""The words of the reports, explained: verdicts, kinds of proof and evidence, functions, rules."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import dedent, fill, indent

from derive import topics
from derive.claim import Claim
from derive.errors import DeriveError, nearest

WIDTH = 88


@dataclass(frozen=True)
class Code:
    """One word.

    Args:
        name: As it stands in reports and JSON.
        kind: What sort of word it is.
        text: What it means, and what it does not.
    """

    name: str
    kind: str
    text: str


VERDICT, PROOF, EVIDENCE, WORD = (
    "verdict",
    "kind of proof",
    "kind of evidence",
    "statement language",
)

CODES: dict[str, Code] = {
    code.name: code
    for code in (
        Code(
            "proved",
            VERDICT,
            "The statement is a theorem for the sizes in its scope. 'all sizes' means every"
            " T, D, H, ... from 1 upward: the difference of its sides has the empty normal "
            "form in index notation, or an induction over a position closes.",
        ),
        Code(
            "inequality",
            PROOF,
            "The larger side minus the smaller is written as a sum of products of what is not "
            "negative (squares, ranges of functions, what is assumed). That the sum is the "
            "difference is an identity, which the normal form checks for all sizes.",
        ),
        Code(
            "case split",
            PROOF,
            "What stands under |x|, min, max, relu or where is taken to be of one sign, then of "
            "the other; in each case the value is known and the rest is an identity or an "
            "inequality. At the kink both cases hold.",
        ),
        Code(
            "enclosure",
            PROOF,
            "An interval that is shown to hold the value: a fixed point by the interval Newton "
            "operator, a digit by ball arithmetic. It speaks of the numbers given only.",
        ),
        Code(
            "certificate",
            WORD,
            "The products that add up to what an inequality says is not negative. They are "
            "searched for by exact linear programming; that they add up is checked by itself.",
        ),
        Code(
            "E",
            WORD,
            "E(x), Var(x) and Cov(x, y) are taken over the tensors that a system declares random, "
            "with independent entries of known moments. No distribution is assumed.",
        ),
        Code(
            "confirmed",
            VERDICT,
            "No proof was found, but an oracle that shares no code with the statement "
            "agrees within the error of its arithmetic. Not a theorem.",
        ),
        Code(
            "certified",
            VERDICT,
            "A printed number is the correct rounding of the exact value at the digits "
            "shown. Ball arithmetic decides it; an exact tie accepts both neighbours.",
        ),
        Code(
            "refuted",
            VERDICT,
            "There is a counterexample: sizes, values and an index at which the two sides "
            "differ. A claim that is recorded as false is fine when it is refuted.",
        ),
        Code(
            "undecided",
            VERDICT,
            "Neither a proof nor a counterexample was found; the reason says why. It is "
            "counted on the last line, and --strict makes it fail.",
        ),
        Code(
            "identity",
            PROOF,
            "The difference of the two sides reduces to nothing by the rules of the normal "
            "form, for every size.",
        ),
        Code(
            "induction",
            PROOF,
            "The claim holds at a first position, and if it holds at exactly n then it "
            "holds at n+1 (or n-1), n being any position from there on.",
        ),
        Code(
            "support",
            PROOF,
            "An order of positions makes the derivative zero: causality.",
        ),
        Code(
            "proof",
            EVIDENCE,
            "A symbolic proof; its count is the number of terms that cancelled.",
        ),
        Code(
            "module",
            EVIDENCE,
            "Values of torch.nn modules and torch.nn.functional, which share no code with "
            "the equations. Held to a few hundred units in the last place of the largest "
            "intermediate.",
        ),
        Code(
            "autograd",
            EVIDENCE,
            "Gradients of torch autograd through a forward pass. Through a loop written "
            "independently it is evidence; through the equations' own lowering it is a "
            "cross-check, and the report marks it with a star.",
        ),
        Code(
            "finite_difference",
            EVIDENCE,
            "Central differences over every parameter, held to what they can give at their "
            "step (near 1e-8 of the scale).",
        ),
        Code(
            "complex_step",
            EVIDENCE,
            "The imaginary part of f(x + ih)/h: no cancellation, so it is exact to the last"
            " digits. It needs functions that are analytic.",
        ),
        Code(
            "random_sizes",
            EVIDENCE,
            "Both sides evaluated on random values at sizes that all differ, so that a "
            "transposed or broadcast axis shows.",
        ),
        Code(
            "printed",
            EVIDENCE,
            "Printed digits against the exact value, by ball arithmetic.",
        ),
        Code(
            "replay",
            EVIDENCE,
            "A run repeated with its recorded recipe and order of operations. Another "
            "platform may differ in the last bits.",
        ),
        Code(
            "probe",
            EVIDENCE,
            "A statement about a program of torch's, such as what clip_grad_norm_ returns. A named "
            "function runs it and compares what it observes with the definition: confirmed if they "
            "agree, refuted if not. It is shown as evidence of the kind module. 'derive list "
            "probes' names them.",
        ),
        Code(
            "monte_carlo",
            EVIDENCE,
            "Sampling, held to its own standard error.",
        ),
        Code(
            "counterexample",
            EVIDENCE,
            "The point at which a refuted claim fails, in exact decimals: it can be put "
            "into a case file.",
        ),
        Code(
            "d",
            WORD,
            "dA/dB is the total derivative, through every path of the system: dL/dW_h[j,r],"
            " dh[t,i]/dh[s,j]. Axes of A come first, then those of B.",
        ),
        Code(
            "partial",
            WORD,
            "partial A/partial B is the local derivative of A's own equation, its other "
            "inputs held.",
        ),
        Code(
            "held",
            WORD,
            "assuming 'f, i held' counts every read of the intermediates f and i as constant "
            "under derivatives; values stay. The claim must fail without it.",
        ),
        Code(
            "g_",
            WORD,
            "g_X is dL/dX, with X's shape: g_h[t,j], g_z[t] @ W_h. It is zero outside X's "
            "positions.",
        ),
        Code(
            "sum",
            WORD,
            "sum(t, x[t]) runs over the whole axis that t stands on; sum(t=1..T-1, x[t]) "
            "over a range, both ends included.",
        ),
        Code(
            "prod",
            WORD,
            "prod(k=t..s+1, M) is the ordered product of square matrices, leftmost factor "
            "first; it goes down from t to s+1. prod(k=s+1..t, M) goes up.",
        ),
        Code(
            "delta",
            WORD,
            "delta(i,j) is one where the indices agree, else zero.",
        ),
        Code(
            "softmax",
            WORD,
            "softmax(s, S[t,s]) is the entry at s of the softmax over s; softmax(a[t]) is "
            "the whole row, over the last axis.",
        ),
        Code(
            "logsumexp",
            WORD,
            "logsumexp(c, a[t,c]) is log(sum(c, exp(a[t,c]))).",
        ),
        Code(
            "mean",
            WORD,
            "mean(t, x[t]) is sum(t, x[t]) over the size of t's axis.",
        ),
        Code(
            "var",
            WORD,
            "var(k, x[k]) is the mean squared distance from the mean: divided by the size, "
            "not by the size minus one.",
        ),
        Code(
            "diag",
            WORD,
            "diag(v) is the square matrix with the vector v on its diagonal.",
        ),
        Code(
            "eye",
            WORD,
            "eye(H) is the identity matrix of size H.",
        ),
        Code(
            "sqnorm",
            WORD,
            "sqnorm(x) is the sum of the squares of all entries.",
        ),
        Code(
            "count",
            WORD,
            "count(W, b) is how many scalars these tensors hold.",
        ),
        Code(
            "detach",
            WORD,
            "detach(x) is x, with derivative zero, as in torch.",
        ),
        Code(
            "@",
            WORD,
            "Matrix product over the trailing axes. In the row convention a vector is a "
            "row: g[t].T @ h[t] is the outer product. In the column convention it is a "
            "column.",
        ),
        Code(
            "*",
            WORD,
            "Entry by entry between arrays of equal shape (a Hadamard product), or by a scalar.",
        ),
        Code(
            "for",
            WORD,
            "dh[t]/dh[s] = ... for s <= t: the statement speaks of these positions only. "
            "Conditions are separated by commas.",
        ),
    )
}


ALIASES = {
    "all sizes": "proved",
    "these numbers": "enclosure",
    "explicit sizes": "proved",
    "false, as stated": "refuted",
    "torch": "module",
    "finite diff": "finite_difference",
    "finite diff.": "finite_difference",
    "finite differences": "finite_difference",
    "oracles": "confirmed",
    "var": "E",
    "cov": "E",
}
"""Words as they stand in tables, and where they are explained."""


def explain(name: str) -> str:
    """Return what a word, a rule of the normal form, or a claim means.

    Raises:
        DeriveError: On an unknown name, with the nearest known one.
    """
    word = ALIASES.get(name.strip().lower(), name.strip())
    for known in (word, word.lower(), word.lower().replace(" ", "_").rstrip(".")):
        if known in CODES:
            return described(CODES[known])
    if word in topics.names():
        topic = topics.load(word)
        return f"{word} (topic)\n  {topic.title}: derive check {word}, derive show {word}\n"
    rules = rule_texts()
    rule = name.replace("-", "_")
    if rule in rules:
        return described(Code(rule, "rule of the normal form", rules[rule]))
    claims = claim_ids()
    if name in claims:
        return claim_text(claims[name])
    raise DeriveError(f"nothing is called {name!r}", hint=nearest(name, [*CODES, *rules, *claims]))


def described(code: Code) -> str:
    """Return a word with its explanation."""
    paragraphs = (fill(" ".join(p.split()), WIDTH - 2) for p in code.text.split("\n\n"))
    return f"{code.name} ({code.kind})\n{indent(chr(10).join(paragraphs), '  ')}\n"


def rule_texts() -> Mapping[str, str]:
    """Return what each rule of the normal form does, as it says itself."""
    from derive.rules import RULES

    return {r.__name__: dedent(inspect.getdoc(r) or r.__name__) for r in RULES}


def claim_ids() -> dict[str, Claim]:
    """Return every claim of the shipped topics, by id."""
    from derive.topics import load, names

    return {c.id: c for n in names() for c in load(n).claims}


def probe_words(name: str) -> str:
    """Return what a probe expects."""
    from derive.checks.probes import words

    return words(name)


def claim_text(claim: Claim) -> str:
    """Return a claim in words and as mathematics, with the equations that it is about."""
    from derive.printing import to_unicode
    from derive.statement import read_statement
    from derive.topics import load

    system = load(claim.topic).system_of(claim)
    lines = [f"{claim.id}: {claim.title}", ""]
    if claim.statement:
        read = read_statement(system, claim.statement)
        lines += [f"  {claim.statement}", f"  {to_unicode(read.syntax, system.scope)}"]
    if claim.probe:
        lines.append(f"  probe {claim.probe}: {probe_words(claim.probe)}")
    said = {"fails": "recorded as false", "undecided": "recorded as undecided", "holds": ""}
    if said[claim.expected]:
        lines += ["", f"{said[claim.expected]}: {claim.reason}"]
    if claim.assumes:
        lines += ["", f"assumes {', '.join(claim.assumes)}"]
    if not claim.statement:
        return "\n".join([*lines, "", f"derive check {claim.id}   runs it"]) + "\n"
    if claim.using:
        lines += ["", f"uses {', '.join(claim.using)}"]
    lines += ["", f"equations of {system.name} ({system.convention} convention):"]
    lines += [f"  {e.text}" for e in system.equations]
    lines += ["", f"derive show {claim.id} --steps   prints the proof step by step"]
    return "\n".join(lines) + "\n"
