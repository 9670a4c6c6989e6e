"""Members that are the same training, told with their indices: a value was probably meant otherwise."""

from canard.announce import counted
from canard_hydra.experiment import Experiment
from canard_hydra.fields import key_of_field
from canard_hydra.terminal import shown

SHOWN_GROUPS = 3
SHOWN_INDICES = 6


def duplicate_lines(experiment: Experiment) -> list[str]:
    """`Warning: members 0 and 2 are the same (ppo.learning_rate=0.001); each is trained`"""
    members: dict[str, list[int]] = {}
    for index, values in enumerate(experiment.params):
        members.setdefault(repr(values), []).append(index)
    groups = [indices for indices in members.values() if len(indices) > 1]
    lines = [_told(experiment, indices) for indices in groups[:SHOWN_GROUPS]]
    if len(groups) > SHOWN_GROUPS:
        more = counted(len(groups) - SHOWN_GROUPS, "group")
        lines.append(f"Warning: and {more} more of members that are the same")
    return lines


def _told(experiment: Experiment, indices: list[int]) -> str:
    first = indices[0]
    values = " ".join(f"{key_of_field(name)}={shown(one)}" for name, one in experiment.params[first].items())
    seeds = "" if experiment.configs[first].seed is not None else ", with a seed drawn for each"
    same = f"the same ({values})" if values else "the same"
    return f"Warning: members {_listed(indices)} are {same}; each is trained{seeds}"


def _listed(indices: list[int]) -> str:
    texts = [str(index) for index in indices[:SHOWN_INDICES]]
    if len(indices) > SHOWN_INDICES:
        return f"{', '.join(texts)} and {len(indices) - SHOWN_INDICES} more"
    return f"{', '.join(texts[:-1])} and {texts[-1]}"
