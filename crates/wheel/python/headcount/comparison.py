"""Runs as tables, compared by the program `compare`."""
import csv
import importlib.metadata
import json
import os
import pathlib
import subprocess
import tempfile
import warnings

from . import command
from .columns import as_table


class CompareError(Exception):
    """Runs that cannot be compared: one sentence says why."""


def compare_runs(runs, options):
    if unknown := [name for name in ("gate", "html", "json") if options.get(name)]:
        raise CompareError(f"`{unknown[0]}` is an option of the command line only")
    with tempfile.TemporaryDirectory() as folder:
        paths = [path_of(run, pathlib.Path(folder) / f"run-{place}.csv", options) for place, run in enumerate(runs, 1)]
        rows = json.loads(output(["compare", *paths, "--json", *arguments(options)], folder + os.sep))["rows"]
    return as_table({name: [row[name] for row in rows] for name in rows[0]})


def written(value):
    """A name for a table; empty if it is a missing value of pandas."""
    return value if isinstance(value, str) or str(value) not in ("nan", "<NA>", "NaT") else ""


def path_of(run, path, options):
    """The path of a run; a table is written to `path`, numbers in full."""
    if isinstance(run, (str, os.PathLike)):
        return os.fspath(run)
    rows = run.to_dict("records") if hasattr(run, "to_dict") else list(run)
    columns = [options.get("id", "id"), options.get("score", "score"), *filter(None, [options.get("cluster")])]
    missing = [name for name in columns if not rows or any(name not in row for row in rows)]
    if missing:
        raise CompareError(f"a run has no column `{missing[0]}`" if rows else "a run has no rows")
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        score = columns[1]
        writer.writerows([row[name] if name == score else written(row[name]) for name in columns] for row in rows)
    return str(path)


def arguments(options):
    """Options of the command line: `lower_is_better=True` is `--lower-is-better`, a list repeats the option."""
    all_arguments = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            all_arguments += [option] if value else []
        else:
            values = value if isinstance(value, (list, tuple)) else [value]
            all_arguments += [f"{option}={one}" for one in values]
    return all_arguments


def output(line, folder):
    """What a command prints; its messages name files in `folder` without it."""
    try:
        environment = os.environ | command.libtorch(importlib.metadata.requires("headcount"))
        done = subprocess.run([command.BIN / "headcount", *line], env=environment, capture_output=True, text=True)
    except (OSError, command.Unusable, importlib.metadata.PackageNotFoundError) as error:
        raise CompareError(str(error)) from None
    said = done.stderr.replace(folder, "").splitlines()
    if done.returncode:
        raise CompareError(said[-1].removeprefix("error: ") if said else f"compare ended with {done.returncode}")
    for message in said:
        warnings.warn(message.removeprefix("warning: "), stacklevel=4)
    return done.stdout
