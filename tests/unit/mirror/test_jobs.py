"""How the mirror learns what became of our jobs: cheaply, and never from silence."""

import dataclasses
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from slurm_bridge import errors
from slurm_bridge.mirror import jobs
from slurm_bridge.mirror.jobs import TOGETHER
from slurm_bridge.model.job import Done, JobRequest, Memory, Phase
from slurm_bridge.model.names import JobId
from slurm_bridge.model.placeholder import Certainty
from slurm_bridge.sim import faults
from tests.unit.mirror.watching import Watch, maybe, owner, placeholder, record, view

Make = Callable[..., Watch]


@pytest.fixture
def make(tmp_path: pathlib.Path) -> Make:
    """Mirrors of any rhythm."""
    return lambda **rhythm: Watch(tmp_path, **rhythm)


@pytest.fixture
def watch(make: Make) -> Watch:
    """A mirror as it is shipped."""
    return make()


def test_one_call_tells_the_states_of_all(watch: Watch) -> None:
    """Whoever has moved is woken, nobody else."""
    ids = [watch.submit(uid) for uid in "abc"]
    watch.pocket.control.hold(ids[1])
    watch.start()
    watch.mirror.step()
    assert watch.asked("/jobs/state/") == 1
    assert sorted(watch.woken) == [owner("a").key, owner("c").key]
    assert [watch.known(job_id).phase for job_id in ids] == [Phase.RUNNING, Phase.PENDING, Phase.RUNNING]
    assert watch.known(ids[0]).started


def test_nothing_new_wakes_nobody(watch: Watch) -> None:
    """Waiting costs its share of the polls."""
    watch.pocket.control.pause()
    watch.submit()
    for _ in range(5):
        watch.mirror.poll()
    assert watch.woken == []


def test_beyond_a_size_all_states_are_asked_for_at_once(make: Make) -> None:
    """A long list of ids costs more than the whole list."""
    watch = make(full_states_above=2)
    for uid in "abc":
        watch.submit(uid)
    watch.mirror.poll()
    assert watch.asked(r"/jobs/state/$") == 1


def test_an_id_that_is_left_out_is_asked_for_by_itself(watch: Watch) -> None:
    """Silence is no answer; "no such job" is."""
    kept, lost = watch.submit("kept"), watch.submit("lost")
    watch.lose(lost)
    watch.mirror.step()
    assert watch.asked(f"/job/{lost}") == 1
    assert watch.known(lost).certainty is Certainty.GONE
    assert watch.known(kept).certainty is Certainty.SEEN
    assert owner("lost").key in watch.woken


def test_an_id_that_is_left_out_by_mistake_stays(watch: Watch) -> None:
    """The list was empty, the job is there."""
    job_id = watch.submit()
    watch.calls.plan(faults.Garble(b'{"jobs":[]}'), target="/jobs/state/")
    watch.mirror.poll()
    assert watch.known(job_id).certainty is Certainty.SEEN


def test_many_that_are_left_out_cost_one_full_list(make: Make) -> None:
    """Cheaper than a question for each."""
    watch = make(many=3)
    ids = [watch.submit(uid) for uid in "abcd"]
    for job_id in ids[1:]:
        watch.lose(job_id)
    watch.mirror.poll()
    assert watch.asked(r"/jobs/(\?|$)") == 1
    assert [watch.known(job_id).certainty is Certainty.GONE for job_id in ids] == [False, True, True, True]


def test_an_id_that_is_now_somebody_elses_is_gone_and_is_left_alone(watch: Watch) -> None:
    """After a crash the same number can be a stranger's."""
    job_id = watch.submit()
    watch.disguise(job_id, "{}")
    assert watch.mirror.look(job_id, owner()) is None
    assert watch.known(job_id).certainty is Certainty.GONE


@pytest.mark.parametrize("comment", ["", "{}", '{"owner":{}}', record("u", "elsewhere"), record("other", "here")])
def test_only_a_record_of_this_workload_is_evidence(watch: Watch, comment: str) -> None:
    """Neither any JSON, nor another cluster's placeholder, nor that of another pod."""
    job_id = watch.submit()
    watch.disguise(job_id, comment)
    assert watch.mirror.look(job_id, owner()) is None


