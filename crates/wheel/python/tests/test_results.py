"""Tests of tables of results, on the committed ones and on made-up ones; with pandas and without."""
import gzip
import hashlib
import json
import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock

PACKAGES = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PACKAGES))
import headcount  # noqa: E402

columns = headcount.columns  # as the help names it, without an import
RESULTS = PACKAGES.parents[2] / "results"
VERDICTS = "needed", "dispensable", "undecided"
HEADER = "attention,layer,head,metric,base_score,score,score_delta,delta_low,delta_high,p_value"


def rows_of(table):
    """The rows of a table, None for what is not there."""
    if isinstance(table, list):
        return table
    records = table.astype(object).to_dict("records")
    return [{name: None if cell != cell else cell for name, cell in row.items()} for row in records]


def counts(rows):
    return [sum(row["verdict"] == verdict for row in rows) for verdict in VERDICTS]


class Committed(unittest.TestCase):
    def test_verdicts_are_those_of_the_summary(self):
        limit = r"(?:, (first \d+|\d+) segments(?: at random, seed 1)?)?"
        data = rf"\| ([a-z0-9-]+)(?: \([^)]*\))?, ([^|,]*?){limit} \|"
        pattern = data + r" (\S+) \|[^|]*\| \d+ \|[^|]*\| (\d+) \| (\d+) \| (\d+) \|"
        section = (RESULTS / "summary.md").read_text().split("\n## ")[1]
        found = re.findall(pattern, section)
        self.assertEqual(len(found), len(re.findall(r"^\| (?!model |M19|---)", section, re.M)))
        for subject, split, limit, attention, *expected in found:
            tables = headcount.results(RESULTS / subject)
            which = f"-sample-{limit}" if limit.isdecimal() else f"-{limit}".rstrip("-").replace(" ", "-")
            name = next(name for name in (f"ablate-one-{split}{which}", f"ablate-one{which}") if name in tables)
            rows = rows_of(tables[name])
            of_type = [row for row in rows if row["attention"] == attention]
            self.assertEqual(counts(of_type), [int(count) for count in expected], (subject, attention))

    def test_all_results_can_be_read(self):
        every = headcount.results(RESULTS)
        self.assertGreater(len([*every.values()]), 150)

    def test_a_frame_has_the_cells_of_the_list(self):
        if columns.pandas is None:
            self.skipTest("there is no pandas")
        every = headcount.results(RESULTS / "demo-language")
        for name, table in every.items():
            with unittest.mock.patch.object(columns, "pandas", None):
                self.assertEqual(rows_of(table), every[name], name)

    def test_segments_add_up_to_their_sums(self):
        lines = rows_of(headcount.segments(RESULTS / "demo-inference" / "ablate-one.csv"))
        blocks = {}
        for line in lines:
            blocks.setdefault(line["row"], {})[line["segment"]] = line["predicted"]
        self.assertEqual((len(blocks), len(blocks["base"])), (33, 2001))
        for name, block in blocks.items():
            self.assertEqual(sum({**blocks["base"], **block, 0: 0}.values()), block[0], name)


class Rule(unittest.TestCase):
    """The cases of `crates/records/src/verdicts.rs`."""

    def check(self, metric, base, cases):
        for (low, high), expected in cases.items():
            self.assertEqual(columns.judge(2.0, metric, base, 0.0, low, high)[-1], expected, (metric, base, low, high))

    def test_a_verdict_reads_the_whole_interval_beside_the_margin(self):
        self.check("bleu", 50.0, {(-0.99, 3.0): "dispensable", (-1.0, 0.0): "undecided", (-3.0, -1.0): "undecided",
                                  (-3.0, -1.01): "needed", (None, None): None})
        self.check("bleu", -50.0, {(-0.9, 0.0): "dispensable"})
        self.check("bleu", 0.0, {(-0.9, 0.0): "undecided"})

    def test_more_nats_are_a_loss_and_their_margin_is_of_the_perplexity(self):
        self.check("nats", 50.0, {(0.01, 0.0197): "dispensable", (0.01, 0.0199): "undecided", (0.0199, 0.9): "needed",
                                  (-6.0, -4.0): "dispensable"})


