//! Numbers in the prose of the pages, computed again from `results/`. What is not computed here must be published, or a definition.
#![expect(clippy::unwrap_used, reason = "a missing result should fail the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use findings::contrasts::Contrast;
use findings::segments::stored;
use findings::source::experiment;
use findings::{Contrasts, Error, Folders, Gates, LeftOut, Results, Retrained, Source};
use records::{AblationRow, Method, PruningRow, TestedRow};
use stats::correlation::pearson;
use stats::reliability::{Swept, ceiling, split_half};
use words::{fixed, signed};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn folders() -> Folders {
    Folders { results: root().join("results"), experiments: root().join("experiments") }
}

/// A row of a CSV file, by column.
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

    /// Loss against the base; in nats more is worse.
    fn loss(&self) -> f64 {
        if self.text("metric") == "nats" { self.number("score_delta") } else { -self.number("score_delta") }
    }

    /// The worse end of the interval of the loss, as a share of the base.
    fn greatest_loss(&self) -> f64 {
        let worse =
            if self.text("metric") == "nats" { self.number("delta_high") } else { -self.number("delta_low") };
        worse / self.number("base_score").abs()
    }

    fn is_significant(&self) -> bool {
        self.number("p_value") < 0.01
    }
}

fn rows(file: &str) -> Vec<Row> {
    let path = root().join("results").join(file).with_extension("csv");
    csv::Reader::from_path(path).unwrap().deserialize().map(|row| Row(row.unwrap())).collect()
}

/// `2 of 72`: heads of a sweep that are significant when masked alone.
fn significant(subject: &str, attention: &str) -> String {
    let rows = rows(&format!("{subject}/ablate-one"));
    let heads: Vec<&Row> = rows.iter().filter(|row| row.text("attention") == attention).collect();
    format!("{} of {}", heads.iter().filter(|row| row.is_significant()).count(), heads.len())
}

/// `10.8 %`: the greatest loss by a single head, of the score with all heads.
fn greatest_loss(subject: &str, digits: usize) -> String {
    let rows = rows(&format!("{subject}/ablate-one"));
    let greatest = rows.iter().map(|row| row.loss() / row.number("base_score")).fold(0.0, f64::max);
    format!("{} %", fixed(100.0 * greatest, digits))
}

/// Of the heads of all attention types the percentage that can go along an order, by the rule that a step must keep.
fn share(subject: &str, order: &str, seed: &str, keeps: fn(&Row) -> bool) -> f64 {
    let rows = rows(&format!("{subject}/iterative-prune"));
    let of_curve = |row: &&Row| {
        (row.text("attention"), row.text("order"), row.text("order_seed"), row.text("complement"))
            == ("all", order, seed, "false")
    };
    let curve = rows.iter().filter(of_curve).filter(|row| row.number("masked") > 0.0);
    let last = curve.take_while(|row| keeps(row)).last();
    last.map_or(0.0, |row| 100.0 * row.number("masked") / row.number("heads"))
}

fn is_shown_safe(row: &Row) -> bool {
    row.greatest_loss() <= 0.02
}

fn has_no_significant_loss(row: &Row) -> bool {
    !(row.is_significant() && row.loss() > 0.0)
}

fn percent(share: f64) -> String {
    if share == 0.0 { "none".to_owned() } else { format!("{} %", fixed(share, 0)) }
}

/// `46 %`, shown to be safe by importance.
fn safe(subject: &str) -> String {
    percent(share(subject, "importance", "", is_shown_safe))
}

/// `75 %`, without a significant loss by importance.
fn paper(subject: &str) -> String {
    percent(share(subject, "importance", "", has_no_significant_loss))
}

fn median_of_random(subject: &str) -> f64 {
    let mut shares: Vec<f64> =
        (1..=10).map(|seed| share(subject, "random", &seed.to_string(), is_shown_safe)).collect();
    shares.sort_by(f64::total_cmp);
    f64::midpoint(shares[4], shares[5])
}

/// The score left with this share of one attention type masked by importance.
fn left(subject: &str, attention: &str, masked: &str) -> f64 {
    let rows = rows(&format!("{subject}/iterative-prune"));
    let is_it = |row: &&Row| {
        (row.text("attention"), row.text("order"), row.text("complement"), row.text("masked"))
            == (attention, "importance", "false", masked)
    };
    rows.iter().find(is_it).unwrap().number("score")
}

