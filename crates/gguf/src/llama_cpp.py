"""Runs a language model and what export-model makes of it in llama.cpp: speed, key-value cache, file size and perplexity.

Every file of iterative-prune in the results of the subject gives models: by importance and by whole modules, at the shares of
--percent at which it has steps; under --ablation mean at the largest of them, with the means folded into biases. All are
written as f16 and timed in turn on two threads, with flash attention, without which the cache of values is as wide in all layers.

Intervals are percentiles of 9,999 bootstrap resamples: of rounds for speed, of windows of the text for nats per token. With 8
normally distributed values they cover 89% instead of 95%. Needs llama-cpp-python and numpy in the Python that PYTHON names.
"""
import argparse
import csv
import ctypes
import hashlib
import json
import os
import platform
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

THREADS = 2
PROMPT, GENERATED = 512, 64  # tokens of a prompt, and tokens after it, one at a time
CONTEXT = 1024  # tokens that the cache has room for
WINDOW = 512  # tokens of a text that are read at once, of which all but the first are predicted
RESAMPLES = 9999

# Of the program whose child this is
VERSION, HEADCOUNT, COMMIT = (os.environ.get(name) for name in ("HEADCOUNT_VERSION", "HEADCOUNT", "HEADCOUNT_COMMIT"))


class Fault(Exception):
    """Why nothing can be measured."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def curves(folder):
    """The pruning curves of a subject: a name, the file, the curve in it, and the identity of its signature."""
    for path in sorted(folder.glob("iterative-prune*.json")):
        signature = json.loads(path.read_text())
        identity = signature["identity"]
        kind = identity["arguments"].get("ablation", "zero")
        if not signature.get("complete") or kind not in ("zero", "mean") or identity["precision"] != "f32":
            continue
        file = path.with_suffix(".csv")
        found = {f"{row['attention']}/{row['order']}" for row in steps(file)}
        for curve in ("all/importance", "all/modules"):
            if curve in found:
                name = curve.removeprefix("all/")
                name += " by group" if identity["arguments"].get("unit") == "group" else ""
                yield name + (", folded" if kind == "mean" else ""), file, curve, identity


def steps(file):
    with open(file, newline="") as rows:
        return [row for row in csv.DictReader(rows) if row["complement"] == "false"]


def run(*arguments):
    done = subprocess.run([HEADCOUNT, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise Fault((done.stderr.strip().splitlines() or [f"{arguments[0]} ended with {done.returncode}"])[-1])


def exported(args, work):
    """A row for each model, the full model first, with its GGUF file; and the files of the curves that they are of."""
    rows, files, identity = [], [], None
    for name, file, curve, identity in curves(args.folder):
        folds = name.endswith("folded")
        shares = [max(args.percent)] if folds else args.percent  # each time means are computed, which takes longest
        for percent in shares if rows else [0, *shares]:
            at = {int(row["masked"]): int(row["heads"]) for row in steps(file) if f"{row['attention']}/{row['order']}" == curve}
            masked = -(-max(at.values()) * percent // 100)  # as export-model rounds
            if masked not in at:
                say(f"{name}: `{file.name}` has no step at {percent}%")
                continue
            if (name, masked) in {(row["removal"], row["removed"]) for row in rows}:
                say(f"{name}: `{file.name}` is left out at {percent}%, where another file is taken")
                continue
            folder, model = work / "model", work / f"{len(rows)}.gguf"
            options = ["--from", file, "--curve", curve, "--percent", percent, "--export-gguf", model, "--data", args.data]
            run("export-model", args.subject, folder, "--results", args.results, *options, *["--fold"] * folds)
            shutil.rmtree(folder)
            rows.append(dict(removal=name if masked else "nothing", removed=masked, heads=at[masked], model=model))
            files.append(file)
    if len(rows) < 2:
        percents = ", ".join(map(str, args.percent))
        raise Fault(f"no curve in `{args.folder}` has a step at {percents}%: run iterative-prune first")
    return sorted(rows, key=lambda row: (row["removed"] > 0, row["removal"], row["removed"])), files, identity


class Model:
    """A file in llama.cpp, with the size of its cache as llama.cpp reports it."""

    def __init__(self, path, all_logits):
        SAID.clear()
        self.model = llama_cpp.Llama(
            str(path), n_ctx=CONTEXT, n_batch=PROMPT, n_ubatch=PROMPT, n_threads=THREADS, n_threads_batch=THREADS,
            n_gpu_layers=0, flash_attn=True, logits_all=all_logits, verbose=False,
        )
        sizes = re.findall(r"kv_cache\w*: size = +([\d.]+) MiB", "".join(SAID))
        if not sizes:
            raise Fault("llama.cpp does not report the size of its cache in a known format")
        self.cache_bytes = round(sum(map(float, sizes)) * 2**20)

    def nats(self, windows):
        """Of each window, the mean over its predicted tokens."""
        def mean(ids):
            self.model.reset()
            self.model.eval(ids)
            logits = np.array(self.model.scores[: len(ids) - 1], dtype=np.float64)
            top = logits.max(axis=1)
            normalisers = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
            return float((normalisers - logits[np.arange(len(ids) - 1), ids[1:]]).mean())

        return np.array([mean(ids) for ids in windows])

    def seconds(self, ids):
        """Of reading a prompt, and of what follows it in the text, token by token."""
        self.model.reset()
        begin = time.perf_counter()
        self.model.eval(ids[:PROMPT])
        read = time.perf_counter()
        for token in ids[PROMPT : PROMPT + GENERATED]:
            self.model.eval([token])
        return read - begin, time.perf_counter() - read


def interval(values, summary):
    """The summary of all, and its 95 % bootstrap interval."""
    draws = np.random.default_rng(1).integers(len(values), size=(RESAMPLES, len(values)))
    low, high = np.quantile(summary(values[draws]), [0.025, 0.975])
    return float(summary(values[None])[0]), float(low), float(high)


def measure(args, rows, text):
    vocabulary = llama_cpp.Llama(str(rows[0]["model"]), vocab_only=True, verbose=False)
    ids = vocabulary.tokenize(text.encode(), add_bos=False)
    begin = [vocabulary.token_bos()] if vocabulary.metadata.get("tokenizer.ggml.add_bos_token") == "true" else []
    if len(ids) < args.windows * WINDOW or len(ids) < PROMPT + GENERATED:
        raise Fault(f"`{args.text}` has {len(ids)} tokens: {args.windows} windows of {WINDOW} need more")
    # spread over the text, whose parts differ
    starts = [place * (len(ids) - WINDOW) // (args.windows - 1) for place in range(args.windows)]
    windows = [(begin + ids[start : start + WINDOW])[:WINDOW] for start in starts]
    for row in rows:
        model = Model(row["model"], True)
        row |= dict(nats=model.nats(windows), cache_bytes=model.cache_bytes, file_bytes=row["model"].stat().st_size)
        model.model.close()
        say(f"{row['removal']}, {row['removed']} heads: {row['nats'].mean():.3f} nats")
    models = [Model(row["model"], False) for row in rows]
    seconds, turns = np.empty((args.rounds + 1, len(rows), 2)), random.Random(1)
    for round in range(args.rounds + 1):  # the first warms up
        for turn in turns.sample(range(len(rows)), len(rows)):
            seconds[round, turn] = models[turn].seconds(ids)
        say(f"round {round} of {args.rounds}")
    return windows, seconds[1:]


def columns(rows, windows, seconds):
    """The rows of the CSV file."""
    mean, geometric = lambda drawn: drawn.mean(axis=1), lambda drawn: np.exp(np.log(drawn).mean(axis=1))
    for place, row in enumerate(rows):
        delta, low, high = interval(row["nats"] - rows[0]["nats"], mean)
        line = {name: row[name] for name in ("removal", "removed", "heads", "file_bytes", "cache_bytes")}
        line |= dict(cache_tokens=CONTEXT, predictions=len(windows) * (WINDOW - 1), nats=float(row["nats"].mean()))
        line |= dict(nats_delta=delta, delta_low=low, delta_high=high, rounds=len(seconds))
        for stage, (name, tokens) in enumerate((("prompt", PROMPT), ("generated", GENERATED))):
            ratio, low, high = interval(seconds[:, 0, stage] / seconds[:, place, stage], geometric)
            line[f"{name}_per_second"] = float((tokens / seconds[:, place, stage]).mean())
            line |= {f"{name}_ratio": ratio, f"{name}_ratio_low": low, f"{name}_ratio_high": high}
        yield line


def git(*arguments):
    done = subprocess.run(["git", *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def provenance():
    """The run that starts now, as signatures tell it."""
    changed = "" if COMMIT else git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!results")
    return {
        "command": ["llama-cpp", *(Path(word).name if word.startswith("/") else word for word in sys.argv[1:])], "version": VERSION,
        "commit": COMMIT or git("rev-parse", "HEAD"), "modified": None if changed is None else bool(changed),
        "libraries": {"llama-cpp-python": llama_cpp.__version__}, "device": "cpu", "threads": THREADS,
        "platform": f"linux {platform.machine()}", "started_unix_seconds": int(time.time()),
    }


def write(args, path, lines, files, identity, run):
    """The rows, and then the signature that all results have."""
    about = {
        "experiment": "llama-cpp", "subject": args.folder.name, "split": args.text.stem, "limit": None,
        "arguments": {
            "task": identity["arguments"]["task"], "window": WINDOW, "prompt": PROMPT, "generated": GENERATED,
            "flash_attention": True, **options(args),
        },
        "seed": 1, "precision": "f16", "metric": "nats", "weights": identity["weights"],
        "data": {file.name: sha256(file) for file in [args.text, *files]},
    }
    partial = path.with_suffix(".csv.partial")
    with open(partial, "w", newline="") as file:
        writer = csv.DictWriter(file, lines[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    complete = {"rows": len(lines), "sha256": sha256(partial)}
    run["duration_seconds"] = time.time() - run["started_unix_seconds"]
    signed = path.with_suffix(".json.partial")
    signed.write_text(json.dumps({"identity": about, "runs": [run], "complete": complete}, indent=2) + "\n")
    os.replace(partial, path)
    os.replace(signed, path.with_suffix(".json"))
    print(path)


def options(args):
    """What tells two measurements of one model on one text apart."""
    return {"percent": args.percent, "windows": args.windows, "rounds": args.rounds}


def is_of(result, args):
    """Whether these results were measured with the same options."""
    beside = result.with_suffix(".json")
    identity = json.loads(beside.read_text())["identity"] if beside.exists() else {}
    return identity.get("split") == args.text.stem and options(args).items() <= identity["arguments"].items()


def shares(text):
    found = [int(word) for word in text.split(",")]
    if not all(1 <= share <= 99 for share in found):
        raise ValueError
    return found


def main():
    parser = argparse.ArgumentParser("llama-cpp", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"llama-cpp {VERSION}")
    parser.add_argument("subject", help="name or file of a Llama, Mistral or Qwen2 with results of iterative-prune")
    parser.add_argument("--text", type=Path, help="text whose perplexity is measured (wikitext2/wiki.test.raw below --data)")
    parser.add_argument("--percent", type=shares, default=[10, 20, 30, 50], help="shares of heads to remove (10,20,30,50)")
    parser.add_argument("--windows", type=int, default=8, help=f"windows of {WINDOW} tokens, spread over the text (8)")
    parser.add_argument("--rounds", type=int, default=10, help="timed rounds over all models (10)")
    parser.add_argument("--again", action="store_true", help="measure again although results exist")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--data", type=Path, default=Path("data"))
    args = parser.parse_args()
    if min(args.windows, args.rounds) < 2:
        parser.error("an interval needs at least 2 windows and 2 rounds")
    args.folder = args.results / Path(args.subject).name.removesuffix(".toml")
    result = args.folder / "llama-cpp.csv"
    args.text, run = args.text or args.data / "wikitext2" / "wiki.test.raw", provenance()
    if result.exists() and not args.again:
        if not is_of(result, args):
            raise Fault(f"`{result}` was measured with other options, or has no signature: --again replaces it")
        say(f"`{result}` exists already: --again measures it again")
        return print(result)
    if not args.text.exists():
        raise Fault(f"`{args.text}` does not exist: fetch wikitext2, or name another text with --text")
    text = args.text.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        rows, files, identity = exported(args, Path(folder))
        windows, seconds = measure(args, rows, text)
    write(args, result, list(columns(rows, windows, seconds)), files, identity, run)


if __name__ == "__main__":
    try:
        import llama_cpp
        import numpy as np
    except ImportError as error:
        if not {"--version", "--help", "-h"} & set(sys.argv):
            sys.exit(f"llama-cpp: {error}: install llama-cpp-python and numpy, or name another Python by PYTHON")
    else:
        # outlives all models, which llama.cpp reports on when it frees them
        SAID = []
        LISTENER = llama_cpp.llama_log_callback(lambda _, text, __: SAID.append(text.decode(errors="replace")))
        llama_cpp.llama_log_set(LISTENER, ctypes.c_void_p(0))
    try:
        main()
    except (Fault, OSError, ValueError, RuntimeError, KeyError) as fault:
        sys.exit(f"llama-cpp: {fault}")
    except KeyboardInterrupt:
        sys.exit(130)
