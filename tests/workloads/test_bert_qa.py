from __future__ import annotations

import importlib
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from workload_cases import LENGTH, SMALL_BERT, VOCABULARY, questions, side, small

from escala.data.base import Form
from escala.terms.errors import EscalaError
from escala.workloads import pretrained, workload

transformers = pytest.importorskip("transformers", reason="the extra transformers is not installed")


def saved(folder: Path, kind: str = "BertForQuestionAnswering", **more: Any) -> Any:
    """A small pretrained network in `folder`, as its publisher's library writes it."""
    torch.manual_seed(9)
    sizes = {
        "vocab_size": VOCABULARY,
        "hidden_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 20,
    }
    network = getattr(transformers, kind)(transformers.BertConfig(**sizes | more))
    network.save_pretrained(folder)
    return network


def refusal(folder: str, **options: Any) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        workload("bert-qa", {"folder": folder, "length": LENGTH} | options).model()
    return caught.value


def test_pretrained_weights_give_what_their_own_library_gives(tmp_path: Path) -> None:
    theirs = saved(tmp_path / "bert-tiny").eval()
    work = workload("bert-qa", {"folder": str(tmp_path / "bert-tiny"), "length": LENGTH})
    model = work.model().eval()
    raw, targets = questions(4)
    logits = model(work.inputs(raw, torch.float32))
    told = theirs(input_ids=raw[:, 0].long(), token_type_ids=raw[:, 1].long(), attention_mask=raw[:, 0] != 0)
    seen = raw[:, 0] != 0
    torch.testing.assert_close(logits[..., 0][seen], told.start_logits[seen])
    torch.testing.assert_close(logits[..., 1][seen], told.end_logits[seen])
    assert work.notes() == ("pretrained weights from bert-tiny",)
    assert work.form() == Form("questions", "wordpiece", 30_522, LENGTH, str(tmp_path / "bert-tiny"))
    # And the loss is theirs, summed instead of averaged.
    with_answer = targets[:, 0] >= 0
    theirs_mean = theirs(
        input_ids=raw[with_answer, 0].long(),
        token_type_ids=raw[with_answer, 1].long(),
        attention_mask=seen[with_answer],
        start_positions=targets[with_answer, 0],
        end_positions=targets[with_answer, 1],
    ).loss
    assert work.loss(logits, targets).item() == pytest.approx(3 * theirs_mean.item(), rel=1e-5)


def test_a_folder_without_a_head_gets_one_from_the_seed(tmp_path: Path) -> None:
    saved(tmp_path / "bare", "BertForMaskedLM")
    heads, bodies = [], []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        model = workload("bert-qa", {"folder": str(tmp_path / "bare"), "length": LENGTH}).model()
        heads.append(model.get_parameter("4.outputs.weight").detach())
        bodies.append(model.get_parameter("1.layer.intermediate.dense.weight").detach())
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])
    assert torch.equal(bodies[0], bodies[2])


def test_the_options_dropout_holds_for_pretrained_networks_too(tmp_path: Path) -> None:
    saved(tmp_path / "bert")
    model = workload("bert-qa", {"folder": str(tmp_path / "bert"), "length": LENGTH, "dropout": 0.0}).model()
    assert {layer.p for layer in model.modules() if isinstance(layer, torch.nn.Dropout)} == {0.0}


def test_weights_drawn_at_random_are_said_to_be() -> None:
    assert small("bert-qa").notes() == ("weights drawn at random",)
    assert workload("bert-qa", {}).form() == Form("questions", "wordpiece", 30_522, 384)


def test_a_cut_off_answer_adds_nothing_to_the_loss_but_is_a_row() -> None:
    work = small("bert-qa")
    logits = torch.zeros(2, LENGTH, 2)
    logits[0, 3, 0] = 2.0
    targets = torch.tensor([[3, 5, 0], [-1, -1, 1]])
    start = math.log(math.exp(2) + LENGTH - 1) - 2
    assert work.loss(logits, targets).item() == pytest.approx((start + math.log(LENGTH)) / 2, rel=1e-6)
    assert work.loss(logits[1:], targets[1:]).item() == 0
    assert work.count(targets) == 2
    assert work.judge(side(2))(logits, targets).shape == (2,)


def test_padding_changes_nothing() -> None:
    model = small("bert-qa").model().double().eval()
    raw = questions(1)[0].long()
    padded = torch.nn.functional.pad(raw, (0, 5))
    torch.testing.assert_close(model(padded)[:, :LENGTH], model(raw))
    assert model(torch.zeros_like(raw)).isfinite().all()


