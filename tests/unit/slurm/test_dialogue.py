"""Version and token: what is negotiated, what is tried once more, and what is given up."""

import pytest

from slurm_bridge import errors
from slurm_bridge.model.job import Done, Refusal, Refused
from tests.unit.slurm.samples import problem, request

GONE = "Unable to find requested URL endpoint."
PINGS = {"pings": [{"responding": True}]}
REFUSED = {"errors": [problem(1007)]}


def token_of(call) -> str:
    """The token that a call carried."""
    return call.headers["x-slurm-user-token"]


def test_the_highest_common_version_is_spoken(make, slurm):
    """A version that is not served answers 404 in plain text."""
    slurm.forgets("v0.0.45/ping/")
    slurm.says("GET", "/ping/", GONE, 404, content_type="text/plain")
    slurm.says("GET", "/ping/", PINGS, version="v0.0.44")
    assert make().version == "v0.0.44"


def test_a_pinned_version_is_the_only_one_tried(make, slurm):
    """One name in the settings leaves nothing to negotiate."""
    slurm.says("GET", "/ping/", PINGS, version="v0.0.43")
    assert make(api_versions=("v0.0.43",)).version == "v0.0.43"
    assert len(slurm.calls) == 1


def test_no_common_version_is_said(make, slurm):
    """An operator has to upgrade one side or correct the address."""
    slurm.forgets("/ping/")
    for number in range(40, 46):
        slurm.says("GET", "/ping/", GONE, 404, version=f"v0.0.{number}", content_type="text/plain")
    client = make(api_versions=("v0.0.45", "v0.0.44"))
    with pytest.raises(errors.NoCommonVersion):
        client.states()
    assert client.submit(request()).why is Refusal.BUSY


@pytest.mark.parametrize("answer", [("<html>Welcome</html>", "text/html"), ("[" * 100_000, "application/json")])
def test_a_stranger_at_the_address_is_no_slurm(make, slurm, answer):
    """A proxy answers to every path that Slurm does not serve: that tells nothing of a release."""
    slurm.forgets("/ping/")
    for number in range(43, 46):
        slurm.says("GET", "/ping/", GONE, 404, version=f"v0.0.{number}", content_type="text/plain")
    for number in range(40, 43):
        slurm.says("GET", "/ping/", answer[0], version=f"v0.0.{number}", content_type=answer[1])
    with pytest.raises(errors.NoCommonVersion, match="serves none of") as raised:
        make().states()
    assert not isinstance(raised.value, errors.NoExternalJobs)


def test_a_version_that_disappears_is_negotiated_anew(make, slurm):
    """After a downgrade of Slurm even an order goes through: the unknown path did nothing."""
    client = make()
    assert client.version == "v0.0.45"
    slurm.forgets("v0.0.45/ping/")
    slurm.says("GET", "/ping/", GONE, 404, content_type="text/plain")
    slurm.says("POST", "/job/submit", GONE, 404, content_type="text/plain")
    slurm.says("GET", "/ping/", PINGS, version="v0.0.44")
    slurm.says("POST", "/job/submit", {"job_id": 5}, version="v0.0.44")
    assert client.submit(request()) == Done(job_id=5)
    assert client.version == "v0.0.44"


def test_an_unknown_job_is_no_unknown_version(make, slurm):
    """Both are 404; only Slurm's own is JSON."""
    slurm.says("GET", "/job/9", {"jobs": [], "errors": [problem(2017)]}, 404)
    client = make()
    assert client.job(9) is None
    assert len(slurm.asked("GET", "/ping/")) == 1


@pytest.mark.parametrize(
    ("status", "said", "content_type"),
    [
        (511, REFUSED, "application/json"),
        (500, REFUSED, "application/json"),
        (401, "Authentication failure", "text/plain"),
    ],
)
def test_a_renewed_token_is_tried_once(make, slurm, token, status, said, content_type):
    """A refused token did nothing, so even an order is sent again with the token that came meanwhile."""
    client = make()
    assert client.version

    def refuse():
        token.write_text("second.secret.token")
        return said

    slurm.says("POST", "/job/submit", refuse, status, content_type=content_type)
    slurm.says("POST", "/job/submit", {"job_id": 5})
    assert client.submit(request()) == Done(job_id=5)
    assert [token_of(call) for call in slurm.calls][-2:] == ["first.secret.token", "second.secret.token"]


def test_a_token_that_stays_refused_is_not_tried_again(make, slurm):
    """The same token would be refused again; reads raise it, orders are forbidden, and nobody repeats it."""
    client = make()
    assert client.version
    slurm.says("GET", "/jobs/state/", REFUSED, 511)
    slurm.says("POST", "/job/submit", REFUSED, 511)
    with pytest.raises(errors.NotAuthenticated) as caught:
        client.states()
    outcome = client.submit(request())
    assert isinstance(outcome, Refused)
    assert (outcome.why, outcome.code) == (Refusal.FORBIDDEN, 1007)
    assert len(slurm.asked("POST", "/job/submit")) == len(slurm.asked("GET", "/jobs/state/")) == 1
    assert "secret" not in f"{caught.value!r} {outcome!r}"
    for text in (str(caught.value), outcome.message):
        assert "the token in slurm.token_file has expired, or is not of this cluster: write a new one" in text


def test_a_missing_token_file_keeps_orders_unsent(make, slurm, token):
    """Without a token nothing is sent; the daemon waits for the operator."""
    token.unlink()
    client = make()
    assert client.submit(request()).why is Refusal.BUSY
    with pytest.raises(errors.BadConfiguration):
        client.nodes()
    assert len(slurm.calls) == 0


def test_the_user_is_named_only_when_configured(make, slurm):
    """With a plain token slurmrestd knows the user."""
    assert make().version
    assert make(user_name="svc").version
    assert [call.headers.get("x-slurm-user-name") for call in slurm.calls] == [None, "svc"]


def test_a_failed_negotiation_leaves_no_doubt_about_an_order(make, slurm):
    """Slurmrestd fails before the order was ever sent: refused, not unknown."""
    slurm.forgets("/ping/")
    slurm.says("GET", "/ping/", "Bad Gateway", 502, content_type="text/html")
    assert make().submit(request()).why is Refusal.BUSY


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "slurm.test:6820"},
        {"url": "http://user:word@slurm.test"},
        {"url": "http://"},
        {"url": "http://slurm.test:many"},
        {"api_versions": ("v0.0.39",)},
        {"api_versions": ()},
        {"key_file": "key.pem"},
    ],
)
def test_impossible_settings_are_refused_at_once(make, wrong):
    """Before the daemon starts, not at its first call."""
    with pytest.raises(errors.BadConfiguration):
        make(**wrong)
