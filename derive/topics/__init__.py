"""One file a topic: its systems, its claims, the oracles that check them."""
