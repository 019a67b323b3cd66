//! Numbers in the prose of the pages, computed from `results/`: templates have holes, `{together minilm-mnli}`, for the numbers that
//! [`number`] computes.
#![expect(clippy::unwrap_used, reason = "a missing result should fail the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

use plotting::findings::ablation_kinds::KindContrast;
use plotting::findings::method_comparison::{MethodArea, Repaired};
use plotting::findings::pruning::median;
use plotting::findings::replicates::Needed;
use plotting::findings::segments::stored;
use plotting::findings::source::experiment;
use plotting::findings::{
    Ablations, Adjustment, Contrasts, Criterion, Folders, Gates, Judge, Kinds, LeftOut, Methods, Replicates,
    ResultFile, Results, Retrained, Source,
};
use records::{AblationRow, Attention, CurveRow, Method, TestedRow as _, Verdicts};
use significance::Replayed;
use stats::family::Comparison;
use stats::reliability::{SweepSegments, ceiling, split_half};
use stats::replicates::{Agreement, Heterogeneity};
use stats::sequential::Spending;
use words::{fixed, signed};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn folders() -> Folders {
    Folders { results: root().join("results"), experiments: root().join("experiments") }
}

struct Row(BTreeMap<String, String>);

impl Row {
    fn text(&self, column: &str) -> &str {
        &self.0[column]
    }

    /// Returns a number, or what a form such as `kept:score_delta` makes of it.
    fn number(&self, column: &str) -> f64 {
        let Some((form, column)) = column.split_once(':') else {
            return self.text(column).parse().unwrap_or(f64::NAN);
        };
        let value = self.number(column);
        match form {
            // compared with the full model; in nats, more is worse
            "lost" if self.is_nats() => value,
            "lost" => -value,
            "gained" => -self.number(&format!("lost:{column}")),
            // of the full model's score or, for nats, of its perplexity
            "percent-lost" if self.is_nats() => 100.0 * (value.exp() - 1.0),
            "percent-lost" => 100.0 * (-value / self.number("base_score")),
            "kept" => 100.0 * (self.number("base_score") + value) / self.number("base_score"),
            "perplexity" => value.exp(),
            "faster" => 100.0 * (value - 1.0),
            "percent" => 100.0 * value,
            "millions" => value / 1e6,
            _ => panic!("`{form}` is no form of a number"),
        }
    }

    fn head(&self) -> String {
        ["attention", "layer", "head"].map(|column| self.text(column)).join(":")
    }

    fn is_nats(&self) -> bool {
        self.text("metric") == "nats"
    }

    fn loss(&self) -> f64 {
        self.number("lost:score_delta")
    }

    /// Compares the 95% interval of the loss with a margin of 2%.
    fn verdict(&self) -> &'static str {
        let ends = ["delta_low", "delta_high"].map(|column| self.number(&format!("percent-lost:{column}")));
        let is_all = |holds: fn(f64) -> bool| ends.into_iter().all(holds);
        match (is_all(|loss| loss > 2.0), is_all(|loss| loss < 2.0)) {
            (true, _) => "needed",
            (_, true) => "dispensable",
            _ => "undecided",
        }
    }

    /// Returns the cell of a head in Table 1 as printed in a terminal.
    fn printed(&self, places: &str) -> String {
        let mark = match self.verdict() {
            "needed" => "!",
            "undecided" => "?",
            _ => " ",
        };
        let star = if self.is_significant() { "*" } else { " " };
        format!("  {mark}{}{star}", shown(self.number("score_delta"), places))
    }

    fn is_significant(&self) -> bool {
        self.number("p_value") < 0.01
    }

    fn is_dispensable(&self) -> bool {
        self.verdict() == "dispensable"
    }

    fn has_no_significant_loss(&self) -> bool {
        !(self.is_significant() && self.loss() > 0.0)
    }
}

/// Rounds to a number of decimals; `+2` adds a sign.
fn shown(value: f64, places: &str) -> String {
    let decimals = places.trim_start_matches('+').parse().unwrap();
    if places.starts_with('+') { signed(value, decimals) } else { fixed(value, decimals) }
}