/// The best head of each layer, kept alone.
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

/// Layers whose best head alone has no significant loss, and all layers.
fn layers_with_one_head(subject: &str) -> (usize, usize) {
    let best = best_heads(subject);
    (best.iter().filter(|row| has_no_significant_loss(row)).count(), best.len())
}

/// The loss of the layer that needs its heads most, with its best head alone.
fn largest_loss_of_best_heads(subject: &str) -> f64 {
    best_heads(subject).iter().map(Row::loss).fold(0.0, f64::max)
}

/// `0.64`, of the changes by single heads on two splits, without some of the heads.
fn correlation(subject: &str, other: &str, without: &[&str]) -> String {
    let second: BTreeMap<String, f64> = rows(&format!("{subject}/ablate-one-{other}"))
        .iter()
        .map(|row| (row.head(), row.number("score_delta")))
        .collect();
    let first = rows(&format!("{subject}/ablate-one"));
    let first = first.iter().filter(|row| !without.contains(&row.head().as_str()));
    let (x, y): (Vec<f64>, Vec<f64>) =
        first.map(|row| (row.number("score_delta"), second[&row.head()])).unzip();
    fixed(pearson(&x, &y).unwrap().coefficient, 2)
}

/// `0.64 (0.45 to 0.77)`
fn correlation_with_interval(subject: &str, splits: &str) -> String {
    let all = &rows(&format!("{subject}/cross-domain-{splits}"))[0];
    let [r, low, high] =
        ["pearson", "pearson_low", "pearson_high"].map(|column| fixed(all.number(column), 2));
    format!("{r} ({low} to {high})")
}

/// `10 to 40 %`: heads that can be masked after the first and after the last epoch while this percentage of the score, or of
/// 1/perplexity, is kept.
fn spared(file: &str, kept: f64) -> String {
    let rows = rows(file);
    let epochs = || rows.iter().map(|row| row.number("epoch"));
    let kept_by = |row: &Row| match row.text("metric") {
        "nats" => 100.0 * (row.number("base_score") - row.number("score")).exp(),
        _ => 100.0 * row.number("score") / row.number("base_score"),
    };
    let of_epoch = |epoch: f64| {
        let steps = rows.iter().filter(|row| row.number("epoch") == epoch);
        let last = steps.take_while(|row| kept_by(row) >= kept).last().unwrap();
        fixed(100.0 * last.number("masked") / last.number("heads"), 0)
    };
    let (first, last) = (epochs().fold(f64::INFINITY, f64::min), epochs().fold(0.0, f64::max));
    format!("{} to {} %", of_epoch(first), of_epoch(last))
}

/// The percentage of the score that is kept at an epoch with so many heads masked, and its interval, in words.
fn kept_at(file: &str, epoch: &str, masked: &str, in_words: fn([String; 3]) -> String) -> String {
    let rows = rows(file);
    let row = rows.iter().find(|row| (row.text("epoch"), row.text("masked")) == (epoch, masked)).unwrap();
    let base = row.number("base_score");
    let ends = ["score_delta", "delta_low", "delta_high"];
    in_words(ends.map(|column| fixed(100.0 * (base + row.number(column)) / base, 0)))
}

/// The loss of a retrained model against the one that was retrained with all heads, and its interval, by importance.
fn retrained(subject: &str, masked: usize, complement: bool) -> (f64, f64, f64) {
    let file = Source::subject(&folders(), subject).one(experiment::RETRAINED).unwrap();
    let retrained = Retrained::read(file, &mut LeftOut::default()).unwrap();
    let mut steps = retrained.after.series.iter().flat_map(|series| series.runs.iter().flatten());
    let is_it =
        |row: &&PruningRow| row.masked == masked && row.complement == complement && row.order == "importance";
    let row = steps.find(|row| is_it(row)).unwrap();
    let found = retrained.against_control(row).unwrap();
    let interval = found.interval.unwrap();
    let gains = [found.delta, interval.low, interval.high].map(|delta| row.direction().gain(delta));
    (-gains[0], -gains[1].max(gains[2]), -gains[1].min(gains[2]))
}

