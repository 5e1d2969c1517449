"""Print the lowest versions that pyproject.toml allows, for pip: what perpend needs, and its tests.

Other tests need more; polars is left out, as scikit-learn before 1.9 knows no names of polars 2.
"""

import re
import tomllib
from pathlib import Path

FOR_TESTS = {"array-api-strict", "hypothesis", "matplotlib", "pandas", "pytest"}

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
wanted = [
    *project["dependencies"],
    *(line for line in extras["dev"] + extras["plots"] if re.split("[>=]", line)[0] in FOR_TESTS),
]
print(*(line.replace(">=", "==") for line in wanted))
