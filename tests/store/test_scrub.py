"""Passwords and tokens never reach a file; what is harmless stays readable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from escala.store.scrub import ALLOWED_VARIABLES, is_secret, recorded_environment, scrub, scrub_arguments

HIDDEN_WORD = "S3cr-et.Val_ue"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("postgres://u:p@h/d", "postgres://***@h/d"),
        ("see https://ghp_abc@github.com/x.git now", "see https://***@github.com/x.git now"),
        (
            "a postgresql+psycopg2://u:p@h, b redis://:p@h:6379/0",
            "a postgresql+psycopg2://***@h, b redis://***@h:6379/0",
        ),
        ("postgres://u:p@ss/w#rd?@h/d", "postgres://***@h/d"),
        ("'s3://key:sec/ret@bucket'", "'s3://***@bucket'"),
        ("https://h/x?token=abc&page=2", "https://h/x?token=***&page=2"),
        ("https://h/x?X-Amz-Signature=abc&sig=d%2F", "https://h/x?X-Amz-Signature=***&sig=***"),
        ("HF_TOKEN=abc escala run", "HF_TOKEN=*** escala run"),
        ("--hf-token=abc --batch=4", "--hf-token=*** --batch=4"),
        ("--token abc run", "--token *** run"),
        ("--token 'a b' run", "--token '***' run"),
        ('api_key = "a b\\"c"  # mine', 'api_key = "***"  # mine'),
        ("options = { apiKey = 'abc', depth = 2 }", "options = { apiKey = '***', depth = 2 }"),
        ('{"password": "abc", "user": "me"}', '{"password": "***", "user": "me"}'),
        ("{'secret': 'abc'}", "{'secret': '***'}"),
        ("Authorization: Bearer abcdefgh.ijk", "Authorization: Bearer ***"),
        ('token = """\nabc\n"""', 'token = "***"'),
        ("1http://u:p@h", "1http://***@h"),
        ("-token abc -x", "-token *** -x"),
        ("password=ab}c,d x", "password=*** x"),
        ('f(token="open quote', 'f(token="***" quote'),
        ('"token" = "abc"', '"token" = "***"'),
        ('dsn = "host=h password=abc"', 'dsn = "host=h password=***'),
        ("run = 'x --token abc'", "run = 'x --token ***"),
        ("['x', '--token', 'abc']", "['x', '--token', '***']"),
        ("AccountName=me;AccountKey=abc==", "AccountName=me;AccountKey=***"),
    ],
)
def test_secrets_are_hidden(text: str, clean: str) -> None:
    assert scrub(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "",
        "escala run exp.toml --set train.batch=256 --out runs/a",
        "http://localhost:8080/path",
        "http://localhost:8080",
        "tcp://127.0.0.1:29500?x=a@b",
        "mail me@example.org",
        "unexpected token: }",
        "max_tokens=512 tokenizer=bpe vocab.tokens = 7",
        "pad_token = '<pad>'",
        "the token was wrong",
        "--tokens 5 --key-size 3",
        "token == 4",
        "C:/data: no such file",
    ],
)
def test_harmless_text_stays(text: str) -> None:
    assert scrub(text) == text


@pytest.mark.parametrize(
    ("arguments", "clean"),
    [
        (["escala", "run", "e.toml"], ("escala", "run", "e.toml")),
        (["--token", "a b'c\"d"], ("--token", "***")),
        (["--token", "-abc", "x"], ("--token", "***", "x")),
        (["--token", "--quiet"], ("--token", "--quiet")),
        (["--set", "workload.options.token=a b & c"], ("--set", "workload.options.token=***")),
        (["--api-key=a=b", "token"], ("--api-key=***", "token")),
        (["--set", "workload.data=postgres://u:p@h/d"], ("--set", "workload.data=postgres://***@h/d")),
        (["password", "abc"], ("password", "abc")),
    ],
)
def test_a_command_line_loses_its_secrets_word_by_word(arguments: list[str], clean: tuple[str, ...]) -> None:
    assert scrub_arguments(arguments) == clean


PASSWORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="\"'<>"), min_size=1)


@given(password=PASSWORDS.map(lambda text: f"{HIDDEN_WORD}{text}"))
def test_no_password_survives_in_a_url(password: str) -> None:
    assert HIDDEN_WORD not in scrub(f"say postgres://user:{password}@host/db twice")
    assert HIDDEN_WORD not in "".join(scrub_arguments([f"--url=postgres://user:{password}@host/db"]))


@given(value=st.text(min_size=1), name=st.sampled_from(["token", "HF_TOKEN", "db.password", "apiKey", "a-secret"]))
def test_no_value_of_a_secret_argument_survives(value: str, name: str) -> None:
    assert scrub_arguments([f"--{name}={value}"]) == (f"--{name}=***",)
    if not value.startswith("--"):
        assert scrub_arguments([f"--{name}", value]) == (f"--{name}", "***")


@given(text=st.text())
def test_scrubbing_twice_changes_nothing_more(text: str) -> None:
    assert scrub(scrub(text)) == scrub(text)


@pytest.mark.parametrize("text", ["a" * 300_000, "a." * 150_000, "'a':" * 70_000, "://" * 3_000, "--a " * 70_000])
def test_a_long_text_takes_no_longer_for_its_shape(text: str) -> None:
    assert scrub(text) == text


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("TOKEN", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("PGPASSWORD", True),
        ("accessToken", True),
        ("--api-key", True),
        ("GOOGLE_APPLICATION_CREDENTIALS", True),
        ("tokens", False),
        ("eos_token", False),
        ("key", False),
        ("sort_key", False),
        ("design", False),
        ("", False),
        ("--", False),
    ],
)
def test_names_tell_what_is_secret(name: str, secret: bool) -> None:
    assert is_secret(name) == secret


def test_only_allowed_variables_are_recorded() -> None:
    environ = {
        "OMP_NUM_THREADS": "2",
        "NCCL_ALGO": "Ring",
        "NCCL_SECRET_NEW_THING": HIDDEN_WORD,
        "TOKEN": HIDDEN_WORD,
        "MYDB_URL": f"postgres://u:{HIDDEN_WORD}@h/d",
        "CUDA_VISIBLE_DEVICES": f"http://u:{HIDDEN_WORD}@h",
    }
    assert recorded_environment(environ) == {
        "CUDA_VISIBLE_DEVICES": "http://***@h",
        "NCCL_ALGO": "Ring",
        "OMP_NUM_THREADS": "2",
    }


def test_the_allowed_variables_are_harmless_and_named_once() -> None:
    assert not [name for name in ALLOWED_VARIABLES if is_secret(name)]
    assert len(set(ALLOWED_VARIABLES)) == len(ALLOWED_VARIABLES)
