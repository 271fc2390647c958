"""What a run has measured: enough to make tables, plots and pages from it, now or later from its
JSON file.

results = Results.from_json(Path("out.json").read_text())
results.rounds["tf", "scalar_add"]            # [{"run": [...]}, ...]
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from benchmarks.scale import Samples

__all__ = ["Results"]


@dataclass
class Results:
    """``rounds``: samples of every round by library and case; ``failures``: the reason, likewise;
    ``load``: how many processors other programs wanted.
    """

    versions: dict[str, str] = field(default_factory=dict)
    rounds: dict[tuple[str, str], list[Samples]] = field(default_factory=dict)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    about: dict[str, str] = field(default_factory=dict)
    quick: bool = False
    load: float = 0.0

    def add(self, library: str, case: str, samples: Samples) -> None:
        self.rounds.setdefault((library, case), []).append(samples)

    def libraries(self, case: str) -> list[str]:
        return [library for library, measured in self.rounds if measured == case]

    def to_json(self) -> str:
        return json.dumps(
            {
                "about": self.about,
                "versions": self.versions,
                "quick": self.quick,
                "load_of_others": self.load,
                "failures": [[*key, reason] for key, reason in self.failures.items()],
                "rounds": [[*key, rounds] for key, rounds in self.rounds.items()],
            },
            indent=1,
        )

    @classmethod
    def from_json(cls, text: str) -> Results:
        data = json.loads(text)
        return cls(
            data["versions"],
            {(library, case): rounds for library, case, rounds in data["rounds"]},
            {(library, case): reason for library, case, reason in data["failures"]},
            data["about"],
            data["quick"],
            data["load_of_others"],
        )
