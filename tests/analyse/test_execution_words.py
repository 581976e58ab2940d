from __future__ import annotations

from escala.analyse.execution_words import execution_words, precision_words
from escala.terms.experiment import ExecutionSpec


def test_only_what_is_not_at_its_default_is_told() -> None:
    assert execution_words(ExecutionSpec("bf16")) == ""
    wanted = ExecutionSpec(
        memory_format="channels_last", compile=True, optimizer_kernel="fused", feed="host", bucket_mb=12.5
    )
    assert execution_words(wanted) == "channels_last, compile, fused, feed host, bucket_mb 12.5"
    assert execution_words(ExecutionSpec(capture=True)) == "capture"
    assert execution_words(ExecutionSpec(capture=4)) == "capture 4"
    other = ExecutionSpec(microbatch=8, batchnorm="ghost:4", compression="powersgd", random="row")
    assert execution_words(other) == "batchnorm ghost:4, microbatch 8, dropout by row, compression powersgd"


def test_compressed_gradients_show_in_the_precision() -> None:
    assert precision_words(ExecutionSpec("tf32")) == "tf32"
    assert precision_words(ExecutionSpec("fp32", compression="fp16")) == "fp32, gradients fp16"