fn rows(file: &str) -> Vec<Row> {
    let path = root().join("results").join(file).with_extension("csv");
    csv::Reader::from_path(path).unwrap().deserialize().map(|row| Row(row.unwrap())).collect()
}

/// Returns the sweep of a setup, or the sweep in a file.
fn sweep(subject: &str) -> Vec<Row> {
    if subject.contains('/') { rows(subject) } else { rows(&format!("{subject}/ablate-one")) }
}

/// Returns the rows whose columns have these values, such as `masked=39` or `epoch=last`; heads are named by `head=self:2:2`.
fn matching(file: &str, conditions: &[&str]) -> Vec<Row> {
    let all = rows(file);
    let last = all.last().map(|row| row.0.clone()).unwrap_or_default();
    let holds = |row: &Row, condition: &str| match condition.split_once('=').unwrap() {
        ("head", name) => row.head() == name,
        ("removal", name) => row.text("removal") == name.replace('-', " "),
        (column, "last") => row.text(column) == last[column],
        (column, value) => row.text(column) == value,
    };
    let is_it = |row: &Row| conditions.iter().all(|condition| holds(row, condition));
    all.into_iter().filter(is_it).collect()
}

fn find(file: &str, conditions: &[&str]) -> Row {
    matching(file, conditions).into_iter().next().unwrap()
}

fn count(rows: &[Row], holds: impl Fn(&Row) -> bool) -> String {
    rows.iter().filter(|row| holds(row)).count().to_string()
}

