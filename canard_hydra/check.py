"""Composes and validates what the files of a conf/ folder can be combined to: a review that a CI can do."""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from allpairspy import AllPairs
from omegaconf import DictConfig

from canard_hydra.composed import Composed
from canard_hydra.composition import Composition, Compositions, compositions
from canard_hydra.errors import ExperimentError, MissingValueError
from canard_hydra.experiment import faults_of
from canard_hydra.fields import REWARD_KEY, SECTIONS
from canard_hydra.multirun import said_overrides
from canard_hydra.origin import Wording, file_of_option, origin, origin_of_sweep

ABSENT = ""
"""Instead of an option: the group is left out, as it is by default."""

OF_MEMBER = re.compile(r"^member \d+ \(.*?\): ", re.MULTILINE)
PLACE = re.compile(r"(?P<file>[^()]+\.ya?ml):(?P<line>\d+)")
PLACE_AT_END = re.compile(rf"^(?P<text>.*) \({PLACE.pattern}\)$", re.DOTALL)
PLACE_FIRST = re.compile(r"^(?P<file>[^\s:]+\.ya?ml)(?::(?P<line>\d+))?: (?P<text>.*)$", re.DOTALL)
KEY_FIRST = re.compile(r"^[a-z_]+(\.\w+)*(?=:| has no value)")
ENVIRONMENT = re.compile(r"Environment variable '\w+' not found")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong, or worth knowing; told once, with the first combination that has it."""

    text: str
    file: str | None = None
    line: int | None = None
    combination: str = ""
    """Overrides that show it."""

    def __str__(self) -> str:
        if self.file is None:
            return f"{self.combination or 'the defaults'}: {self.text}"
        return f"{self.file}:{self.line or 1}: {self.text}"


@dataclass(kw_only=True)
class Report:
    """What was composed, and what was found."""

    options: Mapping[str, Sequence[str]]
    """By group."""
    possible: int
    """Combinations that there are."""
    combinations: int = 0
    members: int = 0
    """Of all combinations: a file may sweep."""
    faults: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)


def check_folder(conf: Path, *, limit: int) -> Report:
    """Compose every combination of options, or so many that every pair is there, and validate each member.

    Args:
        conf: the user's configuration files; ours stand behind them, as for every command.
        limit: above so many combinations, every pair of options has to do.
    """
    with compositions(conf) as composer:
        review = _Review(composer, conf)
        review.read_files(conf)
        for chosen in review.chosen(limit):
            review.look_at(chosen)
        review.compare_keys()
        return review.report


class _Review:
    def __init__(self, composer: Compositions, conf: Path) -> None:
        self._composer = composer
        self._keys: dict[str, dict[str, set[str]]] = {}
        """By group and option: what the composed section has."""
        self._defaults = self._chosen_by_default()
        options = {name: found for name in self._groups(conf) if (found := self._options(name)) != [ABSENT]}
        self.report = Report(options=options, possible=math.prod(len(found) for found in options.values()))

    def _chosen_by_default(self) -> Mapping[str, str | None]:
        try:
            return dict(self._composer.compose([]).base.hydra.runtime.choices)
        except ExperimentError:
            return {}  # the first combination says what it is

    def _groups(self, conf: Path) -> list[str]:
        """Those that the primary config chooses from, and the user's own."""
        own = {file.name for file in conf.iterdir() if file.is_dir()}
        return [one for one in self._composer.groups.names if one in own or one in self._defaults]

    def _options(self, group: str) -> list[str]:
        absent = [] if self._defaults.get(group) else [ABSENT]
        return [*absent, *_below(self._composer, group)]

    def read_files(self, conf: Path) -> None:
        for file in sorted(conf.rglob("*.yml")):
            self._fault(f"{file}:1: Hydra reads files that end in .yaml, so this one is no option", ())

    def chosen(self, limit: int) -> Iterator[tuple[str, ...]]:
        """The option of each group, in order."""
        options = list(self.report.options.values())
        if self.report.possible <= limit or len(options) < 2:
            yield from itertools.product(*options)
        else:
            yield from (tuple(one) for one in AllPairs(options))

    def look_at(self, chosen: Sequence[str]) -> None:
        self.report.combinations += 1
        overrides = [
            f"{group}={option}" if group in self._defaults else f"+{group}={option}"
            for group, option in zip(self.report.options, chosen, strict=True)
            if option
        ]
        composition = self._composed(overrides)
        if composition is None:
            return
        self.report.members += len(composition.members)
        self._remember_keys(composition.base)
        faults = [(one, *fault) for one in composition.members for fault in faults_of(one)]
        for member, key, text in faults:
            self._fault(_with_place(key, text, _wording(member, composition)), overrides)
        if not faults:
            try:
                composition.experiment()
            except ExperimentError as error:
                self._fault(str(error), overrides)

    def _composed(self, overrides: Sequence[str]) -> Composition | None:
        """Without what only the person who trains can say, which is noted."""
        said = list(overrides)
        while True:
            try:
                return self._composer.compose(said)
            except ExperimentError as error:
                more = self._left_to_say(error)
                if not more or not set(more).isdisjoint(said):
                    (self._fault if more is None else self._note)(str(error), overrides)
                    return None
                self._note(str(error), overrides)
                said += more

    def _left_to_say(self, error: ExperimentError) -> list[str] | None:
        """Overrides that go on without it; None for a fault."""
        if isinstance(error.__cause__, MissingValueError):
            return [f"{key}=null" for key in error.__cause__.keys]
        return ["++mode=plan"] if ENVIRONMENT.search(str(error)) else None

    def _remember_keys(self, base: DictConfig) -> None:
        for group in SECTIONS:
            option = base.hydra.runtime.choices.get(group)
            section = base.get(group)
            if isinstance(option, str) and isinstance(section, DictConfig):
                self._keys.setdefault(group, {})[option] = {str(key) for key in section}

    def compare_keys(self) -> None:
        """A key that an option lacks cannot be set where several options are swept."""
        for group, by_option in self._keys.items():
            everywhere = set[str]().union(*by_option.values()) - {REWARD_KEY.split(".")[1]}
            for option, keys in by_option.items():
                if lacking := sorted(everywhere - keys):
                    told = ", ".join(f"{group}.{key}" for key in lacking)
                    self._note(
                        f"{group}={option} does not declare {told}: -m {group}={option},... cannot set them"
                        f" together; declare them as null or with a value",
                        [f"{group}={option}"],
                        place=file_of_option(group, option),
                    )

    def _fault(self, text: str, overrides: Sequence[str]) -> None:
        self._add(self.report.faults, text, overrides, None)

    def _note(self, text: str, overrides: Sequence[str], place: str | None = None) -> None:
        self._add(self.report.notes, text, overrides, place)

    def _add(self, found: list[Finding], text: str, overrides: Sequence[str], file: str | None) -> None:
        finding = _finding(text, " ".join(overrides), file)
        known = {(one.text, one.file, one.line) for one in found}
        if (finding.text, finding.file, finding.line) not in known:
            found.append(finding)


