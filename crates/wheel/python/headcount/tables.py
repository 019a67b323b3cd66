"""Result files, checked by their signatures, as tables."""
import collections.abc
import gzip
import hashlib
import json
import pathlib

from .columns import as_table, columns_of, with_names, with_verdicts

MARGIN_PERCENT = 2.0  # where a signature names none


class ResultError(Exception):
    """A result that cannot be read: one sentence says which, and why."""


class Results(collections.abc.Mapping):
    """Tables by the name of their experiment; those of other runs by `replicate-2/ablate-one`."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        if not self.folder.is_dir():
            raise ResultError(f"`{folder}` is not a folder: name a folder of `results/`")
        paths = {path.relative_to(self.folder).with_suffix("").as_posix(): path for path in self.folder.rglob("*.csv")}
        self.paths = {name: paths[name] for name in sorted(paths) if not why_unfinished(paths[name])}
        if not self.paths:
            found = f", only {min(paths)}.csv, which {why_unfinished(paths[min(paths)])}" if paths else ""
            raise ResultError(f"`{folder}` has no finished results{found}")

    def __getitem__(self, name):
        if name not in self.paths:
            raise KeyError(f"no finished `{name}` in {self}")
        return read_result(self.paths[name])

    def __iter__(self):
        return iter(self.paths)

    def __len__(self):
        return len(self.paths)

    def __repr__(self):
        return f"`{self.folder}`: {', '.join(name for name in self if '/' not in name or len(self) < 20)}"


def read_result(path):
    """The table of a result file, which must be as its signature says; else it raises ResultError."""
    path = pathlib.Path(path)
    signature = read_signature(path)
    columns = columns_of(content(path, signature["complete"]["sha256"]))
    percent = (signature.get("testing") or {}).get("margin_percent", MARGIN_PERCENT)
    return as_table(with_verdicts(with_names(columns), percent))


def read_segments(path):
    """The statistics of segments beside a result file: segment 0 is the sum over the test set, which `base` has all of.

    Other rows have the segments that differ from the base.
    """
    path = pathlib.Path(path)
    sha256, name, segment = read_signature(path)["complete"].get("segments_sha256"), "", 0
    if sha256 is None:
        raise ResultError(f"`{path}` has no statistics of segments")
    columns = columns_of(gzip.decompress(content(path.with_suffix(".segments.csv.gz"), sha256)))
    for line, (given_name, given_segment) in enumerate(zip(columns["row"], columns["segment"])):
        columns["row"][line] = name = given_name or name  # empty: the name stays
        columns["segment"][line] = segment = segment + 1 if given_segment is None else given_segment
    return as_table(columns)


def why_unfinished(path):
    """What is said of a file that by its name is not finished; nothing of others."""
    if ".shard-" in path.stem:
        return "is one of several shards: `headcount merge` joins them"
    return "is not finished: repeat its command to resume it" if path.stem.endswith(".partial") else ""


def read_signature(path):
    """The signature of finished results, which lies beside them."""
    beside = path.with_suffix(".json")
    if reason := why_unfinished(path):
        raise ResultError(f"`{path}` {reason}")
    if not path.is_file():
        raise ResultError(f"`{path}` does not exist")
    try:
        signature = json.loads(beside.read_text(encoding="utf-8"))
        if signature["complete"]["sha256"] and "part" not in signature:
            return signature
    except FileNotFoundError:
        raise ResultError(f"`{path}` has no signature file `{beside.name}` next to it") from None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise ResultError(f"`{beside}` is not the signature of finished results")


def content(path, sha256):
    """The bytes of a file that has this checksum."""
    try:
        found = path.read_bytes()
    except OSError as error:
        raise ResultError(f"`{path}` cannot be read: {error.strerror}") from None
    if hashlib.sha256(found).hexdigest() != sha256:
        raise ResultError(f"`{path}` is torn or was edited: its checksum differs from the signature's")
    return found
