"""Sequence models: the language model, four wirings, two directions, padding.

Source: Goodfellow, Bengio & Courville (2016), sections 10.2 to 10.4; Sutskever, Vinyals & Le
(2014); torch.nn.RNN.
"""

from __future__ import annotations

from derive.building import build_system
from derive.claim import Claim
from derive.equation import System
from derive.topics import Topic, claim
from derive.topics.rnn import MEANINGS

WORDS = MEANINGS | {
    "S": "one-hot rows of the tokens read",
    "E": "embedding table, one row a token",
    "e": "embedding of the token at each position",
    "W_e": "embedding weights, one row a state unit",
    "c": "what the decoder carries into a position",
    "d": "decoder state",
    "q": "decoder preactivation",
    "V_d": "decoder recurrent weights",
    "V_y": "decoder input weights",
    "V_o": "output head weights of the decoder",
    "u": "decoder input row",
    "m": "1 at a true position, 0 at a pad",
    "rev": "the same inputs, the last first",
    "b": "state of the backward direction",
    "zb": "preactivation of the backward direction",
    "U_x": "input weights of the backward direction",
    "U_h": "recurrent weights of the backward direction",
    "W_b": "output weights of the backward direction's last state",
    "start": "one input vector",
}
HEAD = (
    "a[t,v] = sum(i, W_o[v,i]*h[t,i]) + b_o[v]",
    "p[t,v] = softmax(v, a[t,v])",
    "l[t] = -sum(v, Y[t,v]*log(p[t,v]))",
)


def language_model() -> System:
    """Return the recurrent language model: embedding, recurrence, vocabulary head."""
    return build_system(
        "rnn_lm",
        ("T", "V", "D", "H"),
        {"S": ("T", "V"), "E": ("V", "D"), "W_e": ("H", "D"), "W_h": ("H", "H"), "b_h": ("H",),
         "W_o": ("V", "H"), "b_o": ("V",), "Y": ("T", "V")},
        (
            "e[t,k] = sum(v, S[t,v]*E[v,k])",
            "z[t,j] = sum(k, W_e[j,k]*e[t,k]) + sum(r, W_h[j,r]*h[t-1,r]) + b_h[j]",
            "h[t,j] = tanh(z[t,j])",
            *HEAD,
        ),
        losses={"next": "mean(t, l[t])"},
        onehot=("S", "Y"),
        meanings=WORDS,
    )  # fmt: skip


def one_to_many() -> System:
    """Return a recurrence that reads one vector, at its first position."""
    return build_system(
        "one_to_many",
        ("T", "D", "H", "V"),
        {"start": ("D",), "W_x": ("H", "D"), "W_h": ("H", "H"), "b_h": ("H",), "W_o": ("V", "H"),
         "b_o": ("V",), "Y": ("T", "V"), "z": ("T", "H")},
        (
            "z[t,j] = delta(t,0)*sum(k, W_x[j,k]*start[k]) + sum(r, W_h[j,r]*h[t-1,r]) + b_h[j]",
            "h[t,j] = tanh(z[t,j])",
            *HEAD,
        ),
        losses={"every": "mean(t, l[t])"},
        parameters=("W_x", "W_h", "b_h", "W_o", "b_o"),
        onehot=("Y",),
        initial={"h": "zeros"},
        meanings=WORDS,
    )  # fmt: skip