/// The chance that heads which cost nothing would be shown to be safe, by the normal distribution: the greatest of all steps.
fn power(subject: &str) -> f64 {
    let rows = rows(&format!("{subject}/iterative-prune"));
    let of_step = |row: &Row| {
        let error = (row.number("delta_high") - row.number("delta_low")) / (2.0 * 1.96);
        normal(0.02 * row.number("base_score") / error - 1.96)
    };
    rows.iter().filter(|row| row.text("order") == "importance").map(of_step).fold(0.0, f64::max)
}

/// The distribution function of the normal distribution, by the midpoint rule.
fn normal(z: f64) -> f64 {
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let step = (z + 8.0) / 10_000.0;
    (0..10_000).map(|n| density(-8.0 + (f64::from(n) + 0.5) * step) * step).sum()
}

/// `0.69`: the greatest r that the noise of two splits allows, without some of the heads.
fn allowed_by_noise(subject: &str, splits: [&str; 2], without: &[&str]) -> String {
    let reliability = |split: &str| {
        let folders = folders();
        let path = folders.results.join(subject).join(split).with_extension("csv");
        let file = Source::File { path: path.clone(), experiments: folders.experiments };
        let results = Results::<AblationRow>::read(file.one(experiment::SWEEP).unwrap()).unwrap();
        let (base, masked) = stored(&results, || Error::NoSegments { path: path.clone() }).unwrap();
        let heads = results.rows.iter().map(|row| row.head_id().to_string()).zip(&masked);
        let is_kept = |(head, _): &(String, _)| !without.contains(&head.as_str());
        let variants: Vec<_> = heads.filter(is_kept).map(|(_, masked)| masked).collect();
        split_half(Swept { base: &base, variants: &variants }, 100, 1).unwrap()
    };
    fixed(ceiling(reliability(splits[0]), reliability(splits[1])).unwrap(), 2)
}

/// `21 to 26 %`: how much faster without half of the heads, in batches of all sizes.
fn speedup(subject: &str) -> String {
    let rows = rows(&format!("{subject}/speed-bench-first-512"));
    let mut faster: Vec<f64> = rows.iter().map(|row| 100.0 * (row.number("ratio") - 1.0)).collect();
    faster.sort_by(f64::total_cmp);
    format!("{} to {} %", fixed(faster[0], 0), fixed(*faster.last().unwrap(), 0))
}

/// Text of a page without blocks of code and targets of links, with single spaces.
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

/// Checks that each fact stands on the page, and that no other number does, but for what is `given`.
fn check(page: &str, facts: &[String], given: &[&str]) {
    let whole = prose(page);
    let missing: Vec<&String> = facts.iter().filter(|fact| !whole.contains(fact.as_str())).collect();
    assert!(missing.is_empty(), "{page} should say {missing:#?}");
    let mut text = whole.clone();
    for known in facts.iter().map(String::as_str).chain(given.iter().copied()) {
        assert!(whole.contains(known), "{page} does not say `{known}` any more");
        text = text.replace(known, "");
    }
    let is_name = |word: &str| {
        let is_head = word.split(':').filter(|part| part.parse::<u8>().is_ok()).count() >= 2;
        is_head || word.starts_with(|letter: char| letter.is_alphabetic() || "![".contains(letter))
    };
    let digits = |word: &&str| word.contains(|letter: char| letter.is_ascii_digit());
    let outside = text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let words = outside.split_whitespace().map(|word| word.trim_matches(['(', ')', ',', '.', ';']));
    let unchecked: Vec<&str> = words.filter(digits).filter(|word| !is_name(word)).collect();
    assert!(unchecked.is_empty(), "no command makes these numbers of {page}: {unchecked:?}");
}

