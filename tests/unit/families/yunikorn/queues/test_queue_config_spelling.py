"""The spelling of the seed, pasted, is refused with a hint to ours."""

from typing import Any

import pytest

from slurm_bridge.families.yunikorn.queues.config import old_keys
from tests.unit.families.yunikorn.queues.support_configs import codes, config, partition, problems, queue

#: The seed's example, as YAML reads it.
SEED: dict[str, Any] = {
    "partitions": [
        {
            "name": "default",
            "queues": {
                "root": {"configs": {"acls": None}, "childrens": ["a", "b", "c"]},
                "a": {"configs": {"acls": None, "capacity": "10", "max-capacity": "20"}},
                "mapping-policies": [],
            },
        }
    ]
}


def test_the_seeds_example_is_refused_with_a_hint_for_each_of_its_words() -> None:
    """And with nothing else: no rule is checked on what was meant otherwise."""
    found = {problem.field: problem.allowed for problem in problems(SEED)}
    queues = "partitions[0].queues"
    assert set(codes(SEED)) == {"seed_spelling"}
    assert set(found) == {
        queues,
        f"{queues}.root.configs",
        f"{queues}.root.configs.acls",
        f"{queues}.root.childrens",
        f"{queues}.a.configs",
        f"{queues}.a.configs.acls",
        f"{queues}.a.configs.capacity",
        f"{queues}.a.configs.max-capacity",
        f"{queues}.mapping-policies",
    }
    assert "resources.guaranteed" in found[f"{queues}.a.configs.capacity"]
    assert "resources.max" in found[f"{queues}.a.configs.max-capacity"]
    assert "placementrules" in found[f"{queues}.mapping-policies"]
    assert "a list of queues" in found[queues]


@pytest.mark.parametrize("word", old_keys.HINTS)
def test_an_old_word_in_a_queue_of_ours_is_answered_with_the_new_one(word: str) -> None:
    """Rather than as an unknown field."""
    (found,) = problems(config(partition(queue("a", **{word: "x"}))))
    assert (found.code, found.allowed) == ("seed_spelling", old_keys.HINTS[word])
