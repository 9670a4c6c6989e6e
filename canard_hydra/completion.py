"""Completion of `python -m canard_hydra`, which Hydra's own does not know: it wants a file after python."""

import sys
from collections.abc import Sequence

NAME = "canard_hydra_python_completion"
BASH = {
    "install=bash": f"""{NAME}()
{{
    local words=($COMP_LINE) choices asked="canard-hydra ${{COMP_LINE#*canard_hydra}}"
    if [ "${{words[1]}} ${{words[2]}}" != "-m canard_hydra" ]; then
        return
    fi
    choices=$(COMP_LINE="$asked" "${{words[0]}}" -m canard_hydra -sc query=bash)
    COMPREPLY=($(compgen -W "$choices" -- "${{words[$COMP_CWORD]}}"))
}}
COMP_WORDBREAKS=${{COMP_WORDBREAKS//=}}
complete -o nospace -o default -F {NAME} python python3
""",
    "uninstall=bash": f"complete -r python python3\nunset -f {NAME}\n",
}
"""What a shell evaluates, by what `--shell-completion` is asked."""
OPTIONS = {"-sc", "--shell-completion"}


def of_python_m(options: Sequence[str], overrides: Sequence[str]) -> str | None:
    """The script, when that is asked for and the program was started by `python -m`."""
    if not OPTIONS.intersection(options) or not sys.argv[0].endswith(".py"):
        return None
    return next((BASH[asked] for asked in overrides if asked in BASH), None)