#[test]
fn numbers_of_the_front_page_are_those_of_the_results() {
    let (enough, layers) = layers_with_one_head("multi30k-en-fr");
    let (none, of_mnli) = layers_with_one_head("minilm-mnli");
    assert_eq!(none, 0);
    let of_type = |attention| fixed(left("multi30k-en-fr", attention, "39"), 0);
    let facts = [
        format!(
            "encoder {}, encoder-decoder {}, MNLI {}",
            significant("multi30k-en-fr", "enc-enc"),
            significant("multi30k-en-fr", "enc-dec").replace(" of 48", ""),
            significant("minilm-mnli", "self")
        ),
        format!("translator {enough} of {layers}, MNLI none of {of_mnli}"),
        format!(
            "MNLI {}; translator {}, without one head {}",
            correlation("minilm-mnli", "dev_mismatched_partial", &[]),
            correlation("multi30k-en-fr", "test_2017_mscoco", &[]),
            correlation("multi30k-en-fr", "test_2017_mscoco", &["enc-dec:2:1"])
        ),
        format!(
            "SST-2 {}, MNLI {}, translator {}",
            safe("minilm-sst2"),
            safe("minilm-mnli"),
            safe("multi30k-en-fr")
        ),
        format!(
            "{} % masked: {} BLEU left; decoder {}, encoder {}",
            fixed(3900.0 / 48.0, 0),
            of_type("enc-dec"),
            of_type("dec-dec"),
            of_type("enc-enc")
        ),
        "At most 23 million parameters".to_owned(),
        format!("model is {} % accurate", fixed(rows("minilm-mnli/ablate-one")[0].number("base_score"), 0)),
    ];
    let parameters = rows("minilm-mrpc/speed-bench-first-512")[0].number("original_parameters");
    assert_eq!(fixed(parameters / 1e6, 0), "23");
    let published = [
        "| 8 of 96 |",
        "| 26 of 30 layers |",
        "r = 0.56, 0.68",
        "20 to 60 %, by eye",
        "breaks down beyond 60 %",
        "from epoch 10 on",
    ];
    let given = [
        "NeurIPS 2019",
        "x86-64",
        "Python 3",
        "p < 0.01",
        "the 95 % interval of the loss lies below 2 % of the score",
        "(2019)",
    ];
    let page = fs::read_to_string(root().join("README.md")).unwrap();
    let demo = rows("demo-translation/ablate-one");
    for layer in ["1", "6"] {
        let of_layer =
            demo.iter().filter(|row| (row.text("attention"), row.text("layer")) == ("enc-enc", layer));
        let line: Vec<String> = of_layer.map(|row| signed(row.number("score_delta"), 2)).collect();
        assert!(page.contains(&line.join("   ")), "README.md should print {line:?}");
    }
    let base = format!(
        "base BLEU {}\n{} heads significant",
        fixed(demo[0].number("base_score"), 2),
        significant("demo-translation", "enc-enc")
    );
    assert!(page.contains(&base), "README.md should print {base}");
    check("README.md", &facts, &[&published[..], &given].concat());
}

