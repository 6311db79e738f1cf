"""vela: the queue and its order, 2-Smart sampling, the decision, the commit."""

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from slurm_bridge.cluster.columns import NodeColumns, Whole
from slurm_bridge.families.vela import commit, dice, loop, sample_order, smart, strategies
from slurm_bridge.families.vela import scores as scoring
from slurm_bridge.families.vela.dice import Places
from slurm_bridge.families.vela.plugins import battery, fit, geo, recency
from slurm_bridge.families.vela.queue import Empty, Entry, SamplingQueue
from slurm_bridge.families.vela.samples import SamplingResponse
from slurm_bridge.families.vela.scene import SamplingScene
from slurm_bridge.families.vela.scores import Weighted
from slurm_bridge.families.vela.smart import AgentFailure
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.model.pod import Container, Pod, PodSpec, ResourceNeeds
from tests.conformance.fields import Fields

Result = Mapping[str, Any]
Operation = Callable[[Fields], Result]

#: How many rounds a loop has in cases that do not say it.
ROUNDS = 4

#: Kubernetes' names of resources that the files name otherwise.
_RESOURCES = {"cpu_milli": "cpu", "ephemeral_storage": "ephemeral-storage"}


def _resource(name: str) -> str:
    return _RESOURCES.get(name, name)


def _numbers(names: Sequence[str], amounts: Mapping[str, int]) -> Whole:
    return np.array([amounts[name] for name in names], np.int64)


def _by_name(names: Sequence[str], values: Whole) -> dict[str, int]:
    return dict(zip(names, values.tolist(), strict=True))


# -- queue_and_sort --------------------------------------------------------------------------------------------------

_SORT = sample_order.PrioritySort()


def _sort_key(pod: Fields) -> Any:
    return _SORT.key(pod.whole("priority", None), pod.whole("created"))


def _sort(given: Fields) -> Result:
    pods = [(_sort_key(pod), pod.text("name")) for pod in given.records("pods")]
    return {"order": [name for _, name in sorted(pods)]}


def _less(given: Fields) -> Result:
    one, other = given.fields("a"), given.fields("b")
    for pod in (one, other):
        pod.text("name")
    return {"less": _sort_key(one) < _sort_key(other)}


def _queue(given: Fields) -> Result:
    queue: SamplingQueue[None] = SamplingQueue(_SORT)
    results: list[Any] = []
    for step in given.records("steps"):
        if step.has("enqueue"):
            added = step.fields("enqueue")
            key, priority, created = added.text("key"), added.whole("priority", None), added.whole("created")
            queue.enqueue(Entry(key=key, priority=priority, created=created, item=None))
        elif step.flag("close", default=False):
            queue.close()
        elif step.flag("len", default=False):
            results.append(len(queue))
        elif step.flag("dequeue"):
            results.append(_dequeued(queue))
    return {"results": results}


def _dequeued(queue: SamplingQueue[None]) -> str | None:
    try:
        entry = queue.dequeue(seconds=0)
    except Empty:
        return "blocks"
    return None if entry is None else entry.key


def _requeue(given: Fields) -> Result:
    return {"requeued": commit.requeued(given.whole("retry_count"), given.whole("max_retries", commit.MAX_RETRIES))}


# -- sampling --------------------------------------------------------------------------------------------------------


def _scripted(indices: Sequence[int]) -> dice.Dice:
    """Dice that fall as it is written, and then no more."""
    left = iter(indices)
    return lambda _below, count: list(itertools.islice(left, count))


def _cluster_count(given: Fields) -> Result:
    return {"count": smart.cluster_count(given.whole("clusters"), given.whole("percent"))}


def _choose_clusters(given: Fields) -> Result:
    draw = _scripted(given.wholes("random_indices"))
    return {"clusters": list(smart.choose_clusters(given.texts("clusters"), given.whole("percent"), draw))}


def _sample_size(given: Fields) -> Result:
    return {"size": smart.sample_size(given.whole("total_nodes"), given.whole("nodes_bp"))}


def _round_robin(given: Fields) -> Result:
    strategy = strategies.RoundRobin(last=given.whole("last", -1))
    total = given.whole("total")
    samples = [
        strategy.sample(request.whole("total", total), request.whole("n")).tolist()
        for request in given.records("requests")
    ]
    return {"samples": samples, "last": strategy.last}


def _random(given: Fields) -> Result:
    strategy = strategies.RandomStrategy(_scripted(given.wholes("random_indices")))
    return {"indices": strategy.sample(given.whole("total"), given.whole("n")).tolist()}


def _random_properties(given: Fields, expect: Fields) -> None:
    drawn = (
        strategies.RandomStrategy(dice.throw(random.Random(0))).sample(given.whole("total"), given.whole("n")).tolist()
    )
    assert len(drawn) == expect.whole("length")
    assert (len(set(drawn)) == len(drawn)) is expect.flag("distinct")
    within = expect.wholes("range")
    assert all(within[0] <= index <= within[1] for index in drawn)


