//! Numbers in the prose of the pages, computed from `results/`: sentences have holes, `{together minilm-mnli}`, for the numbers that
//! [`number`] computes. All other numbers must be published, or a definition.
#![expect(clippy::unwrap_used, reason = "a missing result should fail the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use plotting::findings::contrasts::Contrast;
use plotting::findings::kinds::KindContrast;
use plotting::findings::methods::{MethodArea, Repaired};
use plotting::findings::pruning::median;
use plotting::findings::replicates::Needed;
use plotting::findings::segments::stored;
use plotting::findings::source::experiment;
use plotting::findings::{
    Ablations, Adjustment, Contrasts, Criterion, Folders, Gates, Judge, Kinds, LeftOut, Methods, Replicates,
    ResultFile, Results, Retrained, Source,
};
use records::{AblationRow, Attention, CurveRow, Method, TestedRow as _, Verdicts};
use stats::correlation::pearson;
use stats::family::Comparison;
use stats::reliability::{Swept, ceiling, split_half};
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

    fn number(&self, column: &str) -> f64 {
        self.text(column).parse().unwrap_or(f64::NAN)
    }

    fn head(&self) -> String {
        ["attention", "layer", "head"].map(|column| self.text(column)).join(":")
    }

    /// Returns the loss compared with the full model; in nats, more is worse.
    fn loss(&self) -> f64 {
        if self.text("metric") == "nats" { self.number("score_delta") } else { -self.number("score_delta") }
    }

    /// Returns a change of the score as a loss in percent of the full model's score or, for nats, of its perplexity.
    fn percent_lost(&self, column: &str) -> f64 {
        let delta = self.number(column);
        100.0
            * if self.text("metric") == "nats" {
                delta.exp() - 1.0
            } else {
                -delta / self.number("base_score")
            }
    }

    /// Compares the 95% interval of the loss with a margin of 2%.
    fn verdict(&self) -> &'static str {
        let ends = ["delta_low", "delta_high"].map(|column| self.percent_lost(column));
        let is_all = |holds: fn(f64) -> bool| ends.into_iter().all(holds);
        match (is_all(|loss| loss > 2.0), is_all(|loss| loss < 2.0)) {
            (true, _) => "needed",
            (_, true) => "dispensable",
            _ => "undecided",
        }
    }

    /// Returns the cell of a head in Table 1 as printed in a terminal.
    fn printed(&self, places: usize) -> String {
        let mark = match self.verdict() {
            "needed" => "!",
            "undecided" => "?",
            _ => " ",
        };
        let star = if self.is_significant() { "*" } else { " " };
        format!("  {mark}{}{star}", signed(self.number("score_delta"), places))
    }

    fn is_significant(&self) -> bool {
        self.number("p_value") < 0.01
    }
}

fn rows(file: &str) -> Vec<Row> {
    let path = root().join("results").join(file).with_extension("csv");
    csv::Reader::from_path(path).unwrap().deserialize().map(|row| Row(row.unwrap())).collect()
}

/// Returns the sweep of a setup, or the sweep in a file.
fn sweep(subject: &str) -> Vec<Row> {
    if subject.contains('/') { rows(subject) } else { rows(&format!("{subject}/ablate-one")) }
}

/// Returns the curves of a setup, or the curves in a file.
fn curves(subject: &str) -> Vec<Row> {
    if subject.contains('/') { rows(subject) } else { rows(&format!("{subject}/iterative-prune")) }
}

/// Returns the first row whose columns have these values, such as `masked=39`; heads are named by `head=self:2:2`.
fn find(file: &str, conditions: &[&str]) -> Row {
    let holds = |row: &Row, condition: &str| match condition.split_once('=').unwrap() {
        ("head", name) => row.head() == name,
        ("removal", name) => row.text("removal") == name.replace('-', " "),
        (column, value) => row.text(column) == value,
    };
    let mut rows = rows(file).into_iter();
    rows.find(|row| conditions.iter().all(|condition| holds(row, condition))).unwrap()
}

