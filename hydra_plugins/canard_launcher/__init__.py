"""Hydra finds Canard's launcher and sweeper here; what they do is in canard_hydra."""