def test_a_job_that_may_exist_has_to_show_whose_it_is(watch: Watch) -> None:
    """Its state alone says nothing: the id could be a stranger's."""
    job_id = watch.submit(known=False)
    watch.table.put(maybe(job_id), tell=False)
    watch.mirror.poll()
    assert watch.asked(f"/job/{job_id}") == 1
    assert watch.known(job_id).certainty is Certainty.SEEN


def test_a_job_that_may_exist_is_given_up_after_a_while(make: Make) -> None:
    """An order that was sent can still be carried out for some time; not for ever."""
    watch = make(maybe=60.0)
    watch.table.put(maybe(77), tell=False)
    watch.clock.advance(59)
    watch.mirror.poll()
    assert watch.known(JobId(77)).certainty is Certainty.MAYBE
    watch.clock.advance(2)
    watch.mirror.poll()
    assert watch.known(JobId(77)).certainty is Certainty.GONE
    assert watch.woken == [owner("u").key]


def test_what_was_learned_meanwhile_is_not_overwritten(watch: Watch) -> None:
    """An answer is as old as its question: whoever cancelled in between knows better."""
    job_id = watch.submit()
    watch.start()
    ended = placeholder(job_id, words="CANCELLED")
    watch.calls.plan(faults.Meanwhile(lambda: watch.table.put(ended)), target="/jobs/state/")
    watch.mirror.poll()
    assert watch.known(job_id) is ended


def test_details_are_read_in_turn_within_the_budget(make: Make) -> None:
    """First those never read, then the one whose reading is oldest."""
    watch = make(patience=0.0, first_details_per_second=2.0, details_per_second=1.0)
    watch.pocket.control.pause()
    ids = [watch.submit(uid) for uid in "abc"]
    for _ in range(2):
        watch.clock.advance(1.0)
        watch.mirror.details()
    assert [watch.asked(f"/job/{job_id}") for job_id in ids] == [1, 1, 1]
    for _ in range(3):
        watch.clock.advance(1.0)
        watch.mirror.details()
    assert [watch.asked(f"/job/{job_id}") for job_id in ids] == [2, 2, 2]


def test_a_rate_below_one_still_reads(make: Make) -> None:
    """A tenth of a reading a second is one every ten."""
    watch = make(patience=0.0, first_details_per_second=0.1, details_per_second=0.1)
    watch.pocket.control.pause()
    job_id = watch.submit()
    for _ in range(400):
        watch.clock.advance(0.25)
        watch.mirror.details()
    assert 9 <= watch.asked(f"/job/{job_id}") <= 11


def test_after_a_long_silence_no_burst_of_details_follows(make: Make) -> None:
    """The budget adds up for one slow period, not for ever."""
    watch = make(patience=0.0, first_details_per_second=1.0, slowest=2.0)
    for number in range(8):
        watch.submit(f"p{number}")
    watch.clock.advance(1000)
    watch.mirror.details()
    assert watch.asked(r"/job/\d+") == 2


def test_a_crowd_that_was_never_read_costs_one_full_list(make: Make) -> None:
    """After a burst everybody learns at once why he waits."""
    watch = make(patience=0.0, crowd=4)
    watch.pocket.control.pause()
    ids = [watch.submit(f"p{number}") for number in range(5)]
    watch.clock.advance(1)
    watch.mirror.details()
    assert (watch.asked(r"/jobs/(\?|$)"), watch.asked(r"/job/\d+")) == (1, 0)
    assert all(watch.known(job_id).view for job_id in ids)


def test_among_very_many_jobs_of_others_ours_are_asked_for_by_id(make: Make) -> None:
    """The list of all would cost slurmctld more with each job of others."""
    watch = make(full_states_above=2, listed=4)
    ids = [watch.submit(uid) for uid in "abc"]
    for uid in "de":
        watch.disguise(watch.submit(uid, known=False), "")
    watch.mirror.recover()
    full = watch.asked(r"/jobs/state/$")
    watch.mirror.poll()
    assert watch.asked(r"/jobs/state/$") == full
    assert watch.asked(r"/jobs/state/\?job_id=") == 1
    assert all(watch.known(job_id).certainty is Certainty.SEEN for job_id in ids)


