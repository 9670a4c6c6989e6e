"""Isaac Lab environments of the rail robot; importing this registers their Gym IDs."""

from . import tasks as tasks
