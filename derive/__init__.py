"""Derivations of sequence models, proved for every size and checked against PyTorch."""

__version__ = "0.1.0"
