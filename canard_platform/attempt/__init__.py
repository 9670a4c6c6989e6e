"""What runs beside the trainer on the GPU machine: one attempt, from its token to its final report.

It imports neither torch nor the trainer, which live in an environment of their own.
"""