def test_of_very_many_jobs_there_is_never_a_list(make: Make) -> None:
    """It would keep slurmrestd from all other answers for a minute: a few are read at a time."""
    watch = make(patience=0.0, crowd=4, many=2, listed=3)
    ids = [watch.submit(f"p{number}") for number in range(5)]
    strays = [watch.submit(f"s{number}", known=False) for number in range(3)]
    watch.clock.advance(1)
    watch.mirror.sweep()
    watch.start()
    watch.mirror.poll()
    for job_id in ids[:3]:
        watch.lose(job_id)
    watch.mirror.poll()
    watch.mirror.details()
    watch.mirror.recover()
    assert watch.asked(r"/jobs/(\?|$)") == 0
    assert [watch.known(one).certainty for one in ids[:3]] == [Certainty.GONE] * 3
    assert all(watch.known(one).view for one in (*ids[3:], *strays))


def test_a_job_that_cannot_be_read_is_there_all_the_same(make: Make) -> None:
    """Where jobs are read one by one it may be any job, as in a list: what was known stays."""
    watch = make(listed=0)
    known = watch.submit("a")
    watch.calls.plan(faults.Garble(b'{"jobs": [{"job_id": "x"}]}'), target=f"/job/{known}")
    watch.mirror.recover()
    assert watch.known(known).certainty is Certainty.SEEN


def torn(watch: Watch, components: int) -> JobId:
    """The leader of a job that runs; its second component has ended and is forgotten, as the mirror knows."""
    part = JobRequest(name="part", owner=owner(), memory=Memory(mib=100))
    made = watch.slurm.submit(dataclasses.replace(part, components=(part,) * (components - 1)))
    assert isinstance(made, Done)
    watch.start()
    assert isinstance(watch.slurm.cancel(JobId(made.job_id + 1)), Done)
    watch.clock.advance(31)
    watch.start()
    watch.mirror.recover()
    assert watch.known(made.job_id).torn
    return made.job_id


@pytest.mark.parametrize("components", [2, 3])
def test_the_leader_of_a_forgotten_component_is_not_asked_for(make: Make, components: int) -> None:
    """slurmctld may die of it; the list of jobs says the same."""
    watch = make(nodes=3)
    leader = torn(watch, components)
    found = watch.mirror.look(leader, owner())
    assert found is not None
    assert (found.torn, found.state.phase) == (True, Phase.RUNNING)
    assert isinstance(watch.slurm.cancel(leader), Done)
    ended = watch.mirror.look(leader, owner())
    assert ended is not None
    assert (ended.torn, ended.alive) == (False, False)
    # The cancel alone.
    assert watch.asked(f"/job/{leader}") == 1


def test_a_torn_job_that_cannot_be_read_in_the_list_is_not_lost(watch: Watch) -> None:
    """Nor when a row does not tell which job it is."""
    leader = torn(watch, 2)
    for row in (f'{{"job_id": {leader}, "name": 7}}', '{"name": 7}'):
        watch.calls.plan(faults.Garble(b'{"jobs": [%s]}' % row.encode()), target=r"/jobs/\?", times=1)
        with pytest.raises(errors.Unreadable):
            watch.mirror.look(leader, owner())
        assert watch.known(leader).torn


def test_a_torn_job_whose_id_is_now_somebody_elses_is_gone_and_is_left_alone(watch: Watch) -> None:
    """After a crash the leader's number can be that of a stranger's job without components."""
    leader = torn(watch, 2)
    watch.lose(leader)
    watch.pocket.world.next_id = leader
    assert watch.submit("other", cluster="elsewhere", known=False) == leader
    assert watch.mirror.look(leader, owner()) is None
    assert watch.known(leader).certainty is Certainty.GONE


