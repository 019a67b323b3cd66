"""Prepares `.libtorch/` (include, lib) for the tch crate, from Python wheels alone.

    libtorch.py          the CPU libraries only, 550 MB fetched (Linux x86-64); a full install elsewhere
    libtorch.py --cuda   a full `pip install torch`, for machines with a GPU

Does nothing when LIBTORCH is set or the folder is complete. A broken download leaves nothing behind that
looks complete: everything is put together in `.libtorch.partial` and renamed at the end.
"""

import os
import pathlib
import platform
import shutil
import subprocess
import sys
import zipfile

TORCH = "2.11.0"
# libtorch_cpu.so of the CUDA wheel is linked against these two, whether or not there is a GPU.
COMPANIONS = {"nvidia-cuda-runtime": "13.0.96", "nvidia-cuda-cupti": "13.0.85"}
LIBRARIES = ["libtorch_cpu.so", "libc10.so", "libgomp.so.1", "libcudart.so.13", "libcupti.so.13"]
# pip matches each tag exactly, so every glibc floor that the three wheels use is named.
PLATFORMS = ["manylinux_2_28_x86_64", "manylinux_2_25_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"]

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / ".libtorch"
PARTIAL = ROOT / ".libtorch.partial"
MARKER = "complete"


def pip(*arguments):
    subprocess.run([sys.executable, "-m", "pip", *arguments], check=True, stdout=sys.stderr)


def lean():
    """The wheel's headers and its CPU libraries; no CUDA libraries."""
    wheels = PARTIAL / "wheels"
    wanted = [f"torch=={TORCH}"] + [f"{name}=={version}" for name, version in COMPANIONS.items()]
    tags = [flag for tag in PLATFORMS for flag in ("--platform", tag)]
    # A fixed interpreter, so that any Python 3 serves: nothing of these wheels is ever imported.
    pip("download", "--no-deps", "--only-binary=:all:", "--python-version", "3.12", "--implementation", "cp",
        *tags, "--dest", str(wheels), *wanted)
    (PARTIAL / "lib").mkdir()
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                path = pathlib.PurePosixPath(member)
                if member.startswith("torch/include/") and not member.endswith("/"):
                    write(archive, member, PARTIAL / "include" / path.relative_to("torch/include"))
                elif path.name in LIBRARIES:
                    write(archive, member, PARTIAL / "lib" / path.name)
    # torch-sys links `-ltorch`, which would need the CUDA libraries: a linker script stands in for it.
    (PARTIAL / "lib" / "libtorch.so").write_text("INPUT(-ltorch_cpu)\n")
    missing = [name for name in LIBRARIES if not (PARTIAL / "lib" / name).exists()]
    if missing:
        sys.exit(f"setup: the wheels of torch {TORCH} lack {', '.join(missing)}")
    shutil.rmtree(wheels)


def write(archive, member, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as source, open(path, "wb") as sink:
        shutil.copyfileobj(source, sink)


def full():
    """A virtual environment with torch; `.libtorch` points into it."""
    environment = ROOT / ".libtorch.venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", f"torch=={TORCH}"], check=True, stdout=sys.stderr)
    found = subprocess.run([str(python), "-c", "import torch; print(torch.__path__[0])"],
                           check=True, capture_output=True, text=True).stdout.strip()
    for folder in ("include", "lib"):
        (PARTIAL / folder).symlink_to(pathlib.Path(found) / folder)


def main():
    kind = "cuda" if "--cuda" in sys.argv[1:] else "cpu"
    if os.environ.get("LIBTORCH"):
        return print(f"setup: using LIBTORCH={os.environ['LIBTORCH']}", file=sys.stderr)
    marker = TARGET / MARKER
    found = marker.read_text().split() if marker.exists() else []
    # A CUDA installation serves a CPU build too, so `just setup` never undoes `just setup-cuda`.
    if found[:1] == [TORCH] and (kind == "cpu" or found[1:] == [kind]):
        return None
    print(f"setup: fetching libtorch {TORCH} ({kind}) once into .libtorch/", file=sys.stderr)
    shutil.rmtree(PARTIAL, ignore_errors=True)
    PARTIAL.mkdir()
    is_lean = kind == "cpu" and platform.system() == "Linux" and platform.machine() == "x86_64"
    lean() if is_lean else full()
    (PARTIAL / MARKER).write_text(f"{TORCH} {kind}\n")
    shutil.rmtree(TARGET, ignore_errors=True)
    PARTIAL.rename(TARGET)
    return None


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"setup: `{' '.join(map(str, error.cmd))}` failed; is a package index reachable?")
    except (OSError, zipfile.BadZipFile) as error:
        sys.exit(f"setup: {error}")