/// Computes a number from its kind, the setup or file, and decimals.
fn number(words: &[&str]) -> String {
    match *words {
        ["significant", subject, attention] => count(&family(subject, attention), Row::is_significant),
        [verdict @ ("needed" | "dispensable" | "undecided"), subject, attention] => {
            count(&family(subject, attention), |row| row.verdict() == verdict)
        }
        ["heads", subject, attention] => family(subject, attention).len().to_string(),
        ["rows", file, ref conditions @ ..] => matching(file, conditions).len().to_string(),
        ["layers", verdict, subject] => count(&best_heads(subject), |row| row.verdict() == verdict),
        ["layers-without-loss", subject] => count(&best_heads(subject), Row::has_no_significant_loss),
        ["needed-in-all", subject] => count(&sweep(subject), |row| row.verdict() == "needed"),
        ["significant-of-all", subject] => {
            let rows = sweep(subject);
            format!("{}/{}", count(&rows, Row::is_significant), rows.len())
        }
        ["significantly-better", file, attention] => {
            count(&family(file, attention), |row| row.is_significant() && row.loss() < 0.0)
        }
        ["together", subject] => share(subject, Row::is_dispensable),
        ["paper", subject] => share(subject, Row::has_no_significant_loss),
        ["noise", subject, other, ref without @ ..] => allowed_by_noise(subject, other, without),
        ["cell", file, column, places, ref conditions @ ..] => {
            shown(find(file, conditions).number(column), places)
        }
        [end @ ("least" | "greatest"), file, column, places, ref conditions @ ..] => {
            let of_two = if end == "least" { f64::min } else { f64::max };
            let rows = matching(file, conditions).into_iter();
            shown(rows.map(|row| row.number(column)).reduce(of_two).unwrap(), places)
        }
        ["rank", file, column, head] => {
            let of_head = find(file, &[&format!("head={head}")]).number(column);
            (1 + rows(file).iter().filter(|row| row.number(column) > of_head).count()).to_string()
        }
        ["row", file, layer, places] => {
            let heads = matching(file, &[&format!("layer={layer}")]).into_iter();
            heads.map(|row| row.printed(places)).collect::<String>().trim_end().to_owned()
        }
        ["trained", file, order, masked, places] => {
            let score = |masked: &str| {
                let conditions = [&format!("order={order}"), "repair=training", "complement=false", masked];
                find(file, &conditions).number("score")
            };
            shown(score("masked=0") - score(&format!("masked={masked}")), places)
        }
        ["shrunk", file, ref conditions @ ..] => {
            let [all, left] =
                [find(file, &["removed=0"]), find(file, conditions)].map(|row| row.number("cache_bytes"));
            fixed(100.0 * (1.0 - left / all), 0)
        }
        ["replay", what, file, bounds] => replayed(what, file, bounds),
        ["after", file, size] => after(file, size.parse().unwrap()),
        ["median-correlation", file, places] => shown(median_correlation(file), places),
        ["retrained", end, subject, masked, places] => {
            shown(end_of(end, retrained(subject, masked.parse().unwrap())), places)
        }
        ["margin", subject] => signed(-0.02 * sweep(subject)[0].number("base_score"), 2),
        ["keeps", method, subject, number, function] => kept(method, subject, number, function),
        [significance @ ("shown" | "unshown"), end, file, kept, one, other, sign, places] => {
            let (found, is_shown) = contrast(file, kept.parse().unwrap(), [one, other]);
            assert_eq!(is_shown, significance == "shown", "{words:?}");
            shown(end_of(end, signs(found, sign.parse().unwrap())), places)
        }
        ["runs", subject] => replicates(subject).0.sweeps.len().to_string(),
        ["in-runs", what, subject] => {
            let (found, judge) = replicates(subject);
            let heads = found.heads(Attention::SelfAttention, judge);
            let needed = Needed::of(&heads, found.sweeps.len());
            let compared = || found.comparisons().unwrap().remove(&Attention::SelfAttention).unwrap();
            match what {
                "some" => needed.in_some.to_string(),
                "all" => needed.in_all.to_string(),
                "undecided" => needed.undecided_in_some.to_string(),
                "dispensable" => needed.dispensable_in_some.to_string(),
                "differing" => {
                    let differs = |head: &&Heterogeneity| head.p_adjusted < 0.05;
                    compared().heterogeneity.iter().filter(differs).count().to_string()
                }
                _ => match compared().agreement.unwrap() {
                    Agreement::NoSignal => "no signal".to_owned(),
                    Agreement::Found { correlation, pairs, .. } => {
                        let ends = [f64::min, f64::max].map(|end| pairs.iter().copied().reduce(end).unwrap());
                        format!("{} ({} to {})", fixed(correlation, 2), fixed(ends[0], 2), fixed(ends[1], 2))
                    }
                },
            }
        }
        [verdict @ ("needed-fdr" | "needed-simultaneously"), file, attention] => {
            let (sweep, judge) = judged(file);
            let family = sweep.family(attention.parse().unwrap());
            let rows = family.iter().copied();
            let found = match verdict {
                "needed-fdr" => judge.verdicts_at_fdr(rows),
                _ => judge.verdicts_at_once(rows),
            };
            found.unwrap().needed.to_string()
        }
        ["costs-more-with", kind @ ("zero" | "mean"), p @ ("p" | "holm"), file] => {
            let (found, contrasts) = kinds(file);
            let metric = found.zero().metric();
            let of_p = |test: &Comparison| if p == "p" { test.p_value } else { test.p_adjusted };
            contrasts[0].counts(metric, 0.01, of_p)[usize::from(kind == "mean")].to_string()
        }
        ["area", file, order, repair] => {
            let area = area(file, order, repair).unwrap();
            let ends = area.area.interval.unwrap();
            let lost = [-area.area.value, -ends.high, -ends.low].map(|loss| fixed(loss, 2));
            format!("{} points ({} to {})", lost[0], lost[1], lost[2])
        }
        ["better-than-importance", side @ ("better" | "worse"), order] => {
            let sign = if side == "better" { 1.0 } else { -1.0 };
            METHODS.iter().filter(|file| area_over_importance(file, order) == Some(sign)).count().to_string()
        }
        ["compared-with-importance", order] => {
            METHODS.iter().filter(|file| area_over_importance(file, order).is_some()).count().to_string()
        }
        _ => panic!("nothing computes {words:?}"),
    }
}

fn end_of(end: &str, [point, low, high]: [f64; 3]) -> f64 {
    match end {
        "point" => point,
        "low" => low,
        _ => high,
    }
}

