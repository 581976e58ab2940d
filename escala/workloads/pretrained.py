"""Weights that somebody else trained: where they lie, and a network with them. Needs the extra `transformers`."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

from escala.terms.errors import EscalaError

_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
_FILES = ("config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors")
_HOLDS = "expected a folder with config.json, vocab.txt and model.safetensors, or a name on the Hugging Face hub"


def extra(module: str) -> Any:
    """A module of the extra `transformers`. Raises EscalaError ENV-EXTRA where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise EscalaError(
            "ENV-EXTRA",
            module,
            f"is needed for this network and cannot be imported: {error}",
            next_step="pip install 'escala[transformers]'",
        ) from error


def folder_of(name: str) -> Path:
    """The folder with a pretrained network: `name` itself, or the hub's files of that name, fetched if need be.

    The hub is asked only where its files are not on this machine yet. Raises EscalaError MODEL-PATH, ENV-EXTRA.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if not _HUB_NAME.fullmatch(name):
        raise EscalaError("MODEL-PATH", name, "there is no such folder", expected=_HOLDS)
    hub = extra("huggingface_hub")
    try:
        return Path(hub.snapshot_download(name, allow_patterns=_FILES, local_files_only=True))
    except (OSError, ValueError):
        pass
    try:
        return Path(hub.snapshot_download(name, allow_patterns=_FILES))
    # Each release of the hub's library lets other errors of its network library through.
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise EscalaError(
            "MODEL-PATH",
            name,
            f"is no folder here, and the hub did not give it: {reason.splitlines()[0]}",
            expected=_HOLDS,
            next_step="fetch the files where there is a network, and name the folder",
        ) from error


def bert_from(folder: Path, length: int, dropout: float) -> nn.Module:
    """The `BertForQuestionAnswering` in a local folder, float32; its head is drawn anew where the folder has none.

    Raises EscalaError MODEL-KIND where the folder holds another kind of network or one for shorter rows, MODEL-LOAD
    where its files cannot be read or lack weights, ENV-EXTRA.
    """
    library = extra("transformers")
    if not (folder / "config.json").is_file():
        raise EscalaError("MODEL-LOAD", folder.name, "has no config.json", expected=_HOLDS)
    try:
        asked, _ = library.BertConfig.get_config_dict(folder, local_files_only=True)
        kind, places = asked.get("model_type"), asked.get("max_position_embeddings", 512)
        if kind != "bert" or places < length:
            what = f"holds a network of type {kind} for rows of {places} tokens"
            raise EscalaError("MODEL-KIND", folder.name, what, expected=f"bert, {length} tokens or more")
        with _quiet(library):
            model, loaded = library.BertForQuestionAnswering.from_pretrained(
                folder,
                local_files_only=True,
                output_loading_info=True,
                # Pickled weights are not read at all.
                use_safetensors=True,
                attn_implementation="sdpa",
                hidden_dropout_prob=dropout,
                attention_probs_dropout_prob=dropout,
            )
    except EscalaError:
        raise
    # The library passes on whatever the reader of the weights' format raises.
    except Exception as error:
        raise EscalaError(
            "MODEL-LOAD",
            folder.name,
            f"cannot be read: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
            expected=_HOLDS,
            next_step="fetch the folder again",
        ) from error
    lacking = [name for name in loaded["missing_keys"] if not name.startswith("qa_outputs.")]
    if lacking:
        what = f"lacks {len(lacking)} of the network's weights, among them {min(lacking)}"
        raise EscalaError("MODEL-LOAD", folder.name, what, next_step="fetch the folder again")
    made: nn.Module = model.float()
    return made


@contextmanager
def _quiet(library: Any) -> Iterator[None]:
    """Without the library's own bars and warnings, which would tear the display; its settings are put back."""
    logging = library.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
