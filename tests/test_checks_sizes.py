"""Points: sizes differ, draws repeat, one-hot rows are one-hot."""

import numpy as np
import pytest

from derive import topics
from derive.checks.sizes import default_sizes, random_givens, random_sizes
from derive.errors import DeriveError

SYSTEMS = [s for n in topics.names() for s in topics.load(n).systems.values()]


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: s.name)
def test_sizes_are_unequal_and_repeat(system):
    for sizes in (default_sizes(system), *(random_sizes(system, seed) for seed in range(20))):
        assert sizes.keys() == system.dims.keys()
        # torch's heads have keys as wide as values
        apart = {n: v for n, v in sizes.items() if (n, sizes.get("d_k")) != ("d_v", v)}
        assert len(set(apart.values())) == len(apart)
        assert min(sizes.values(), default=2) >= 2
    assert random_sizes(system, 7) == random_sizes(system, 7)
    draws = {tuple(random_sizes(system, n).items()) for n in range(20)}
    assert len(draws) > 1 or not system.dims


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: s.name)
def test_givens_are_seeded_and_one_hot(system):
    sizes = default_sizes(system)
    one, same, other = (random_givens(system, sizes, seed) for seed in (1, 1, 2))
    wanted = {t.name for t in system.givens} | {f"{n}_init" for n in system.initial}
    assert one.keys() == wanted
    assert all(np.array_equal(one[n], same[n]) for n in one)
    assert any(not np.array_equal(one[n], other[n]) for n in one)
    for tensor in system.givens:
        if tensor.onehot:
            rows = one[tensor.name].reshape(-1, sizes[tensor.dims[-1].name])
            assert set(np.unique(rows)) <= {0, 1}
            assert (rows.sum(1) == 1).all()


def test_user_sizes_win():
    system = SYSTEMS[0]
    assert default_sizes(system, {"T": 9})["T"] == 9


@pytest.mark.parametrize(
    ("sizes", "message"), [({"Q": 2}, "no size 'Q'"), ({"T": 0}, "at least 1; found 0")]
)
def test_bad_sizes_are_refused(sizes, message):
    with pytest.raises(DeriveError, match=message):
        default_sizes(SYSTEMS[0], sizes)