/// Multiplies a difference and its interval by 1 or -1.
fn signs([point, low, high]: [f64; 3], sign: f64) -> [f64; 3] {
    [sign * point, (sign * low).min(sign * high), (sign * low).max(sign * high)]
}

/// Files that compare criteria with importance, one per setup.
const METHODS: [&str; 5] = [
    "demo-translation/replicate-7/compare-methods",
    "demo-language/replicate-6/compare-methods",
    "demo-induction/compare-methods",
    "minilm-sst2/replicate-4/compare-methods",
    "smollm2-135m-instruct/compare-methods-first-150",
];

/// Areas of all criteria in each file, computed once since they take seconds.
static AREAS: LazyLock<BTreeMap<&str, Vec<MethodArea>>> = LazyLock::new(|| {
    let of = |file: &&'static str| {
        let methods = Methods::read(result_file(file, experiment::METHODS), &mut LeftOut::default()).unwrap();
        (*file, methods.compared(methods.scopes()[0]).unwrap().areas)
    };
    METHODS.iter().map(of).collect()
});

/// Returns the area of a criterion after a repair; `None` if it was not measured there.
fn area(file: &str, order: &str, repair: &str) -> Option<&'static MethodArea> {
    let is_it = |own: &&MethodArea| {
        let Repaired { repair: after, curve } = own.method;
        (curve.order.to_string(), curve.complement, after.to_string())
            == (order.to_owned(), false, repair.to_owned())
    };
    AREAS[file].iter().find(is_it)
}

/// 1 if a criterion without repair loses significantly less than importance over the whole curve, -1 if more, 0 if neither is shown.
fn area_over_importance(file: &str, order: &str) -> Option<f64> {
    let over = area(file, order, "none")?.over_importance.as_ref()?;
    let gain = if rows(file)[0].is_nats() { -over.value } else { over.value };
    Some(if over.p_value? < 0.01 { gain.signum() } else { 0.0 })
}

/// Returns a file of an experiment by its path in `results/` without the extension.
fn result_file(name: &str, experiment: &str) -> ResultFile {
    let Folders { results, experiments } = folders();
    Source::File { path: results.join(name).with_extension("csv"), experiments }.one(experiment).unwrap()
}

/// Returns the sweep in a file and its judge.
fn judged(file: &str) -> (Ablations, Judge) {
    let criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };
    let sweep = Ablations::read(result_file(file, experiment::SWEEP)).unwrap();
    let judge = sweep.judge(criterion);
    (sweep, judge)
}

/// Returns the kinds of ablation next to the sweep in a file, and their differences from zero ablation.
fn kinds(file: &str) -> (Kinds, Vec<KindContrast>) {
    let found = Kinds::read(result_file(file, experiment::SWEEP)).unwrap().unwrap();
    let contrasts = found.contrasts_with_zero().unwrap();
    (found, contrasts)
}

/// Returns the runs of a recipe with different seeds, and their judge.
fn replicates(subject: &str) -> (Replicates, Judge) {
    let criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };
    let file = Source::subject(&folders(), subject).one(experiment::SWEEP).unwrap();
    let found = Replicates::read(file, &mut LeftOut::default()).unwrap().unwrap();
    let judge = found.sweeps[0].judge(criterion);
    (found, judge)
}

/// Fills the holes of a sentence with numbers.
fn filled(sentence: &str) -> String {
    let mut parts = sentence.split('{');
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let (hole, rest) = part.split_once('}').unwrap();
        text += &(number(&hole.split(' ').collect::<Vec<_>>()) + rest);
    }
    text
}

/// Comparisons of ways to choose heads in each file, computed once.
static CONTRASTS: LazyLock<BTreeMap<&str, Contrasts>> = LazyLock::new(|| {
    let files = [
        "multi30k-en-fr/train-gates",
        "multi30k-en-fr/train-gates-all",
        "minilm-mnli/train-gates",
        "demo-language/train-gates",
        "demo-translation/train-gates",
    ];
    let of =
        |file| (file, Contrasts::read(Gates::read(result_file(file, experiment::GATES)).unwrap()).unwrap());
    files.map(of).into()
});