def encoder_decoder() -> System:
    """Return an encoder over T positions whose last state starts a decoder over S positions."""
    return build_system(
        "seq2seq",
        ("T", "S", "D", "H", "V"),
        {"x": ("T", "D"), "W_x": ("H", "D"), "W_h": ("H", "H"), "u": ("S", "D"),
         "V_y": ("H", "D"), "V_d": ("H", "H"), "V_o": ("V", "H"), "Y": ("S", "V")},
        (
            "z[t,j] = sum(k, W_x[j,k]*x[t,k]) + sum(r, W_h[j,r]*h[t-1,r])",
            "h[t,j] = tanh(z[t,j])",
            "c[s,r] = d[s-1,r] + delta(s,0)*h[T-1,r]",
            "q[s,j] = sum(k, V_y[j,k]*u[s,k]) + sum(r, V_d[j,r]*c[s,r])",
            "d[s,j] = tanh(q[s,j])",
            "a[s,v] = sum(i, V_o[v,i]*d[s,i])",
            "p[s,v] = softmax(v, a[s,v])",
            "l[s] = -sum(v, Y[s,v]*log(p[s,v]))",
        ),
        losses={"target": "mean(s, l[s])"},
        parameters=("W_x", "W_h", "V_y", "V_d", "V_o"),
        onehot=("Y",),
        initial={"h": "zeros", "d": "zeros"},
        positions=("T", "S"),
        meanings=WORDS,
    )  # fmt: skip


def bidirectional() -> System:
    """Return two recurrences, one over the inputs and one over them last first."""
    return build_system(
        "bidirectional",
        ("T", "D", "H", "C"),
        {"x": ("T", "D"), "rev": ("T", "D"), "W_x": ("H", "D"), "W_h": ("H", "H"),
         "U_x": ("H", "D"), "U_h": ("H", "H"), "W_o": ("C", "H"), "W_b": ("C", "H"),
         "y": ("C",)},
        (
            "z[t,j] = sum(k, W_x[j,k]*x[t,k]) + sum(r, W_h[j,r]*h[t-1,r])",
            "h[t,j] = tanh(z[t,j])",
            "zb[t,j] = sum(k, U_x[j,k]*rev[t,k]) + sum(r, U_h[j,r]*b[t-1,r])",
            "b[t,j] = tanh(zb[t,j])",
            "a[c] = sum(i, W_o[c,i]*h[T-1,i]) + sum(i, W_b[c,i]*b[T-1,i])",
        ),
        losses={"last": "1/2*sum(c, (a[c] - y[c])^2)"},
        parameters=("W_x", "W_h", "U_x", "U_h", "W_o", "W_b"),
        targets=("y",),
        meanings=WORDS,
    )  # fmt: skip


def padded() -> System:
    """Return a recurrence that holds its state at pads (m = 0)."""
    return build_system(
        "rnn_masked",
        ("T", "D", "H"),
        {"x": ("T", "D"), "m": ("T",), "W_x": ("H", "D"), "W_h": ("H", "H"), "y": ("H",)},
        (
            "z[t,j] = sum(k, W_x[j,k]*x[t,k]) + sum(r, W_h[j,r]*h[t-1,r])",
            "h[t,j] = m[t]*tanh(z[t,j]) + (1 - m[t])*h[t-1,j]",
        ),
        losses={"final": "1/2*sum(j, (h[T-1,j] - y[j])^2)"},
        targets=("y",),
        meanings=WORDS,
    )


def topic() -> Topic:
    """Return the topic."""
    return Topic(
        "sequence",
        "Sequence models: wirings, two directions, padding",
        {
            "rnn_lm": language_model(),
            "one_to_many": one_to_many(),
            "seq2seq": encoder_decoder(),
            "bidirectional": bidirectional(),
            "rnn_masked": padded(),
        },
        (*language(), *wirings(), *decoder(), *directions(), *padding(), *programs()),
        "Goodfellow, Bengio & Courville (2016), sections 10.2 to 10.4; Sutskever, Vinyals & Le "
        "(2014); torch.nn.RNN",
    )