#[test]
fn numbers_of_the_findings_are_those_of_the_results() {
    let (sst2, de_en, en_fr) = ("minilm-sst2", "multi30k-de-en", "multi30k-en-fr");
    let (mnli, mrpc) = ("minilm-mnli", "minilm-mrpc");
    let (demo, tatoeba, shakespeare) = ("demo-language", "tatoeba-language", "shakespeare-char");
    let points_of = |subject: &str, head: &str, digits| {
        let rows = rows(&format!("{subject}/ablate-one"));
        fixed(rows.iter().find(|row| row.head() == head).unwrap().loss(), digits)
    };
    let better =
        rows("minilm-mnli/ablate-one").iter().filter(|row| row.is_significant() && row.loss() < 0.0).count();
    assert_eq!(better, 6, "six of them for the better");
    let top = rows("minilm-mnli/cross-domain-dev_matched-dev_mismatched_partial")[0].number("top_overlap");
    assert_eq!(top, 9.0, "nine of the ten costliest heads");
    let of_type = |attention| fixed(left(en_fr, attention, "39"), 1);
    let (loss, low, high) = retrained(mnli, 54, false);
    let [nats, same] = [8, 16].map(|masked| retrained(demo, masked, false));
    assert_eq!(fixed(nats.0, 3), fixed(same.0, 3));
    let (en_fr_dynamics, de_en_dynamics) =
        ("multi30k-en-fr/training-dynamics-first-500", "multi30k-de-en/training-dynamics-first-500");

    let (sst2_layers, en_fr_layers) = (layers_with_one_head(sst2), layers_with_one_head(en_fr));
    assert_eq!((sst2_layers, layers_with_one_head(mnli).0), ((6, 6), 0));
    let of_mrpc = rows("minilm-mrpc/ablate-one");
    let of_head = of_mrpc.iter().find(|row| row.head() == "self:2:2").unwrap();
    let base = of_head.number("base_score");
    let most = |subject: &str| {
        let mut rows = rows(&format!("{subject}/ablate-one"));
        rows.sort_by(|one, other| other.loss().total_cmp(&one.loss()));
        rows.iter().take(3).map(Row::head).collect::<Vec<_>>()
    };
    assert_eq!(most(mnli), ["self:4:10", "self:2:3", "self:3:5"]);
    let before = rows("minilm-mnli/iterative-prune");
    let is_step = |row: &&Row| {
        (row.text("order"), row.text("complement"), row.text("masked")) == ("importance", "false", "54")
    };
    let masking = before.iter().find(is_step).unwrap().loss();
    let facts = [
        format!("| {}, {} | 6 %, {} |", "21 %", safe(mnli), paper(mnli)),
        format!("| 20 %, {} | 31 %, {} |", safe(en_fr), paper(en_fr)),
        format!("| none, {} | none, {} |", safe("demo-translation"), paper("demo-translation")),
        format!("4:10 costs {} points now", points_of(mnli, "self:4:10", 1)),
        format!(
            "{} heads are significant, and the greatest loss is {} of the score",
            significant(demo, "self"),
            greatest_loss(demo, 2)
        ),
        format!("{}, and the greatest is {}", significant(tatoeba, "self"), greatest_loss(tatoeba, 1)),
        format!(
            "{} in `demo-inference`, and {} in `{shakespeare}`",
            greatest_loss("demo-inference", 1),
            greatest_loss(shakespeare, 1)
        ),
        format!(
            "408 pairs of MRPC only {} are, but one of them, 2:2, costs {};",
            significant(mrpc, "self"),
            greatest_loss(mrpc, 1)
        ),
        format!(
            "9,815 of MNLI {}, six of them for the better, and 4:10 costs {}",
            significant(mnli, "self"),
            greatest_loss(mnli, 1)
        ),
        format!(
            "{} of the 48 encoder-decoder heads of `{en_fr}` and {} of its 48 encoder heads",
            significant(en_fr, "enc-dec").replace(" of 48", ""),
            significant(en_fr, "enc-enc").replace(" of 48", "")
        ),
        format!(
            "r = {}, and nine of the ten",
            correlation_with_interval(mnli, "dev_matched-dev_mismatched_partial")
        ),
        format!(
            "r = {}; noise allows {})",
            correlation_with_interval(en_fr, "test_2016_flickr-test_2017_mscoco").replace(')', ""),
            allowed_by_noise(en_fr, ["ablate-one", "ablate-one-test_2017_mscoco"], &[])
        ),
        format!(
            "it is {}, where noise allows {};",
            correlation(en_fr, "test_2017_mscoco", &["enc-dec:2:1"]),
            allowed_by_noise(en_fr, ["ablate-one", "ablate-one-test_2017_mscoco"], &["enc-dec:2:1"])
        ),
        format!(
            "({}; noise allows {})",
            correlation_with_interval(de_en, "test_2016_flickr-test_2017_mscoco")
                .replace(" (", ", ")
                .replace(')', ""),
            allowed_by_noise(de_en, ["ablate-one", "ablate-one-test_2017_mscoco"], &[])
        ),
        format!("({})", correlation_with_interval(demo, "test-shifted").replace(" (", ", ").replace(')', "")),
        format!("would allow {}.", allowed_by_noise(demo, ["ablate-one", "ablate-one-shifted"], &[])),
        format!(
            "where all {} heads are significant",
            significant(shakespeare, "self").split(' ').next().unwrap()
        ),
        format!(
            "the rank correlation is {}.",
            fixed(
                rows("multi30k-en-fr/cross-domain-test_2016_flickr-test_2017_mscoco")[0].number("spearman"),
                2
            )
        ),
        format!("costs {} BLEU now", points_of(en_fr, "enc-dec:2:1", 2)),
        format!(
            "{} of the heads of `{sst2}` are shown to be safe, {} of `{mnli}`, {} of `{mrpc}` and {} of `{en_fr}`; without \
             significant loss {}, {}, {} and {} can go",
            safe(sst2),
            safe(mnli),
            safe(mrpc),
            safe(en_fr),
            paper(sst2),
            paper(mnli),
            paper(mrpc),
            paper(en_fr)
        ),
        format!(
            "leaves {} of {} BLEU in encoder-decoder attention, {} in decoder self-attention and {} in the encoder",
            of_type("enc-dec"),
            fixed(rows("multi30k-en-fr/ablate-one")[0].number("base_score"), 1),
            of_type("dec-dec"),
            of_type("enc-enc")
        ),
        format!("shown to be safe with a probability of at most {}", percent(100.0 * power("minilm-cola"))),
        format!("still {}, that of always", fixed(left(mrpc, "all", "72"), 1)),
        format!("{} of the heads of `{shakespeare}`", safe(shakespeare)),
        format!("by importance, and {} % in the median", fixed(median_of_random(shakespeare), 1)),
        format!("for `{tatoeba}` both are {}", safe(tatoeba)),
        format!("{} of the {} of `{en_fr}`", en_fr_layers.0, en_fr_layers.1),
        format!(
            "is {} % accurate; its largest loss is {} points",
            fixed(rows("minilm-mnli/ablate-one")[0].number("base_score"), 1),
            fixed(largest_loss_of_best_heads(mnli), 1)
        ),
        format!("is {} faster", speedup(mrpc)),
        format!("from {} in `{en_fr}`: with 40 % masked", spared(en_fr_dynamics, 90.0)),
        kept_at(en_fr_dynamics, "1", "58", |[kept, low, high]| {
            format!("it keeps {kept} % of its BLEU at first ({low} to {high})")
        }),
        kept_at(en_fr_dynamics, "14", "58", |[kept, low, high]| {
            format!("and {kept} % at the end ({low} to {high})")
        }),
        format!("rises from {}, but with 40 %", spared(de_en_dynamics, 90.0)),
        kept_at(de_en_dynamics, "1", "58", |[kept, low, high]| format!("masked {kept} % ({low} to {high})")),
        kept_at(de_en_dynamics, "14", "58", |[kept, low, high]| {
            format!("and {kept} % ({low} to {high}) are kept")
        }),
        format!("the share is {} both times", spared(de_en_dynamics, 85.0).rsplit(" to ").next().unwrap()),
        format!("falls, from {} at", spared("tatoeba-language/training-dynamics", 90.0)),
        format!("`{mnli}` loses {} points ({} to {})", fixed(loss, 2), fixed(low, 2), fixed(high, 2)),
        format!("masking alone costs {},", fixed(masking, 1)),
        format!(
            "loses {} nats per token both with 25 % ({} to {})",
            fixed(nats.0, 3),
            fixed(nats.1, 3),
            fixed(nats.2, 3)
        ),
        format!(
            "`{en_fr}` {} BLEU with 50 % and {} with 75 %",
            fixed(retrained(en_fr, 72, false).0, 2),
            fixed(retrained(en_fr, 108, false).0, 2)
        ),
        format!("`{mnli}` still loses {} points", fixed(retrained(mnli, 54, true).0, 1)),
        format!("below {}, 2 % of {},", signed(-0.02 * base, 2), fixed(base, 2)),
        format!("| {} | F1 with all heads", fixed(base, 2)),
        format!("| {} | F1 with this", fixed(of_head.number("score"), 2)),
        format!("| {} | the difference", signed(of_head.number("score_delta"), 2)),
        format!(
            "| {}, {} | its",
            signed(of_head.number("delta_low"), 2),
            signed(of_head.number("delta_high"), 2)
        ),
        format!("| {} | two-sided", fixed(of_head.number("p_value"), 6)),
        format!("| {} | adjusted", fixed(of_head.number("p_adjusted"), 4)),
    ];
    assert_eq!(percent(median_of_random(tatoeba)), safe(tatoeba));
    let history = [
        "0.94",
        "0.61",
        "0.31",
        "cost 6.2 before",
        "until 80 % of the heads were masked",
        "cost 0.42 before",
        "at 38964f8, 53bf1cf and def101d",
    ];
    let given = [
        "Brackets are 95 % intervals",
        "head 1 of layer 2",
        "below 2 % of the score",
        "p < 0.01",
        "all 72 heads",
        "Masking 81 % of one",
        "At 90 % of BLEU",
        "at 85 %",
        "90 % of 1/perplexity",
        "with 1,043 sentences",
        "the same 9,815 pairs",
        "The paper's is 0.96",
        "on 3 % of MNLI",
        "most important 75 % about half",
        "(step 0)",
        "with 75 % of its heads masked",
        "and with 50 %",
        "95 % interval",
        "calls p < 0.01 significant",
        "costs more than 2 %",
    ];
    check("results/README.md", &facts, &[&history[..], &given].concat());
}

