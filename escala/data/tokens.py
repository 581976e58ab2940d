"""Which numbers stand for a text: a published vocabulary where there is one, otherwise one learnt from the set.

Byte pairs (Sennrich et al. 2016) over bytes, as GPT-2 has them, lose nothing of any text. WordPiece is BERT's
(Devlin et al. 2018), with its cleaning, lower case and without accents. Both by the package `tokenizers`.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from escala.data.base import Form
from escala.data.paths import is_missing, open_file, places
from escala.terms.errors import EscalaError

TRAINED_ON = 64 << 20
"""Characters of the training part from which a vocabulary is learnt, the first ones."""

_BYTES_SPECIAL = ("<padding>", "<begin>", "<end of text>")
_PIECES_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
_ALL_BYTES = 256
_ALPHABET = 1000
"""Letters of a learnt WordPiece vocabulary, at most, as in the trainer's own default; rarer ones become [UNK]."""
_FEWEST_PIECES = 64
_GPT2, _GPT2_END, _GPT2_TOKENS = "gpt2", "<|endoftext|>", 50_257
_LARGEST_FILE = 64 << 20


@dataclass(frozen=True)
class Vocabulary:
    """A tokeniser. `begin` stands before a labelled text or a question, `end` behind a text; padding is 0.

    `told` is a sentence for records.
    """

    tokenizer: Tokenizer
    begin: int
    end: int
    told: str

    @property
    def size(self) -> int:
        """One more than the largest token number."""
        return 1 + max(self.tokenizer.get_vocab().values())

    def numbers(self, texts: list[str]) -> list[NDArray[np.int32]]:
        """The token numbers of each text, without any special token."""
        cut = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [np.asarray(one.ids, np.int32) for one in cut]

    def placed(self, texts: list[str]) -> list[tuple[NDArray[np.int32], NDArray[np.int64]]]:
        """Of each text the token numbers [n], and first character and end of each token [n, 2]."""
        cut = self.tokenizer.encode_batch(texts, add_special_tokens=False)
        return [(np.asarray(one.ids, np.int32), np.asarray(one.offsets, np.int64).reshape(-1, 2)) for one in cut]


@dataclass(frozen=True)
class Published:
    """A vocabulary that lies on this machine: its files by name, and whose it is."""

    form: Form
    folder: Path
    files: Mapping[str, bytes]

    @property
    def identity(self) -> str:
        """Says exactly which vocabulary it is."""
        seen = hashlib.sha256()
        for name, content in sorted(self.files.items()):
            seen.update(f"{name} {len(content)}\n".encode() + content)
        return seen.hexdigest()


def published(form: Form, environ: Mapping[str, str]) -> Published | None:
    """The vocabulary of `form.folder`, or GPT-2's where it is here and fits the form; None: one has to be learnt.

    GPT-2's numbers leave none free for padding and [CLS], so it is taken for kind `text` alone.
    Raises EscalaError MODEL-PATH where the folder has no vocabulary.
    """
    if form.folder:
        folder = Path(form.folder)
        files = _files(folder, "tokenizer.json") or _files(folder, "vocab.txt")
        if not files:
            raise EscalaError(
                "MODEL-PATH",
                str(folder),
                "holds no vocabulary",
                expected="vocab.txt or tokenizer.json of the pretrained network",
                next_step="put it beside the weights",
            )
        return Published(form, folder, files | _files(folder, "tokenizer_config.json"))
    if form.kind == "text" and form.tokenizer != "wordpiece" and form.vocabulary >= _GPT2_TOKENS:
        for folder in places(_GPT2, environ):
            # The folder above may hold anybody's tokeniser.
            if folder.name == _GPT2 and not is_missing(folder):
                files = _files(folder, "tokenizer.json") or _files(folder, "vocab.json", "merges.txt")
                if files:
                    return Published(form, folder, files)
    return None


def learnt_identity(form: Form) -> str:
    """Says exactly how a vocabulary is learnt, apart from the text."""
    return json.dumps([1, tokenizers.__version__, form.tokenizer, form.vocabulary, TRAINED_ON])


def read_published(found: Published) -> Vocabulary:
    """The vocabulary of a folder. Raises EscalaError DATA-VOCAB where it is damaged or does not fit the form."""
    where = str(found.folder)
    try:
        tokenizer = _from_files(found)
    # The package raises its errors as plain exceptions.
    except Exception as error:
        raise _fault(where, f"its vocabulary cannot be read: {str(error) or type(error).__name__}") from error
    if found.form.folder:
        missing = [token for token in _PIECES_SPECIAL if tokenizer.token_to_id(token) is None]
        if missing or tokenizer.token_to_id("[PAD]") != 0:
            raise _fault(where, "is no vocabulary of BERT", "[PAD] with number 0, [UNK], [CLS] and [SEP]")
        vocabulary = _told(tokenizer, "[CLS]", "[SEP]", f"WordPiece vocabulary of {found.folder.name}")
    else:
        if tokenizer.token_to_id(_GPT2_END) != _GPT2_TOKENS - 1:
            raise _fault(where, "is not GPT-2's vocabulary", f"{_GPT2_END} with number {_GPT2_TOKENS - 1}")
        vocabulary = _told(tokenizer, _GPT2_END, _GPT2_END, "GPT-2's own vocabulary")
    if vocabulary.size > found.form.vocabulary:
        raise EscalaError(
            "CFG-RANGE",
            "workload.options.vocabulary",
            f"{found.form.vocabulary:,} tokens do not hold the {vocabulary.size:,} of {where}",
            next_step=f"set it to {vocabulary.size}",
        )
    return vocabulary