def language() -> tuple[Claim, ...]:
    """Return the language model's gradients."""
    s, loss = "rnn_lm", "next"
    return (
        claim("sequence.embedding-row", "e[t] = S[t] @ E", "A lookup is a one-hot product", s,
              loss),
        claim("sequence.logit-gradient", "g_a[t] = (p[t] - Y[t])/T",
              "Each position's logits receive p - Y", s, loss),
        claim("sequence.state-gradient", "g_h[t] = g_a[t] @ W_o + g_z[t+1] @ W_h",
              "A state receives its own loss and the future one", s, loss),
        claim("sequence.head", "dL/dW_o = sum(t, g_a[t].T @ h[t])",
              "The vocabulary head is shared by all positions", s, loss),
        claim("sequence.head-bias", "dL/db_o = sum(t, g_a[t])", "and its bias", s, loss),
        claim("sequence.recurrent", "dL/dW_h = sum(t, g_z[t].T @ h[t-1])",
              "The recurrent weights sum over all uses", s, loss),
        claim("sequence.input-weights", "dL/dW_e = sum(t, g_z[t].T @ e[t])",
              "So do the embedding weights", s, loss),
        claim("sequence.bias", "dL/db_h = sum(t, g_z[t])", "and the bias", s, loss),
        claim("sequence.embedding-signal", "g_e[t] = g_z[t] @ W_e",
              "An embedding receives the signal of its position", s, loss),
        claim("sequence.embedding-table", "dL/dE = sum(t, S[t].T @ g_e[t])",
              "A token's row collects the signals of every position that reads it", s, loss),
        claim("sequence.embedding-last", "dL/dE = S[T-1].T @ g_e[T-1]",
              "The last reading alone is not its gradient", s, loss, expected="fails",
              reason="a token may stand at several positions"),
    )  # fmt: skip


def wirings() -> tuple[Claim, ...]:
    """Return where inputs enter and losses sit."""
    one = "one_to_many"
    return (
        claim("sequence.one-to-many-input", "dL/dstart = g_z[0] @ W_x",
              "One to many: the input acts through the first state alone", one, "every"),
        claim("sequence.one-to-many-weights", "dL/dW_x = g_z[0].T @ start",
              "and its weights have one use", one, "every"),
        claim("sequence.one-to-many-recurrent", "dL/dW_h = sum(t, g_z[t].T @ h[t-1])",
              "while the recurrent weights have T", one, "every"),
        claim("sequence.one-to-many-all", "dL/dW_x = sum(t, g_z[t].T @ start)",
              "The input weights have not T uses", one, "every", expected="fails",
              reason="the input is read at position 0 only"),
        claim("sequence.aligned", "g_h[t] = g_a[t] @ W_o + g_z[t+1] @ W_h",
              "Many to many, aligned: every state has a loss of its own", "rnn_lm", "next"),
        claim("sequence.many-to-one", "g_h[t] = g_z[t+1] @ U_h for t <= T-2",
              "Many to one: only the last state has a loss (here the forward direction's weights "
              "are asked for by the wrong name)", "bidirectional", "last", expected="fails",
              reason="the forward states pass their signal through W_h"),
        claim("sequence.many-to-one-forward", "g_h[t] = g_z[t+1] @ W_h for t <= T-2",
              "Many to one: an earlier state receives the future signal alone", "bidirectional",
              "last"),
        claim("sequence.many-to-one-seed", "g_h[T-1] = g_a @ W_o",
              "and the last one the loss", "bidirectional", "last"),
    )  # fmt: skip


