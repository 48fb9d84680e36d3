"""Complex step: f'(x) = Im f(x + is) / s, with nothing subtracted, so accurate to the last bits.

Needs a forward program that is analytic, which ours are: the maximum that shifts a softmax is real,
and a detached value keeps its real part only. (Squire and Trapp, SIAM Review 40, 1998.)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from derive.checks.perturb import Part, Perturbed
from derive.checks.runtime import stop_real
from derive.checks.storage import Array
from derive.checks.table import Givens, program
from derive.equation import System


class ComplexStep(Perturbed):
    """A table from imaginary steps."""

    name = "complex step"

    def slopes(self, parts: list[Part]) -> dict[str, Array]:
        """Return the imaginary part over the step, by each scalar."""
        count = sum(p.count for p in parts)
        real = np.result_type(*(p.base for p in parts))
        # the error is of order size^2, far below eps; its square must stay a normal number
        size = float(np.finfo(real).tiny) ** 0.25
        kind = np.result_type(real, np.complex64)

        def step(part: Part, block: Array, where: slice) -> Array:
            block = block.astype(kind)
            rows = np.arange(part.count)
            block[where.start + rows, rows] += 1j * size
            return block

        givens, added = self.laid(parts, count, step)
        run = program(self.system, self.givens)
        found = run.run(givens, added, sizes=self.sizes, stop=stop_real)
        return {name: value.imag / size for name, value in found.items()}


def table(system: System, givens: Givens, sizes: Mapping[str, int]) -> ComplexStep:
    """Return the table of complex steps."""
    return ComplexStep(system, givens, sizes)
