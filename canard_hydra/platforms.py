"""From the chosen option of conf/platform to a client of that platform."""

from typing import TYPE_CHECKING

from canard.home import canard_home
from canard_hydra.errors import ExperimentError
from canard_hydra.experiment import Platform

if TYPE_CHECKING:
    from canard.client import Client

LOOK_S = 10.0
"""How long a look that can be done without may take."""


def connect(platform: Platform) -> "Client":
    """The platform of this machine is started when it is not running.

    Raises:
        CanardError: there is no address or no key, or the platform does not start.
    """
    from canard.client import Client

    if platform.kind == "local" and platform.api_url is None:
        from canard.local_platform import ensure_running

        here = ensure_running()
        return Client(api_url=here.url, api_key=here.api_key, dashboard_url=platform.dashboard_url)
    if platform.api_url is None:
        raise ExperimentError(
            "platform.api_url: is null, so there is no platform to submit to;"
            " say platform.api_url=https://..."
        )
    return Client(api_url=platform.api_url, dashboard_url=platform.dashboard_url)


def connect_for_a_look(platform: Platform) -> "Client | None":
    """Starts nothing and waits for nobody long; None when nothing was ever run on this machine.

    Raises:
        CanardError: there is no address or no key, or the platform of this machine is not running.
    """
    local = platform.kind == "local" and platform.api_url is None
    if local and not (canard_home() / "platform.db").exists():
        return None
    from canard.client import Client
    from canard.retries import Patience

    patience = Patience(total_s=LOOK_S, tries=2)
    if not local:
        if platform.api_url is None:
            raise ExperimentError("platform.api_url is not set")
        return Client(api_url=platform.api_url, patience=patience)
    from canard.local_platform import running

    here = running()
    if here is None:
        raise ExperimentError("the platform of this machine is not running; start it: canard up")
    return Client(api_url=here.url, api_key=here.api_key, patience=patience)