/// Returns the difference in score between two ways to choose heads, its interval, and whether it is significant.
fn contrast(file: &str, kept: usize, methods: [&str; 2]) -> ([f64; 3], bool) {
    let all = &CONTRASTS[file];
    let place = all.leaders.iter().position(|row| row.kept == kept).unwrap();
    let (_, compared) =
        all.measured.iter().find(|(contrast, _)| contrast.map(Method::name) == methods).unwrap();
    let found = compared[place].unwrap();
    let interval = found.interval.unwrap();
    ([found.delta, interval.low, interval.high], found.p_adjusted.unwrap() < 0.01)
}

/// Counts how many of the heads with a function a method keeps: `5 of 7`.
fn kept(method: &str, subject: &str, number: &str, function: &str) -> String {
    let conditions = [&format!("function={function}"), "holds=true"];
    let holding = matching(&format!("{subject}/head-functions"), &conditions);
    let heads: BTreeSet<String> = holding.iter().map(Row::head).collect();
    let row =
        find(&format!("{subject}/train-gates"), &[&format!("method={method}"), &format!("kept={number}")]);
    let kept = row.text("kept_heads").split('+').filter(|head| heads.contains(*head)).count();
    format!("{kept} of {}", heads.len())
}

/// Returns the file of a sweep; `significance-mrpc` is the one whose predictions are stored.
fn path_of(sweep: &str) -> PathBuf {
    match sweep {
        "significance-mrpc" => root().join("crates/significance/tests/minilm-mrpc/ablate-one-msr_test.csv"),
        _ => root().join("results").join(sweep).with_extension("csv"),
    }
}

/// Replays by sweep, bounds, and whether predictions help, computed once.
static REPLAYS: Mutex<BTreeMap<(String, String, bool), Replayed>> = Mutex::new(BTreeMap::new());

/// Replays a sweep as if heads left it once decided: segments, share of passes in percent, or `71 of 72` equal verdicts.
fn replayed(what: &str, sweep: &str, bounds: &str) -> String {
    let mut replays = REPLAYS.lock().unwrap();
    let key = (sweep.to_owned(), bounds.to_owned(), what == "helped");
    let found = replays.entry(key).or_insert_with(|| {
        let bounds = Spending::ALL.into_iter().find(|own| own.name() == bounds).unwrap();
        significance::replay(&path_of(sweep), bounds, what == "helped").unwrap().unwrap()
    });
    match what {
        "segments" => found.segments.to_string(),
        "equal" => format!("{} of {}", found.equal, found.heads),
        _ => fixed(100.0 * found.share, 0),
    }
}

/// Counts verdicts in a sweep that stops early, after the look at this many segments: `| 15 | 125 | 22 |`.
fn after(sweep: &str, size: usize) -> String {
    let (found, judge) = judged(sweep);
    let Verdicts { needed, dispensable, undecided } = found.verdicts_after(judge, size);
    format!("| {needed} | {dispensable} | {undecided} |")
}

/// Returns the median over heads of the correlation between effects and predictions.
fn median_correlation(sweep: &str) -> f64 {
    let rows: Vec<records::AblationRow> = records::read_complete(&path_of(sweep)).unwrap();
    let mut all: Vec<f64> = rows.iter().filter_map(|row| row.correlation).collect();
    all.sort_by(f64::total_cmp);
    median(&all).unwrap()
}

/// Returns the heads of one attention type, masked alone.
fn family(subject: &str, attention: &str) -> Vec<Row> {
    sweep(subject).into_iter().filter(|row| row.text("attention") == attention).collect()
}

/// Returns the percentage of all heads that can be masked by importance while each step satisfies `keeps`.
fn share(subject: &str, keeps: fn(&Row) -> bool) -> String {
    let conditions = ["attention=all", "order=importance", "complement=false"];
    let curve = matching(&format!("{subject}/iterative-prune"), &conditions).into_iter();
    let last = curve.filter(|row| row.number("masked") > 0.0).take_while(keeps).last();
    let share = last.map(|row| 100.0 * row.number("masked") / row.number("heads"));
    share.map_or("none".to_owned(), |share| format!("{}%", fixed(share, 0)))
}

