"""A mapping of which few records change says what a plain one would, and what was given out stays."""

import hypothesis
import pytest
from hypothesis import strategies as st

from slurm_bridge.cluster.overlaid import Overlaid

NAMES = [f"n{number:03}" for number in range(200)]

_changes = st.dictionaries(st.sampled_from(NAMES[:12]), st.none() | st.integers(), max_size=4)


@hypothesis.given(st.integers(0, 200), st.lists(_changes, max_size=6))
def test_it_is_the_mapping_that_it_follows(number: int, steps: list[dict[str, int | None]]) -> None:
    """At each step, also once others have followed; however many there are, and whichever come and go."""
    now = dict.fromkeys(NAMES[:number], 0)
    seen = [(Overlaid.of(now), dict(now))]
    for changes in steps:
        for name, record in changes.items():
            if record is None:
                now.pop(name, None)
            else:
                now[name] = record
        seen.append((seen[-1][0].after(now, changes.keys()), dict(now)))
    for found, plain in seen:
        assert (found == plain, len(found), set(found)) == (True, len(plain), set(plain))
        assert {name: found[name] for name in NAMES if name in found} == plain
        assert sorted(found.items()) == sorted(plain.items())
        assert sorted(found.values()) == sorted(plain.values())


def test_what_is_gone_is_not_there() -> None:
    """Whoever asks is told its name."""
    before = Overlaid.of(dict.fromkeys(NAMES, 0))
    found = before.after(dict.fromkeys(NAMES[1:], 0), NAMES[:1])
    with pytest.raises(KeyError, match="n000"):
        found["n000"]
    assert (found.get("n000"), before["n000"]) == (None, 0)


def test_records_may_be_imagined_in_place_of_others() -> None:
    """Those that are imagined are nowhere else."""
    real = Overlaid.of(dict.fromkeys(NAMES, 0)).after({**dict.fromkeys(NAMES, 0), "n001": 1}, ["n001"])
    assert (real.over({"n000": 5}), real) == ({**real, "n000": 5}, {**dict.fromkeys(NAMES, 0), "n001": 1})
