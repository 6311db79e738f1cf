"""The chains that are compared: without families, with each of them alone, and with all."""

from collections.abc import Mapping, Sequence

from hooksbench import families

Hooks = Sequence[Mapping[str, object]]

#: Policy and eligibility, which are part of every chain.
PLAIN = "plain"
#: With every family.
EVERY = "all"

_FAMILIES: Mapping[str, Mapping[str, object]] = {str(one["name"]): one for one in families.EVERY_HOOK}

CHAINS: Mapping[str, Hooks] = {
    PLAIN: (),
    **{name: (hook,) for name, hook in _FAMILIES.items()},
    EVERY: tuple(_FAMILIES.values()),
}
