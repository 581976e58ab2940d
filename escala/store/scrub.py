"""Keep passwords and tokens out of every file that a campaign writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

HIDDEN = "***"

# Closed: a variable that is not named here is never written down, whatever it is called.
ALLOWED_VARIABLES = (
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_VISIBLE_DEVICES",
    "CUBLAS_WORKSPACE_CONFIG",
    "GLOO_SOCKET_IFNAME",
    "GOMP_CPU_AFFINITY",
    "HIP_VISIBLE_DEVICES",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "LOCAL_WORLD_SIZE",
    "MALLOC_ARENA_MAX",
    "MKL_DYNAMIC",
    "MKL_NUM_THREADS",
    "NCCL_ALGO",
    "NCCL_BUFFSIZE",
    "NCCL_CUMEM_ENABLE",
    "NCCL_IB_DISABLE",
    "NCCL_IB_HCA",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_NVLS_ENABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_PROTO",
    "NCCL_SHM_DISABLE",
    "NCCL_SOCKET_IFNAME",
    "NUMEXPR_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "NVIDIA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OMP_SCHEDULE",
    "OMP_WAIT_POLICY",
    "OPENBLAS_NUM_THREADS",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_MPS_HIGH_WATERMARK_RATIO",
    "ROCR_VISIBLE_DEVICES",
    "SLURM_CPUS_PER_TASK",
    "SLURM_JOB_NUM_NODES",
    "SLURM_NTASKS",
    "TORCHINDUCTOR_MAX_AUTOTUNE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_COMPILE_DISABLE",
    "TORCH_CUDNN_V8_API_DISABLED",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_AVOID_RECORD_STREAMS",
    "TORCH_NCCL_BLOCKING_WAIT",
    "TORCH_NCCL_HIGH_PRIORITY",
    "VECLIB_MAXIMUM_THREADS",
    "WORLD_SIZE",
    "XPU_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
)

_SECRET_ENDINGS = (
    "apikey",
    "authorization",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "password",
    "pwd",
    "secret",
    "signature",
    "token",
)
_SECRET_WORDS = {"sig"}
_KEY_KINDS = {"access", "account", "api", "auth", "encryption", "master", "private", "secret", "signing"}
# Language models call their special symbols tokens, too.
_SYMBOLS = {"bos", "cls", "end", "eos", "mask", "pad", "sep", "start", "stop", "unk"}

# The second form finds passwords that hold `/` or `@` unescaped; a colon before a port alone is none.
_URL = re.compile(
    r"""(?P<scheme>(?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]+://)
        (?: [^\s/?\#:@"<>]* : (?!\d+(?:[/?\#\s"<>]|$)) [^\s"<>]* @
          | [^\s/?\#"<>]* @ )""",
    re.VERBOSE,
)
# What stands before a value. A name begins where no part of a name stands before it: a long word is then looked at
# once, not from each of its letters.
_LEADS = (
    re.compile(r"""(?<![\w.-])(?P<name>[\w.-]+)(?:["']?\s*=(?!=)|["']\s*:)\s*"""),
    re.compile(r"(?<![\w.-])(?P<name>-[\w.-]+)[\"']?,?\s+(?![\"']?--)"),
)
# Rather a bracket too much than the end of a secret too little.
_VALUE = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'[^']*')+|[^\s&;]+""")
_BEARER = re.compile(r"(\bBearer\s+)[A-Za-z0-9._~+/-]{8,}=*")


def scrub(text: str) -> str:
    """`text` with `***` for what stands before `@` in a URL and for the value of every secret-named key.

    Keys are `NAME=value`, `name = "value"`, `"name": "value"`, `--name value`, and headers `Bearer value`.
    """
    text = scrub_urls(text)
    for lead in _LEADS:
        text = _hide_values(lead, text)
    return _BEARER.sub(rf"\g<1>{HIDDEN}", text)


def scrub_urls(text: str) -> str:
    """`text` with `***` for user, password or token of each `scheme://user:secret@host`."""
    return _URL.sub(rf"\g<scheme>{HIDDEN}@", text) if "://" in text else text


def scrub_arguments(arguments: Iterable[str]) -> tuple[str, ...]:
    """The words of a command line without their secrets; a value may hold spaces or quotes."""
    clean: list[str] = []
    hide_next = False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if hide_next and not argument.startswith("--"):
            clean.append(HIDDEN)
        elif equals and is_secret(name):
            clean.append(f"{name}={HIDDEN}")
        else:
            clean.append(scrub(argument))
        hide_next = argument.startswith("-") and not equals and is_secret(argument)
    return tuple(clean)


def is_secret(name: str) -> bool:
    """Whether a key, flag or variable of this name holds something that nobody else should read."""
    separated = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    words = [word for word in re.split(r"[^a-z0-9]+", separated) if word]
    if not words:
        return False
    before = words[-2] if len(words) > 1 else ""
    if words[-1] == "key":
        return before in _KEY_KINDS
    if words[-1] == "token" and before in _SYMBOLS:
        return False
    return words[-1] in _SECRET_WORDS or words[-1].endswith(_SECRET_ENDINGS)


def recorded_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Those variables of `environ` that may be written down, by name."""
    return {name: scrub(environ[name]) for name in ALLOWED_VARIABLES if name in environ}


def _hide_values(lead: re.Pattern[str], text: str) -> str:
    parts: list[str] = []
    shown_to = 0
    for match in lead.finditer(text):
        if match.start() < shown_to or not is_secret(match["name"]):
            continue
        if value := _VALUE.match(text, match.end()):
            quote = value[0][0] if value[0][0] in "\"'" else ""
            parts += [text[shown_to : match.end()], quote, HIDDEN, quote]
            shown_to = value.end()
    return "".join(parts) + text[shown_to:]
