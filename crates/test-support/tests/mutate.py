"""Damages files at random and runs the commands that read them: none may panic, hang, or say more than one line.

    cargo build --release --locked --workspace --bins
    python crates/test-support/tests/mutate.py --count 2000

Each case copies a small sound folder, changes one of its files and runs one command there. Sound folders are made once:
a translator as it comes from a hub, a classifier and a translator that train in a second, their results, an interrupted
run, and a mirror for `fetch`. A case depends on --seed and its number alone, so `--case 17` repeats case 17.

A command passes if it succeeds, or exits with 1 or 2 after one line `error: ..`, without control characters, within the
limits of time and memory. The table at the end counts the cases of each kind of file; after a fault the exit code is 1.
"""
import argparse
import gzip
import hashlib
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
QUIET = ["tiny.toml", "--quiet", "--threads", "1"]
TESTED = [*QUIET, "--resamples", "9"]
LONGEST_LINE = 4000  # characters of a message
KINDS = ["checkpoint", "configuration", "tokeniser", "TOML", "data", "result"]

NUMBERS = [
    "-1", "0", "1", "2", "-0.0", "0.5", "1e-320", "1e38", "1e308", "1e999", "-1e308", "NaN", "nan", "inf", "-inf", "Infinity",
    "4294967296", "2147483648", "9223372036854775807", "9223372036854775808", "18446744073709551615",
    "99999999999999999999999", "-9223372036854775808", "1.0", "007", "0x10", "1_000", "", "true", "null", "\"1\"", "[]",
]
STRINGS = [
    "", " ", "..", "../../etc/passwd", "/etc/passwd", "/dev/zero", "a/../b", "nul\\u0000l", "\\u001b[31mred", "two\\nlines",
    "\\u202etxet", "\u202etxet", "x" * 100_000, "é" * 3000, "%s%n", "hub:someone/tiny", "hub:../..", "1", "NaN", "{}", "`$(id)`",
    "\\ud800", "enc-enc", "self", "bert", "marian", "all",
]
VALUES = [
    None, True, False, 0, -1, 1, 2, 1 << 31, 1 << 63, (1 << 64) - 1, -(1 << 63), 1.5, 1e308, 1e-320, float("nan"), float("inf"),
    "", "x", "\x1b[31m", "a\nb", "\u202e", "\ud800", "y" * 100_000, "../..", [], {}, [[]], {"": {}}, [None], [1, 2, 3], {"a": 1},
]
NOISE = [b"\0", b"\x1b[31m", b"\x9b0m", b"\r", b"\n", b"\n\n", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", "\u2028".encode(),
         "\u202e".encode(), b"\x07", b'"', b"'", b",", b"\t", b"{", b"[" * 5000, b"}" * 3, b"\\", b"\x1f\x8b"]


# Mutations: each takes random choices and bytes, and returns other bytes.


