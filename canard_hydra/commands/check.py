"""`canard check`: is every experiment that these files can be combined to one that would be accepted?"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from canard_hydra.conf_dir import OWN

if TYPE_CHECKING:
    from canard_hydra.check import Finding, Report

LIMIT = 256


@click.command()
@click.argument(
    "conf", default=OWN, type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="[CONF_DIR]"
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=LIMIT,
    show_default=True,
    help="Compose every combination up to so many; above, every pair of options.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(conf: Path, limit: int, *, as_json: bool) -> None:
    """Compose the options of CONF_DIR (./conf) in every combination; exit code 1 when one is wrong."""
    from canard_hydra.check import check_folder  # here, so that --help needs no Hydra

    report = check_folder(conf, limit=limit)
    click.echo(json.dumps(asdict(report)) if as_json else _told(conf, report))
    sys.exit(1 if report.faults else 0)


def _told(conf: Path, report: "Report") -> str:
    groups = " x ".join(f"{len(options)} {group}" for group, options in report.options.items())
    whole = report.combinations == report.possible
    looked_at = (
        "every combination" if whole else f"{report.combinations} combinations, with every pair of options,"
    )
    return "\n".join(
        [
            *_lines("", report.faults),
            *_lines("note: ", report.notes),
            f"{conf}: {looked_at} of {report.possible:,} = {groups}; {report.members:,} members;"
            f" {_count(report.faults)}",
        ]
    )


def _lines(kind: str, findings: Sequence["Finding"]) -> list[str]:
    return [f"{kind}{finding}" for finding in findings]


def _count(faults: Sequence["Finding"]) -> str:
    return {0: "no faults", 1: "1 fault"}.get(len(faults), f"{len(faults)} faults")