def test_many_that_are_read_alone_are_read_at_the_same_time(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """By those hands that the daemon has; the thread that asks reads one in each round, and shows that it lives."""
    monkeypatch.setattr(jobs, "READ_BATCH", 3)
    rounds: list[list[JobId]] = []

    def each(do: Callable[[Any], Any], things: Sequence[Any], /) -> list[Any]:
        rounds.append([*things])
        return [do(one) for one in things]

    watch = make(listed=0)
    watch.mirror.each = each
    ids = [watch.submit(f"p{number}", known=False) for number in range(5)]
    watch.mirror.recover()
    assert [len(one) for one in rounds] == [2, 1]
    assert all(watch.known(job_id).view for job_id in ids)


def test_jobs_that_a_daemon_that_ends_leaves_unread_have_not_vanished(make: Make) -> None:
    """Its hands begin nothing any more."""
    watch = make(listed=0)
    watch.mirror.each = lambda _do, _things: []
    ids = [watch.submit(f"p{number}") for number in range(2)]
    with pytest.raises(errors.Unavailable, match="not all jobs were read"):
        watch.mirror.recover()
    assert all(watch.known(job_id).certainty is Certainty.SEEN for job_id in ids)


def test_a_reading_of_all_states_that_takes_long_comes_seldom(make: Make) -> None:
    """It may cost no more than the share of a processor."""
    watch = make(sweep=10.0, share=0.1)
    watch.calls.plan(faults.Delay(3.0), target=r"/jobs/state/$")
    watch.mirror.sweep()
    watch.clock.advance(20)
    watch.mirror.step()
    assert watch.asked(r"/jobs/state/$") == 1
    watch.clock.advance(11)
    watch.mirror.step()
    assert watch.asked(r"/jobs/state/$") == 2


def test_a_job_that_has_just_moved_is_not_read_for_its_details(make: Make) -> None:
    """Who binds it reads it anyway."""
    watch = make(patience=2.0)
    job_id = watch.submit()
    watch.clock.advance(1.0)
    watch.mirror.details()
    assert watch.asked(f"/job/{job_id}") == 0


def test_a_hold_is_seen_by_the_round_robin_and_wakes_its_workload(make: Make) -> None:
    """States do not tell it; details do."""
    watch = make(patience=0.0)
    watch.pocket.control.pause()
    job_id = watch.submit()
    watch.clock.advance(1)
    watch.mirror.details()
    watch.woken.clear()
    watch.pocket.control.hold(job_id)
    watch.clock.advance(1)
    watch.mirror.details()
    assert watch.woken == [owner("u").key]
    found = watch.known(job_id).view
    assert found is not None
    assert found.held


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"reason": "Priority"}, True),
        ({"held": True}, True),
        ({"nodes": ("n1",)}, True),
        ({"start_time": 500}, False),
        ({"start_time": 5000}, True),
        ({"priority": 7}, False),
        ({"last_evaluation": 7}, False),
    ],
)
def test_only_news_wakes_a_workload(watch: Watch, change: dict[str, object], told: bool) -> None:
    """An estimate that moves a little, and what nobody is told, is none."""
    watch.mirror.adopt(view(), tell=False)
    watch.mirror.adopt(view(**change))
    assert bool(watch.woken) is told


@pytest.mark.parametrize("listed", [10_000, 1])
def test_recovery_rebuilds_the_table_from_one_list_or_without(make: Make, listed: int) -> None:
    """Ours are adopted with their attempts; those that Slurm lost are gone; strangers are remembered as such."""
    watch = make(listed=listed)
    ours, lost = watch.submit("a", attempt=3, known=False), watch.submit("lost")
    theirs = watch.submit("b", cluster="elsewhere", known=False)
    watch.lose(lost)
    watch.mirror.recover()
    assert watch.known(ours).owner.attempt == 3
    assert watch.known(lost).certainty is Certainty.GONE
    assert watch.table.get(theirs) is None
    before = watch.asked(f"/job/{theirs}")
    watch.mirror.sweep()
    assert watch.asked(f"/job/{theirs}") == before


def test_what_was_submitted_while_the_list_was_on_its_way_stays(watch: Watch) -> None:
    """The list is older than the job."""
    late: list[JobId] = []
    watch.calls.plan(faults.Meanwhile(lambda: late.append(watch.submit("late"))), target=r"/jobs/(\?|$)")
    watch.mirror.recover()
    assert watch.known(late[0]).certainty is Certainty.SEEN


