"""Conditions on devices in CEL: what they mean, what is refused, and what they cost."""

import collections
import contextlib
import time

import pytest

from slurm_bridge.families.device_claims.selectors import MOST_LETTERS, MOST_PAUSE, Selectors, TooMuch
from slurm_bridge.model.devices import Device, DeviceAttribute, DeviceCapacity

DRIVER = "gpu.example.com"


def device(number: int = 1) -> Device:
    return Device(
        name=f"gpu-{number}",
        attributes={
            "index": DeviceAttribute(integer=number),
            "model": DeviceAttribute(string="A100"),
            "example.com/healthy": DeviceAttribute(boolean=True),
            "firmware": DeviceAttribute(version="1.10.0"),
        },
        capacity={"memory": DeviceCapacity(value="40Gi")},
    )


OURS = f'device.attributes["{DRIVER}"]'
MEMORY = f'device.capacity["{DRIVER}"].memory'


@pytest.mark.parametrize(
    ("text", "met"),
    [
        (f'device.driver == "{DRIVER}"', True),
        ('device.driver == "other"', False),
        (f'{OURS}.model == "A100" && {OURS}.index in [1, 3]', True),
        (f"{OURS}.index == 2", False),
        ('device.attributes["example.com"].healthy', True),
        (f'has({OURS}.model) && !has(device.attributes["other.io"].model)', True),
        (f'"model" in {OURS}', True),
        ('device.attributes["other.io"].model == "x"', False),
        (f'{OURS}.model.lowerAscii().startsWith("a1")', True),
        (f'{OURS}.model.matches("^A[0-9]+$")', True),
        (f'{MEMORY}.compareTo(quantity("40960Mi")) == 0', True),
        (f'{MEMORY}.isGreaterThan(quantity("80Gi"))', False),
        (f'{OURS}.firmware.isGreaterThan(semver("1.9.0"))', True),
        (f'{OURS}.firmware.compareTo(semver("1.10.0-rc.1")) > 0 && {OURS}.firmware.major() == 1', True),
        (f'{OURS}.index > 0 ? {OURS}.model == "A100" : false', True),
        # A condition that fails, or is no condition, is not met.
        (f'{OURS}.index == "one"', False),
        (f"{OURS}.model", False),
    ],
)
def test_what_conditions_mean(text: str, met: bool) -> None:
    """Of a device they see the driver, its attributes, and its capacities."""
    selectors = Selectors()
    assert selectors.problem(text) == ""
    assert selectors.matches(text, DRIVER, device()) is met


@pytest.mark.security("input")
@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[1, 2].all(x, x > 0)", "all"),
        (f"size({OURS}.model * 1000000000) > 0", "multiplication"),
        (f"{OURS}.model + {OURS}.model == device.driver", "addition"),
        ('{"a": 1}.a == 1', "not supported"),
        (f'{OURS}.?model.orValue("x") == "x"', "cannot be read"),
        ("device.driver ==", "cannot be read"),
        ("true" + " || true" * 300, "longer"),
        ("(" * 30 + "true" + ")" * 30, "deeper"),
        ('device.driver.matches("a' + "\\a" * 100, "backslash"),
        (f'!(!(device.driver == "x")) || -1 < -{OURS}.index', ""),
        ("duration(device.driver) > 0", "duration"),
        ("!!!true", "in a row"),
        ("-" * 150 + "1 < 2", "in a row"),
        (f"{OURS}.index in [{', '.join(map(str, range(33)))}]", "more than 32 entries"),
        (f'device.driver.matches("{"a" * 257}")', "more than 256 letters"),
        ('device.driver.matches("(a{900}){900}")', "RE2 does not take"),
        ('device.driver.matches("(")', "RE2 does not take"),
        (f"device.driver.matches({OURS}.model)", "in quotes"),
        ("matches(device.driver)", "in quotes"),
        ('device.name == "gpu-0"', "uses device.name"),
        ('device["name"] == "gpu-0"', "uses device.name"),
        ("device.allowMultipleAllocations", "there are attributes, capacity, driver"),
        ('driver == "gpu.example.com"', "names driver"),
    ],
)
def test_what_could_cost_much_is_refused(text: str, word: str) -> None:
    """A condition with arithmetic, loops or many words is refused in words, at no cost."""
    began, selectors = time.perf_counter(), Selectors()
    assert word in selectors.problem(text)
    selectors.matches(text, DRIVER, device())
    assert time.perf_counter() - began < 2


def test_a_long_condition_is_not_read() -> None:
    """Its length alone is enough."""
    assert "longer" in Selectors().problem("a" * (MOST_LETTERS + 1))


def test_equal_devices_are_judged_once() -> None:
    """A condition that does not look at what differs is evaluated for one of them."""
    selectors, text = Selectors(), f'{OURS}.model == "A100"'
    with selectors.at_most(2, 1000):
        assert all(selectors.matches(text, DRIVER, device(number)) for number in range(8))


def test_a_pass_makes_so_many_evaluations() -> None:
    """The next one goes on from what is known."""
    selectors, text, passes = Selectors(lambda: 0.0), f"{OURS}.index < 100", 0
    while True:
        passes += 1
        try:
            with selectors.at_most(3, 1000):
                assert all(selectors.matches(text, DRIVER, device(one)) for one in range(9))
            break
        except TooMuch:
            continue
    assert passes == 4, "compiling is one of ten things"


