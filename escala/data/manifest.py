"""What a prepared folder must hold, so that a damaged or half-removed one is noticed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

MANIFEST = "manifest.json"


class FileCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Size and sha256 (hex) of one file."""

    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`digest` is the data set's; `files` each file's check by name; `seal` a sha256 (hex) over both."""

    digest: str
    files: dict[str, FileCheck]
    seal: str = ""


def write_manifest(folder: Path, digest: str, files: dict[str, FileCheck]) -> Manifest:
    """Seal a folder whose files are written. Raises OSError."""
    manifest = Manifest(digest, files)
    manifest = msgspec.structs.replace(manifest, seal=_seal(manifest))
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return manifest


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest, if it is unharmed and every file is there with the right size."""
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
        sizes = {name: (folder / name).stat().st_size for name in manifest.files}
    except (OSError, msgspec.MsgspecError):
        return None
    sealed = manifest.seal == _seal(manifest)
    return manifest if sealed and all(sizes[name] == check.bytes for name, check in manifest.files.items()) else None


def read_checked(folder: Path) -> Manifest | None:
    """The manifest, if every byte of every file is as it was written."""
    manifest = read_manifest(folder)
    if manifest is None:
        return None
    try:
        sound = all(_sha256(folder / name) == check.sha256 for name, check in manifest.files.items())
    except OSError:
        return None
    return manifest if sound else None


def _seal(manifest: Manifest) -> str:
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(manifest, seal=""), order="sorted")).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