def test_a_job_that_ended_long_ago_but_had_nodes_counts_as_started(watch: Watch) -> None:
    """What its end means depends on that, also for a process that did not see it run."""
    ran, waited = watch.submit("ran", known=False), watch.submit("waited", known=False)
    watch.pocket.control.hold(waited)
    watch.start()
    for job_id in (ran, waited):
        watch.pocket.control.end(job_id, "CANCELLED")
    watch.mirror.recover()
    assert (watch.known(ran).started, watch.known(waited).started) == (True, False)


def test_the_sweep_adopts_strays_and_asks_strangers_once(make: Make) -> None:
    """A submit whose answer was lost is found; jobs of others cost one reading each, ever."""
    watch = make(sweep=10.0)
    stray = watch.submit("stray", known=False)
    theirs = watch.submit("b", cluster="elsewhere", known=False)
    for _ in range(3):
        watch.mirror.sweep()
    assert watch.known(stray).owner.uid == "stray"
    assert watch.woken == [owner("stray").key]
    assert watch.asked(f"/job/{theirs}") == 1


def test_an_id_that_a_stranger_had_is_looked_at_again_after_it_left(watch: Watch) -> None:
    """Ids come back for other jobs after a crash; this one could be ours."""
    theirs = watch.submit("b", cluster="elsewhere", known=False)
    watch.mirror.sweep()
    job = watch.pocket.world.jobs[theirs]
    watch.lose(theirs)
    watch.mirror.sweep()
    watch.pocket.world.put(job)
    watch.disguise(theirs, record("a", "here"))
    watch.mirror.sweep()
    assert watch.known(theirs).owner.uid == "a"


def test_many_strays_cost_one_full_list(make: Make) -> None:
    """Somebody else submitted a lot."""
    watch = make(many=3)
    for number in range(4):
        watch.submit(f"x{number}", cluster="elsewhere", known=False)
    watch.mirror.sweep()
    assert watch.asked(r"/jobs/(\?|$)") == 1
    assert watch.asked(r"/job/\d+") == 0


def test_ended_ones_that_nobody_claims_are_forgotten_with_the_sweep(make: Make) -> None:
    """Memory does not grow with history."""
    watch = make(sweep=10.0)
    ended = watch.submit()
    watch.pocket.control.end(ended, "COMPLETED")
    watch.mirror.poll()
    watch.clock.advance(5)
    watch.mirror.sweep()
    assert watch.table.get(ended) is not None
    watch.clock.advance(6)
    watch.mirror.sweep()
    assert watch.table.get(ended) is None


def test_a_job_that_vanished_makes_the_sweep_due(make: Make) -> None:
    """slurmctld has lost something: what else is not as we knew it?"""
    watch = make(sweep=1000.0)
    lost, stray = watch.submit("lost"), watch.submit("stray", known=False)
    watch.lose(lost)
    watch.step(1.0)
    assert watch.table.get(stray) is not None


def test_the_period_follows_what_happens(make: Make) -> None:
    """Change makes it fast, quiet makes it slow, an order makes it fast again."""
    watch = make(fastest=0.2, slowest=5.0, patience=1000.0)
    watch.pocket.control.pause()
    watch.submit()
    for _ in range(600):
        watch.step(0.2)
    quiet = watch.asked("/jobs/state/")
    assert quiet < 40
    watch.mirror.nudge()
    watch.step(0.2)
    assert watch.asked("/jobs/state/") == quiet + 1


def test_a_slow_slurm_is_asked_less_often(make: Make) -> None:
    """Else asking would be all that it does."""
    watch = make(fastest=0.2, patience=1000.0)
    watch.submit()
    watch.calls.plan(faults.Delay(2.0), target="/jobs/state/")
    watch.step(0.2)
    watch.step(1.5)
    assert watch.asked("/jobs/state/") == 1
    watch.step(1.0)
    assert watch.asked("/jobs/state/") == 2


def test_jobs_that_run_are_asked_for_twice_a_second(make: Make) -> None:
    """Few of them cost little: an end is seen after half a second, however long nothing has changed."""
    watch = make(fastest=0.2, slowest=5.0)
    job_id = watch.running()
    for _ in range(300):
        watch.step(0.1)
    before = watch.asked("/jobs/state/")
    for _ in range(10):
        watch.step(0.1)
    assert watch.asked("/jobs/state/") - before == 2
    watch.pocket.control.end(job_id, "CANCELLED")
    watch.step(0.5)
    assert watch.known(job_id).phase is Phase.ENDED


