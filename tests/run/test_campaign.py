"""Whole campaigns as a person runs them: what is refused before start, what runs, what is written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import tiny

pytestmark = pytest.mark.slow

EXPERIMENT = """
[workload]
name = "mlp"
data = "{images}"
options = {{ dropout = 0.0 }}
[train]
batch = 64
epochs = 1
[[strategy]]
name = "single"
[[strategy]]
name = "ddp"
ways = 2
[measure]
repeats = 1
cooldown_s = 0
"""


@pytest.fixture
def words(tmp_path: Path, images: Path) -> list[str]:
    (tmp_path / "e.toml").write_text(EXPERIMENT.format(images=images))
    return ["run", str(tmp_path / "e.toml"), "--out", str(tmp_path / "c")]


def test_a_campaign_from_start_to_table(tmp_path: Path, words: list[str], env: dict[str, str]) -> None:
    secrets = {"HF_TOKEN": "very-secret-1", "MYDB_URL": "postgres://user:very-secret-2@host/db"}
    ended = tiny.escala([*words, "--set", "strategy.ddp.simulate=true"], {**env, **secrets})
    assert ended.returncode == 0, ended.stderr
    assert "Verdict" in ended.stdout
    assert "[2/2]" in ended.stderr  # progress goes to the error stream, the table can be piped
    single, ddp = sorted(tiny.records(tmp_path / "c"), key=lambda record: len(record["trial"]["seats"]))
    # The same seed gives the same curve and, after it, the same judgement of every test row.
    assert ddp["losses"] == pytest.approx(single["losses"], rel=1e-5)
    assert ddp["score"]["samples"] == single["score"]["samples"] == 200
    assert ddp["epochs"][0]["order"] == single["epochs"][0]["order"]
    assert ddp["epochs"][0]["loss"] == pytest.approx(single["epochs"][0]["loss"], rel=1e-5)
    assert single["parameters"] == 669_706
    assert single["flops_per_sample"] > 3 * 669_706
    # Two seats fit on two cores, so nothing was simulated although it was allowed.
    assert "simulated" not in ddp["doubts"] or psutil.cpu_count() == 1
    assert [seat["rows"] for seat in ddp["trial"]["seats"]] == [[0, 32], [32, 64]]
    written = b"".join(path.read_bytes() for path in (tmp_path / "c").rglob("*") if path.is_file())
    assert b"very-secret" not in written
    # One look at the folder later, on a machine without the data: the report still opens.
    for form in ("terminal", "markdown", "csv", "json"):
        report = tiny.escala(["report", str(tmp_path / "c"), "--format", form], env)
        assert report.returncode == 0, report.stderr
        assert "ddp x2" in report.stdout


def test_seats_that_share_a_device_are_marked(tmp_path: Path, words: list[str], env: dict[str, str]) -> None:
    many = len(psutil.Process().cpu_affinity()) + 1
    ended = tiny.escala([*words, "--quiet", "--set", f"strategy.ddp.ways={many}"], env)
    assert ended.returncode == 0
    found = {record["trial"]["strategy"]["name"]: record for record in tiny.records(tmp_path / "c")}
    assert found["ddp"]["outcome"] == "unfit"
    assert f"needs {many} CPU cores" in found["ddp"]["reason"]
    shutil.rmtree(tmp_path / "c")
    simulated = ["--set", f"strategy.ddp.ways={many}", "--set", "strategy.ddp.simulate=true"]
    assert tiny.escala([*words, "--quiet", *simulated], env).returncode == 0
    found = {record["trial"]["strategy"]["name"]: record for record in tiny.records(tmp_path / "c")}
    assert found["ddp"]["outcome"] == "done"
    assert "simulated" in found["ddp"]["doubts"]
    assert found["ddp"]["losses"] == pytest.approx(found["single"]["losses"], rel=1e-5)


def test_steps_measure_throughput_and_judge_nothing(tmp_path: Path, words: list[str], env: dict[str, str]) -> None:
    ended = tiny.escala([*words, "--quiet", "--set", "train.steps=25"], env)
    assert ended.returncode == 0, ended.stderr
    for record in tiny.records(tmp_path / "c"):
        assert (record["steps"], len(record["losses"]), record["score"]) == (25, 25, None)
        assert record["samples_per_second"] > 0


def test_no_socket_listens_beyond_loopback(tmp_path: Path, words: list[str], env: dict[str, str]) -> None:
    # The two seats alone, and for longer than anything else here may take.
    keys = ("measure.baseline=ddp x2", "strategy.single.repeats=0", "train.epochs=5000")
    settings = [word for key in keys for word in ("--set", key)]
    parent = subprocess.Popen([sys.executable, "-m", "escala", *words, "--quiet", *settings], env=env)
    try:
        assert tiny.wait_for(lambda: len(tiny.processes_of(tmp_path / "c")) == 2, 120), "two seats never ran together"
        seen = set[str]()
        linked = 0
        while parent.poll() is None and linked < 20:
            for process in tiny.processes_of(tmp_path / "c"):
                try:
                    links = process.net_connections("inet")
                except psutil.Error:
                    continue
                linked += any(link.status == psutil.CONN_ESTABLISHED for link in links)
                seen |= {link.laddr.ip for link in links if link.status == psutil.CONN_LISTEN}
        assert linked, "the seats never met, so nothing was seen"
        assert seen <= {"127.0.0.1", "::1"}
    finally:
        parent.kill()
        parent.wait()


def test_the_machine_need_not_know_its_own_name(tmp_path: Path, words: list[str], env: dict[str, str]) -> None:
    rename = 'hostname no-such-name && exec "$@"'
    command = ["unshare", "-u", "sh", "-c", rename, "sh", sys.executable, "-m", "escala", *words, "--quiet"]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    if "unshare failed" in ended.stderr:
        pytest.skip(f"a namespace of our own is not allowed here: {ended.stderr}")
    assert ended.returncode == 0, ended.stderr
    assert {record["outcome"] for record in tiny.records(tmp_path / "c")} == {"done"}


def test_a_host_without_the_device_skips_what_needs_it(tmp_path: Path, words: list[str], env: dict[str, str]) -> None:
    without = {**env, "CUDA_VISIBLE_DEVICES": ""}
    ended = tiny.escala([*words, "--quiet", "--set", "strategy.ddp.device=cuda"], without)
    assert ended.returncode == 0
    assert {record["outcome"] for record in tiny.records(tmp_path / "c")} == {"done", "unfit"}
    shutil.rmtree(tmp_path / "c")
    both = ["--set", "strategy.ddp.device=cuda", "--set", "strategy.single.device=cuda"]
    nothing = tiny.escala([*words, "--quiet", *both], without)
    assert nothing.returncode == 4
    assert "error[ENV-DEVICE]" in nothing.stderr


# What is wrong -> overrides, exit code, words of the error.
REFUSED = {
    "unknown workload": (["workload.name=mpl"], 2, "error[CFG-VALUE] workload.name: there is no workload 'mpl'"),
    "unknown strategy": (["strategy.ddp.name=dpd"], 2, "did you mean ddp?"),
    "unknown option": (["workload.options.dropuot=0.5"], 2, "did you mean dropout?"),
    "more seats than rows": (["train.batch=1"], 2, "error[CFG-SHARDS] strategy ddp x2: rank 0 would have no rows"),
    "no such data": (["workload.data=/no/such/folder"], 3, "error[DATA-PATH]"),
    "module missing": (["workload.name=no_such_module:f", "workload.options={}"], 3, "error[MODEL-IMPORT]"),
    "no factory": (["workload.name=faulty:no_such", "workload.options={}"], 3, "no callable named 'no_such'"),
    "factory raises": (["workload.name=faulty:raising", "workload.options={}"], 3, "planted in the factory"),
    "no network": (["workload.name=faulty:of_another_kind", "workload.options={}"], 3, "returned int"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_can_be_known_before_start_is_said_before_start(
    tmp_path: Path, words: list[str], env: dict[str, str], what: str
) -> None:
    overrides, code, told = REFUSED[what]
    ended = tiny.escala([*words, *(word for one in overrides for word in ("--set", one))], env)
    assert (ended.returncode, told in ended.stderr) == (code, True), ended.stderr
    assert len([line for line in ended.stderr.splitlines() if "error[" in line]) == 1
    assert "Traceback" not in ended.stderr
    assert tiny.records(tmp_path / "c") == []


def test_weights_that_differ_between_seats_are_refused(tmp_path: Path, words: list[str], env: dict[str, str]) -> None:
    own = ["--set", "workload.name=faulty:unseeded", "--set", "workload.options={}"]
    ended = tiny.escala([*words, "--quiet", *own], env)
    assert ended.returncode == 5
    reasons = [record["reason"] or "" for record in tiny.records(tmp_path / "c")]
    assert any("MODEL-INIT" in reason and "rank 1" in reason for reason in reasons), reasons


def test_a_factory_that_prints_and_wanders_off_does_no_harm(
    tmp_path: Path, words: list[str], env: dict[str, str]
) -> None:
    own = ["--set", "workload.name=faulty:wandering", "--set", "workload.options={}"]
    ended = tiny.escala([*words, "--quiet", "--json", *own], env)
    assert ended.returncode == 0, ended.stderr
    json.loads(ended.stdout)  # the factory's words are not mixed in
    logs = "".join(path.read_text() for path in (tmp_path / "c" / "logs").rglob("*.log"))
    assert "words of the factory" in logs


def test_plan_prints_seats_and_rows_and_starts_nothing(tmp_path: Path, words: list[str], env: dict[str, str]) -> None:
    planned = tiny.escala(["plan", words[1]], env)
    assert planned.returncode == 0, planned.stderr
    assert "ddp x2" in planned.stdout
    as_json = json.loads(tiny.escala(["plan", words[1], "--json"], env).stdout)
    assert [len(trial["seats"]) for trial in as_json if trial["label"] == "ddp x2"] == [2]
    assert not (tmp_path / "c").exists()


def test_probe_tells_what_fits(env: dict[str, str]) -> None:
    told = json.loads(tiny.escala(["probe", "--json"], env).stdout)
    assert {"name": "single cpu", "unfit": None} in told["strategies"]
    assert told["host"]["cores"] >= 1
