"""Rated power of common processors and boards, from their makers' public data sheets.

Processors: "TDP" or "processor base power" at ark.intel.com and in AMD's product specifications. A desktop's firmware
often lets a processor draw more than that for as long as it stays cool. Boards: "maximum power", "TDP" or "TBP" in
the data sheets of NVIDIA and AMD. A laptop's board has the power that its maker gave it, so it stands in no table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

PROCESSOR_W: Mapping[str, Mapping[str, float]] = {
    "Xeon": {
        "E5-2650 v4": 105,
        "E5-2680 v4": 120,
        "E5-2690 v4": 135,
        "E5-2698 v4": 135,
        "6130": 125,
        "6148": 150,
        "6230": 125,
        "6248": 150,
        "8168": 205,
        "8180": 205,
        "8260": 165,
        "8268": 205,
        "8280": 205,
        "8358": 250,
        "8360Y": 250,
        "8380": 270,
        "8468": 350,
        "8480+": 350,
        "8490H": 350,
        "8568Y+": 350,
        "8592+": 350,
    },
    "EPYC": {
        "7551": 180,
        "7601": 180,
        "7402": 180,
        "7502": 180,
        "7542": 225,
        "7702": 200,
        "7742": 225,
        "7513": 200,
        "7543": 225,
        "7713": 225,
        "7763": 280,
        "9354": 280,
        "9454": 290,
        "9554": 360,
        "9654": 360,
        "9965": 500,
    },
    "Core": {
        "i7-8700K": 95,
        "i9-9900K": 95,
        "i9-10900K": 125,
        "i9-11900K": 125,
        "i7-12700K": 125,
        "i9-12900K": 125,
        "i7-13700K": 125,
        "i9-13900K": 125,
        "i9-14900K": 125,
    },
    "Ryzen": {
        "7 3700X": 65,
        "9 3900X": 105,
        "9 3950X": 105,
        "5 5600X": 65,
        "7 5800X": 105,
        "9 5900X": 105,
        "9 5950X": 105,
        "7 7700X": 105,
        "9 7900X": 170,
        "9 7950X": 170,
        "9 9950X": 170,
        "Threadripper 3970X": 280,
        "Threadripper 3990X": 280,
        "Threadripper PRO 5995WX": 280,
        "Threadripper PRO 7995WX": 350,
    },
}
"""Family -> model -> watts of one package."""

BOARD_W: Mapping[str, float] = {
    "Tesla P100-SXM2-16GB": 300,
    "Tesla P100-PCIE-16GB": 250,
    "Tesla V100-SXM2-16GB": 300,
    "Tesla V100-SXM2-32GB": 300,
    "Tesla V100-PCIE-16GB": 250,
    "Tesla V100-PCIE-32GB": 250,
    "Tesla T4": 70,
    "NVIDIA A10": 150,
    "NVIDIA A30": 165,
    "NVIDIA A40": 300,
    "NVIDIA A100-SXM4-40GB": 400,
    "NVIDIA A100-SXM4-80GB": 400,
    "NVIDIA A100-PCIE-40GB": 250,
    "NVIDIA A100 80GB PCIe": 300,
    "NVIDIA L4": 72,
    "NVIDIA L40": 300,
    "NVIDIA L40S": 350,
    "NVIDIA H100 80GB HBM3": 700,
    "NVIDIA H100 PCIe": 350,
    "NVIDIA H200": 700,
    "NVIDIA RTX A6000": 300,
    "NVIDIA RTX 6000 Ada Generation": 300,
    "NVIDIA GeForce GTX 1080 Ti": 250,
    "NVIDIA GeForce RTX 2080 Ti": 250,
    "NVIDIA GeForce RTX 3090": 350,
    "NVIDIA GeForce RTX 4090": 450,
    "NVIDIA GeForce RTX 5090": 575,
    "AMD Instinct MI100": 300,
    "AMD Instinct MI210": 300,
    "AMD Instinct MI300X": 750,
}
"""Name that the framework gives a board -> watts."""

_MARKS = re.compile(r"\((?:r|tm)\)", re.IGNORECASE)


def processor_w(name: str) -> float | None:
    """Watts of one package of the processor that the system calls `name`; None where it stands in no table."""
    words = " ".join(_MARKS.sub(" ", name).split())
    for family, models in PROCESSOR_W.items():
        if not re.search(rf"\b{family}\b", words):
            continue
        for model, watts in models.items():
            # A letter more is another processor: the i9-13900KS is no i9-13900K.
            if re.search(rf"(?<![\w-]){re.escape(model)}(?![\w+-])", words):
                return watts
    return None


def board_w(name: str) -> float | None:
    """Watts of the board that the framework calls `name`; None where it stands in no table."""
    return BOARD_W.get(name)
