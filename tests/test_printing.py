"""The printers: text reads back to an equal tree, notation is what a lecture writes."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from derive import syntax as S
from derive.building import build_system
from derive.calculus import adjoint_equations
from derive.equation import System
from derive.errors import DeriveError
from derive.index import index_symbol
from derive.nodes import Softmax
from derive.parse import parse_statement
from derive.printing import to_latex, to_text, to_unicode
from derive.statement import read_statement
from derive.unelaborate import unelaborate, unelaborate_equation

NAMES = ("h", "W_h", "x", "z", "T", "L")
KNOWN = {"h", "W_h", "x", "z", "L"}


def rnn() -> System:
    return build_system(
        "rnn",
        ("T", "D", "H", "C"),
        {
            "x": ("T", "D"), "W_x": ("H", "D"), "W_h": ("H", "H"), "b_h": ("H",),
            "W_o": ("C", "H"), "y": ("H",),
        },
        (
            "z[t,j] = sum(k, W_x[j,k]*x[t,k]) + sum(r, W_h[j,r]*h[t-1,r]) + b_h[j]",
            "h[t,j] = tanh(z[t,j])",
            "a[t,c] = sum(j, W_o[c,j]*h[t,j])",
            "p[t,c] = softmax(c, a[t,c])",
        ),
        losses={"final": "1/2*sum(j, (h[T-1,j]-y[j])^2)"},
        targets=("y",),
    ).with_loss("final")  # fmt: skip


SYSTEM = rnn()

numbers = st.sampled_from(("0", "1", "2", "12", "0.5", "1e3", "1.", "2.5e-2")).map(
    lambda text: S.Num(Fraction(text), text)
)
names = st.sampled_from(NAMES).map(S.Name)
shifted = st.builds(S.Bin, st.sampled_from("+-"), st.sampled_from("tsT").map(S.Name), numbers)
indices = st.sampled_from("tsjrT").map(S.Name) | numbers | shifted | shifted.map(S.Neg)
items = st.builds(
    S.Item, st.sampled_from(NAMES), st.lists(indices, min_size=1, max_size=3).map(tuple)
)
known = st.sampled_from(sorted(KNOWN))
sides = known.map(S.Name) | st.builds(S.Item, known, st.tuples(indices, indices))
derivatives = st.builds(S.Deriv, st.sampled_from(("total", "partial")), sides, sides)
ranges = st.builds(S.Range, st.sampled_from("tk"), indices, indices)
bound = st.sampled_from("tjk").map(S.Name) | ranges


def grow(inner: st.SearchStrategy[S.Node]) -> st.SearchStrategy[S.Node]:
    binder = st.sampled_from(("sum", "mean", "prod", "logsumexp"))
    return (
        st.builds(S.Bin, st.sampled_from(("+", "-", "*", "/", "@", "^")), inner, inner)
        | inner.map(S.Neg)
        | inner.map(S.Transpose)
        | st.builds(lambda f, b, x: S.Call(f, (*b, x)), binder, st.lists(bound, max_size=2), inner)
        | st.builds(lambda f, x: S.Call(f, (x,)), st.sampled_from(("tanh", "diag")), inner)
        | st.builds(lambda i, j: S.Call("delta", (i, j)), indices, indices)
    )


expressions = st.recursive(numbers | names | items | derivatives, grow, max_leaves=12)
conditions = st.builds(S.Condition, indices, indices, st.sampled_from((0, 1)))
statements = st.builds(
    lambda a, b, c: S.Statement(a, b, tuple(c), ""),
    expressions, expressions, st.lists(conditions, max_size=2),
)  # fmt: skip


@given(statements)
def test_text_reads_back_to_an_equal_tree(node: S.Statement) -> None:
    assert parse_statement(to_text(node), KNOWN.__contains__) == node


@given(statements)
def test_every_tree_has_unicode_and_latex(node: S.Statement) -> None:
    assert " = " in to_unicode(node, SYSTEM.scope)
    latex = to_latex(node, SYSTEM.scope)
    assert latex.count("{") == latex.count("}")


STATEMENTS = (
    ("dL/dW_h[j,r] = sum(t, g_z[t,j]*h[t-1,r])", "∂L/∂W_h[j,r] = Σₜ gᶻₜ[j] hₜ₋₁[r]",
     r"\frac{\partial \mathcal{L}}{\partial W_{h,jr}} = \sum_{t} g^{z}_{t,j} h_{t-1,r}"),
    ("dL/dW_h = sum(t, g_z[t].T @ h[t-1])", "∂L/∂W_h = Σₜ (gᶻₜ)ᵀ hₜ₋₁",
     r"\frac{\partial \mathcal{L}}{\partial W_{h}} = \sum_{t} (g^{z}_{t})^{\top} h_{t-1}"),
    ("g_h[t-1] = g_z[t] @ W_h", "gʰₜ₋₁ = gᶻₜ W_h", r"g^{h}_{t-1} = g^{z}_{t} W_{h}"),
    ("g_z[t] = g_h[t]*(1-h[t]^2)", "gᶻₜ = gʰₜ ⊙ (1 - hₜ²)",
     r"g^{z}_{t} = g^{h}_{t} \odot (1 - h_{t}^{2})"),
    ("g_z[t-1] = (g_z[t] @ W_h)*(1-h[t-1]^2)", "gᶻₜ₋₁ = (gᶻₜ W_h) ⊙ (1 - hₜ₋₁²)",
     r"g^{z}_{t-1} = (g^{z}_{t} W_{h}) \odot (1 - h_{t-1}^{2})"),
    ("dh[t,i]/dh[t-1,r] = (1-h[t,i]^2)*W_h[i,r]", "dhₜ[i]/dhₜ₋₁[r] = (1 - hₜ[i]²) W_h[i,r]",
     r"\frac{\mathrm{d} h_{t,i}}{\mathrm{d} h_{t-1,r}} = (1 - h_{t,i}^{2}) W_{h,ir}"),
    ("partial h[t,j]/partial z[t,i] = delta(i,j)*(1-h[t,j]^2)", "∂hₜ[j]/∂zₜ[i] = δᵢⱼ (1 - hₜ[j]²)",
     r"\frac{\partial h_{t,j}}{\partial z_{t,i}} = \delta_{ij} (1 - h_{t,j}^{2})"),
    ("dh[t]/dh[s] = prod(k=t..s+1, diag(1-h[k]^2) @ W_h) for s < t",
     "dhₜ/dhₛ = Π_{k=t..s+1} diag(1 - hₖ²) W_h  for s < t",
     r"\frac{\mathrm{d} h_{t}}{\mathrm{d} h_{s}} = \prod_{k=t}^{s+1} \operatorname{diag}"
     r"(1 - h_{k}^{2}) W_{h} \quad \text{for } s < t"),
    ("z[t] = x[t] @ W_x.T + h[t-1] @ W_h.T + b_h", "zₜ = xₜ W_xᵀ + hₜ₋₁ W_hᵀ + b_h",
     r"z_{t} = x_{t} W_{x}^{\top} + h_{t-1} W_{h}^{\top} + b_{h}"),
    ("L = 1/2*sqnorm(h[T-1]-y)", "L = ½ ‖h_{T-1} - y‖²",
     r"\mathcal{L} = \frac{1}{2} \lVert h_{T-1} - y \rVert^{2}"),
    ("g_a[t,c] = 1/T*(p[t,c]-delta(c,2))", "gᵃₜ[c] = 1/T (pₜ[c] - δ(c, 2))",
     r"g^{a}_{t,c} = \frac{1}{T} (p_{t,c} - \delta_{c2})"),
    ("p[t,c] = exp(a[t,c])/sum(k, exp(a[t,k]))", "pₜ[c] = exp(aₜ[c])/(Σₖ exp(aₜ[k]))",
     r"p_{t,c} = \frac{\exp(a_{t,c})}{\sum_{k} \exp(a_{t,k})}"),
    ("sum(t=0..T-1, x[t,0])*h[0,0] = -(h[0,0]+1)*2", "(Σ_{t=0..T-1} xₜ[0]) h₀[0] = -(h₀[0] + 1)·2",
     r"\left(\sum_{t=0}^{T-1} x_{t,0}\right) h_{0,0} = -(h_{0,0} + 1) \cdot 2"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "unicode", "latex"), STATEMENTS, ids=[s[0] for s in STATEMENTS])
def test_notation(text: str, unicode: str, latex: str) -> None:
    node = parse_statement(text, SYSTEM.scope.is_name)
    assert to_unicode(node, SYSTEM.scope) == unicode
    assert to_latex(node, SYSTEM.scope) == latex


def test_without_a_scope_offsets_tell_positions() -> None:
    node = parse_statement("q[n,j] = q[n-1,j]", lambda _: False)
    assert to_unicode(node) == "qₙ[j] = qₙ₋₁[j]"


ADJOINTS = (
    ("g_h", "g_h[t,r] = delta(t,T-1)*(h[T-1,r] - y[r]) + sum(j, g_z[t+1,j]*W_h[j,r])"),
    ("g_z", "g_z[t,j] = g_h[t,j]*(1 - h[t,j]^2)"),
    ("g_W_x", "dL/dW_x[j,k] = sum(t, g_z[t,j]*x[t,k])"),
    ("g_W_h", "dL/dW_h[j,r] = sum(t, g_z[t,j]*h[t-1,r])"),
    ("g_b_h", "dL/db_h[j] = sum(t, g_z[t,j])"),
)


@pytest.mark.parametrize(("name", "text"), ADJOINTS, ids=[a[0] for a in ADJOINTS])
def test_derived_adjoints_print_like_a_lecture(name: str, text: str) -> None:
    derived = {e.tensor.name: e for e in adjoint_equations(SYSTEM)}[name]
    node = unelaborate_equation(derived.lhs, derived.rhs, tensors=SYSTEM.tensors)
    assert to_text(node) == text


INDEXED = (
    "dL/dW_h[j,r] = sum(t=1..T-1, g_z[t,j]*h[t-1,r])",
    "g_h[t-1,i] = sum(k, g_z[t,k]*W_h[k,i])",
    "p[t,c] = exp(a[t,c])/sum(k, exp(a[t,k]))",
    "p[t,c] = softmax(c, a[t,c])",
    "L = logsumexp(c, a[0,c]) - 1/(2*T)*sum(t, j, h[t,j])",
    "dh[t,i]/dh[s,j] = -3*delta(i,j) for s < t",
    "partial h[t,j]/partial z[t,i] = delta(i,j)*(1 - h[t,j]^2)",
    "h[t,0] = (-h[t,0])^2 - h[t,1]/(1 + h[t,0]^2)",
    "h[t,0] = detach(h[t,1]) + sigmoid(-h[t,0]) + h[t,1]^(T-t)",
    "L = prod(k=0..T-1, h[k,0]) - 1/2",
    "count(W_h) = H^2 - 2*H + T/2",
    "L = mean(t, a[t,0])",
)


@pytest.mark.parametrize("text", INDEXED)
def test_unelaborate_gives_an_expression_that_reads_back_equal(text: str) -> None:
    identity = read_statement(SYSTEM, text)
    sides = (identity.lhs, identity.rhs)
    node = unelaborate_equation(*sides, identity.conditions, SYSTEM.tensors)
    again = read_statement(SYSTEM, to_text(node))
    assert (again.lhs, again.rhs) == sides
    assert again.conditions == identity.conditions


def test_a_softmax_whose_body_reads_its_own_place_is_written_out() -> None:
    a, k, c = SYSTEM.tensors["a"], index_symbol("k'1"), index_symbol("c")
    size = SYSTEM.dims["C"].symbol
    made = Softmax(a.at(0, k) * a.at(1, c), k, c, size)
    assert to_text(unelaborate(made)) == ("exp(a[0,c]*a[1,c])/sum(k, exp(a[0,k]*a[1,c]))")


def test_matrix_products_in_index_notation_are_marked_as_entries() -> None:
    identity = read_statement(SYSTEM, "dh[t]/dh[s] = prod(k=t..s+1, W_h) for s < t")
    text = to_text(unelaborate(identity.rhs))
    assert text == "entry(prod(k=t..s+1, W_h[i,j]), i, j)"


def test_bound_names_do_not_capture_free_ones() -> None:
    h, k, k1 = SYSTEM.tensors["h"], index_symbol("k"), index_symbol("k'1")
    import sympy as sp

    expr = sp.Sum(h.at(0, k) * h.at(1, k1), (k1, 0, SYSTEM.dims["H"].symbol - 1))
    assert to_text(unelaborate(expr)) == "sum(i, h[0,k]*h[1,i])"


def test_a_foreign_sympy_node_is_refused_by_name() -> None:
    import sympy as sp

    with pytest.raises(DeriveError, match="cannot write 'Max'"):
        unelaborate(sp.Max(sp.Symbol("u", real=True), 0))