/// Computes a number from its kind, the setup or file, and decimals.
fn number(words: &[&str]) -> String {
    let digits = |text: &str| text.parse().unwrap();
    let share = |subject, keeps: fn(&Row) -> bool| percent(share(subject, "importance", "", keeps));
    match *words {
        ["significant", subject, attention] => significant(subject, attention),
        ["count", subject, attention] => {
            significant(subject, attention).split(' ').next().unwrap().to_owned()
        }
        [verdict @ ("needed" | "dispensable" | "undecided"), subject, attention] => {
            let heads = family(subject, attention);
            heads.iter().filter(|row| row.verdict() == verdict).count().to_string()
        }
        ["heads", subject, attention] => family(subject, attention).len().to_string(),
        ["layers", verdict, subject] => {
            best_heads(subject).iter().filter(|row| row.verdict() == verdict).count().to_string()
        }
        ["greatest", subject, places] => greatest_loss(subject, digits(places)),
        ["together", subject] => share(subject, is_dispensable),
        ["paper", subject] => share(subject, has_no_significant_loss),
        ["left", subject, attention, masked, places] => {
            fixed(left(subject, attention, masked), digits(places))
        }
        ["r", subject, other, ref without @ ..] => correlation(subject, other, without),
        ["noise", subject, other, ref without @ ..] => allowed_by_noise(subject, other, without),
        ["pearson", subject, splits] => {
            number(&["cell", &format!("{subject}/cross-domain-{splits}"), "pearson", "2"])
        }
        ["ends", subject, splits] => {
            let row = find(&format!("{subject}/cross-domain-{splits}"), &[]);
            ["pearson_low", "pearson_high"].map(|column| fixed(row.number(column), 2)).join(" to ")
        }
        ["cell", file, column, places, ref conditions @ ..] => {
            fixed(find(file, conditions).number(column), digits(places))
        }
        ["row", file, layer, places] => {
            let heads = rows(file).into_iter().filter(|row| row.text("layer") == layer);
            heads.map(|row| row.printed(digits(places))).collect::<String>().trim_end().to_owned()
        }
        ["signed", file, column, places, ref conditions @ ..] => {
            signed(find(file, conditions).number(column), digits(places))
        }
        [repaired @ ("lost" | "fitted"), file, order, masked, places] => {
            let repair = if repaired == "lost" { "repair=none" } else { "repair=least-squares" };
            let conditions =
                [&format!("order={order}"), repair, "complement=false", &format!("masked={masked}")];
            fixed(find(file, &conditions).loss(), digits(places))
        }
        ["trained", file, order, masked, places] => {
            let score = |masked: &str| {
                let conditions = [&format!("order={order}"), "repair=training", "complement=false", masked];
                find(file, &conditions).number("score")
            };
            fixed(score("masked=0") - score(&format!("masked={masked}")), digits(places))
        }
        ["faster", file, column, ref conditions @ ..] => {
            fixed(100.0 * (find(file, conditions).number(column) - 1.0), 0)
        }
        ["shrunk", file, ref conditions @ ..] => {
            let [all, left] =
                [find(file, &["removed=0"]), find(file, conditions)].map(|row| row.number("cache_bytes"));
            fixed(100.0 * (1.0 - left / all), 0)
        }
        ["replay", what, file, bounds] => replayed(what, file, bounds),
        ["after", file, size] => after(file, size.parse().unwrap()),
        ["median-correlation", file, places] => fixed(median_correlation(file), digits(places)),
        ["millions", file, column] => fixed(find(file, &[]).number(column) / 1e6, 0),
        ["loss", subject, head, places] => {
            let row = sweep(subject).into_iter().find(|row| row.head() == head).unwrap();
            fixed(row.loss(), digits(places))
        }
        ["kept", column, file, epoch, masked] => {
            let row = find(file, &[&format!("epoch={epoch}"), &format!("masked={masked}")]);
            let base = row.number("base_score");
            fixed(100.0 * (base + row.number(column)) / base, 0)
        }
        ["retrained", end, subject, masked, complement, places] => {
            let found = retrained(subject, masked.parse().unwrap(), complement == "complement");
            fixed(found[["point", "low", "high"].iter().position(|own| *own == end).unwrap()], digits(places))
        }
        ["masking", subject, masked, places] => {
            let masked = format!("masked={masked}");
            let conditions = ["order=importance", "complement=false", &masked];
            fixed(find(&format!("{subject}/iterative-prune"), &conditions).loss(), digits(places))
        }
        ["margin", subject] => signed(-0.02 * sweep(subject)[0].number("base_score"), 2),
        ["power", subject] => percent(100.0 * power(subject)),
        ["speedup", subject] => speedup(subject),
        ["gates-keep", subject, kept, function] => {
            let heads = heads_with(subject, function);
            format!("{} of {}", self::kept(subject, "gates", kept, &heads), heads.len())
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
            let found = if verdict == "needed-fdr" {
                judge.verdicts_at_fdr(rows)
            } else {
                judge.verdicts_at_once(rows)
            };
            found.unwrap().needed.to_string()
        }
        ["significantly-better", file, attention] => {
            let gains = |row: &&Row| row.is_significant() && row.loss() < 0.0;
            family(file, attention).iter().filter(gains).count().to_string()
        }
        ["significant-of-all", subject] => {
            let rows = sweep(subject);
            format!("{}/{}", rows.iter().filter(|row| row.is_significant()).count(), rows.len())
        }
        ["needed-in-all", subject] => {
            sweep(subject).iter().filter(|row| row.verdict() == "needed").count().to_string()
        }
        ["layers-without-loss", subject] => {
            best_heads(subject).iter().filter(|row| has_no_significant_loss(row)).count().to_string()
        }
        ["costs-more-with", kind @ ("zero" | "mean"), p @ ("p" | "holm"), file] => {
            let (found, contrasts) = kinds(file);
            let metric = found.zero().metric();
            let of_p = |test: &Comparison| if p == "p" { test.p_value } else { test.p_adjusted };
            contrasts[0].counts(metric, 0.01, of_p)[usize::from(kind == "mean")].to_string()
        }
        ["perplexity", file, places] => fixed(find(file, &[]).number("base_score").exp(), digits(places)),
        ["gain", file, head, places] => {
            let row = sweep(file).into_iter().find(|row| row.head() == head).unwrap();
            fixed(-row.loss(), digits(places))
        }
        ["floor", file, epoch, masked] => {
            let rows = rows(file);
            let last = rows.last().unwrap().text("epoch").to_owned();
            let epoch = if epoch == "last" { &last } else { epoch };
            let row = rows.iter().find(|row| row.text("epoch") == epoch && row.text("masked") == masked);
            fixed(row.unwrap().loss(), 2)
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
        ["power-alone", subject] => {
            let greatest = sweep(subject).iter().map(|row| row.number("power")).fold(0.0, f64::max);
            percent(100.0 * greatest)
        }
        ["induction"] => induction(),
        ["two-rarest", subject] => fixed(greatest_share(subject, None), 0),
        _ => panic!("nothing computes {words:?}"),
    }
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
    let is_nats = rows(file)[0].text("metric") == "nats";
    let gain = if is_nats { -over.value } else { over.value };
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

/// Returns the range of costs of the heads in layer 2 of `demo-induction`, all eight of which are induction heads.
fn induction() -> String {
    let scores = rows("demo-induction/named-heads").into_iter();
    let of_layer: Vec<Row> =
        scores.filter(|row| (row.text("function"), row.text("layer")) == ("induction", "2")).collect();
    assert!(of_layer.len() == 8 && of_layer.iter().all(|row| row.number("share") > 0.6), "look up");
    let cost = |row: &Row| find("demo-induction/ablate-one", &[&format!("head={}", row.head())]).loss();
    let mut costs: Vec<f64> = of_layer.iter().map(cost).collect();
    costs.sort_by(f64::total_cmp);
    [costs[0], costs[7]].map(|cost| fixed(cost, 2)).join(" to ")
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

/// Checks that a page contains these sentences.
fn check_says(page: &str, text: &str, sentences: &[&str]) {
    let missing: Vec<_> =
        sentences.iter().map(|fact| filled(fact)).filter(|fact| !text.contains(fact)).collect();
    assert!(missing.is_empty(), "{page} should say {missing:#?}");
}

/// Returns the file of a sweep; `significance-mrpc` is the one whose predictions are stored.
fn path_of(sweep: &str) -> PathBuf {
    match sweep {
        "significance-mrpc" => root().join("crates/significance/tests/minilm-mrpc/ablate-one-msr_test.csv"),
        _ => root().join("results").join(sweep).with_extension("csv"),
    }
}

/// Replays a sweep as if heads left it once decided: segments, share of passes in percent, or `71 of 72` equal verdicts.
fn replayed(what: &str, sweep: &str, bounds: &str) -> String {
    let bounds = Spending::ALL.into_iter().find(|own| own.name() == bounds).unwrap();
    let found = significance::replay(&path_of(sweep), bounds, what == "helped").unwrap().unwrap();
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

/// Counts the heads of a sweep that are significant when masked alone: `2 of 72`.
fn significant(subject: &str, attention: &str) -> String {
    let heads = family(subject, attention);
    format!("{} of {}", heads.iter().filter(|row| row.is_significant()).count(), heads.len())
}

/// Formats the largest loss by a single head: `10.8%`.
fn greatest_loss(subject: &str, digits: usize) -> String {
    let losses = sweep(subject).into_iter().map(|row| row.percent_lost("score_delta"));
    format!("{}%", fixed(losses.fold(0.0, f64::max), digits))
}

/// Returns the percentage of all heads that can be masked along a ranking while each step satisfies `keeps`.
fn share(subject: &str, order: &str, seed: &str, keeps: impl Fn(&Row) -> bool) -> f64 {
    let rows = curves(subject);
    let of_curve = |row: &&Row| {
        (row.text("attention"), row.text("order"), row.text("order_seed"), row.text("complement"))
            == ("all", order, seed, "false")
    };
    let curve = rows.iter().filter(of_curve).filter(|row| row.number("masked") > 0.0);
    let last = curve.take_while(|row| keeps(row)).last();
    last.map_or(0.0, |row| 100.0 * row.number("masked") / row.number("heads"))
}

fn is_dispensable(row: &Row) -> bool {
    row.verdict() == "dispensable"
}

fn has_no_significant_loss(row: &Row) -> bool {
    !(row.is_significant() && row.loss() > 0.0)
}

fn percent(share: f64) -> String {
    if share == 0.0 { "none".to_owned() } else { format!("{}%", fixed(share, 0)) }
}

/// Returns the score with this many heads of one attention type masked by importance.
fn left(subject: &str, attention: &str, masked: &str) -> f64 {
    let conditions = [&format!("attention={attention}"), "order=importance", "complement=false"];
    let masked = format!("masked={masked}");
    find(&format!("{subject}/iterative-prune"), &[&conditions[..], &[&masked]].concat()).number("score")
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

/// Correlates the effects of single heads on two splits, except some heads: `0.64`.
fn correlation(subject: &str, other: &str, without: &[&str]) -> String {
    let second: BTreeMap<String, f64> = rows(&format!("{subject}/ablate-one-{other}"))
        .iter()
        .map(|row| (row.head(), row.number("score_delta")))
        .collect();
    let first = sweep(subject);
    let first = first.iter().filter(|row| !without.contains(&row.head().as_str()));
    let (x, y): (Vec<f64>, Vec<f64>) =
        first.map(|row| (row.number("score_delta"), second[&row.head()])).unzip();
    fixed(pearson(&x, &y).unwrap().coefficient, 2)
}

/// Returns the loss of a retrained model compared with the one retrained with all heads, and its interval, by importance.
fn retrained(subject: &str, masked: usize, complement: bool) -> [f64; 3] {
    let file = Source::subject(&folders(), subject).one(experiment::RETRAINED).unwrap();
    let retrained = Retrained::read(file, &mut LeftOut::default()).unwrap();
    let mut steps = retrained.after.series.iter().flat_map(|series| series.runs.iter().flatten());
    let is_it =
        |row: &&CurveRow| row.masked == masked && row.complement == complement && row.order == "importance";
    let row = steps.find(|row| is_it(row)).unwrap();
    let found = row.tests();
    let interval = found.interval.unwrap();
    let gains = [found.delta, interval.low, interval.high].map(|delta| row.direction().gain(delta));
    [-gains[0], -gains[1].max(gains[2]), -gains[1].min(gains[2])]
}

/// Returns the highest power over the steps by importance: the chance that heads without a cost would be shown to be dispensable.
fn power(subject: &str) -> f64 {
    let rows = curves(subject);
    let of_curve = rows.iter().filter(|row| row.text("order") == "importance");
    of_curve.map(|row| row.number("power")).fold(0.0, f64::max)
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
        split_half(Swept { base: &base, variants: &variants }, 100, 1).unwrap()
    };
    fixed(ceiling(reliability("ablate-one"), reliability(&format!("ablate-one-{other}"))).unwrap(), 2)
}

/// Formats the speedup with half of the heads removed, over batch sizes: `21 to 26%`.
fn speedup(subject: &str) -> String {
    let rows = rows(&format!("{subject}/speed-bench-first-512"));
    let mut faster: Vec<f64> = rows.iter().map(|row| 100.0 * (row.number("ratio") - 1.0)).collect();
    faster.sort_by(f64::total_cmp);
    format!("{} to {}%", fixed(faster[0], 0), fixed(*faster.last().unwrap(), 0))
}

/// Returns the text of a page without code blocks and link targets, with single spaces.
fn prose(page: &str) -> String {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let outside = text.split("```").step_by(2).collect::<Vec<_>>().join(" ");
    let mut text = outside.split_whitespace().collect::<Vec<_>>().join(" ");
    while let Some(start) = text.find("](") {
        let end = start + text[start..].find(')').unwrap();
        text.replace_range(start..=end, "]");
    }
    text
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
fn the_page_on_sweeps_that_stop_is_its_template_filled() {
    check_template("deciding.md", "results/deciding.md", wrapped);
}

#[test]
fn the_front_page_is_its_template_filled() {
    check_template("readme.md", "README.md", str::to_owned);
}

#[test]
fn the_page_of_findings_is_its_template_filled() {
    check_template("results.md", "results/README.md", wrapped);
}

/// Numbers in the template of the front page must be published ones or definitions.
#[test]
fn numbers_in_the_template_of_the_front_page_are_published_or_definitions() {
    let template = fs::read_to_string(root().join("crates/plotting/tests/pages/readme.md")).unwrap();
    let outside: String = template.split("```").step_by(2).collect();
    let outside: String =
        outside.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest)).collect();
    let text = outside.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let published = [
        "8 of 96",
        "26 of 30 layers",
        "20 to 60%",
        "breaks down beyond 60%",
        "r = 0.56, 0.68",
        "from epoch 10 on",
    ];
    let definitions = [
        "NeurIPS 2019](https://arxiv.org/abs/1905.10650)",
        "(2019)",
        "(Marian, T5, BART, …)",
        "results/multi30k-en-fr/figures/heads.png",
        "a margin, 2%",
        "on 10 texts",
        "2% of the score",
        "x86-64",
        "Python 3.10",
        "Python 3.",
        "Table 1 then",
        "the 95% interval",
        "p < 0.01",
        "SmolLM2 (135) and Gemma 3 (270), both with 4-bit weights",
        "81% masked",
        "/18",
        "/6",
        "a gate of 1 keeps a head, 0 masks it",
        "SmolLM2",
        "SST-2",
    ];
    for known in published.into_iter().chain(definitions) {
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

/// Claims in the findings that contain no number.
#[test]
fn words_of_the_findings_are_those_of_the_results() {
    let top =
        number(&["cell", "minilm-mnli/cross-domain-dev_matched-dev_mismatched_partial", "top_overlap", "1"]);
    assert_eq!(top, "9.0", "nine of the ten costliest heads");
    let drawn = rows("demo-language/prune-and-retrain").into_iter();
    let drawn = drawn.filter(|row| (row.text("order"), row.text("masked")) == ("random", "24"));
    let mut drawn: Vec<f64> = drawn.map(|row| row.number("score")).collect();
    drawn.sort_by(f64::total_cmp);
    let ends = [drawn[0], drawn[4]].map(|score| fixed(score, 3));
    assert_eq!(
        (drawn.len(), ends),
        (5, ["2.562", "2.574"].map(str::to_owned)),
        "the second and the fourth choice"
    );
    assert_eq!(number(&["layers", "dispensable", "minilm-sst2"]), "6", "all six layers");
    for subject in ["minilm-mrpc", "minilm-cola"] {
        for what in ["differing", "dispensable"] {
            assert_eq!(
                number(&["in-runs", what, subject]),
                "0",
                "{subject}: no head is {what} in another run"
            );
        }
        assert_eq!(number(&["runs", subject]), "3", "three runs of {subject}");
    }
    let all = ["dispensable", "heads"];
    for (subject, attention) in [("demo-language", "self"), ("multi30k-en-fr", "enc-enc")] {
        let [dispensable, heads] = all.map(|words| number(&[words, subject, attention]));
        assert_eq!(dispensable, heads, "all heads of {subject}");
    }
    let [fisher, modules] = ["fisher", "modules-by-similarity"]
        .map(|order| number(&["lost", "smollm2-135m-instruct/compare-methods-first-150", order, "68", "2"]));
    assert_eq!(fisher, modules, "by Fisher or similar modules");
    let half = find("smollm2-135m-instruct/llama-cpp", &["removal=importance-by-group", "removed=135"]);
    assert_eq!(fixed(half.number("nats_delta").exp(), 0), "10", "ten times the perplexity");
}

/// Returns the difference in score between two ways to choose heads, its interval, and whether it is significant; `sign` fits the words on
/// the page.
fn contrast(file: &str, kept: usize, methods: Contrast, sign: f64) -> ([f64; 3], bool) {
    let (subject, gates) = file.split_once('/').unwrap_or((file, "train-gates"));
    let mut files = Source::subject(&folders(), subject).all(experiment::GATES).unwrap().into_iter();
    let file = files.find(|file| file.path.file_stem().is_some_and(|stem| stem == gates)).unwrap();
    let all = Contrasts::read(Gates::read(file).unwrap()).unwrap();
    let place = all.leaders.iter().position(|row| row.kept == kept).unwrap();
    let (_, compared) = all.measured.iter().find(|(contrast, _)| *contrast == methods).unwrap();
    let found = compared[place].unwrap();
    let interval = found.interval.unwrap();
    let (one, other) = (sign * interval.low, sign * interval.high);
    ([sign * found.delta, one.min(other), one.max(other)], found.p_adjusted.unwrap() < 0.01)
}

/// Returns the heads that have a function.
fn heads_with(subject: &str, function: &str) -> Vec<String> {
    let rows = rows(&format!("{subject}/head-functions"));
    let holding = rows.iter().filter(|row| row.text("function") == function && row.text("holds") == "true");
    let mut heads: Vec<String> = holding.map(Row::head).collect();
    heads.sort();
    heads.dedup();
    heads
}

/// Counts which of these heads a method keeps.
fn kept(subject: &str, method: &str, number: &str, heads: &[String]) -> usize {
    let rows = rows(&format!("{subject}/train-gates"));
    let row = rows.iter().find(|row| row.text("method") == method && row.text("kept") == number).unwrap();
    row.text("kept_heads").split('+').filter(|head| heads.iter().any(|own| own == head)).count()
}

/// Returns the percentage of sentences in which a head, or the best one, attends to one of the two rarest tokens.
fn greatest_share(subject: &str, head: Option<&str>) -> f64 {
    let rows = rows(&format!("{subject}/head-functions"));
    let of_detail = rows.iter().filter(|row| row.text("detail") == "two-rarest");
    let of_head = of_detail.filter(|row| head.is_none_or(|head| row.head() == head));
    100.0 * of_head.map(|row| row.number("share")).fold(0.0, f64::max)
}

#[test]
fn numbers_on_learned_gates_and_functions_are_those_of_the_results() {
    use Method::{Chosen, Gates as Gated, Importance, Scratch, Ungated};
    let page = prose("results/voita.md");
    let says = |fact: String| assert!(page.contains(&fact), "results/voita.md should say `{fact}`");
    let unsigned = page.replace('+', "");
    for (subject, kept, methods, sign, digits, is_significant, before) in [
        ("multi30k-en-fr", 8, [Gated, Ungated], 1.0, 2, false, "8 of 48: "),
        ("multi30k-en-fr", 12, [Gated, Scratch], 1.0, 2, false, "12 of 48: by "),
        ("minilm-mnli", 18, [Gated, Ungated], 1.0, 2, true, "18 of 72: "),
        ("demo-language", 4, [Chosen, Importance], -1.0, 3, false, "0 of 26: `demo-language`, 4 of 32: "),
        ("demo-language", 4, [Gated, Scratch], 1.0, 3, true, "worse by "),
        ("multi30k-en-fr", 4, [Gated, Ungated], 1.0, 2, false, "the change is "),
        ("multi30k-en-fr/train-gates-all", 72, [Gated, Ungated], -1.0, 2, true, "loses "),
        ("demo-language", 4, [Chosen, Scratch], 1.0, 3, false, "shown to be worse ("),
    ] {
        let (found, is_shown) = contrast(subject, kept, methods, sign);
        assert_eq!(is_shown, is_significant, "{subject} {methods:?}");
        let [point, low, high] = found.map(|value| fixed(value, digits));
        for fact in [format!("{before}{point}"), format!("{low} to {high})")] {
            assert!(unsigned.contains(&fact), "{subject}: results/voita.md should say `{fact}`");
        }
    }
    for (subject, kept, digits, text) in [
        ("demo-language", 24, 3, "by 0.007 nats per token with 24 of 32 heads"),
        ("demo-language", 4, 3, "by 0.026 with 4"),
        ("demo-translation", 48, 2, "by 2.79 BLEU with 48 of 96 encoder heads"),
        ("multi30k-en-fr/train-gates-all", 72, 2, "(by 1.12 BLEU"),
    ] {
        let sign = if subject == "demo-language" { 1.0 } else { -1.0 };
        let ([point, ..], is_significant) = contrast(subject, kept, [Gated, Chosen], sign);
        assert!(is_significant && text.contains(&fixed(point, digits)), "{text}: {point}");
        says(text.to_owned());
    }
    check_says(
        "results/voita.md",
        &page,
        &[
            "{gates-keep minilm-sst2 18 syntactic} (`minilm-sst2`), {gates-keep minilm-mnli 18 syntactic} (`minilm-mnli`)",
            "`multi30k-en-fr`: at most {two-rarest multi30k-en-fr}%",
            "72 of 144 left: \
             {cell multi30k-en-fr/train-gates-all kept_enc_enc 0 method=gates kept=72} encoder, \
             {cell multi30k-en-fr/train-gates-all kept_dec_dec 0 method=gates kept=72} decoder, \
             {cell multi30k-en-fr/train-gates-all kept_enc_dec 0 method=gates kept=72} encoder-decoder",
            "[largest share of its layer's relevance], \
             {cell minilm-mnli/relevance relevance 3 head=self:5:9}",
        ],
    );
    let sst2 = heads_with("minilm-sst2", "syntactic");
    assert_eq!(kept("minilm-sst2", "importance", "18", &sst2), 4, "importance keeps four");
    let mut rare = ["minilm-mnli", "minilm-mrpc", "minilm-sst2"]
        .map(|subject| greatest_share(subject, Some("self:1:10")));
    rare.sort_by(f64::total_cmp);
    says(format!("{} to {}%", fixed(rare[0], 0), fixed(rare[2], 0)));
    let relevance = rows("minilm-mnli/relevance");
    let of = |head: &str| relevance.iter().find(|row| row.head() == head).unwrap().number("relevance");
    assert_eq!(
        relevance.iter().filter(|row| row.number("relevance") > of("self:4:10")).count(),
        5,
        "sixth-largest"
    );
}

#[test]
fn the_guide_is_its_template_filled() {
    check_template("guide.md", "experiments/README.md", str::to_owned);
    let all = ["dispensable", "heads"].map(|words| number(&[words, "minilm-sst2", "self"]));
    assert_eq!(all[0], all[1], "all heads are dispensable one by one");
}
