"""One review in, one well-formed answer out, whatever is in the review."""

import enum
from typing import Final

from slurm_bridge.admission import bridge_marks, mutate, review, validate
from slurm_bridge.admission.review import AdmissionAnswer, AdmissionRequest
from slurm_bridge.admission.rules import AdmissionRules
from slurm_bridge.model import texts
from slurm_bridge.translate import annotations

#: Letters of a refusal; users read it in a terminal.
MOST_OF_MESSAGE: Final = 8192


class Webhook(enum.Enum):
    """The two webhooks of Kubernetes."""

    MUTATE = "mutate"
    VALIDATE = "validate"


def answer(body: bytes, webhook: Webhook, rules: AdmissionRules) -> tuple[AdmissionRequest, AdmissionAnswer]:
    """The request, and the answer to it. Raises NotAReview if the body cannot be answered."""
    try:
        request = review.read(body)
    except review.NotAReview as problem:
        found = review.unreadable(body)
        if found is None:
            raise
        return found, _failed(found, problem, rules)
    try:
        return request, _answered(request, webhook, rules)
    except Exception as surprise:  # noqa: BLE001 - one review must not stop the others; the caller logs it
        return request, _failed(request, surprise, rules)


def _answered(request: AdmissionRequest, webhook: Webhook, rules: AdmissionRules) -> AdmissionAnswer:
    if webhook is Webhook.MUTATE:
        return AdmissionAnswer(uid=request.uid, patch=mutate.patch(request, rules))
    found = tuple(dict.fromkeys(validate.problems(request, rules)))
    if found:
        words = texts.bounded(annotations.together(found), MOST_OF_MESSAGE)
        return AdmissionAnswer(uid=request.uid, allowed=False, message=words)
    told = tuple(texts.bounded(one) for one in validate.warnings(request, rules))
    return AdmissionAnswer(uid=request.uid, warnings=told)


def _failed(request: AdmissionRequest, surprise: Exception, rules: AdmissionRules) -> AdmissionAnswer:
    """An object of the bridge, or with a record of it, is refused, by default; all others are allowed."""
    if rules.lenient or not _may_be_ours(request, rules):
        return AdmissionAnswer(uid=request.uid, surprise=surprise)
    words = (
        f"{request.about}: slurm-bridge could not review it: {type(surprise).__name__};"
        " its log has the reason, and administrators may set admission.on_error: allow"
    )
    return AdmissionAnswer(uid=request.uid, allowed=False, message=texts.bounded(words), surprise=surprise)


def _may_be_ours(request: AdmissionRequest, rules: AdmissionRules) -> bool:
    try:
        manifest = request.object
        if manifest is None:
            return rules.managed(request.namespace)
        if bridge_marks.created_by(manifest) is not None:
            return True
        if validate.is_pod(request):
            return rules.takes(manifest, request.namespace, request.user_info.groups or ())
        return validate.concerns(request, manifest, rules)
    except Exception:  # noqa: BLE001 - what cannot even be told apart is left alone
        return False