/// The score of one way to choose heads less that of another, and whether the difference is significant.
struct Difference {
    point: f64,
    low: f64,
    high: f64,
    is_significant: bool,
}

/// With as many heads, or with all; `sign` is that of the words on the page.
fn contrast(file: &str, kept: usize, methods: Contrast, sign: f64) -> Difference {
    let (subject, gates) = file.split_once('/').unwrap_or((file, "train-gates"));
    let files = Source::subject(&folders(), subject).all(experiment::GATES).unwrap();
    let file =
        files.into_iter().find(|file| file.path.file_stem().is_some_and(|stem| stem == gates)).unwrap();
    let all = Contrasts::read(Gates::read(file).unwrap()).unwrap();
    let place = all.leaders.iter().position(|row| row.kept == kept).unwrap();
    let (_, compared) = all.measured.iter().find(|(contrast, _)| *contrast == methods).unwrap();
    let found = compared[place].unwrap();
    let interval = found.interval.unwrap();
    let (one, other) = (sign * interval.low, sign * interval.high);
    Difference {
        point: sign * found.delta,
        low: one.min(other),
        high: one.max(other),
        is_significant: found.p_adjusted.unwrap() < 0.01,
    }
}

/// The heads of which a row holds, by what their `function` is.
fn heads_with(subject: &str, function: &str) -> Vec<String> {
    let rows = rows(&format!("{subject}/head-functions"));
    let holding = rows.iter().filter(|row| row.text("function") == function && row.text("holds") == "true");
    let mut heads: Vec<String> = holding.map(Row::head).collect();
    heads.sort();
    heads.dedup();
    heads
}

