"""Quantities as the configuration of queues writes them."""

import hypothesis
import pytest
from hypothesis import strategies as st

from slurm_bridge.errors import BadConfiguration
from slurm_bridge.families.yunikorn.queues import quantities

_FACTOR = {suffix: 1000**place for place, suffix in enumerate(["", "k", "M", "G", "T", "P", "E"])} | {
    suffix: 1024**place for place, suffix in enumerate(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"], start=1)
}


@hypothesis.given(st.integers(0, 9000), st.sampled_from(list(_FACTOR)), st.sampled_from(["", " ", "  "]))
def test_a_suffix_multiplies_the_digits(digits: int, suffix: str, gap: str):
    """In powers of 1000 or 1024, with any number of spaces; processors are counted in thousandths."""
    value, text = digits * _FACTOR[suffix], f" {digits}{gap}{suffix} "
    for kind, wanted in (("memory", value), ("vcore", value * 1000)):
        if wanted > quantities.LARGEST:
            with pytest.raises(quantities.Overflow, match=str(quantities.LARGEST)):
                quantities.parse(kind, text)
        else:
            assert quantities.parse(kind, text) == wanted


def test_only_processors_have_thousandths():
    """Of any other type `m` is no suffix."""
    assert quantities.parse("vcore", "1500m") == 1500
    with pytest.raises(quantities.BadQuantity, match="memory: '1500m' is no quantity; use digits"):
        quantities.parse("memory", "1500m")


@pytest.mark.parametrize(
    "text", ["", " ", "k", "-1", "+1", "1.5", "1e3", "1K", "1ki", "1 0", "1mi", "0x1", "1\N{ARABIC-INDIC DIGIT TWO}"]
)
def test_what_is_no_quantity_is_refused(text: str):
    """For every type, and the message shows it."""
    for kind in ("vcore", "memory", "example.com/gpu"):
        with pytest.raises(quantities.BadQuantity, match="is no quantity") as refused:
            quantities.parse(kind, text)
        assert repr(text) in str(refused.value)
        assert not isinstance(refused.value, quantities.Overflow)


def test_the_largest_number_is_that_of_64_bits():
    """However many digits it is written with."""
    assert quantities.parse("pods", str(2**63 - 1)) == quantities.LARGEST == 2**63 - 1
    assert quantities.parse("pods", "0" * 30 + "7") == 7
    for text in (str(2**63), "9" * 10_000):
        with pytest.raises(quantities.Overflow):
            quantities.parse("pods", text)


def test_a_bad_quantity_is_a_bad_configuration():
    """Somebody has to write another one."""
    assert issubclass(quantities.BadQuantity, BadConfiguration)
