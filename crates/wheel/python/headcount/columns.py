"""Result files as tables: a pandas frame, or a list of dicts if pandas is not installed.

The columns are those of the CSV file, which `results/FILES.md` explains, and
- `name`: the head, such as `self:2:4`, counted from 1;
- `loss`, `loss_low`, `loss_high`: the loss from masking, with its 95% interval, in the unit of `metric`; above 0 the score gets worse;
- `margin`: the largest acceptable loss, in the same unit;
- `verdict`: `needed`, the whole interval is above the margin; `dispensable`, below it; otherwise `undecided`.
"""
import csv
import io
import math

try:
    import pandas
except ImportError:
    pandas = None

COMPARED = "metric", "base_score", "score_delta", "delta_low", "delta_high"


def columns_of(text):
    """The columns of a CSV file: numbers where all cells are numbers, None where a cell is empty."""
    header, *rows = csv.reader(io.StringIO(text.decode("utf-8")))
    return {name: typed([row[place] for row in rows]) for place, name in enumerate(header)}


def typed(cells):
    for convert in int, float, {"true": True, "false": False}.__getitem__, str:
        try:
            return [convert(cell) if cell else None for cell in cells]
        except (KeyError, ValueError):
            continue


def with_names(columns):
    if not {"attention", "layer", "head"} <= columns.keys():
        return columns
    places = zip(columns["attention"], columns["layer"], columns["head"])
    return {"name": [":".join(map(str, place)) for place in places], **columns}


def with_verdicts(columns, percent):
    if not set(COMPARED) <= columns.keys():  # such as scores that nothing is compared with
        return columns
    judged = zip(*(judge(percent, *cells) for cells in zip(*(columns[name] for name in COMPARED))))
    return {**columns, **dict(zip(("loss", "loss_low", "loss_high", "margin", "verdict"), map(list, judged)))}


LOWER_IS_BETTER = {"nats", "ter"}


def judge(percent, metric, base, delta, low, high):
    """Loss, interval, margin and verdict: the rule of `crates/records/src/verdicts.rs`."""
    is_lower_better = metric in LOWER_IS_BETTER
    # the margin of nats is that of the perplexity
    margin = math.log1p(percent / 100) if metric == "nats" else abs(base) * percent / 100
    loss = delta if is_lower_better else 0.0 - delta
    if low is None or high is None:
        return loss, None, None, margin, None
    low, high = (low, high) if is_lower_better else (-high, -low)
    return loss, low, high, margin, "needed" if low > margin else "dispensable" if high < margin else "undecided"


def as_table(columns):
    if pandas is None:
        return [dict(zip(columns, cells)) for cells in zip(*columns.values())]
    cells_of = lambda name: [math.nan if cell is None else cell for cell in columns[name]]
    return pandas.DataFrame({name: cells_of(name) for name in columns})