/// Number of these heads that a method keeps.
fn kept(subject: &str, method: &str, number: &str, heads: &[String]) -> usize {
    let rows = rows(&format!("{subject}/train-gates"));
    let row = rows.iter().find(|row| row.text("method") == method && row.text("kept") == number).unwrap();
    row.text("kept_heads").split('+').filter(|head| heads.iter().any(|own| own == head)).count()
}

fn greatest_share(subject: &str, detail: &str, head: Option<&str>) -> f64 {
    let rows = rows(&format!("{subject}/head-functions"));
    let of_detail = rows.iter().filter(|row| row.text("detail") == detail);
    let of_head = of_detail.filter(|row| head.is_none_or(|head| row.head() == head));
    100.0 * of_head.map(|row| row.number("share")).fold(0.0, f64::max)
}

#[test]
fn numbers_on_learned_gates_and_functions_are_those_of_the_results() {
    use Method::{Chosen, Gates as Gated, Importance, Random, Scratch, Ungated};
    let page = prose("results/voita.md");
    let says = |fact: String| assert!(page.contains(&fact), "results/voita.md should say `{fact}`");
    let unsigned = page.replace('+', "");
    for (subject, kept, methods, sign, digits, is_significant, before) in [
        ("multi30k-en-fr", 8, [Gated, Ungated], 1.0, 2, false, "8 of 48: "),
        ("multi30k-en-fr", 12, [Gated, Scratch], 1.0, 2, false, "12 of 48: by "),
        ("minilm-mnli", 18, [Gated, Ungated], 1.0, 2, true, "18 of 72: "),
        ("demo-language", 4, [Chosen, Importance], -1.0, 3, true, "1 of 26: `demo-language`, "),
        ("demo-language", 4, [Gated, Scratch], 1.0, 3, true, "worse by "),
        ("multi30k-en-fr", 4, [Gated, Ungated], 1.0, 2, false, "the change is "),
        ("multi30k-en-fr/train-gates-all", 72, [Gated, Ungated], -1.0, 2, true, "a significant "),
        ("minilm-mrpc", 36, [Chosen, Random], 1.0, 2, true, "F1 is "),
        ("demo-language", 4, [Chosen, Scratch], 1.0, 3, false, "shown to be worse ("),
    ] {
        let found = contrast(subject, kept, methods, sign);
        assert_eq!(found.is_significant, is_significant, "{subject} {methods:?}");
        let [point, low, high] = [found.point, found.low, found.high].map(|value| fixed(value, digits));
        for fact in [format!("{before}{point}"), format!("{low} to {high})")] {
            assert!(unsigned.contains(&fact), "{subject}: results/voita.md should say `{fact}`");
        }
    }
    for (subject, kept, digits, text) in [
        ("demo-language", 24, 3, "by 0.007 nats per token with 24 of 32 heads"),
        ("demo-language", 4, 3, "by 0.047 with 4"),
        ("demo-translation", 48, 2, "by 2.79 BLEU with 48 of 96 encoder heads"),
        ("multi30k-en-fr/train-gates-all", 72, 2, "(by 1.12 BLEU"),
    ] {
        let sign = if subject == "demo-language" { 1.0 } else { -1.0 };
        let found = contrast(subject, kept, [Gated, Chosen], sign);
        assert!(
            found.is_significant && text.contains(&fixed(found.point, digits)),
            "{text}: {}",
            found.point
        );
        says(text.to_owned());
    }
    let (sst2, mnli) = (heads_with("minilm-sst2", "syntactic"), heads_with("minilm-mnli", "syntactic"));
    says(format!(
        "{} of {} (`minilm-sst2`), {} of {} (`minilm-mnli`)",
        kept("minilm-sst2", "gates", "18", &sst2),
        sst2.len(),
        kept("minilm-mnli", "gates", "18", &mnli),
        mnli.len()
    ));
    assert_eq!(kept("minilm-sst2", "importance", "18", &sst2), 4, "importance keeps four");
    let rare = ["minilm-mnli", "minilm-mrpc", "minilm-sst2"]
        .map(|subject| greatest_share(subject, "two-rarest", Some("self:1:10")));
    says(format!(
        "{} to {} %",
        fixed(rare.into_iter().fold(100.0, f64::min), 0),
        fixed(rare.into_iter().fold(0.0, f64::max), 0)
    ));
    says(format!(
        "`multi30k-en-fr`: at most {} %",
        fixed(greatest_share("multi30k-en-fr", "two-rarest", None), 0)
    ));
    let all_gates = rows("multi30k-en-fr/train-gates-all");
    let half =
        all_gates.iter().find(|row| row.text("method") == "gates" && row.text("kept") == "72").unwrap();
    says(format!(
        "72 of 144 left: {} encoder, {} decoder, {} encoder-decoder",
        half.text("kept_enc_enc"),
        half.text("kept_dec_dec"),
        half.text("kept_enc_dec")
    ));
    let relevance = rows("minilm-mnli/relevance-alpha-beta");
    let of = |head: &str| relevance.iter().find(|row| row.head() == head).unwrap().number("relevance");
    says(format!("[largest share of its layer's relevance], {}", fixed(of("self:5:9"), 3)));
    assert_eq!(
        relevance.iter().filter(|row| row.number("relevance") > of("self:4:10")).count(),
        5,
        "sixth-largest"
    );
}

