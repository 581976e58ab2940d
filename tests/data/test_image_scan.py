"""One image file at a time: what the decoder takes, what is refused, and in which words."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from image_files import encoded, promised
from PIL import Image

from escala.data.image_scan import BAD, look_through, read_header, read_pixels
from escala.terms.errors import EscalaError, Exit


def written(folder: Path, data: bytes, name: str = "one.png") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def refused(path: Path) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        read_pixels(path, "cod", grey=True)
    assert caught.value.exit == Exit.DATA
    return caught.value


def test_pixels_are_those_that_were_written(tmp_path: Path) -> None:
    values = np.arange(8 * 6 * 3, dtype=np.uint8).reshape(6, 8, 3)
    Image.fromarray(values).save(tmp_path / "a.png")
    Image.fromarray(values[..., 0]).save(tmp_path / "b.png")
    assert (read_pixels(tmp_path / "a.png", "c", grey=False) == values.transpose(2, 0, 1)).all()
    assert (read_pixels(tmp_path / "b.png", "c", grey=True) == values[..., 0]).all()
    assert str(read_header(tmp_path / "a.png", "c")) == "8x6 colour"
    assert str(read_header(tmp_path / "b.png", "c")) == "8x6 grey"


def test_sixteen_bits_are_divided_not_cut_off(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 256, 0x8000, 0xFFFF]], np.uint16)).save(tmp_path / "a.png")
    assert read_pixels(tmp_path / "a.png", "c", grey=True).tolist() == [[0, 1, 128, 255]]
    assert read_header(tmp_path / "a.png", "c").grey


def test_floats_are_refused(tmp_path: Path) -> None:
    Image.fromarray(np.ones((2, 2), np.float32)).save(tmp_path / "a.tif")
    assert "mode F" in refused(tmp_path / "a.tif").what


def test_size_is_width_then_height(tmp_path: Path) -> None:
    path = written(tmp_path, encoded(0, size=(40, 20)))
    assert read_pixels(path, "c", grey=True, size=(10, 5)).shape == (5, 10)
    assert read_pixels(path, "c", grey=False, size=(10, 5)).shape == (3, 5, 10)


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_empty_and_cut_files_are_named_with_class_and_bytes(tmp_path: Path, form: str) -> None:
    whole = encoded(1, size=(64, 64), form=form)
    for length in (0, 4, len(whole) // 2):
        path = written(tmp_path, whole[:length])
        error = refused(path)
        assert (error.code, error.where) == ("DATA-IMG", str(path))
        assert "class cod" in error.what
        assert f"{length:,} bytes" in error.what


def test_one_byte_short_is_accepted_and_odd_where_strict(tmp_path: Path) -> None:
    whole = encoded(1)
    path, sound = written(tmp_path, whole[:-1]), written(tmp_path, whole, "two.png")
    assert (read_pixels(path, "c", grey=True) == read_pixels(sound, "c", grey=True)).all()
    assert look_through(path, "c", strict=False)[1] == ()
    assert look_through(sound, "c", strict=True)[1] == ()
    (odd,) = look_through(path, "c", strict=True)[1]
    assert f"{len(whole) - 1:,} bytes" in odd


def test_a_decoder_s_warning_is_odd_where_strict(tmp_path: Path) -> None:
    whole = encoded(1, form="JPEG")
    # An index of further pictures that is none, put behind the mark that opens the file.
    index = b"MPF\0no index"
    broken = whole[:2] + b"\xff\xe2" + struct.pack(">H", len(index) + 2) + index + whole[2:]
    assert look_through(written(tmp_path, whole, "a.jpg"), "c", strict=True)[1] == ()
    (odd,) = look_through(written(tmp_path, broken, "b.jpg"), "c", strict=True)[1]
    assert "the decoder warns" in odd


@pytest.mark.parametrize("size", [(60_000, 60_000), (10_000, 9_000), (2**13, 2**13 + 1)])
def test_huge_headers_are_refused_from_the_header(tmp_path: Path, size: tuple[int, int]) -> None:
    error = refused(written(tmp_path, promised(*size)))
    assert error.code == "DATA-HUGE"
    assert "67,108,864" in error.expected


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak of memory is read from Linux's /proc")
def test_memory_stays_small_for_a_huge_header(tmp_path: Path) -> None:
    path = written(tmp_path, promised(60_000, 60_000))
    code = (
        "import sys; from pathlib import Path\n"
        "from escala.data.image_scan import read_pixels\n"
        "try: read_pixels(Path(sys.argv[1]), 'c', grey=True)\n"
        "except Exception as error: print(error.code)\n"
        "print(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    said, peak = ran.stdout.split()
    assert said == "DATA-HUGE"
    # The picture alone would take 3,600 MB.
    assert int(peak) * 1024 < 400e6


def test_unreadable_is_not_damage(tmp_path: Path) -> None:
    with pytest.raises(EscalaError) as caught:
        read_pixels(tmp_path / "none.png", "c", grey=True)
    assert caught.value.code == "DATA-PATH"
    assert caught.value.code not in BAD


def test_formats_that_run_programs_are_not_tried(tmp_path: Path) -> None:
    error = refused(written(tmp_path, b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n"))
    assert "no image of a known format" in error.what


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_damage_is_decoded_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    form = data.draw(st.sampled_from(["PNG", "JPEG", "BMP", "TIFF", "PPM"]))
    content = bytearray(encoded(3, form=form))
    for _ in range(data.draw(st.integers(0, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = written(tmp_path_factory.mktemp("any"), bytes(content[: data.draw(st.integers(0, len(content)))]))
    try:
        code, kind = "", read_pixels(path, "c", grey=True).dtype
    except EscalaError as error:
        code, kind = error.code, np.dtype(np.uint8)
    assert kind == np.uint8
    assert code in ("", *BAD)