def flip_bits(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def overwrite(rng, data):
    start = rng.randrange(len(data) + 1)
    length = rng.choice([1, 4, 8, 100])
    filler = rng.choice([b"\0", b"\xff", b"9", b"\x7f", None])
    noise = rng.randbytes(length) if filler is None else filler * length
    return data[:start] + noise + data[start + length:]


def truncate(rng, data):
    return data[: rng.choice([0, 1, len(data) // 2, max(len(data) - 1, 0), rng.randrange(len(data) + 1)])]


def append(rng, data):
    return data + rng.choice([b"\0", b"\n", b"x", data[: rng.randrange(len(data) + 1)], rng.randbytes(20)])


def delete_chunk(rng, data):
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start + rng.choice([1, 2, 10, 200]):]


def repeat_chunk(rng, data):
    start = rng.randrange(len(data) + 1)
    chunk = data[start: start + rng.choice([1, 2, 10, 200])]
    return data[:start] + chunk * rng.choice([2, 3, 50]) + data[start:]


def insert_noise(rng, data):
    start = rng.randrange(len(data) + 1)
    return data[:start] + rng.choice(NOISE) + data[start:]


def become_empty(_rng, _data):
    return b""


BYTES = [flip_bits, flip_bits, overwrite, truncate, append, delete_chunk, repeat_chunk, insert_noise, become_empty]


def change_lines(rng, data):
    lines = data.splitlines(keepends=True)
    if not lines:
        return b"\n"
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    what = rng.choice(["delete", "twice", "swap", "copy", "blank"])
    if what == "delete":
        del lines[at]
    elif what == "twice":
        lines.insert(at, lines[at])
    elif what == "swap":
        lines[at], lines[other] = lines[other], lines[at]
    elif what == "copy":
        lines.insert(other, lines[at])
    else:
        lines.insert(at, rng.choice([b"\n", b" \n", b"\r\n", b",\n", b"\t\n", b"#\n"]))
    return b"".join(lines)


def replace_match(rng, data, pattern, replacement):
    matches = list(re.finditer(pattern, data))
    if not matches:
        return data + replacement
    match = rng.choice(matches)
    return data[: match.start()] + replacement + data[match.end():]


def change_number(rng, data):
    return replace_match(rng, data, rb"(?<![\w.])-?\d+(\.\d+)?([eE]-?\d+)?(?![\w.])", rng.choice(NUMBERS).encode())


def change_string(rng, data):
    replacement = '"' + rng.choice(STRINGS) + '"'
    return replace_match(rng, data, rb'"[^"\n]*"', replacement.encode())


def change_word(rng, data):
    words = list(re.finditer(rb"[A-Za-z_]+", data)) or [re.match(b"", data)]
    replacement = rng.choice([rng.choice(words).group(), b"", b"x", rng.choice(STRINGS).encode()])
    return replace_match(rng, data, rb"[A-Za-z_]+", replacement)


def change_cell(rng, data):
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    cells = lines[at].split(b"\t" if b"\t" in lines[at] else b",")
    what = rng.choice(["number", "string", "delete", "twice", "other"])
    cell = rng.randrange(len(cells))
    if what == "number":
        cells[cell] = rng.choice(NUMBERS).encode()
    elif what == "string":
        cells[cell] = rng.choice(STRINGS).encode()
    elif what == "delete":
        del cells[cell]
    elif what == "twice":
        cells.insert(cell, cells[cell])
    else:
        cells[cell] = rng.choice(cells)
    lines[at] = (b"\t" if b"\t" in lines[at] else b",").join(cells)
    return b"\n".join(lines)


TEXT = [change_lines, change_lines, change_number, change_number, change_string, change_word]
TABLE = [change_cell, change_cell, change_cell, change_lines, change_number]


def places(value):
    """Each container with each of its keys, however deep."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield value, key
        yield from places(inner)


def change_json(rng, data):
    try:
        document = json.loads(data)
    except ValueError:
        return flip_bits(rng, data)
    found = list(places(document))
    if not found:
        return b"[]"
    # a long list should not hide the other entries
    container, key = rng.choice([place for place in found if isinstance(place[0], dict)] if rng.random() < 0.7 else found) \
        if any(isinstance(place[0], dict) for place in found) else rng.choice(found)
    what = rng.choice(["delete", "value", "value", "value", "rename", "other", "number", "deep", "twice", "root"])
    if what == "delete":
        del container[key]
    elif what == "value":
        container[key] = rng.choice(VALUES)
    elif what == "number":
        container[key] = rng.choice([-1, 0, 1, 3, 7, 1000, 10**6, 2**31, 2**53 + 1, 2**63, 10**30, -(2**63), 1e300, 0.1])
    elif what == "rename" and isinstance(container, dict):
        container[rng.choice(["", "x", str(key) + " ", "\x1b[31m", "bert." + str(key), "0", "-1", str(2**64)])] = container.pop(key)
    elif what == "other":
        source, name = rng.choice(found)
        container[key] = source[name]
    elif what == "deep":
        container[key] = "DEEP"
        depth = rng.choice([100, 5000, 200_000])
        opened, closed = rng.choice([("[", "]"), ('{"a":', "}")])
        return safe_dumps(document).replace('"DEEP"', opened * depth + "0" + closed * depth).encode(errors="surrogatepass")
    elif what == "twice" and isinstance(container, dict):
        text = safe_dumps({key: rng.choice(VALUES)})[1:-1]
        return safe_dumps(document).replace("{", "{" + text + ",", 1).encode(errors="surrogatepass")
    elif what == "root":
        document = rng.choice([[document], {"x": document}, rng.choice(VALUES)])
    return safe_dumps(document).encode(errors="surrogatepass")


def safe_dumps(document):
    """As JSON, unless a mutation has put a container into itself."""
    try:
        return json.dumps(document)
    except ValueError:
        return "[" * 300


def change_header(rng, data):
    """Changes the JSON header of a safetensors file, and most often its length too."""
    length = struct.unpack("<Q", data[:8])[0]
    header = change_json(rng, data[8: 8 + length])
    stated = rng.choice([len(header)] * 5 + [length, 0, 2**63, 2**64 - 1, len(header) + 1])
    return struct.pack("<Q", stated) + header + data[8 + length:]


def change_weights(rng, data):
    """Puts numbers that a model cannot compute with in the place of weights."""
    length = struct.unpack("<Q", data[:8])[0]
    start = 8 + length + 4 * rng.randrange(max((len(data) - 8 - length) // 4, 1))
    count = rng.choice([1, 16, 1000, len(data)])
    number = struct.pack("<f", rng.choice([float("nan"), float("inf"), float("-inf"), 3e38, -3e38, 1e-45, 1e20, 0.0]))
    return (data[:start] + number * min(count, (len(data) - start) // 4) + data[start:])[: len(data)]


def recompressed(rng, data, changes):
    """Changes the text of a gzip file, or how it is packed."""
    what = rng.choice(["text"] * 6 + ["bytes", "bytes", "members", "plain", "bomb", "empty member", "in gzip"])
    try:
        text = gzip.decompress(data)
    except (OSError, EOFError):
        return flip_bits(rng, data)
    if what == "text":
        return gzip.compress(rng.choice(changes)(rng, text), mtime=0)
    if what == "members":
        cut = rng.randrange(len(text) + 1)
        return gzip.compress(text[:cut], mtime=0) + gzip.compress(text[cut:], mtime=0)
    if what == "plain":
        return text
    if what == "bomb":
        return data + gzip.compress(rng.choice([b"\0", b"\n", b"1,"]) * (1 << 24), mtime=0) * 160
    if what == "empty member":
        return data + gzip.compress(b"", mtime=0)
    if what == "in gzip":
        return gzip.compress(data, mtime=0)
    return rng.choice(BYTES)(rng, data)


def mutate(rng, path):
    """Changes one file in place; says how."""
    data = path.read_bytes()
    texts = {".csv": TABLE, ".tsv": TABLE, ".json": [change_json] * 6 + TEXT, ".jsonl": TABLE + TEXT,
             ".safetensors": [change_header, change_weights] * 3, ".toml": TEXT * 3, ".en": TEXT, ".xx": TEXT}
    if path.suffix == ".gz":
        inner = TABLE if ".csv" in path.name or ".tsv" in path.name else TEXT
        how, changed = "gzip", recompressed(rng, data, inner + BYTES)
    else:
        change = rng.choice(texts.get(path.suffix, BYTES) * 2 + BYTES)
        how, changed = change.__name__, change(rng, data)
    path.write_bytes(changed)
    return how


def sign(path):
    """Makes the signature vouch for a damaged result, which would otherwise be refused before it is read."""
    for ending, entry in [(".segments.csv.gz", "segments_sha256"), (".csv", "sha256")]:
        signature = Path(str(path).removesuffix(ending) + ".json")
        if path.name.endswith(ending) and signature.is_file():
            document = json.loads(signature.read_bytes())
            if document.get("complete"):
                document["complete"][entry] = sha256(path.read_bytes())
                document["complete"]["rows"] = max(path.read_bytes().count(b"\n") - 1, 0) if ending == ".csv" \
                    else document["complete"]["rows"]
                signature.write_text(json.dumps(document), encoding="utf-8")
            return


# Sound folders


@dataclass(frozen=True)
class Target:
    """A file of a sound folder, and the commands that read it."""

    kind: str
    folder: str
    file: str
    commands: list


class Workshop:
    """Makes the sound folders."""

    def __init__(self, base, binaries):
        self.base = base
        self.binaries = binaries
        self.targets = []

    def run(self, folder, *command):
        outcome = subprocess.run([self.binaries / command[0], *command[1:]], cwd=self.base / folder, env=environment(self.base),
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if outcome.returncode != 0:
            sys.exit(f"mutate.py: `{' '.join(command)}` failed on a sound folder: {outcome.stderr.strip()}")

    def add(self, kind, folder, files, *commands):
        for file in files:
            if not (self.base / folder / file).is_file():
                sys.exit(f"mutate.py: there is no {folder}/{file} to damage")
            self.targets.append(Target(kind, folder, file, list(commands)))

    def folder(self, name, files):
        for file, content in files.items():
            path = self.base / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return self.base / name

    def make(self):
        self.make_hub()
        self.make_classifier()
        self.make_bert()
        self.make_translator()
        self.make_fresh()
        self.make_interrupted()
        self.make_mirror()
        return self.targets

    def make_hub(self):
        """A translator as it comes from a hub."""
        folder = self.folder("hub", {
            "tiny.toml": 'description = "As it comes from a hub"\n[data.splits]\n'
                         'test = { source = "a.en", target = "a.xx" }\n[checkpoint]\nfrom = "opus"\n',
            "data/a.en": "The dog sees the cat.\nA man sleeps.\nThe girl finds a boat.\n",
            "data/a.xx": "lu pesak lu tivun zifesk\nen fotal pasosk\nlu gidul en homom gimosk\n",
        })
        shutil.copytree(ROOT / "crates/core-masking/tests/fixtures/tiny-marian", folder / "data/opus",
                        ignore=shutil.ignore_patterns("expected-*"))
        sweep = ["ablate-one", *TESTED, "--attention", "enc-dec", "--limit", "first:2"]
        self.run("hub", *sweep)
        shutil.rmtree(folder / "results")
        opus = "data/opus/"
        self.add("checkpoint", "hub", [opus + "model.safetensors"], sweep)
        configurations = ["config.json", "generation_config.json", "tokenizer_config.json"]
        self.add("configuration", "hub", [opus + file for file in configurations], sweep)
        self.add("tokeniser", "hub", [opus + file for file in ["source.spm", "target.spm", "vocab.json"]], sweep)
        self.add("TOML", "hub", ["tiny.toml"], sweep)
        self.add("data", "hub", ["data/a.en", "data/a.xx"], sweep)

    def make_classifier(self):
        """A classifier that was trained here."""
        self.folder("classifier", {"tiny.toml": subject("CLASSIFIER"), **reviews()})
        sweep = ["ablate-one", *TESTED, "--limit", "first:9"]
        self.run("classifier", *sweep)
        shutil.rmtree(self.base / "classifier/results")
        model = "data/models/tiny/"
        self.add("checkpoint", "classifier", [model + "model.safetensors"], sweep)
        self.add("configuration", "classifier", [model + "config.json", model + "settings.json"], sweep)
        self.add("tokeniser", "classifier", [model + "tokenizer.json"], sweep)
        self.add("TOML", "classifier", ["tiny.toml"], sweep)
        self.add("data", "classifier", [f"data/reviews/{split}.tsv" for split in ["train", "dev", "test"]], sweep)

    def make_bert(self):
        """The same model as a checkpoint that is taken as it is, on a table in each format."""
        folder = self.folder("bert", {
            "tiny.toml": 'task = "classification"\ndescription = "A checkpoint"\n[data]\nlabels = ["bad", "good"]\n'
                         'format = { kind = "tsv", text = "review", label = "verdict" }\n[data.splits]\ntest = "test.tsv"\n'
                         'jsonl = { file = "test.jsonl", format = { kind = "jsonl", text = "review", label = "verdict" } }\n'
                         'csv = { file = "test.csv", format = { kind = "csv", text = 1, label = 2 } }\npacked = "test.tsv.gz"\n'
                         '[score]\nmetric = "accuracy"\n[tokenizer]\nmax_length = 16\n[checkpoint]\nfrom = "bert"\n',
            **tables(),
        })
        shutil.copytree(self.base / "classifier/data/models/tiny", folder / "data/bert",
                        ignore=shutil.ignore_patterns("epochs", "settings.json"))
        sweep = ["ablate-one", *TESTED, "--limit", "first:9"]
        for split in ["test", "jsonl", "csv", "packed"]:
            self.run("bert", *sweep, "--split", split)
        shutil.rmtree(folder / "results")
        self.add("checkpoint", "bert", ["data/bert/model.safetensors"], sweep)
        self.add("configuration", "bert", ["data/bert/config.json"], sweep)
        self.add("tokeniser", "bert", ["data/bert/tokenizer.json"] * 2, sweep)
        self.add("TOML", "bert", ["tiny.toml"], sweep)
        self.add("data", "bert", ["data/test.tsv"], sweep)
        self.add("data", "bert", ["data/test.jsonl"], [*sweep, "--split", "jsonl"])
        self.add("data", "bert", ["data/test.csv"], [*sweep, "--split", "csv"])
        self.add("data", "bert", ["data/test.tsv.gz"], [*sweep, "--split", "packed"])

    def make_translator(self):
        """A translator that was trained here, with the results of all experiments."""
        spec = subject("TRANSLATOR").replace("test = 24", "test = 7")
        folder = self.folder("translator", {"tiny.toml": spec})
        runs = {
            "ablate-one": ["ablate-one", *TESTED],
            "iterative-prune": ["iterative-prune", *TESTED, "--order", "importance,oracle,random", "--random-orders", "2",
                                "--attention", "all,enc-enc", "--step-percent", "50"],
            "joint-search": ["joint-search", *TESTED, "--step-percent", "50", "--search-limit", "7",
                             "--search-on", "dev"],
            "cross-domain-test-shifted": ["cross-domain", *TESTED],
            "ablate-all-but-one": ["ablate-all-but-one", *TESTED],
            "training-dynamics": ["training-dynamics", *TESTED, "--step-percent", "50"],
            "importance": ["importance", *QUIET],
            "training": ["train-subject", *QUIET],
        }
        for command in runs.values():
            self.run("translator", *command)
        drawings = {
            "ablate-one": ["table1", "figure1"], "iterative-prune": ["figure3", "figure4"], "joint-search": ["figure3"],
            "cross-domain-test-shifted": ["figure2"], "ablate-all-but-one": ["table2"], "training-dynamics": ["figure5"],
            "importance": ["agreement"], "training": [],
        }
        for name, command in runs.items():
            plots = [["plotting", drawing, "tiny", *plotting_options(drawing)] for drawing in [*drawings[name], "all"]]
            summary = ["plotting", "summary"]
            retest = [] if name in ("importance", "training") else [["retest", f"results/tiny/{name}.csv"]] * 2
            oracle = [runs["iterative-prune"], runs["cross-domain-test-shifted"]] if name == "ablate-one" else []
            files = [f"results/tiny/{name}.{ending}" for ending in ["csv", "csv", "json", "json", "segments.csv.gz"]]
            files = [file for file in files if (folder / file).is_file()]
            self.add("result", "translator", files, command, *retest, *plots, *oracle, summary)
        model = "data/models/tiny/"
        sweep, dynamics = [*runs["ablate-one"], "--limit", "first:2"], [*runs["training-dynamics"], "--limit", "first:2"]
        self.add("checkpoint", "translator", [model + "model.safetensors"], sweep)
        self.add("checkpoint", "translator", [model + "epochs/2/model.safetensors"], dynamics)
        self.add("configuration", "translator", [model + "config.json", model + "settings.json"], sweep, dynamics)
        self.add("tokeniser", "translator", [model + "tokenizer.json"], sweep)
        self.add("TOML", "translator", ["tiny.toml"], sweep)

    def make_fresh(self):
        """Subjects that are still to be trained."""
        spec = subject("TRANSLATOR").replace("train = 900", "train = 90").replace("epochs = 4", "epochs = 1")
        self.folder("fresh", {"tiny.toml": spec})
        self.add("TOML", "fresh", ["tiny.toml"], ["train-subject", *QUIET])
        classifier = subject("CLASSIFIER").replace("epochs = 4", "epochs = 1")
        self.folder("fresh-classifier", {"tiny.toml": classifier, **reviews()})
        self.add("TOML", "fresh-classifier", ["tiny.toml"], ["train-subject", *QUIET])
        self.add("data", "fresh-classifier", ["data/reviews/train.tsv"], ["train-subject", *QUIET])

    def make_interrupted(self):
        """A sweep that was killed after some rows, and a training that was killed after its first epoch."""
        folder = self.base / "interrupted"
        shutil.copytree(self.base / "translator", folder, ignore=shutil.ignore_patterns("results", "epochs"))
        sweep = ["ablate-one", *TESTED]
        growing = folder / "results/tiny/ablate-one.partial.csv"
        self.kill_when(lambda: growing.is_file() and growing.read_bytes().count(b"\n") > 3, folder, sweep)
        files = sorted(str(path.relative_to(folder)) for path in growing.parent.glob("ablate-one.partial*") if path.stat().st_size)
        self.add("result", "interrupted", files * 2, sweep, ["retest", "results/tiny/ablate-one.csv"])

        folder = self.folder("training", {"tiny.toml": subject("TRANSLATOR")})
        partial = folder / "data/models/tiny.partial"
        self.kill_when(lambda: (partial / "epochs/1").exists(), folder, ["train-subject", *QUIET])
        for path in sorted(path for path in partial.rglob("*") if path.is_file() and path.stat().st_size):
            kinds = {"tokenizer.json": "tokeniser", ".safetensors": "checkpoint", ".json": "configuration", ".csv": "result"}
            kind = kinds.get(path.name) or kinds.get(path.suffix) or "checkpoint"
            self.add(kind, "training", [str(path.relative_to(folder))], ["train-subject", *QUIET])

    def kill_when(self, is_reached, folder, command):
        for _ in range(20):
            child = subprocess.Popen([self.binaries / command[0], *command[1:]], cwd=folder, env=environment(self.base),
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while child.poll() is None and not is_reached():
                time.sleep(0.002)
            if child.poll() is None:
                child.kill()
                child.wait()
                return
            for remains in ["results", "data/models/tiny"] if command[0] == "train-subject" else ["results"]:
                shutil.rmtree(folder / remains, ignore_errors=True)
        sys.exit(f"mutate.py: {command[0]} always ended before it could be interrupted")

    def make_mirror(self):
        """A data set that `fetch` takes from a folder."""
        text = b"A cat.\nA dog.\n"
        files = {"train.en.gz": gzip.compress(text, mtime=0), "notes.txt": b"Made up.\n"}
        sums = {"train.en.gz": sha256(text), "notes.txt": "unverified"}
        listed = "".join(f'"{name}" = "{sums[name]}"\n' for name in files)
        self.folder("mirror", {
            "sources.toml": '[toy]\ntitle = "A toy"\nelsewhere = "nowhere"\nlicence = "none"\nterms = "none"\n[toy.files]\n'
                            + listed + '\n[other]\ntitle = "Another"\npackage = "other==1.0"\nlicence = "none"\nterms = "none"\n'
                            'folder = "else"\ninside = "in/"\n[other.files]\n"a.tsv" = "unverified"\n',
            **{f"from/toy/{name}": content for name, content in files.items()},
        })
        fetch = ["fetch", "toy", "--mirror", "from", "--sources", "sources.toml", "--quiet"]
        self.run("mirror", *fetch)
        shutil.rmtree(self.base / "mirror/data")
        self.add("TOML", "mirror", ["sources.toml"], fetch, ["fetch", "--list", "--sources", "sources.toml"])
        self.add("data", "mirror", ["from/toy/train.en.gz", "from/toy/notes.txt"], fetch)


def plotting_options(drawing):
    return [] if drawing.startswith("table") else ["--format", "svg"]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def subject(name):
    """A subject that trains in a second, as the tests of commands have it."""
    source = (ROOT / "crates/test-support/src/lib.rs").read_text(encoding="utf-8")
    return re.search(rf'pub const {name}: &str = r#"\n(.*?)"#;', source, re.DOTALL).group(1)


def opinions(rows, seed):
    """Pairs of a review and whether more of its words praise."""
    rng = random.Random(seed)
    for _ in range(rows):
        words = [rng.choice(["lovely", "brilliant", "dull", "awful"]) for _ in range(rng.choice([3, 5]))]
        praise = sum(word in ("lovely", "brilliant") for word in words)
        yield " ".join([rng.choice(["film", "story", "music"]), *words]), "good" if 2 * praise > len(words) else "bad"


def table(rows, seed, separator="\t"):
    lines = [separator.join(["review", "verdict"]), *(separator.join(row) for row in opinions(rows, seed))]
    return "\n".join(lines) + "\n"


def reviews():
    return {f"data/reviews/{split}.tsv": table(rows, split) for split, rows in [("train", 200), ("dev", 20), ("test", 30)]}


def tables():
    lines = [json.dumps({"review": review, "verdict": verdict}) + "\n" for review, verdict in opinions(20, 2)]
    return {"data/test.tsv": table(20, 1), "data/test.jsonl": "".join(lines), "data/test.csv": table(20, 3, ","),
            "data/test.tsv.gz": gzip.compress(table(20, 4).encode(), mtime=0)}


# Cases


@dataclass(frozen=True)
class Case:
    """One damaged file and the command that reads it."""

    number: int
    target: Target
    command: list
    seed: str


@dataclass(frozen=True)
class Outcome:
    """What became of a case; `fault` is empty if all is well."""

    case: Case
    how: str
    end: str
    fault: str
    said: str


def cases(targets, arguments):
    """Kinds take turns, and within a kind its files and within those the commands."""
    by_kind = {kind: [target for target in targets if target.kind == kind] for kind in KINDS}
    for number in range(arguments.count):
        kind, turn = KINDS[number % len(KINDS)], number // len(KINDS)
        target = by_kind[kind][turn % len(by_kind[kind])]
        command = target.commands[turn // len(by_kind[kind]) % len(target.commands)]
        if arguments.kind in (None, kind) and arguments.case in (None, number):
            yield Case(number, target, command, f"{arguments.seed}:{number}")


def environment(base):
    own = {name: os.environ[name] for name in ["PATH", "LD_LIBRARY_PATH", "LIBTORCH"] if name in os.environ}
    return {**own, "HF_HOME": str(base / "no-hub"), "HF_HUB_OFFLINE": "1", "HOME": str(base), "RUST_BACKTRACE": "0"}


def execute(case, base, arguments):
    folder = Path(tempfile.mkdtemp(prefix=f"case-{case.number}-", dir=base))
    copy = folder / "work"
    shutil.copytree(base / case.target.folder, copy)
    rng = random.Random(case.seed)
    how = mutate(rng, copy / case.target.file)
    if rng.random() < 0.6:
        sign(copy / case.target.file)
    limited = ["sh", "-c", f'ulimit -v {arguments.memory << 20} && exec "$@"', "sh", str(arguments.binaries / case.command[0])]
    child = subprocess.Popen([*limited, *case.command[1:]], cwd=copy, env=environment(base), start_new_session=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        output, errors = child.communicate(timeout=arguments.seconds)
        fault = fault_of(child.returncode, output, errors)
        end = "read" if child.returncode == 0 else "refused"
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output, errors = child.communicate()
        # a sound description of a long training is no fault
        is_training = any((copy / "data/models").glob("tiny.partial/epochs/*")) or b"epoch" in errors
        fault = "" if is_training else f"no end after {arguments.seconds} s"
        end = "training"
    if not (fault and arguments.keep):
        shutil.rmtree(folder, ignore_errors=True)
    return Outcome(case, how, end, fault, errors.decode(errors="backslashreplace").strip())


def fault_of(code, output, errors):
    """What is wrong with how a command ended; empty if nothing is."""
    if code not in (0, 1, 2):
        return f"exit code {code}"
    try:
        said, shown = errors.decode(), output.decode()
    except UnicodeDecodeError:
        return "output is not UTF-8"
    for text in (said, shown):
        obeyed = [letter for letter in text if letter not in "\n\t" and unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")]
        obeyed += [letter for letter in text if letter in "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"]
        if obeyed:
            return f"control character {obeyed[0]!r} in its output"
    lines = said.splitlines()
    named = [line for line in lines if line.startswith("error: ")]
    if code != 0 and (len(named) != 1 or not lines[-1].startswith("error: ")):
        return "not one line that names the error"
    if any(len(line) > LONGEST_LINE for line in lines):
        return f"a message of {max(map(len, lines))} characters"
    return ""


def report(outcome):
    case = outcome.case
    print(f"case {case.number}: {outcome.fault}\n  {outcome.how} of {case.target.folder}/{case.target.file}\n"
          f"  {' '.join(case.command)}", flush=True)
    for line in outcome.said.splitlines()[-4:]:
        print(f"  | {line[:300]!r}", flush=True)


def sound_folders(base, binaries):
    """The files to damage; the folders are made if they are not there."""
    listed = base / "targets.json"
    if listed.is_file():
        return [Target(**target) for target in json.loads(listed.read_text(encoding="utf-8"))]
    targets = Workshop(base, binaries).make()
    listed.write_text(json.dumps([vars(target) for target in targets]), encoding="utf-8")
    return targets


def summary(outcomes):
    print(f"{'kind of file':<15}{'cases':>7}{'read':>7}{'refused':>9}{'training':>10}{'faults':>8}")
    groups = [(kind, [outcome for outcome in outcomes if outcome.case.target.kind == kind]) for kind in KINDS]
    for name, group in [*groups, ("all", outcomes)]:
        ends = Counter("fault" if outcome.fault else outcome.end for outcome in group)
        print(f"{name:<15}{len(group):>7}{ends['read']:>7}{ends['refused']:>9}{ends['training']:>10}{ends['fault']:>8}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, metavar="N", help="cases, 2000 if absent")
    parser.add_argument("--seed", type=int, default=1, help="seed of all choices, 1 if absent")
    parser.add_argument("--case", type=int, metavar="N", help="this case alone")
    parser.add_argument("--kind", choices=KINDS, help="cases of this kind alone")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="commands at a time, 2 if absent")
    parser.add_argument("--seconds", type=float, default=20, metavar="S", help="time limit of a command, 20 if absent")
    parser.add_argument("--memory", type=int, default=8, metavar="GIB", help="address space of a command, 8 GiB if absent")
    parser.add_argument("--binaries", type=Path, default=ROOT / "target/release", metavar="DIR", help="folder of the commands")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the sound folders in DIR, to be used again, and those of faults")
    return parser.parse_args()


def main():
    arguments = parse()
    arguments.binaries = arguments.binaries.resolve()
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        base = (arguments.keep or Path(temporary)).resolve()
        targets = sound_folders(base, arguments.binaries)
        outcomes = []
        with ThreadPoolExecutor(arguments.jobs) as pool:
            try:
                for outcome in pool.map(lambda case: execute(case, base, arguments), cases(targets, arguments)):
                    outcomes.append(outcome)
                    if outcome.fault:
                        report(outcome)
            except KeyboardInterrupt:
                print("interrupted: the table has the cases so far", flush=True)
                pool.shutdown(cancel_futures=True)
    summary(outcomes)
    sys.exit(1 if any(outcome.fault for outcome in outcomes) else 0)


if __name__ == "__main__":
    main()
