"""A pod's requests add up as Kubernetes adds them."""

from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_bridge.model import pod, quantity
from slurm_bridge.translate import resources
from tests.unit.translate.translating import container, one_pod

CPUS = st.one_of(st.none(), st.integers(0, 8))
STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 8)), max_size=6)


def cpus(found: pod.Pod) -> Fraction:
    """What the pod asks for of one resource."""
    return resources.requests_of(found).get("cpu", Fraction(0))


def test_containers_add_up() -> None:
    """They run side by side."""
    found = resources.requests_of(one_pod(container({"cpu": "500m", "memory": "1Gi"}), container({"cpu": 1})))
    assert found == {"cpu": Fraction(3, 2), "memory": 2**30, "pods": 1}


def test_t01_a_limit_counts_where_the_request_is_missing() -> None:
    """And only there: a request may be lower than its limit."""
    found = resources.requests_of(
        one_pod(container({"cpu": "1"}, {"cpu": "4", "memory": "1Ki", "nvidia.com/gpu": "2"}))
    )
    assert found == {"cpu": 1, "memory": 1024, "nvidia.com/gpu": 2, "pods": 1}


def test_a_request_of_nothing_is_a_request() -> None:
    """Zero beside a limit stays zero, as on Kubernetes' side."""
    assert cpus(one_pod(container({"cpu": "0"}, {"cpu": "4"}))) == 0


def test_t09_init_containers_count_by_their_maximum() -> None:
    """They run one after the other, before the others."""
    first, second = container({"cpu": "3"}), container({"cpu": "2"})
    assert cpus(one_pod(container({"cpu": "1"}), init_containers=(first, second))) == 3
    assert cpus(one_pod(container({"cpu": "4"}), init_containers=(first, second))) == 4


def test_t09_sidecars_add_to_what_comes_after_them() -> None:
    """A sidecar counts beside every later init container, and not beside an earlier one."""
    sidecar, heavy = container({"cpu": "2"}, sidecar=True), container({"cpu": "5"})
    main = container({"cpu": "1"})
    assert cpus(one_pod(main, init_containers=(sidecar, heavy))) == 7
    assert cpus(one_pod(main, init_containers=(heavy, sidecar))) == 5
    assert cpus(one_pod(main, init_containers=(sidecar,))) == 3


@given(STEPS, STEPS)
def test_t09_the_most_that_ever_runs_at_once_is_asked_for(
    inits: list[tuple[bool, int]], mains: list[tuple[bool, int]]
) -> None:
    """Whatever the order: the maximum over the pod's life, step by step."""
    made = [container({"cpu": amount}, sidecar=sidecar) for sidecar, amount in inits]
    staying, moments = 0, [0]
    for sidecar, amount in inits:
        moments.append(staying + amount)
        staying += amount if sidecar else 0
    moments.append(staying + sum(amount for _, amount in mains))
    found = one_pod(*[container({"cpu": amount}) for _, amount in mains], init_containers=tuple(made))
    assert cpus(found) == max(moments)


def test_t09_the_overhead_comes_on_top() -> None:
    """Whatever is largest below it."""
    found = one_pod(container({"cpu": "1"}), init_containers=(container({"cpu": "3"}),), overhead={"cpu": "250m"})
    assert cpus(found) == Fraction(13, 4)


def test_t09_pod_level_requests_replace_the_sum() -> None:
    """For cpu, memory and huge pages; devices have no pod level. The overhead still comes on top."""
    level = pod.ResourceNeeds(requests={"cpu": "2", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "9"})
    found = one_pod(container({"cpu": "3", "nvidia.com/gpu": "1"}), resources=level, overhead={"cpu": "1"})
    assert resources.requests_of(found) == {"cpu": 3, "hugepages-2Mi": 4 * 2**20, "nvidia.com/gpu": 1, "pods": 1}


@pytest.mark.parametrize(("asked", "counted"), [(None, 4), ("1", 1)])
def test_t09_a_pod_level_limit_counts_where_nobody_requests(asked: str | None, counted: int) -> None:
    """Neither the pod nor any container."""
    level = pod.ResourceNeeds(limits={"cpu": "4"})
    assert cpus(one_pod(container({"cpu": asked} if asked else {}), resources=level)) == counted