class MadeUp(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "größer als eins"
        self.csv = self.write("ablate-one.csv")

    def write(self, name, **signature):
        text = f"{HEADER}\nself,1,2,accuracy,80.0,70.0,-10.0,-12.0,-9.0,0.001\nself,1,3,accuracy,80.0,80.5,0.5,,,\n"
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        complete = {"rows": 2, "sha256": hashlib.sha256(text.encode()).hexdigest()}
        path.with_suffix(".json").write_text(json.dumps({"complete": complete, **signature}))
        return path

    def replaced(self, renamed):
        """The files of a run with --again that was killed after this many renames."""
        endings, states = (".segments.csv.gz", ".csv", ".json"), []
        for score in "70.0", "60.0":
            rows = f"{HEADER}\nself,1,2,accuracy,80.0,{score},-10.0,,,\n".encode()
            segments = gzip.compress(f"row,segment,right\nbase,0,{score}\n".encode(), mtime=0)
            sums = {"sha256": hashlib.sha256(rows).hexdigest(), "segments_sha256": hashlib.sha256(segments).hexdigest()}
            states.append([segments, rows, json.dumps({"complete": {"rows": 1, **sums}}).encode()])
        for place, ending in enumerate(endings):
            self.csv.with_suffix(ending).write_bytes(states[place < renamed][place])

    def test_old_and_new_files_of_a_run_that_was_killed_while_it_published_are_not_mixed(self):
        reads = [lambda: rows_of(headcount.results(self.folder)["ablate-one"])[0]["score"],
                 lambda: rows_of(headcount.segments(self.csv))[0]["right"]]
        for renamed, expected in enumerate([[70.0, 70.0], [70.0, None], [None, None], [60.0, 60.0]]):
            self.replaced(renamed)
            for read, score in zip(reads, expected):
                if score is None:
                    self.assertRegex(self.refusal(read), "torn or was edited: its checksum differs from the signature's")
                else:
                    self.assertEqual(read(), score, renamed)

    def test_columns_are_those_of_the_file_and_what_they_say(self):
        needed, untested = rows_of(headcount.results(self.folder)["ablate-one"])
        self.assertEqual(list(needed), ["name", *HEADER.split(","), "loss", "loss_low", "loss_high", "margin", "verdict"])
        self.assertEqual([needed[name] for name in ("name", "layer", "head", "score")], ["self:1:2", 1, 2, 70.0])
        self.assertEqual([*needed.values()][-5:], [10.0, 9.0, 12.0, 1.6, "needed"])
        self.assertEqual([*untested.values()][-5:], [-0.5, None, None, 1.6, None])
        self.assertIsNone(untested["p_value"])

    def test_the_margin_is_that_of_the_signature(self):
        self.write("ablate-one.csv", testing={"margin_percent": 12.5})
        row = rows_of(headcount.results(self.folder)["ablate-one"])[0]
        self.assertEqual((row["margin"], row["verdict"]), (10.0, "undecided"))

    def test_other_trainings_have_names_of_their_own_and_what_is_unfinished_is_left_out(self):
        for name in ["replicate-2/ablate-one.csv", "importance.partial.csv", "iterative-prune.shard-1-of-2.csv"]:
            self.write(name)
        found = headcount.results(str(self.folder))
        self.assertEqual(list(found), ["ablate-one", "replicate-2/ablate-one"])
        self.assertIsNone(found.get("importance"))
        with self.assertRaisesRegex(KeyError, "no finished `importance` in .*größer als eins`: ablate-one, "):
            found["importance"]

    def refusal(self, read):
        with self.assertRaises(headcount.ResultError) as raised:
            read()
        self.assertNotIn("\n", str(raised.exception))
        return str(raised.exception)

    def test_what_cannot_be_read_is_refused_in_a_sentence(self):
        read = lambda: headcount.results(self.folder)["ablate-one"]
        self.assertRegex(self.refusal(lambda: headcount.results(self.folder / "x")), "x` is not a folder")
        self.assertRegex(self.refusal(lambda: headcount.segments(self.csv)), "no statistics of segments")
        self.assertRegex(self.refusal(lambda: headcount.segments(self.folder / "x.csv")), "x.csv` does not exist")
        self.write("ablate-one.csv", part={"shard": "1/2"})
        self.assertRegex(self.refusal(read), "json` is not the signature of finished results")
        self.write("ablate-one.csv", complete=None)
        self.assertRegex(self.refusal(read), "is not the signature of finished results")
        self.write("ablate-one.csv").write_text(self.csv.read_text()[:-20])
        self.assertRegex(self.refusal(read), "ablate-one.csv` is torn or was edited")
        self.csv.with_suffix(".json").unlink()
        self.assertRegex(self.refusal(read), "ablate-one.csv` has no signature file `ablate-one.json` next to it")
        self.csv.rename(self.folder / "ablate-one.shard-1-of-2.csv")
        refusal = self.refusal(lambda: headcount.results(self.folder))
        self.assertRegex(refusal, "no finished results, only .*shard.*`headcount merge` joins them")