/// Returns the best head of each layer, kept alone.
fn best_heads(subject: &str) -> Vec<Row> {
    let mut best: BTreeMap<String, Row> = BTreeMap::new();
    for row in rows(&format!("{subject}/ablate-all-but-one")) {
        let layer = format!("{}:{}", row.text("attention"), row.text("layer"));
        if best.get(&layer).is_none_or(|best| row.loss() < best.loss()) {
            best.insert(layer, row);
        }
    }
    best.into_values().collect()
}

/// Returns the loss of a retrained model compared with the one retrained with all heads, and its interval, by importance.
fn retrained(subject: &str, masked: usize) -> [f64; 3] {
    let file = Source::subject(&folders(), subject).one(experiment::RETRAINED).unwrap();
    let retrained = Retrained::read(file, &mut LeftOut::default()).unwrap();
    let mut steps = retrained.after.series.iter().flat_map(|series| series.runs.iter().flatten());
    let is_it = |row: &&CurveRow| row.masked == masked && !row.complement && row.order == "importance";
    let row = steps.find(|row| is_it(row)).unwrap();
    let found = row.tests();
    let interval = found.interval.unwrap();
    signs([found.delta, interval.low, interval.high], -row.direction().gain(1.0))
}

/// Returns the maximum r that the noise of the standard split and another one allows, except some heads: `0.69`.
fn allowed_by_noise(subject: &str, other: &str, without: &[&str]) -> String {
    let reliability = |split: &str| {
        let file = result_file(&format!("{subject}/{split}"), experiment::SWEEP);
        let results = Results::<AblationRow>::read(file).unwrap();
        let (base, masked) = stored(&results, || panic!("no segments of {subject}")).unwrap();
        let heads = results.rows.iter().map(|row| row.head_id().to_string()).zip(&masked);
        let is_kept = |(head, _): &(String, _)| !without.contains(&head.as_str());
        let variants: Vec<_> = heads.filter(is_kept).map(|(_, masked)| masked).collect();
        split_half(SweepSegments { base: &base, variants: &variants }, 100, 1).unwrap()
    };
    fixed(ceiling(reliability("ablate-one"), reliability(&format!("ablate-one-{other}"))).unwrap(), 2)
}

/// Compares a page with its template, filled by [`number`]; `GOLDEN=write cargo test -p plotting --test pages` writes the page.
fn check_template(template: &str, page: &str, layout: fn(&str) -> String) {
    let template = root().join("crates/plotting/tests/pages").join(template);
    let text = layout(&filled(&fs::read_to_string(template).unwrap()));
    let path = root().join(page);
    if std::env::var_os("GOLDEN").is_some_and(|value| value == "write") {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap(), text, "GOLDEN=write writes {page}");
}

#[test]
fn front_page_guide_and_page_on_gates_are_their_templates_filled() {
    check_template("readme.md", "README.md", str::to_owned);
    check_template("guide.md", "experiments/README.md", str::to_owned);
    check_template("voita.md", "results/voita.md", str::to_owned);
}

#[test]
fn pages_of_findings_and_on_sweeps_that_stop_are_their_templates_filled() {
    check_template("results.md", "results/README.md", wrapped);
    check_template("deciding.md", "results/deciding.md", wrapped);
}

