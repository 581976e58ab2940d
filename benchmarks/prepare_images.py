"""Is preparing images bound by decoding? `escala data prepare` against Pillow alone, with as many processes.

    python benchmarks/prepare_images.py [--images 2400] [--workers 2] [--rounds 3]

Images are 590 x 445 grey PNGs of filled outlines, made on the spot and brought to 197 x 148, as in the study
`resnet34-fish`. Pillow alone opens, decodes, converts and resizes each file, in spawned processes that are handed 64
names at a time, and keeps nothing. Both ways take turns, and both count the start of their processes. Prints images
a second and the median ratio; exits with 1 where that is below 0.9.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from escala.data.image_prepare import prepare_images

LIMIT = 0.9
FULL, SCALED = (590, 445), (197, 148)
CLASSES = 9
AT_ONCE = 64


def draw(number: int) -> Image.Image:
    """A light outline on black, rough at its edge as a mask cut from a photograph."""
    numbers = np.random.default_rng(number)
    angles = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    reach = 1 + 0.15 * np.sin(angles * (2 + number % CLASSES)) + 0.02 * numbers.standard_normal(len(angles))
    across = FULL[0] / 2 + 220 * reach * np.cos(angles)
    down = FULL[1] / 2 + 110 * reach * np.sin(angles)
    image = Image.new("L", FULL)
    ImageDraw.Draw(image).polygon(list(zip(across.tolist(), down.tolist(), strict=True)), fill=255)
    return image


def make_folder(folder: Path, images: int) -> list[Path]:
    """So many images in nine classes."""
    paths = [folder / f"class-{number % CLASSES}" / f"{number:06}.png" for number in range(images)]
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        draw(number).save(path)
    return paths


def decode(paths: Sequence[Path]) -> int:
    """What Pillow alone does. Returns the number of images."""
    for path in paths:
        with Image.open(path) as image:
            np.asarray(image.convert("L").resize(SCALED, Image.Resampling.BILINEAR))
    return len(paths)


def pillow_alone(paths: Sequence[Path], workers: int) -> float:
    """Images a second."""
    begin = time.perf_counter()
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        done = sum(pool.map(decode, [paths[first : first + AT_ONCE] for first in range(0, len(paths), AT_ONCE)]))
    return done / (time.perf_counter() - begin)


def prepared(folder: Path, out: Path, images: int, workers: int) -> float:
    """Images a second."""
    begin = time.perf_counter()
    prepare_images(folder, out, size=SCALED, grey=True, dtype="float16", workers=workers, progress=lambda *_: None)
    return images / (time.perf_counter() - begin)


def main() -> int:
    """Returns 1 where preparing is too slow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=2400)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    ratios = list[float]()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "set")
        paths = make_folder(folder, asked.images)
        print(f"{asked.images:,} images, {paths[0].stat().st_size:,} bytes each, {asked.workers} processes")
        for number in range(asked.rounds):
            alone = pillow_alone(paths, asked.workers)
            ours = prepared(folder, Path(place, f"{number}.escala"), asked.images, asked.workers)
            ratios.append(ours / alone)
            print(f"Pillow alone {alone:,.0f} images/s, escala {ours:,.0f} images/s, ratio {ratios[-1]:.2f}")
    median = statistics.median(ratios)
    print(f"median ratio {median:.2f}, at least {LIMIT} is asked for")
    return int(median < LIMIT)


if __name__ == "__main__":
    sys.exit(main())