def test_jobs_that_run_are_asked_for_as_often_as_that_may_cost(make: Make) -> None:
    """An answer that takes 60 ms, at 3 % of a processor: every two seconds."""
    watch = make(fastest=0.2, slowest=5.0, share=0.03, patience=1000.0)
    watch.running()
    watch.calls.plan(faults.Delay(0.06), target="/jobs/state/", times=1_000_000)
    for _ in range(300):
        watch.step(0.1)
    before = watch.asked("job_id=")
    for _ in range(600):
        watch.step(0.1)
    assert 25 <= watch.asked("job_id=") - before <= 32


def test_one_late_answer_does_not_slow_the_next_questions(make: Make) -> None:
    """Something else had the processor; what asking costs shows in the quickest of the last answers."""
    watch = make(fastest=0.2, slowest=5.0, calm=0.2)
    job_id = watch.running()
    for _ in range(40):
        watch.step(0.1)
    watch.calls.plan(faults.Delay(0.5), target="/jobs/state/", times=1)
    watch.step(0.2)
    watch.pocket.control.end(job_id, "CANCELLED")
    watch.step(0.2)
    assert watch.known(job_id).phase is Phase.ENDED


def test_many_that_run_are_asked_for_in_parts_and_all_when_one_of_them_ended(make: Make) -> None:
    """Many that end at once are known to have ended as soon as one part of them is."""
    watch = make(fastest=0.2, calm=0.2, part=2, patience=1000.0)
    ids = [watch.running(uid) for uid in "abcdef"]
    for _ in range(40):
        watch.step(0.1)
    watch.calls.forget()
    watch.step(0.2)
    assert watch.asked(r"\?job_id=\d+&job_id=\d+$") == watch.asked("/jobs/state/") == 1
    for job_id in ids[1:]:
        watch.pocket.control.end(job_id, "CANCELLED")
    watch.step(0.2)
    assert [watch.known(job_id).phase is Phase.ENDED for job_id in ids] == [False] + [True] * 5


def many_ended(watch: Watch) -> list[JobId]:
    """Jobs that are known to run, were read, and have ended since."""
    ids = [watch.running(f"u{number}") for number in range(TOGETHER)]
    for number, job_id in enumerate(ids):
        watch.mirror.look(job_id, owner(f"u{number}"))
        watch.pocket.control.end(job_id, "CANCELLED")
    watch.calls.forget()
    return ids


def test_many_that_ended_are_confirmed_by_one_question(watch: Watch) -> None:
    """A second answer that agrees is worth a look at each."""
    ids = many_ended(watch)
    watch.mirror.poll()
    assert watch.asked("/jobs/state/") == 2
    assert [watch.known(job_id).confirmed for job_id in ids] == [True] * TOGETHER


def test_a_second_answer_that_disagrees_confirms_nothing(watch: Watch) -> None:
    """What it does not say, or says otherwise, is looked at one by one."""
    ids = many_ended(watch)
    watch.calls.plan(faults.Garble(b'{"jobs":[]}'), target="/jobs/state/", nth=2)
    watch.mirror.poll()
    assert {watch.known(job_id).confirmed for job_id in ids} == {False}


def test_after_an_outage_no_end_is_confirmed_by_its_id_alone(watch: Watch) -> None:
    """A slurmctld that has crashed may have given the id to another job."""
    ids = many_ended(watch)
    watch.pocket.control.down()
    watch.step(1.0)
    watch.pocket.control.up()
    watch.step(10.0)
    assert [watch.known(job_id).phase for job_id in ids] == [Phase.ENDED] * TOGETHER
    assert {watch.known(job_id).confirmed for job_id in ids} == {False}


def test_a_few_that_ended_are_not_confirmed(watch: Watch) -> None:
    """Each of them is looked at, which tells more."""
    ids = many_ended(watch)
    watch.mirror.poll([watch.known(ids[0])])
    assert not watch.known(ids[0]).confirmed
    assert watch.asked("/jobs/state/") == 1