def _sampling_loop(given: Fields) -> Result:
    """Nodes are told apart by numbers."""
    drawn, names = [list(names) for names in given.list("draws", ())], list[str]()
    draws = iter(_numbered(names, drawn))
    rejected, broken = given.texts("filter_rejects", ()), given.texts("filter_error_on", ())

    def keep(places: Places) -> Places:
        if any(names[place] in broken for place in places.tolist()):
            raise RuntimeError("the filter is broken")
        return np.array([place for place in places.tolist() if names[place] not in rejected], np.intp)

    found = loop.collect(
        lambda _missing: next(draws, np.zeros(0, np.intp)),
        keep,
        given.whole("sample_size"),
        max_rounds=given.whole("max_rounds", ROUNDS),
    )
    return {
        "asked": list(found.asked),
        "status": found.status.value,
        "eligible": [names[place] for place in found.found.tolist()],
        "reason": found.reason,
    }


def _numbered(names: list[str], draws: Sequence[Sequence[str]]) -> list[Places]:
    """The same draws with the places of the names, which are written down."""
    names += dict.fromkeys(itertools.chain.from_iterable(draws))
    return [np.array([names.index(name) for name in draw], np.intp) for draw in draws]


def _sampling_loop_counts(given: Fields) -> Result:
    nodes = itertools.count()
    kept, of = given.whole("keep_numerator"), given.whole("keep_denominator")
    found = loop.collect(
        lambda missing: np.array(list(itertools.islice(nodes, missing)), np.intp),
        lambda drawn: drawn[: len(drawn) * kept // of],
        given.whole("sample_size"),
        max_rounds=given.whole("max_rounds", ROUNDS),
    )
    return {"asked": list(found.asked), "eligible": len(found.found), "status": found.status.value}


def _answer(cluster: str, answer: Fields) -> SamplingResponse | AgentFailure:
    if answer.has("error"):
        return AgentFailure(why=answer.text("error"))
    nodes = answer.texts("nodes")
    none: Whole = np.zeros(len(nodes), np.int64)
    return SamplingResponse(cluster=cluster, nodes=nodes, uids=[""] * len(nodes), accumulated=none, plugins=none)


def _merge(given: Fields) -> Result:
    merged = smart.merge({name: _answer(name, answer) for name, answer in given.named("responses").items()})
    return {"nodes": merged.qualified, "failed_clusters": list(merged.failed), "status": merged.status.value}


def _weighted(given: Fields, nodes: Sequence[str]) -> list[Weighted]:
    return [
        Weighted(weight=plugin.whole("weight", 1), scores=_numbers(nodes, plugin.mapping("scores")))
        for plugin in given.records("plugins", ())
    ]


def _sampling_score(given: Fields) -> Result:
    nodes = given.texts("nodes")
    said = _weighted(given, nodes)
    total = _by_name(nodes, scoring.accumulated(said, len(nodes)))
    return {"scores": {name: {"accumulated": total[name], "plugins": len(said)} for name in nodes}}


# -- decision --------------------------------------------------------------------------------------------------------


def _combine(given: Fields) -> Result:
    nodes = given.records("nodes")
    names = [node.text("name") for node in nodes]
    sampled = [node.fields("sampling", None) for node in nodes]
    accumulated = np.array([one.whole("accumulated") if one else 0 for one in sampled], np.int64)
    plugins = np.array([one.whole("plugins") if one else 0 for one in sampled], np.int64)
    return {"scores": _by_name(names, scoring.combined(accumulated, plugins, _weighted(given, names)))}


def _pick(given: Fields) -> Result:
    scores = given.mapping("scores")
    names = list(scores)
    picked = scoring.picked(_numbers(names, scores), given.whole("candidates", commit.CANDIDATES))
    return {"tiers": [names[place] for place in picked.tolist()]}


def _normalize(given: Fields) -> Result:
    scores = given.mapping("scores")
    return {"scores": _by_name(list(scores), scoring.normalized(_numbers(list(scores), scores)))}


def _lru_score(given: Fields) -> Result:
    now, added = given.whole("now"), given.mapping("last_pod_added")
    names, last = list(added), _numbers(list(added), added)
    return {"raw": _by_name(names, recency.unused(now, last)), "scores": _by_name(names, recency.score(now, last))}


def _pod(given: Fields) -> Pod:
    containers = tuple(
        Container(
            name=f"c{place}",
            resources=ResourceNeeds(
                limits=_written(container.mapping("limits", {})), requests=_written(container.mapping("requests", {}))
            ),
        )
        for place, container in enumerate(given.records("containers"))
    )
    return Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(containers=containers))


