"""Devices between the write into a claim and the moment at which the watch tells of it."""

from slurm_bridge.model.devices import DeviceId, ResourceClaim
from slurm_bridge.model.meta import ObjectMeta
from slurm_bridge.scheduler.device_writes import FORGOTTEN, DeviceWrites

GPU = DeviceId("gpu.x.io", "n1", "gpu-0")


def claim(version: int, uid: str = "u") -> ResourceClaim:
    """The claim as the watch has told of it."""
    return ResourceClaim(metadata=ObjectMeta(name="c", namespace="team", uid=uid, resource_version=str(version)))


def held(writes: DeviceWrites, seen: ResourceClaim | None, now: float = 1.0) -> bool:
    """Whether the device is still counted."""
    return GPU in writes.pending(lambda _namespace, _name: seen, now).devices


def begun() -> DeviceWrites:
    """The finalizer is written, and the caller has not got the answer."""
    writes = DeviceWrites()
    writes.begin(claim(1), [GPU])
    return writes


def test_the_watch_may_be_faster_than_the_answer() -> None:
    """While calls are under way nothing that the watch tells frees the device."""
    assert held(begun(), claim(2))


def test_a_device_counts_until_the_watch_has_told_of_the_write() -> None:
    """Not with the version before the finalizer, nor with that after it."""
    writes = begun()
    writes.protected(claim(2))
    writes.over(claim(1), 1.0)
    assert held(writes, claim(1))
    assert held(writes, claim(2))
    assert not held(writes, claim(3))
    assert not held(writes, claim(1))


def test_a_write_that_has_not_happened_is_forgotten() -> None:
    """At once where that is known, and else after some time."""
    writes = begun()
    writes.failed(claim(1))
    writes.over(claim(1), 1.0)
    assert not held(writes, claim(1))
    writes = begun()
    writes.over(claim(1), 1.0)
    assert held(writes, claim(1), 1.0 + FORGOTTEN)
    assert not held(writes, claim(1), 2.0 + FORGOTTEN)


def test_a_claim_that_is_gone_has_nothing() -> None:
    """Likewise with one that has only its name."""
    for seen in (None, claim(1, uid="other")):
        writes = begun()
        writes.over(claim(1), 1.0)
        assert not held(writes, seen)


def test_a_second_write_does_not_hide_one_that_may_stand() -> None:
    """The first was not answered; the second is refused, because the first has happened: its device is taken."""
    writes, other = begun(), DeviceId("gpu.x.io", "n1", "gpu-1")
    writes.over(claim(1), 1.0)
    writes.begin(claim(1), [other])
    writes.failed(claim(1))
    writes.over(claim(1), 2.0)
    assert held(writes, claim(1))
    assert not held(writes, claim(2))


def test_no_claim_is_written_before_the_watch_has_told_of_the_last_write() -> None:
    """While calls are under way, and after an answer; but a call without one is made again."""

    def busy(version: int) -> bool:
        return bool(writes.pending(lambda _namespace, _name: claim(version), 1.0).busy)

    writes = begun()
    assert busy(1)
    writes.over(claim(1), 1.0)
    assert not busy(1)
    writes.stands(claim(1))
    assert busy(1)
    assert not busy(2)


def test_a_claim_that_may_have_lost_its_devices_is_doubted() -> None:
    """Until the watch tells, or another write does."""
    writes = DeviceWrites()
    writes.begin(claim(1))
    writes.over(claim(1), 1.0)
    assert writes.pending(lambda _namespace, _name: claim(1), 1.0).doubted == {"u"}
    assert not writes.pending(lambda _namespace, _name: claim(2), 1.0).doubted