/// The times of recipes stand in the last table of `summary.md`, rounded.
#[test]
fn numbers_of_the_worked_examples_are_those_of_the_results() {
    let page = prose("experiments/README.md");
    let en_fr = |attention: &str| significant("multi30k-en-fr", attention);
    let loss = 55.0 - left("multi30k-en-fr", "enc-enc", "48");
    let shakespeare = rows("shakespeare-char/ablate-one");
    let worst = shakespeare.iter().find(|row| row.head() == "self:1:4").unwrap();
    for fact in [
        format!("themselves: {} in encoder self-attention", en_fr("enc-enc")),
        format!("{} in encoder-decoder attention", en_fr("enc-dec")),
        format!("up to {} of the heads", safe("minilm-sst2")),
        format!("costs {} of 55 BLEU", fixed(loss, 0)),
        format!(
            "81 % of the encoder-decoder heads leaves {}",
            fixed(left("multi30k-en-fr", "enc-dec", "39"), 0)
        ),
        format!("rises from {} to {}", fixed(worst.number("base_score"), 1), fixed(worst.number("score"), 1)),
        format!("one head ({})", safe("shakespeare-char")),
    ] {
        assert!(page.contains(&fact), "experiments/README.md should say `{fact}`");
    }
    assert_eq!([en_fr("dec-dec"), significant("minilm-sst2", "self")], ["0 of 48", "0 of 72"]);
}
