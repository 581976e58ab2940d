"""The child behind `preflight`: `python -m escala.plan.inspect ANSWER_FD PARENT_PID`, the question on its input."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from escala.plan.child import die_with
from escala.plan.limits import room_of
from escala.plan.preflight import Facts, Line, MetricName, Preflight, Question
from escala.plan.traces import TraceKey
from escala.terms.errors import EscalaError
from escala.terms.experiment import WorkloadSpec
from escala.terms.record import DataUse


def main() -> int:
    """Answer the question."""
    answer_fd, parent = int(sys.argv[1]), int(sys.argv[2])
    die_with(parent)
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)

    def tell(line: Line) -> None:
        data = msgspec.json.encode(line) + b"\n"
        while data:
            data = data[os.write(answer_fd, data) :]

    try:
        tell(Line(answer=answer(question, lambda note: tell(Line(note=note)))))
    except EscalaError as error:
        tell(Line(error=error.to_dict()))
        return error.exit
    return 0


def answer(question: Question, say: Callable[[str], None]) -> Preflight:
    """The host, and the facts of every workload asked for. Raises `EscalaError`."""
    from escala.plan.probe import probe

    host = probe()
    fused = host.best != "cpu"
    keys = [
        tuple(replace(key, fused=fused) if key.fused is None else key for key in some) for some in question.traces
    ] or [()] * len(question.workloads)
    return Preflight(
        host,
        tuple(
            _facts(spec, question.prepare, some, say, room_of(host, question.memory_gib))
            for spec, some in zip(question.workloads, keys, strict=True)
        ),
    )


def _facts(
    spec: WorkloadSpec, prepare_arrays: bool, keys: tuple[TraceKey, ...], say: Callable[[str], None], room: int
) -> Facts:
    from escala.data import describe, first_found
    from escala.data.base import Request
    from escala.data.prepared import cache_folder, prepare
    from escala.plan.model_facts import model_facts, model_of
    from escala.plan.traced import bare_process, traced
    from escala.workloads import workload

    process = bare_process() if keys else 0
    work = workload(spec.name, spec.options)
    options = work.decided(spec.options, room)
    if options != spec.options:
        work = workload(spec.name, options)
        say(f"{spec.name}: {', '.join(f'{key} = {value}' for key, value in options.items())}")
    names = (spec.data,) if isinstance(spec.data, str) else spec.data or work.data
    found = first_found(names, os.environ)
    request = Request(found, spec.validation, spec.limit, work.form())
    cache = cache_folder(os.environ)
    began = time.monotonic()
    if prepare_arrays:
        prepared = prepare(request, cache, os.environ, say)
        folder, description = str(prepared.folder), prepared.description
    else:
        folder, description = None, describe(request, os.environ, cache, say)
    prepare_s = time.monotonic() - began
    for note in description.notes:
        say(note)
    network = model_of(work)
    model = model_facts(work, description, network)
    use = DataUse(
        name=description.name,
        origin=description.origin,
        where=description.where,
        digest=description.digest,
        rows=dict(description.rows),
        classes=description.classes,
        padding=description.padding,
        skipped=description.skipped,
        notes=description.notes,
    )
    return Facts(
        spec=spec,
        options=dict(options),
        data=found,
        use=use,
        parameters=model.parameters,
        flops_per_sample=model.flops_per_sample,
        unused=model.unused,
        images=model.images,
        drops=model.drops,
        packs=model.packs,
        traces=traced(work, description, tuple(dict.fromkeys(keys)), network),
        process_bytes=process,
        blocks=model.blocks,
        uncut=model.uncut,
        row_bytes=model.row_bytes,
        segments=model.segments,
        splits=model.splits,
        splits_unfit=model.splits_unfit,
        peers_unfit=model.peers_unfit,
        metrics=tuple(MetricName(one.name, one.better, one.lowest, one.highest) for one in work.metrics),
        folder=folder,
        prepare_s=prepare_s if prepare_arrays else None,
        software={"network": "; ".join(work.notes())} if work.notes() else {},
    )


if __name__ == "__main__":
    sys.exit(main())