def test_t09_a_pod_level_limit_of_huge_pages_counts_always() -> None:
    """They cannot be overcommitted, so the server makes the request equal to the limit."""
    level = pod.ResourceNeeds(limits={"hugepages-2Mi": "8Mi"})
    found = one_pod(container({"hugepages-2Mi": "2Mi"}), resources=level)
    assert resources.requests_of(found)["hugepages-2Mi"] == 8 * 2**20


@given(st.lists(st.tuples(CPUS, CPUS), min_size=1, max_size=4))
def test_no_container_asks_in_vain(amounts: list[tuple[int | None, int | None]]) -> None:
    """The pod never gets less than any one of its containers asks for."""
    made = [
        container({} if asked is None else {"cpu": asked}, {} if most is None else {"cpu": most})
        for asked, most in amounts
    ]
    wanted = [asked if asked is not None else most or 0 for asked, most in amounts]
    assert cpus(one_pod(*made)) == sum(wanted)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (one_pod(container({"cpu": "lots"}, name="db")), "container db: cpu: 'lots' is not a Kubernetes quantity"),
        (one_pod(container({"memory": "-1Gi"}, name="db")), "container db: memory: '-1Gi' is negative"),
        (one_pod(overhead={"cpu": "x"}), "overhead: cpu: 'x'"),
        (one_pod(resources=pod.ResourceNeeds(requests={"cpu": ""})), "pod resources: cpu: ''"),
    ],
)
def test_an_amount_that_is_none_is_an_error_that_names_it(found: pod.Pod, words: str) -> None:
    """Container, resource and value; a server would have refused it, a manifest on disk has met none."""
    with pytest.raises(ValueError, match=words):
        resources.requests_of(found)


def test_what_a_pod_asks_for_is_remembered() -> None:
    """By the pod itself and not by its name, and no caller can change the cached value."""
    small, large = one_pod(container({"cpu": 1})), one_pod(container({"cpu": 2}))
    assert resources.requests_of(small) is resources.requests_of(small)
    assert [cpus(small), cpus(large)] == [1, 2]
    with pytest.raises(TypeError, match="does not support item assignment"):
        resources.requests_of(small)["cpu"] = Fraction(0)  # type: ignore[index]


def test_only_some_pods_are_remembered() -> None:
    """A pod that was dropped is read again."""
    first = one_pod(container({"cpu": 3}))
    many = [first, *(one_pod(container({"cpu": 1})) for _ in range(resources.MOST_PODS))]
    assert {cpus(one) for one in many} == {1, 3}
    assert cpus(first) == 3


def test_what_cannot_be_read_is_told_each_time() -> None:
    """An error is no answer that would be kept."""
    wrong = one_pod(container({"cpu": "many"}))
    for _ in range(2):
        with pytest.raises(ValueError, match="many"):
            resources.requests_of(wrong)


AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "x.io/gpu"]), st.sampled_from(["1", 1, 1.0, "1000m", "2Gi"]), max_size=2
)


@given(st.lists(st.tuples(AMOUNTS, AMOUNTS, st.sampled_from(["main", "init", "sidecar"]), AMOUNTS), max_size=6))
def test_pods_that_are_written_alike_share_what_they_ask_for(
    pods: list[tuple[dict[str, Any], dict[str, Any], str, dict[str, Any]]],
) -> None:
    """And no pod gets what another one asks for, whichever came before."""
    for requests, limits, role, overhead in pods:
        inside = container(requests, limits, sidecar=role == "sidecar")
        mains, inits = ((inside,), ()) if role == "main" else ((), (inside,))
        first, second = (
            resources.requests_of(one_pod(*mains, init_containers=inits, overhead=overhead)) for _ in range(2)
        )
        assert first is second
        expected = {name: quantity.parse(amount) for name, amount in {**limits, **requests}.items()}
        for name, amount in overhead.items():
            expected[name] = expected.get(name, Fraction(0)) + quantity.parse(amount)
        assert first == {**expected, "pods": 1}


@pytest.mark.security("fairness")
def test_what_a_pod_with_thousands_of_resources_asks_for_is_not_shared() -> None:
    """What is kept for all pods is bounded, whatever users write."""
    many = one_pod(container({f"x.io/r{number}": "1" for number in range(200)}))
    long = one_pod(container({"x.io/" + "r" * 5000: "1"}))
    for each in (many, long):
        again = msgspec.structs.replace(each)
        assert resources.requests_of(each) == resources.requests_of(again)
        assert resources.requests_of(each) is not resources.requests_of(again)