def test_none_that_runs_is_left_out_for_longer_than_the_slowest_period(make: Make) -> None:
    """However many parts there are, and however dear they are."""
    watch = make(fastest=0.5, slowest=2.0, part=1, patience=1000.0)
    ids = [watch.running(uid) for uid in "abcdefgh"]
    watch.calls.plan(faults.Delay(0.2), target="/jobs/state/", times=1_000_000)
    for _ in range(60):
        watch.step(0.1)
    for job_id in ids:
        watch.pocket.control.end(job_id, "CANCELLED")
        ended = watch.clock.now()
        while watch.known(job_id).phase is not Phase.ENDED:
            watch.step(0.1)
        assert watch.clock.now() - ended <= 2.0 + 4 * 0.2 + 0.1


def test_jobs_that_vanish_make_all_the_others_due(make: Make) -> None:
    """Whether the rest is gone, too, is known before anything follows from the first."""
    watch = make(fastest=0.2, slowest=60.0, part=1, patience=1000.0)
    ids = [watch.running(uid) for uid in "abc"]
    for _ in range(40):
        watch.step(0.1)
    for job_id in ids:
        watch.lose(job_id)
    watch.mirror.look(ids[0], owner("a"))
    assert watch.mirror.owes_sweep
    watch.step(0.2)
    assert watch.table.vanished() == (3, 3)
    watch.step(0.2)
    assert not watch.mirror.owes_sweep


def test_a_list_that_fails_leaves_the_others_due(watch: Watch) -> None:
    """Nothing is known of them, however often Slurm denies single jobs meanwhile."""
    ids = [watch.running(uid) for uid in "ab"]
    for job_id in ids:
        watch.lose(job_id)
    watch.calls.plan(faults.Answer(500), target=r"/jobs/state/$", times=1_000_000)
    watch.mirror.look(ids[0], owner("a"))
    for _ in range(20):
        watch.step(1.0)
        assert watch.mirror.owes_sweep


def test_a_failure_changes_nothing_in_the_table_and_is_counted(watch: Watch) -> None:
    """Not knowing is no news."""
    job_id = watch.submit()
    before = watch.known(job_id)
    watch.pocket.control.down()
    watch.step(1.0)
    assert watch.mirror.failing
    assert watch.known(job_id) is before


def test_the_pause_after_failures_grows_up_to_the_slowest_period(make: Make) -> None:
    """A server that is down is asked again and again, not all the time."""
    watch = make(fastest=0.2, slowest=4.0)
    watch.submit()
    watch.pocket.control.down()
    for _ in range(300):
        watch.step(0.2)
    assert 10 <= watch.mirror.failures <= 22


def test_whoever_asked_is_told_when_slurm_answers_again(watch: Watch) -> None:
    """Once for each outage."""
    told: list[float] = []
    watch.mirror.on_recovery(lambda: told.append(watch.clock.now()))
    watch.submit()
    watch.pocket.control.down()
    watch.step(1.0)
    watch.pocket.control.up()
    for _ in range(20):
        watch.step(1.0)
    assert len(told) == 1
    assert not watch.mirror.failing


def test_with_nothing_to_ask_for_slurm_is_still_asked_now_and_then(make: Make) -> None:
    """Readiness follows the last good answer to a real question."""
    watch = make(slowest=5.0)
    for _ in range(60):
        watch.step(0.5)
    assert watch.mirror.last_good is not None
    assert watch.clock.now() - watch.mirror.last_good <= 6.0
    assert watch.asked("/jobs/state/") <= 8


def test_a_look_that_fails_says_so(watch: Watch) -> None:
    """The caller decides; the table stays as it is."""
    job_id = watch.submit()
    watch.pocket.control.down()
    with pytest.raises(errors.TryLater):
        watch.mirror.look(job_id, owner())
    assert watch.known(job_id).certainty is Certainty.SEEN


def test_a_workload_whose_job_got_the_id_of_a_forgotten_one_hears_that_it_runs(watch: Watch) -> None:
    """The pods of the forgotten job asked, and the state that they read is told only once."""
    job_id = watch.submit("new")
    watch.start()
    assert watch.mirror.look_whose(job_id, owner("old")) == watch.known(job_id)
    assert watch.woken == [owner("new").key]