def test_batches_of_like_lengths_are_an_option() -> None:
    raw = questions(3)[0]
    assert small("bert-qa").lengths(raw) is None
    lengths = small("bert-qa", by_length=True).lengths(raw)
    assert lengths is not None
    assert lengths.tolist() == [LENGTH, LENGTH - 2, LENGTH]


def test_a_score_without_the_words_is_refused() -> None:
    with pytest.raises(EscalaError) as caught:
        small("bert-qa").score(torch.zeros(1, LENGTH, 2), questions(1)[1])
    assert caught.value.code == "DATA-QA"


def test_a_folder_with_another_kind_of_network_is_refused(tmp_path: Path) -> None:
    config = transformers.DistilBertConfig(vocab_size=VOCABULARY, dim=16, n_layers=1, n_heads=2, hidden_dim=32)
    transformers.DistilBertModel(config).save_pretrained(tmp_path / "other")
    error = refusal(str(tmp_path / "other"))
    assert error.code == "MODEL-KIND"
    assert "distilbert" in error.what


def test_a_network_for_shorter_rows_is_refused(tmp_path: Path) -> None:
    saved(tmp_path / "bert")
    error = refusal(str(tmp_path / "bert"), length=21)
    assert error.code == "MODEL-KIND"
    assert "20 tokens" in error.what
    assert "21" in error.expected


def test_a_folder_that_lacks_weights_is_refused(tmp_path: Path) -> None:
    saved(tmp_path / "bert", num_hidden_layers=2)
    config = json.loads((tmp_path / "bert" / "config.json").read_text())
    (tmp_path / "bert" / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    error = refusal(str(tmp_path / "bert"))
    assert error.code == "MODEL-LOAD"
    assert "16 of the network's weights" in error.what


@pytest.mark.parametrize("damage", ["cut", "no weights", "no config", "pickle", "config"])
def test_a_damaged_folder_is_refused(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "bert"
    network = saved(folder)
    weights, config = folder / "model.safetensors", folder / "config.json"
    match damage:
        case "cut":
            weights.write_bytes(weights.read_bytes()[:-100])
        case "no weights":
            weights.unlink()
        case "no config":
            config.unlink()
        case "pickle":
            weights.unlink()
            torch.save(network.state_dict(), folder / "pytorch_model.bin")
        case _:
            config.write_text("{")
    error = refusal(str(folder))
    assert error.code == "MODEL-LOAD"
    assert error.exit == 3
    assert "\n" not in str(error)


@pytest.mark.parametrize("name", ["/no/such/folder", "./nothing", "a/b/c", "~/nothing-of-that-name"])
def test_a_path_that_is_not_there_is_not_asked_for_elsewhere(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained, "extra", lambda _: pytest.fail("asked the hub"))
    assert refusal(name).code == "MODEL-PATH"


@pytest.mark.parametrize("here", [True, False])
def test_the_hub_is_asked_only_for_what_is_not_here_yet(
    here: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path / "snapshot")
    calls = []

    def snapshot_download(name: str, *, allow_patterns: tuple[str, ...], local_files_only: bool = False) -> str:
        calls.append((name, local_files_only))
        assert not any(pattern.endswith((".bin", ".py")) for pattern in allow_patterns)
        if local_files_only and not here:
            raise FileNotFoundError("not in the cache")
        return str(tmp_path / "snapshot")

    monkeypatch.setattr(importlib.import_module("huggingface_hub"), "snapshot_download", snapshot_download)
    work = workload("bert-qa", {"folder": "someone/bert-tiny", "length": LENGTH})
    assert len(work.blocks(work.model())) == 5
    assert calls == [("someone/bert-tiny", True)] + [("someone/bert-tiny", False)] * (not here)
    assert work.notes() == ("pretrained weights from bert-tiny",)


def test_a_hub_out_of_reach_is_told_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def snapshot_download(name: str, **options: Any) -> str:
        raise ConnectionError("no route to the hub\nand more")

    monkeypatch.setattr(importlib.import_module("huggingface_hub"), "snapshot_download", snapshot_download)
    error = refusal("someone/bert-tiny")
    assert error.code == "MODEL-PATH"
    assert "no route to the hub" in error.what
    assert "name the folder" in error.next_step


def test_without_the_extra_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def import_module(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", import_module)
    with pytest.raises(EscalaError) as caught:
        workload("bert-qa", SMALL_BERT).model()
    assert caught.value.code == "ENV-EXTRA"
    assert caught.value.next_step == "pip install 'escala[transformers]'"
