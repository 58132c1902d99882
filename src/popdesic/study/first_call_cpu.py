"""What numba does once in a process, before the first call of compiled code."""

from __future__ import annotations


def prepare_calls() -> None:
    """Do it now, so that copies of this process need not: it takes 0.3 CPU-seconds."""
    from numba.core.registry import cpu_target

    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
