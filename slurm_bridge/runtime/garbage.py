"""How often Python looks for objects that hold each other: seldom, because hardly any of ours do.

A pass makes thousands of small objects that are gone by its end without any search, and a search for all others goes
through every node and pod that is known. By default that is one in twenty-five seconds of the processor.
"""

import gc

#: Objects made and not freed before the youngest are searched, and how many searches make one of the next generation.
YOUNG, MIDDLE, OLD = 10_000, 10, 20


def collect_seldom() -> None:
    """For the whole process, from now on."""
    gc.set_threshold(YOUNG, MIDDLE, OLD)