def _written(amounts: Mapping[str, int]) -> dict[str, str | int | float]:
    """As a manifest has them."""
    return {_resource(name): f"{amount}m" if name == "cpu_milli" else amount for name, amount in amounts.items()}


def _limits(given: Fields) -> Mapping[str, int]:
    return SamplingScene(_pod(given.fields("pod")), NodeColumns.of({}), 0.0).limits


def _amounts(amounts: Mapping[str, int]) -> fit.Amounts:
    named = {_resource(name): amount for name, amount in amounts.items()}
    return lambda name: np.array([named.get(name, 0)], np.int64)


def _resources_fit_filter(given: Fields) -> Result:
    node = given.fields("node")
    node.mapping("total", {})
    return {"fits": bool(fit.fits(_limits(given), _amounts(node.mapping("available")), 1)[0])}


def _resources_fit_score(given: Fields) -> Result:
    node, mode = given.fields("node"), given.text("mode", "LeastAllocated")
    total, available = _amounts(node.mapping("total")), _amounts(node.mapping("available"))
    return {"score": int(fit.score(_limits(given), total, available, mode)[0])}


def _geo(given: Fields) -> Result:
    pod, node = given.fields("pod"), given.fields("node")
    target = geo.Coordinates(*pod.numbers("target")) if pod.has("target") and not pod.null("target") else None
    unknown = (np.nan, np.nan)
    latitude, longitude = unknown if node.null("location") else node.numbers("location", unknown)
    question = (target, np.array([latitude]), np.array([longitude]), pod.number("max_distance_km", geo.MAX_DISTANCE_KM))
    return {"fits": bool(geo.fits(*question)[0]), "score": int(geo.score(*question)[0])}


def _battery(given: Fields) -> Result:
    pod, node = given.fields("pod"), given.fields("node")
    fits = battery.enough(
        node.whole("level", None),
        node.whole("capacity_mah", None),
        min_level=pod.whole("min_level", None),
        min_capacity_mah=pod.whole("min_capacity_mah", None),
    )
    return {"fits": fits}


# -- commit ----------------------------------------------------------------------------------------------------------


def _multibind(given: Fields) -> Result:
    accepting = given.texts("accepts")
    found = commit.multibind(
        given.texts("candidates"), accepting.__contains__, given.whole("max_candidates", commit.CANDIDATES)
    )
    requeued = commit.requeued(given.whole("retry_count", 0), given.whole("max_retries", commit.MAX_RETRIES))
    result: dict[str, Any] = {"tried": list(found.tried), "bound": found.bound, "commit_retries": found.retries}
    if found.bound is None:
        result |= {"requeued": requeued, "event": commit.event(requeued=requeued) or "none"}
    return result


def _node_commit(given: Fields) -> Result:
    ledger = commit.NodeLedger(given.fields("node").mapping("available"))
    results = [
        ledger.commit(request.mapping("limits"), readable=not request.flag("fetch_error", default=False)).value
        for request in given.records("requests")
    ]
    return {"results": results, "available": ledger.available}


QUEUE_AND_SORT: Mapping[str, Operation] = {"sort": _sort, "less": _less, "queue": _queue, "requeue": _requeue}
SAMPLING: Mapping[str, Operation] = {
    "cluster_count": _cluster_count,
    "choose_clusters": _choose_clusters,
    "sample_size": _sample_size,
    "round_robin": _round_robin,
    "random": _random,
    "sampling_loop": _sampling_loop,
    "sampling_loop_counts": _sampling_loop_counts,
    "merge": _merge,
    "sampling_score": _sampling_score,
}
DECISION: Mapping[str, Operation] = {
    "combine": _combine,
    "pick": _pick,
    "normalize": _normalize,
    "lru_score": _lru_score,
    "resources_fit_filter": _resources_fit_filter,
    "resources_fit_score": _resources_fit_score,
    "geo": _geo,
    "battery": _battery,
}
COMMIT: Mapping[str, Operation] = {"multibind": _multibind, "node_commit": _node_commit}


def _checked(operations: Mapping[str, Operation]) -> Callable[[Fields, Fields], None]:
    def check(given: Fields, expect: Fields) -> None:
        expect.compare(given.choice("op", operations)(given))

    return check


def _sampled(given: Fields, expect: Fields) -> None:
    """What has no single right answer is compared by its properties."""
    if given.text("op") == "random_properties":
        _random_properties(given, expect)
    else:
        _checked(SAMPLING)(given, expect)


FILES: Mapping[str, Callable[[Fields, Fields], None]] = {
    "queue_and_sort": _checked(QUEUE_AND_SORT),
    "sampling": _sampled,
    "decision": _checked(DECISION),
    "commit": _checked(COMMIT),
}
