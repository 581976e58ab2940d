from __future__ import annotations

import threading

import scripted

from escala.meters.base import Bench, Channel, Sample
from escala.meters.sampler import Sampler
from escala.terms.host import Host

BENCH = Bench(Host("a processor", 2, 1, "Linux"))


def test_it_reads_at_the_start_at_the_end_and_when_asked() -> None:
    moments = iter(float(number) for number in range(100))
    lock = threading.Lock()

    def clock() -> float:
        with lock:
            return next(moments)

    meter = scripted.Scripted([scripted.PACKAGE], lambda now: (Sample(joules=now),), clock)
    sampler = Sampler([meter], 1000.0, clock)
    sampler.start()
    sampler.read()
    sampler.end()
    found = sampler.samples()
    assert found.channels == (scripted.PACKAGE,)
    assert len(found.rows) == 3
    assert list(found.seconds) == sorted(found.seconds)
    # A reading stands for the middle between the clock before and after it.
    for second, (sample,) in zip(found.seconds, found.rows, strict=True):
        assert second == sample.joules


def test_it_reads_at_its_interval_by_itself() -> None:
    enough = threading.Event()
    count = 0

    def script(now: float) -> tuple[Sample, ...]:
        nonlocal count
        count += 1
        if count >= 5:
            enough.set()
        return (Sample(watts=1.0),)

    sampler = Sampler([scripted.Scripted([scripted.PACKAGE], script)], 0.005)
    sampler.start()
    assert enough.wait(10)
    sampler.end()
    assert len(sampler.samples().rows) >= 5


def test_meters_stand_side_by_side_in_every_row() -> None:
    board = Channel("cuda:0", "device", watts="sampled")
    sampler = Sampler([scripted.steady(BENCH), scripted.Scripted([board], lambda _: (Sample(watts=3.0),))], 1000.0)
    sampler.start()
    sampler.end()
    found = sampler.samples()
    assert [channel.where for channel in found.channels] == ["package-0", "cuda:0"]
    assert all(len(row) == 2 and row[1].watts == 3.0 for row in found.rows)


def test_ended_it_reads_no_more() -> None:
    sampler = Sampler([scripted.steady(BENCH)], 0.001)
    sampler.start()
    sampler.end()
    rows = len(sampler.samples().rows)
    assert not any(thread.name == "power" for thread in threading.enumerate())
    assert len(sampler.samples().rows) == rows


def test_a_meter_that_raises_or_says_too_much_loses_its_readings_only() -> None:
    def raising(_: float) -> tuple[Sample, ...]:
        raise RuntimeError("the plug is gone")

    board = Channel("cuda:0", "device", watts="sampled")
    meters = [
        scripted.Scripted([board], raising),
        scripted.Scripted([board], lambda _: (Sample(), Sample())),
        scripted.steady(BENCH),
    ]
    sampler = Sampler(meters, 1000.0)
    sampler.start()
    sampler.end()
    for first, second, third in sampler.samples().rows:
        assert first.reason == "RuntimeError: the plug is gone"
        assert second.reason == "2 samples of 1 parts"
        assert third.joules is not None