@pytest.mark.parametrize("key", [f'{OURS}[device.driver] == "x"', f'"{DRIVER}" in device.attributes'])
def test_a_condition_that_may_see_all_is_judged_for_each_device(key: str) -> None:
    """What it looks at is not known beforehand."""
    selectors = Selectors()
    assert selectors.problem(key) == ""
    with selectors.at_most(1, 1000):
        selectors.matches(key, DRIVER, device(0))
        with pytest.raises(TooMuch):
            selectors.matches(key, DRIVER, device(1))


def test_a_pass_looks_up_so_many_results() -> None:
    """Thousands of known results take time, too."""
    selectors = Selectors()
    selectors.matches(f'device.driver == "{DRIVER}"', DRIVER, device())
    with selectors.at_most(9, 3):
        for _ in range(3):
            with selectors.judging():
                selectors.matches(f'device.driver == "{DRIVER}"', DRIVER, device())
        with pytest.raises(TooMuch), selectors.judging():
            pass


class Timer:
    """A clock that somebody turns by hand, or with each look at it."""

    def __init__(self, each: float = 0.0) -> None:
        self.now, self.each = 0.0, each

    def __call__(self) -> float:
        self.now += self.each
        return self.now


@pytest.mark.security("fairness")
def test_a_pass_ends_after_some_time() -> None:
    """Slow conditions end it before many are evaluated; each pass gets on by one at least."""
    timer, text, passes = Timer(0.021), f"{OURS}.index < 100", 1
    selectors = Selectors(timer)
    while not in_one_pass(selectors, text, 9):
        passes += 1
        timer.now += 60
    assert 5 <= passes <= 11


def in_one_pass(selectors: Selectors, text: str, devices: int) -> bool:
    """Whether all of these devices were looked at."""
    try:
        with selectors.at_most(300, 1000):
            return all(selectors.matches(text, DRIVER, device(one)) for one in range(devices))
    except TooMuch:
        return False


@pytest.mark.security("fairness")
def test_all_passes_together_have_a_part_of_the_time() -> None:
    """What is saved up is used up; afterwards it is a tenth of a second in each, also outside of a pass."""
    timer, text = Timer(0.1), f"{OURS}.index < 100"
    selectors = Selectors(timer)
    with pytest.raises(TooMuch) as stopped:
        all(selectors.matches(text, DRIVER, device(one)) for one in range(30))
    assert selectors.matches(text, DRIVER, device(0)), "what is known costs nothing"
    with pytest.raises(TooMuch):
        selectors.matches(text, DRIVER, device(30))
    assert stopped.value.pause > 0
    timer.now += stopped.value.pause
    assert selectors.matches(text, DRIVER, device(30))


@pytest.mark.security("fairness")
def test_a_namespace_with_many_conditions_leaves_others_their_part() -> None:
    """It waits for what it has used itself; another one goes on at once, and has a half of the time from then on."""
    timer = Timer()
    selectors, turns = Selectors(timer), collections.Counter[str]()

    def compare(namespace: str, number: int) -> float:
        """How long it has to wait."""
        try:
            with selectors.at_most(9, 1000, namespace):
                timer.each = 0.01
                selectors.problem(f"{OURS}.index == {number}")
            turns[namespace] += 1
        except TooMuch as stopped:
            return stopped.pause
        finally:
            timer.each = 0.0
        return 0.0

    while not compare("greedy", turns["greedy"]):
        pass
    assert compare("modest", -1) == 0.0
    turns.clear()
    for second in range(200):
        timer.now += 1.0
        for namespace, offset in (("greedy", 1000), ("greedy", 100_000), ("modest", 10_000)):
            compare(namespace, offset + second)
    assert turns["modest"] == 200
    assert turns["greedy"] > 200


@pytest.mark.security("fairness")
def test_many_namespaces_have_no_more_time_than_one() -> None:
    """All together use a tenth of the time, and little at once."""
    timer = Timer(0.03)
    selectors, compared = Selectors(timer), 0
    for number in range(3000):
        timer.now += 0.05
        with contextlib.suppress(TooMuch), selectors.at_most(9, 1000, f"n{number % 100}"):
            selectors.problem(f"{OURS}.index == {number}")
            compared += 1
    assert 0.05 * timer.now < 0.03 * compared < 0.15 * timer.now


@pytest.mark.security("fairness")
def test_known_results_need_no_program() -> None:
    """A condition whose program had to make room is not compiled again for what is known of it."""
    selectors, text = Selectors(lambda: 0.0), f'{OURS}.model == "A100"'
    selectors.matches(text, DRIVER, device())
    for number in range(100):
        assert selectors.problem(f"{OURS}.index == {number}") == ""
    with selectors.at_most(0, 1000):
        assert selectors.matches(text, DRIVER, device())
        with pytest.raises(TooMuch):
            selectors.problem(f"{OURS}.index == 1000")


@pytest.mark.security("input")
def test_a_refused_regular_expression_is_told_to_nobody_else(capfd: pytest.CaptureFixture[str]) -> None:
    """RE2 would write it to the daemon's output."""
    assert "RE2" in Selectors().problem('device.driver.matches("[z-a")')
    assert capfd.readouterr() == ("", "")


@pytest.mark.security("fairness")
def test_no_pause_is_long_however_many_namespaces_there_are() -> None:
    """Most of them are gone in a moment, and with them their parts of the time."""
    timer = Timer()
    selectors, pauses = Selectors(timer), list[float]()
    for _ in range(2):
        for number in range(200):
            timer.each = 0.1
            try:
                with selectors.at_most(9, 1000, f"n{number}"):
                    selectors.problem(f"{OURS}.index == {number + timer.now}")
            except TooMuch as stopped:
                pauses.append(stopped.pause)
            timer.each = 0.0
    assert max(pauses) == MOST_PAUSE
