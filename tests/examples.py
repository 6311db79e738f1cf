"""How many examples a property is tried on: few in the short form of the tests, all with --thorough."""

import hypothesis

SHORT, THOROUGH = "short", "thorough"

# How long an example takes says more of what else the machine does than of the code.
# The short form says the same of the same tree each time; the thorough one looks elsewhere with each SEED=.
hypothesis.settings.register_profile(SHORT, deadline=None, max_examples=15, derandomize=True)
hypothesis.settings.register_profile(THOROUGH, deadline=None, max_examples=100)


def examples(thorough: int) -> int:
    """So many of this form for a property that is tried on so many in the thorough one."""
    return max(2, thorough * hypothesis.settings().max_examples // 100)
