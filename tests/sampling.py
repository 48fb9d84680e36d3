"""Of what is claimed of whole blocks, a sample: each check of one takes its time."""

import zlib

LARGE = 15
"""From how many equations on a system is a block."""
SHARE = 24
"""One in so many of a block's rows is taken; the choice follows the text and never changes."""


def taken(system, text):
    """Tell whether a row about a system is tested here: all of a small one, a sample of a block."""
    return len(system.equations) < LARGE or zlib.crc32(text.encode()) % SHARE == 0
