"""Live views: look now and then, send what changed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from canard.models import Run
from canard_platform.services import Services


async def changes(services: Services, look: Callable[[], Awaitable[Run]]) -> AsyncIterator[Run]:
    """Ends with the run, or with the service."""
    shown: Run | None = None
    while True:
        run = await look()
        if run != shown:
            yield run
            shown = run
        if run.is_terminal or services.stopping.is_set():
            return
        await asyncio.sleep(services.settings.live_interval_s)
