"""Puts into the wheel the programs, the files of subjects, the commit, and the licences of all crates; says where it runs."""
import json
import pathlib
import platform
import re
import subprocess

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = ["headcount", "headcount-programs"]


class Programs(BuildHookInterface):
    def initialize(self, _version, build_data):
        built, made = ROOT / "target" / "release", ROOT / "target" / "wheel"
        made.mkdir(parents=True, exist_ok=True)
        included = build_data["force_include"]
        for name in PROGRAMS:
            subprocess.run(["strip", "-o", made / name, built / name], check=True)
            included[str(made / name)] = f"headcount/bin/{name}"
        for subject in sorted(ROOT.glob("experiments/*.toml")):
            included[str(subject)] = f"headcount/share/experiments/{subject.name}"
        for name, text in [("commit", output("git", "rev-parse", "HEAD")), ("THIRD-PARTY.txt", licences())]:
            (made / name).write_text(text)
            included[str(made / name)] = f"headcount/share/{name}"
        glibc = max(int(version) for name in PROGRAMS for version in
                    re.findall(r"GLIBC_2\.(\d+)", output("objdump", "-T", str(made / name))))
        build_data |= {"pure_python": False, "tag": f"py3-none-manylinux_2_{glibc}_{platform.machine()}"}


def licences():
    """The licences of the crates that the programs are made of, in full."""
    packages = json.loads(output("cargo", "metadata", "--format-version", "1", "--locked"))["packages"]
    parts = [(ROOT / "crates/README.md").read_text().partition("## Parts of others")[2]]
    for package in packages:
        if package["source"]:
            folder = pathlib.Path(package["manifest_path"]).parent
            texts = [path.read_text(errors="replace") for name in ("LICEN[CS]E*", "COPYING*", "NOTICE*")
                     for path in sorted(folder.glob(name)) if path.is_file()]
            parts.append("\n\n".join([f"{package['name']} {package['version']}: {package['license']}", *texts]))
    return "\n\n----\n\n".join(parts)


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