def decoder() -> tuple[Claim, ...]:
    """Return the gradient through the decoder's first state."""
    s, loss = "seq2seq", "target"
    return (
        claim("sequence.decoder-start", "c[0] = h[T-1]",
              "The decoder starts from the encoder's last state", s, loss),
        claim("sequence.decoder-carry", "c[s] = d[s-1] for s >= 1", "and then carries its own", s,
              loss),
        claim("sequence.through-start", "g_h[T-1] = g_q[0] @ V_d",
              "All that the encoder learns comes through the decoder's first state", s, loss),
        claim("sequence.encoder-recursion", "g_h[t] = g_z[t+1] @ W_h for t <= T-2",
              "An earlier encoder state has no loss of its own", s, loss),
        claim("sequence.encoder-weights", "dL/dW_h = sum(t, g_z[t].T @ h[t-1])",
              "Encoder weights sum over the encoder's uses", s, loss),
        claim("sequence.encoder-input-weights", "dL/dW_x = sum(t, g_z[t].T @ x[t])",
              "the input weights too", s, loss),
        claim("sequence.decoder-recursion",
              "g_d[s] = g_a[s] @ V_o + g_q[s+1] @ V_d",
              "A decoder state receives its own loss and the future one", s, loss),
        claim("sequence.decoder-weights", "dL/dV_d = sum(s, g_q[s].T @ c[s])",
              "Decoder weights sum over what was carried, the encoder's state first", s, loss),
        claim("sequence.decoder-input-weights", "dL/dV_y = sum(s, g_q[s].T @ u[s])",
              "Decoder input weights", s, loss),
        claim("sequence.decoder-weights-own", "dL/dV_d = sum(s, g_q[s].T @ d[s-1])",
              "Without the encoder's state the first use is lost", s, loss, expected="fails",
              reason="at position 0 the decoder carries the encoder's last state"),
    )  # fmt: skip


def directions() -> tuple[Claim, ...]:
    """Return the two directions of a bidirectional network read at its last states."""
    s, loss = "bidirectional", "last"
    return (
        claim("sequence.backward-weights", "dL/dU_h = sum(t, g_zb[t].T @ b[t-1])",
              "The backward direction has weights and sums of its own", s, loss),
        claim("sequence.backward-input-weights", "dL/dU_x = sum(t, g_zb[t].T @ rev[t])",
              "over the inputs read last first", s, loss),
        claim("sequence.forward-weights", "dL/dW_h = sum(t, g_z[t].T @ h[t-1])",
              "as the forward one over the inputs in order", s, loss),
        claim("sequence.directions-separate", "dh[t,i]/drev[s,k] = 0",
              "The forward states do not read what the backward ones do", s, loss),
        claim("sequence.head-halves", "dL/dW_b = g_a.T @ b[T-1]",
              "The head holds one block a direction", s, loss),
        claim("sequence.shared-directions", "dL/dU_h = sum(t, g_z[t].T @ h[t-1])",
              "The directions share no weights", s, loss, expected="fails",
              reason="each direction has its own recurrent weights"),
    )  # fmt: skip


def padding() -> tuple[Claim, ...]:
    """Return padding: read the last true state, or hold it."""
    s, held = "rnn_masked", ("m[k] = 0 for p+1 <= k",)
    return (
        claim("sequence.pads-after", "dh[p,i]/dx[s,k] = 0 for p+1 <= s",
              "The state at the last true position p does not read the pads after it", s, "final"),
        claim("sequence.held-state", "h[t,j] = h[p,j] for p <= t",
              "A state that is held at pads ends as the state at p: the same as packing", s,
              "final", assumes=held),
        claim("sequence.held-signal", "g_h[t,j] = h[T-1,j] - y[j] for p <= t",
              "and a signal passes the pads unchanged", s, "final", assumes=held),
        claim("sequence.processed-pads", "h[T-1,j] = h[p,j]",
              "Pads that are processed as inputs change the last state", s, "final",
              assumes=("m[k] = 1",), expected="fails",
              reason="the recurrence updates its state at every position"),
    )  # fmt: skip


def programs() -> tuple[Claim, ...]:
    """Return what torch's recurrent modules do with pads."""
    packed = "pack_padded_sequence"
    return (
        claim("sequence.program-packed", "",
              "Packed, the final state is that of each sequence alone", "",
              probe=f"{packed}.gives-last-true-state"),
        claim("sequence.program-last-true-step", "",
              "and so is the output read at the last true step", "",
              probe=f"{packed}.reading-at-last-true-step"),
        claim("sequence.program-pads", "", "Pads that are processed change the final state", "",
              probe=f"{packed}.padding-is-harmless", expected="fails",
              reason="the cell updates its state on pads"),
    )  # fmt: skip
