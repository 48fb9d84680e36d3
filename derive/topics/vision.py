"""Images as sequences: patches, their embedding as a convolution, the class token, counts.

An image of height J P and width K P is read as J K patches of P by P pixels: its axes are the
patch's row and column and the pixel's row and column inside it.
Source: Dosovitskiy et al. (2021), An Image is Worth 16x16 Words, section 3.1.
"""

from __future__ import annotations

from derive.building import build_system
from derive.equation import System
from derive.topics import Topic, claim

MEANINGS = {
    "I": "pixels: patch row, row inside, patch column, column inside, channel",
    "W": "patch embedding, or kernel",
    "b": "its bias",
    "E": "embedded patches",
    "h": "class token, then the patches of a sequence",
    "pos": "position features",
    "token": "class token",
    "Z": "patches with positions",
    "G": "dL/dE from above",
    "L": "the loss",
}
PATCHES = ("E[j,k,i] = sum(p, q, c, W[i,p,q,c]*I[j,p,k,q,c]) + b[i]",)
SIZES = ("J", "K", "P", "C", "D")


def patch_system() -> System:
    """Return the embeddings of J K patches of P by P pixels with C channels."""
    return build_system(
        "patches",
        SIZES,
        {
            "I": ("J", "P", "K", "P", "C"),
            "W": ("D", "P", "P", "C"),
            "b": ("D",),
            "G": ("J", "K", "D"),
        },
        PATCHES,
        losses={"linear": "sum(j, k, i, G[j,k,i]*E[j,k,i])"},
        parameters=("W", "b"),
        meanings=MEANINGS,
        positions=(),
    )


CLAIMS = (
    claim("vision.dW", "dL/dW[i,p,q,c] = sum(j, k, G[j,k,i]*I[j,p,k,q,c])",
          "The embedding hears from every patch", "patches", "linear"),
    claim("vision.db", "dL/db[i] = sum(j, k, G[j,k,i])", "Its bias", "patches", "linear"),
    claim("vision.dI", "dL/dI[j,p,k,q,c] = sum(i, G[j,k,i]*W[i,p,q,c])",
          "A pixel hears from its patch alone", "patches", "linear"),
    claim("vision.apart", "dE[j,k,i]/dI[m,p,n,q,c] = delta(j,m)*delta(k,n)*W[i,p,q,c]",
          "Patches do not overlap", "patches"),
    claim("vision.patches", "count(I) = (J*K)*(P^2*C)",
          "J K patches of P^2 C numbers: N = H W/P^2", "patches"),
    claim("vision.area", "(J*P)*(K*P)/P^2 = J*K", "The number of patches, from height and width",
          "patches"),
    claim("vision.count", "count(W, b) = P^2*C*D + D", "Numbers in the embedding", "patches"),
    claim("vision.patch-count-sides", "(J*P)*(K*P)/P = J*K", "The area divides, not the side",
          "patches", expected="fails", reason="a patch has P^2 pixels"),
    claim("vision.dI-all", "dL/dI[j,p,k,q,c] = sum(m, n, i, G[m,n,i]*W[i,p,q,c])",
          "Other patches do not read the pixel", "patches", "linear", expected="fails",
          reason="the stride is the patch size"),
    claim("vision.count-no-channels", "count(W, b) = P^2*D + D", "Channels count", "patches",
          expected="fails", reason="each pixel has C numbers"),
)  # fmt: skip


def topic() -> Topic:
    """Return the topic."""
    return Topic(
        "vision",
        "Images as sequences of patches",
        {"patches": patch_system()},
        CLAIMS,
        "Dosovitskiy et al. (2021), section 3.1",
    )
