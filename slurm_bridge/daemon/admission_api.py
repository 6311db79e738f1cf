"""The admission webhook: connects the web server, the rules of admission and the settings."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Final

from slurm_bridge import ports
from slurm_bridge.admission import gate, review
from slurm_bridge.admission.gate import Webhook
from slurm_bridge.admission.policies import PolicyRules
from slurm_bridge.admission.review import AdmissionAnswer, AdmissionRequest
from slurm_bridge.admission.rules import AdmissionRules
from slurm_bridge.daemon import configuration
from slurm_bridge.daemon.namespace_labels import NamespaceLabels
from slurm_bridge.daemon.review_turns import ReviewTurns
from slurm_bridge.model import selectors, texts
from slurm_bridge.model.features import Feature
from slurm_bridge.model.node import Taint
from slurm_bridge.scheduler.context import Config
from slurm_bridge.settings.admission import SYSTEM_NAMESPACES
from slurm_bridge.settings.model import Settings
from slurm_bridge.telemetry.instruments import Instruments
from slurm_bridge.web import admission
from slurm_bridge.web.admission import Review, ReviewedObject
from slurm_bridge.web.routes import Routes
from slurm_bridge.workloads import kind_table

#: Letters of a name in the log: any client that reaches the port may send one.
_SHOWN: Final = 300

#: Kinds that have a label of their own in the metrics; other ones share one.
_KINDS: Final = frozenset(kind.kind for kind in kind_table.RESOURCES)


class AdmissionReviewer:
    """Answers reviews by the rules in force. Thread-safe."""

    def __init__(
        self, settings: Settings, config: Config, labels: NamespaceLabels, metrics: Instruments, clock: ports.Clock
    ) -> None:
        self._labels, self._metrics, self._clock = labels, metrics, clock
        self._turns = ReviewTurns()
        self.configure(settings, config)

    def configure(self, settings: Settings, config: Config) -> None:
        """Use these settings from the next review on."""
        if settings.managed_namespace_selector:
            self._labels.follow()
        self._rules = rules(settings, config, managed(settings, self._labels))

    def routes(self) -> Routes:
        """The routes for the web server."""
        return admission.routes(self._review(Webhook.MUTATE), self._review(Webhook.VALIDATE))

    def _review(self, webhook: Webhook) -> Review:
        def answered(body: bytes) -> ReviewedObject:
            began = self._clock.now()
            try:
                current = self._current(body)
                with self._turns.of(len(body)):
                    request, answer = gate.answer(body, webhook, current)
            except review.NotAReview as problem:
                raise admission.UnanswerableReview(str(problem)) from problem
            found = _reviewed(request, answer)
            kind = request.kind.kind if request.kind.kind in _KINDS else "other"
            seconds = self._metrics.admission_reviews.labels(webhook.value, kind, found.outcome)
            seconds.observe(self._clock.now() - began)
            return found

        return answered

    def _current(self, body: bytes) -> AdmissionRules:
        """The rules, knowing whether this namespace is managed: that may take a read, for which no turn is held."""
        current, found = self._rules, review.unreadable(body)
        return current if found is None else dataclasses.replace(current, managed=_known(current, found.namespace))


def _known(current: AdmissionRules, namespace: str) -> Callable[[str], bool]:
    """Whether the namespace of a review is managed; an error is raised again where the answer matters."""
    try:
        answer = current.managed(namespace)
    except Exception as error:  # noqa: BLE001 - the review counts it as a failed one
        problem = error
    else:
        return lambda _: answer

    def unknown(_: str) -> bool:
        raise problem

    return unknown


def rules(settings: Settings, config: Config, managed_: Callable[[str], bool]) -> AdmissionRules:
    """The rules of admission by the settings, and by the chain of hooks that they lead to."""
    given = settings.admission
    return AdmissionRules(
        translation=config.rules,
        scheduler_names=settings.scheduler_names,
        options=configuration.workloads(settings),
        managed=managed_,
        honoured=config.chain.honoured,
        strict=settings.unhonoured == "wait",
        accounts=given.accounts,
        controllers=given.controllers,
        toleration=_toleration(settings.nodes.managed_taint),
        lenient=given.on_error == "allow",
    )


def policy_rules(settings: Settings, honoured: frozenset[Feature]) -> PolicyRules:
    """The same rules for policies, which the API server evaluates itself."""
    return PolicyRules(
        schedulers=settings.scheduler_names,
        managed=settings.managed_namespaces,
        selector=selectors.parse(settings.managed_namespace_selector),
        never=(*SYSTEM_NAMESPACES, settings.leader_election.namespace),
        accounts=settings.admission.accounts,
        honoured=honoured,
        strict=settings.unhonoured == "wait",
        environment=settings.defaults.environment,
        taint=settings.nodes.managed_taint,
    )


def _toleration(written: str | None) -> Mapping[str, str] | None:
    """Of the taint of managed nodes, where there is one."""
    if written is None:
        return None
    taint = Taint.parse(written)
    means = {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}
    return {"key": taint.key, **means, "effect": taint.effect}


def managed(settings: Settings, labels: NamespaceLabels) -> Callable[[str], bool]:
    """Whether a namespace is managed; those of the cluster and of the bridge itself never are."""
    never = frozenset((*SYSTEM_NAMESPACES, settings.leader_election.namespace))
    named = frozenset(settings.managed_namespaces)
    wanted = selectors.parse(settings.managed_namespace_selector)

    def is_managed(name: str) -> bool:
        if not name or name in never:
            return False
        return name in named or (bool(wanted) and selectors.all_hold(wanted, labels.of(name)))

    return is_managed


def _reviewed(request: AdmissionRequest, answer: AdmissionAnswer) -> ReviewedObject:
    outcome = "changed" if answer.patch else "allowed" if answer.allowed else "refused"
    return ReviewedObject(
        body=review.write(answer),
        about=texts.bounded(request.about, _SHOWN),
        user=texts.bounded(request.user_info.username, _SHOWN),
        outcome=outcome if answer.surprise is None else "failed",
        message=answer.message,
        surprise=answer.surprise,
    )
