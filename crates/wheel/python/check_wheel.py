"""Tries a wheel as its users do: an empty environment, a folder of their own, no compiler; then runs the notebook.

The environment may be prepared before, while the wheel is built: `check_wheel.py --prepare FOLDER`, then `check_wheel.py WHEEL FOLDER`.
"""
import pathlib
import subprocess
import sys
import tempfile
import time
import venv

HERE = pathlib.Path(__file__).resolve().parent
MAX_BYTES = 60_000_000


def prepare(environment):
    """An environment with what the notebook needs, but for the wheel."""
    venv.create(environment, clear=True, with_pip=True)
    pip(environment, "--requirement", str(HERE / "requirements-notebook.txt"))


def pip(environment, *arguments):
    command = [environment / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True)


def check(wheel, environment, desk):
    size = wheel.stat().st_size
    assert size < MAX_BYTES, f"{wheel.name} has {size} bytes"
    pip(environment, str(wheel))
    desk.mkdir()
    # no cargo, no cc, nothing of the repository
    bare = {"PATH": str(environment / "bin"), "HOME": str(desk)}
    headcount = lambda *arguments: subprocess.run(["headcount", *arguments], cwd=desk, env=bare, capture_output=True, text=True)
    began = time.monotonic()
    assert "table1" in headcount("--help").stdout
    print(f"{wheel.name}: {size:,} bytes; headcount --help takes {time.monotonic() - began:.2f} s")

    began = time.monotonic()
    table = headcount("heads", "demo-language", "--limit", "50", "--quiet")
    assert table.returncode == 0 and "of 32 heads" in table.stdout, table.stderr
    print(table.stdout, f"after {time.monotonic() - began:.0f} s", sep="\n")
    no_gpu = headcount("ablate-one", "demo-language", "--device", "cuda:9")
    assert no_gpu.returncode == 1 and "no device `cuda:9`" in no_gpu.stderr, no_gpu.stderr
    missing = headcount("ablate-one", "minilm-mrpc")
    assert missing.returncode == 1 and "run `headcount fetch" in missing.stderr, missing.stderr

    # again with the rest of the machine: Jupyter's kernel and the shell of its cells
    python = environment / "bin" / "python"
    tests = subprocess.run([python, "-B", "-m", "unittest", "discover", "-s", HERE / "tests"], cwd=desk, capture_output=True, text=True)
    said = tests.stdout + tests.stderr
    assert tests.returncode == 0 and "skipped" not in said, said


def main():
    if sys.argv[1] == "--prepare":
        return prepare(pathlib.Path(sys.argv[2]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        prepared = [pathlib.Path(name).resolve() for name in sys.argv[2:]]
        environment, = prepared or [pathlib.Path(folder) / "environment"]
        if not prepared:
            prepare(environment)
        check(pathlib.Path(sys.argv[1]).resolve(), environment, pathlib.Path(folder) / "eigener Ordner ü")
    print("the wheel is as it should be")


if __name__ == "__main__":
    main()