def _below(composer: Compositions, group: str) -> Iterator[str]:
    yield from composer.groups.options(group)
    for folder in composer.groups.folders(group):
        yield from (f"{folder}/{option}" for option in _below(composer, f"{group}/{folder}"))


def _wording(member: Composed, composition: Composition) -> Wording:
    return Wording(
        config_name=member.config_name, said=said_overrides(composition.base), swept=member.overrides
    )


def _with_place(key: str, text: str, wording: Wording) -> str:
    found = origin(key, wording)
    if found is not None and found.is_override:
        found = origin_of_sweep(found.place.partition("=")[0], wording)
    return text if found is None else f"{text} ({found.place})"


def _finding(text: str, combination: str, file: str | None) -> Finding:
    text = OF_MEMBER.sub("", text)
    place = PLACE_AT_END.match(text) or PLACE_FIRST.match(text)
    if place is not None and file is None:
        line = place["line"]
        return Finding(
            text=place["text"], file=place["file"], line=int(line) if line else None, combination=combination
        )
    line = None
    if file is None:
        file, line = _place_of_key(text, combination)
    return Finding(text=text, file=file, line=line, combination=combination)


def _place_of_key(text: str, combination: str) -> tuple[str | None, int | None]:
    """Where the key that a text begins with is written, or would be: the file of the chosen option."""
    key = KEY_FIRST.match(text)
    if key is None:
        return None, None
    found = origin(key[0], Wording(said=combination.split()))
    if found is not None and (place := PLACE.fullmatch(found.place)):
        return place["file"], int(place["line"])
    chosen = dict(one.lstrip("+").split("=", 1) for one in combination.split())
    group = key[0].partition(".")[0]
    return (file_of_option(group, chosen[group]) if group in chosen else None), None