def learn(form: Form, texts: Iterable[str]) -> str:
    """A tokeniser as JSON, learnt from the first `TRAINED_ON` characters of `texts`; the same from the same text.

    It has at most `form.vocabulary` tokens, fewer where the text has no more pairs that come twice. Raises
    EscalaError CFG-RANGE for a vocabulary that cannot hold its alphabet.
    """
    pieces = form.tokenizer == "wordpiece"
    fewest = _FEWEST_PIECES if pieces else len(_BYTES_SPECIAL) + _ALL_BYTES
    if form.vocabulary < fewest:
        raise EscalaError(
            "CFG-RANGE",
            "workload.options.vocabulary",
            f"{form.vocabulary} tokens are too few",
            expected=f"at least {fewest}, for every byte" if not pieces else f"at least {fewest}",
            next_step="raise it",
        )
    tokenizer = _learnt_pieces(form.vocabulary, texts) if pieces else _learnt_bytes(form.vocabulary, texts)
    told: str = tokenizer.to_str()
    return told


def read_learnt(form: Form, told: str, name: str) -> Vocabulary:
    """What `learn` made of the set called `name`."""
    tokenizer = _plain(Tokenizer.from_str(told))
    if form.tokenizer == "wordpiece":
        return _told(tokenizer, "[CLS]", "[SEP]", f"WordPiece vocabulary learnt from {name}")
    return _told(tokenizer, *_BYTES_SPECIAL[1:], f"vocabulary of byte pairs learnt from {name}")


def _learnt_bytes(vocabulary: int, texts: Iterable[str]) -> Tokenizer:
    tokenizer = _byte_pairs(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(_BYTES_SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_first(texts), trainer)
    return tokenizer


def _learnt_pieces(vocabulary: int, texts: Iterable[str]) -> Tokenizer:
    tokenizer = _word_pieces(models.WordPiece({}, unk_token="[UNK]"), lowercase=True)  # noqa: S106
    counts, kept = Counter[str](), list[str]()
    for text in _first(texts):
        kept.append(text)
        counts.update(tokenizer.normalizer.normalize_str(text))
    letters = sorted((letter for letter in counts if not letter.isspace()), key=lambda one: (-counts[one], one))
    alphabet = sorted(letters[: min(_ALPHABET, vocabulary // 4)])
    # The trainer numbers letters, and those within words, in the order of a hash table that differs from process to
    # process, and settles equal counts by these numbers. So all of them are given.
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary,
        special_tokens=[*_PIECES_SPECIAL, *(f"##{letter}" for letter in alphabet)],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(kept, trainer)
    # Only the four are special; the others would otherwise be looked for in the text before it is cut into words.
    numbers = {token: number for token, number in tokenizer.get_vocab().items() if number < vocabulary}
    return _word_pieces(models.WordPiece(numbers, unk_token="[UNK]"), lowercase=True)  # noqa: S106


def _first(texts: Iterable[str]) -> Iterator[str]:
    left = TRAINED_ON
    for text in texts:
        yield text[:left]
        left -= len(text)
        if left <= 0:
            return


def _from_files(found: Published) -> Tokenizer:
    files = found.files
    if "tokenizer.json" in files:
        return _plain(Tokenizer.from_str(files["tokenizer.json"].decode()))
    if "vocab.json" in files:
        numbers = json.loads(files["vocab.json"])
        lines = files["merges.txt"].decode().splitlines()
        merges = [(left, right) for left, right in (line.split(" ") for line in lines if line and line[0] != "#")]
        return _byte_pairs(models.BPE(numbers, merges))
    # A word a line, as BERT's authors publish it; without a word on it, they mean lower case.
    lines = files["vocab.txt"].decode().splitlines()
    settings = json.loads(files.get("tokenizer_config.json", b"{}"))
    numbers = {line: number for number, line in enumerate(lines)}
    pieces = models.WordPiece(numbers, unk_token="[UNK]")  # noqa: S106
    return _word_pieces(pieces, lowercase=bool(settings.get("do_lower_case", True)))


def _byte_pairs(model: Any) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return _plain(tokenizer)


def _word_pieces(model: Any, *, lowercase: bool) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return _plain(tokenizer)


def _plain(tokenizer: Tokenizer) -> Tokenizer:
    """A tokeniser that neither cuts nor fills rows, and takes "[SEP]" in a text for what it is there: letters."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer


def _told(tokenizer: Tokenizer, begin: str, end: str, told: str) -> Vocabulary:
    first, last = (tokenizer.get_vocab()[token] for token in (begin, end))
    # The name of a file may be no text, which no record could hold.
    shown = told.encode("utf-8", "backslashreplace").decode()
    return Vocabulary(tokenizer, first, last, f"{shown}, {tokenizer.get_vocab_size():,} tokens")


def _files(folder: Path, *names: str) -> dict[str, bytes]:
    """The files of these names, if all of them are there."""
    paths = [folder / name for name in names]
    if any(is_missing(path) for path in paths):
        return {}
    content = {}
    for path in paths:
        with open_file(path) as file:
            content[path.name] = file.read(_LARGEST_FILE + 1)
        if len(content[path.name]) > _LARGEST_FILE:
            raise _fault(str(path), f"is larger than {_LARGEST_FILE >> 20} MB")
    return content


def _fault(where: str, what: str, expected: str = "") -> EscalaError:
    return EscalaError("DATA-VOCAB", where, what, expected=expected, next_step="fetch its files from the publisher")
