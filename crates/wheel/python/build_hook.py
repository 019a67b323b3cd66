"""Puts the programs and the files of subjects into the wheel, and says which systems it runs on."""
import pathlib
import re
import subprocess

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = ["headcount", "headcount-programs"]


class Programs(BuildHookInterface):
    def initialize(self, _version, build_data):
        built, stripped = ROOT / "target" / "release", ROOT / "target" / "wheel"
        stripped.mkdir(parents=True, exist_ok=True)
        included = build_data["force_include"]
        for name in PROGRAMS:
            subprocess.run(["strip", "-o", stripped / name, built / name], check=True)
            included[str(stripped / name)] = f"headcount/bin/{name}"
        for subject in sorted(ROOT.glob("experiments/*.toml")):
            included[str(subject)] = f"headcount/share/experiments/{subject.name}"
        build_data |= {"pure_python": False, "tag": f"py3-none-manylinux_2_{glibc(stripped / PROGRAMS[1])}_x86_64"}


def glibc(program):
    """The least version 2.x of glibc that has all that the program needs."""
    symbols = subprocess.run(["objdump", "-T", program], check=True, capture_output=True, text=True).stdout
    return max(int(version) for version in re.findall(r"GLIBC_2\.(\d+)", symbols))
