"""Every shipped claim: the slowest proof, all proofs together, beside the import of SymPy."""

from __future__ import annotations

import gc
import subprocess
import sys
import time

from timing import row


def proofs() -> list[tuple[float, str]]:
    """Prove every claim once in this process; return seconds and id, slowest first."""
    from derive import topics
    from derive.arithmetic import is_arithmetic
    from derive.holding import premises
    from derive.prove import prove
    from derive.statement import read_statement

    gc.disable()  # as the command does: a collection of the imports falls on one claim at random
    found = []
    for topic in map(topics.load, topics.names()):
        by_id = {c.id: c for c in topic.claims}
        for claim in (c for c in topic.claims if c.statement and c.expected == "holds"):
            system = topic.system_of(claim)
            given = premises(system, claim.assumes)
            identity = read_statement(given.system, claim.statement)
            if is_arithmetic(identity):
                continue  # balls decide it, no normal form
            using = tuple(read_statement(given.system, by_id[u].statement) for u in claim.using)
            proof = prove(identity, given.equations, using)
            found.append((proof.seconds, claim.id))
    return sorted(found, reverse=True)


def main() -> None:
    """Print the rows."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import sympy"], check=True)
    imports = time.perf_counter() - start
    times = proofs()
    row(f"slowest of {len(times)} claims ({times[0][1]}), ms", 1000 * times[0][0], "under 50")
    total = sum(seconds for seconds, _ in times)
    row("all proofs together, s", total, "under 2")
    row("all proofs / python -c 'import sympy'", total / imports, "")


if __name__ == "__main__":
    main()