/// Numbers in the template of the front page must be published ones or definitions.
#[test]
fn numbers_in_the_template_of_the_front_page_are_published_or_definitions() {
    const KNOWN: &str = "8 of 96|26 of 30 layers|20 to 60%|breaks down beyond 60%|r = 0.56, 0.68|from epoch 10 on|\
        NeurIPS 2019](https://arxiv.org/abs/1905.10650)|(2019)|(Marian, T5, BART, …)|\
        results/multi30k-en-fr/figures/heads.png|a margin, 2%|on 10 texts|2% of the score|x86-64|Python 3.10|Python 3.|\
        Table 1 then|the 95% interval|p < 0.01|SmolLM2 (135) and Gemma 3 (270), both with 4-bit weights|81% masked|\
        /18|/6|a gate of 1 keeps a head, 0 masks it|SmolLM2|SST-2";
    let template = fs::read_to_string(root().join("crates/plotting/tests/pages/readme.md")).unwrap();
    let outside: String = template.split("```").step_by(2).collect();
    let outside: String =
        outside.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest)).collect();
    let text = outside.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for known in KNOWN.split('|') {
        assert!(text.contains(known), "README.md does not have `{known}` any more");
        text = text.replace(known, "");
    }
    let numbers: Vec<&str> =
        text.split_whitespace().filter(|word| word.contains(|c: char| c.is_ascii_digit())).collect();
    assert!(numbers.is_empty(), "no command makes these numbers of README.md: {numbers:?}");
}

/// Wraps paragraphs after 132 characters, but not tables, headings and figures.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 132;
    let wrap = |paragraph: &str| {
        if paragraph.starts_with(['#', '|', '!', '-']) {
            return paragraph.trim_end().to_owned();
        }
        let mut lines = vec![String::new()];
        for word in paragraph.split_whitespace() {
            let line = lines.last_mut().unwrap();
            match line.chars().count() {
                0 => line.push_str(word),
                length if length + 1 + word.chars().count() <= WIDTH => *line += &format!(" {word}"),
                _ => lines.push(word.to_owned()),
            }
        }
        lines.join("\n")
    };
    text.trim_end().split("\n\n").map(wrap).collect::<Vec<_>>().join("\n\n") + "\n"
}

/// Claims that contain no number.
#[test]
fn words_of_the_pages_are_those_of_the_results() {
    for line in "
cell minilm-mnli/cross-domain-dev_matched-dev_mismatched_partial top_overlap 1 | 9.0 | nine of the ten costliest heads
rows demo-language/prune-and-retrain order=random masked=24 | 5 | random choices
least demo-language/prune-and-retrain score 3 order=random masked=24 | 2.562 | the second choice
greatest demo-language/prune-and-retrain score 3 order=random masked=24 | 2.574 | the fourth choice
layers dispensable minilm-sst2 | 6 | all six layers
dispensable minilm-sst2 self | 72 | all heads are dispensable one by one
dispensable demo-language self | 32 | all heads
dispensable multi30k-en-fr enc-enc | 48 | all heads
rows demo-induction/ablate-one layer=2 | 8 | all heads of layer 2
rows demo-induction/named-heads function=induction layer=2 | 8 | their shares
least demo-induction/named-heads share 2 function=induction layer=2 | 0.63 | all are induction heads
runs minilm-mrpc | 3 | three runs
runs minilm-cola | 3 | three runs
in-runs differing minilm-mrpc | 0 | no head differs in another run
in-runs differing minilm-cola | 0 | no head differs in another run
in-runs dispensable minilm-mrpc | 0 | no head is dispensable in another run
in-runs dispensable minilm-cola | 0 | no head is dispensable in another run
cell smollm2-135m-instruct/compare-methods-first-150 lost:score_delta 2 order=fisher repair=none complement=false masked=68 | 0.75 | by Fisher
cell smollm2-135m-instruct/compare-methods-first-150 lost:score_delta 2 order=modules-by-similarity repair=none complement=false masked=68 | 0.75 | or similar modules
cell smollm2-135m-instruct/llama-cpp perplexity:nats_delta 0 removal=importance-by-group removed=135 | 10 | ten times the perplexity
cell minilm-mrpc/head-functions percent:share 0 head=self:1:10 detail=two-rarest | 51 | L1H10 in the third task, between the others
keeps importance minilm-sst2 18 syntactic | 4 of 7 | importance keeps four
rank minilm-mnli/relevance relevance self:4:10 | 6 | sixth-largest
"
    .trim()
    .lines()
    {
        let [hole, expected, claim]: [&str; 3] = line.split(" | ").collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(number(&hole.split(' ').collect::<Vec<_>>()), expected, "{claim}: {hole}");
    }
}
