"""Installation of the `rail_robot` extension, its metadata read from config/extension.toml."""

import tomllib
from pathlib import Path

from setuptools import find_packages, setup

PACKAGE = tomllib.loads((Path(__file__).parent / "config" / "extension.toml").read_text())["package"]

setup(
    name="rail_robot",
    version=PACKAGE["version"],
    description=PACKAGE["description"],
    author=PACKAGE["author"],
    packages=find_packages(),
    package_data={"rail_robot": ["robots/*.usda"]},
    install_requires=[],
    python_requires=">=3.11",
    zip_safe=False,
    entry_points={"isaaclab.tasks": ["rail_robot = rail_robot.tasks"]},
)
