"""escala: measure how a network should be trained on the hardware at hand."""

__version__ = "0.1.0"
