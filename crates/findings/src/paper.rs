//! Published numbers: the files in `data/paper/`, which are part of the program, read in one place and never written in code.
use std::sync::LazyLock;

use records::{Attention, Scope, SpeedRow};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde::de::value::{Error as NoSuchKey, MapDeserializer};

use crate::sweep::Model;

/// The published numbers.
pub static PAPER: LazyLock<Paper> = LazyLock::new(Paper::read);

/// Everything that the papers print and results can stand beside.
#[derive(Debug, Clone, PartialEq)]
pub struct Paper {
    /// Numbers of the text and of figures.
    pub summary: Summary,
    /// Table 1: single heads masked.
    pub single_heads: Vec<Masked>,
    /// The best head of each layer alone, chosen on the test set: Table 2 of the translator, Table 3 of BERT.
    best: [Vec<Masked>; 2],
    /// The same chosen on other data: Tables 5 and 6.
    best_elsewhere: [Vec<Masked>; 2],
    /// Figures 3 and 6.
    pub shares: Vec<Share>,
    /// Table 4: original and pruned models in turn.
    pub timed: Vec<Timed>,
    /// Figure 5.
    pub epochs: Vec<Epoch>,
    /// What a head for rare tokens does, by the text of Voita et al. (2019).
    pub rare_tokens: Vec<RareTokens>,
    /// What gates leave of translators, by the text and Table 2 of the same.
    pub few_heads: Vec<FewHeads>,
    /// Table 1 of the same.
    dependencies: Vec<Dependency>,
}

/// Numbers of the text and of figures, by the keys of `michel2019-summary.csv`, which says where each stands.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Summary {
    /// BLEU of the intact translator.
    pub base_bleu: f64,
    /// Number of its encoder heads, which were masked one at a time.
    pub heads: f64,
    /// Number of these that change BLEU significantly.
    pub significant: f64,
    /// Number of the latter that are better gone.
    pub better: f64,
    /// Accuracy of the intact BERT, 0 to 1.
    base_accuracy: f64,
    /// The least accuracy with one head masked, 0 to 1.
    lowest_accuracy: f64,
    /// The greatest accuracy with one head masked, 0 to 1.
    highest_accuracy: f64,
    /// Pearson's r between two test sets of the translator.
    pub r_of_translator: f64,
    /// Pearson's r between two test sets of BERT.
    pub r_of_bert: f64,
    /// Percentage of encoder-decoder heads after which masking more is catastrophic.
    pub breakdown_percent: f64,
    /// BLEU that is left with 20 % of the heads of another type.
    pub bleu_left: f64,
    /// Percentage of heads that can go from epoch 10 on.
    pub prunable_percent: f64,
}

impl Summary {
    /// Accuracy of the intact BERT, and the least and the greatest with one head masked, in percent: Figure 1b.
    pub fn accuracies(&self) -> [f64; 3] {
        [self.base_accuracy, self.lowest_accuracy, self.highest_accuracy].map(|share| 100.0 * share)
    }
}

/// A row of the file of a [`Summary`].
#[derive(Debug, Deserialize)]
struct Number {
    key: String,
    value: f64,
}

/// What is left with one head masked, or with the best one of a layer alone.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Masked {
    /// The type of the layer.
    pub attention: Attention,
    /// Counted from 1.
    pub layer: usize,
    /// Score minus the base score, in points of BLEU or of accuracy.
    #[serde(alias = "delta_bleu", alias = "delta_accuracy_points")]
    pub delta: f64,
    /// Whether the cell is underlined (p < 0.01).
    pub significant: bool,
}

/// How fast BERT is.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Timed {
    /// Examples that are read at once.
    pub batch_size: usize,
    /// Share of heads that it lacks, in percent; absent for the original model.
    pruned_percent: Option<f64>,
    /// Its speed.
    pub examples_per_second: f64,
    /// By how much it is faster than the original one, in percent.
    pub speedup_percent: Option<f64>,
}

/// The score with all heads after an epoch.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Epoch {
    /// Counted from 1.
    pub epoch: usize,
    /// As the figure has it.
    pub unpruned_bleu: f64,
}

/// The share of heads that can go "without noticeable loss", for one model and test set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Share {
    /// Which shows it.
    pub figure: String,
    /// Model and test set.
    pub task: String,
    /// Of the heads.
    pub percent: f64,
}

/// How often the head for rare tokens looks at one of the two rarest, by the data that the translator was trained on (Voita et
/// al. 2019).
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RareTokens {
    /// The section.
    pub source: String,
    /// What the translator was trained on.
    pub data: String,
    /// How often, in percent of the sentences.
    pub percent: f64,
    /// Whether only this much is said, that it is more.
    pub is_least: bool,
}

/// How often the best encoder head for a relation looks at the partner, and how often that stands at its most frequent place, in
/// percent, of the two translators of Voita et al. (2019), Table 1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Dependency {
    relation: String,
    direction: String,
    /// By the best head of the translator of WMT.
    #[serde(rename = "wmt_best_head_percent")]
    pub wmt: f64,
    /// By position, in the test set of WMT.
    #[serde(rename = "wmt_positional_baseline_percent")]
    pub wmt_position: f64,
    /// By the best head of the translator of OpenSubtitles.
    #[serde(rename = "opensubtitles_best_head_percent")]
    pub subtitles: f64,
    /// By position, in the test set of OpenSubtitles.
    #[serde(rename = "opensubtitles_positional_baseline_percent")]
    pub subtitles_position: f64,
}

/// A translator with the heads that gates leave, by the data that it was trained on (Voita et al. 2019).
#[derive(Debug, Clone, PartialEq)]
pub struct FewHeads {
    /// The section or table.
    pub source: String,
    /// What the translator was trained on.
    pub data: String,
    /// Which heads have gates.
    pub gates: Scope,
    /// Number of these that are kept.
    pub kept: usize,
    /// Number of these.
    pub heads: usize,
    /// By how much BLEU changes, in points.
    pub change: f64,
    /// The scores, where more than the change is printed.
    pub scores: Option<Sparse>,
}

impl FewHeads {
    /// The share that is kept, in percent.
    pub fn percent(&self) -> f64 {
        100.0 * self.kept as f64 / self.heads as f64
    }
}

/// BLEU of translators of Voita et al. (2019), Table 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sparse {
    /// With all heads.
    pub base: f64,
    /// Of the trained model that gates made sparse.
    pub by_gates: f64,
    /// Of the same heads in a new model.
    pub from_scratch: f64,
}

/// A row on the encoder heads that are kept.
#[derive(Debug, Deserialize)]
struct EncoderHeads {
    source: String,
    data: String,
    kept: usize,
    heads: usize,
    lost_bleu: f64,
}

/// A row of Table 2.
#[derive(Debug, Deserialize)]
struct Translator {
    data: String,
    encoder_self_heads: usize,
    decoder_self_heads: usize,
    decoder_encoder_heads: usize,
    bleu_from_trained: Option<f64>,
    bleu_from_scratch: f64,
}

impl Translator {
    fn heads(&self) -> usize {
        self.encoder_self_heads + self.decoder_self_heads + self.decoder_encoder_heads
    }
}

/// What tables of Voita et al. (2019) call the data of the translator that Michel et al. (2019) prune too.
pub const WMT: &str = "WMT";

/// The rows of a file in `data/paper/`.
macro_rules! published {
    ($name:literal) => {
        rows(include_str!(concat!("../../../data/paper/", $name, ".csv")))
    };
}

impl Paper {
    fn read() -> Self {
        Self {
            summary: summary(published!("michel2019-summary")),
            single_heads: published!("michel2019-table1"),
            best: [published!("michel2019-table2"), published!("michel2019-table3")],
            best_elsewhere: [published!("michel2019-table5"), published!("michel2019-table6")],
            shares: published!("michel2019-shares"),
            timed: published!("michel2019-table4"),
            epochs: published!("michel2019-figure5"),
            rare_tokens: published!("voita2019-rare-tokens"),
            few_heads: few_heads(
                published!("voita2019-encoder-heads"),
                &published!("voita2019-table2-all-heads"),
            ),
            dependencies: published!("voita2019-table1"),
        }
    }

    /// What is left with the best head of a layer alone, chosen on other data or not; nothing of language models.
    pub fn best_heads(&self, model: Model, is_other_split: bool) -> &[Masked] {
        let [translator, bert] = if is_other_split { &self.best_elsewhere } else { &self.best };
        match model {
            Model::Translator => translator,
            Model::Classifier => bert,
            Model::Language => &[],
        }
    }

    /// The speedup at the batch size of a row, of a share of heads that is the row's but for less than one head.
    pub fn speedup(&self, row: &SpeedRow) -> Option<f64> {
        let is_near = |share: f64| (share / 100.0 * row.heads as f64 - row.removed as f64).abs() < 1.0;
        let is_same =
            |model: &&Timed| model.batch_size == row.batch_size && model.pruned_percent.is_some_and(is_near);
        self.timed.iter().find(is_same)?.speedup_percent
    }

    /// A relation and direction as `head-functions` names them, `obj:verb->object`: Universal Dependencies call `obj` what CoreNLP
    /// called `dobj`.
    pub fn dependency(&self, name: &str) -> Option<&Dependency> {
        let (relation, direction) = name.split_once(':')?;
        let relation = if relation == "obj" { "dobj" } else { relation };
        self.dependencies.iter().find(|own| own.relation == relation && own.direction == direction)
    }
}

/// The text, and the translators of Table 2 behind the one with all heads that stands before those of the same data.
fn few_heads(encoders: Vec<EncoderHeads>, translators: &[Translator]) -> Vec<FewHeads> {
    let of_encoder = |EncoderHeads { source, data, kept, heads, lost_bleu }| FewHeads {
        source,
        data,
        gates: Scope::One(Attention::EncEnc),
        kept,
        heads,
        change: -lost_bleu,
        scores: None,
    };
    let mut few: Vec<_> = encoders.into_iter().map(of_encoder).collect();
    for translator in translators {
        let is_base =
            |other: &&Translator| other.bleu_from_trained.is_none() && other.data == translator.data;
        let base = translators.iter().find(is_base);
        let Some((base, by_gates)) = base.zip(translator.bleu_from_trained) else { continue };
        // the table writes in lower case what the text spells
        let spelled = few.iter().find(|own| own.data.eq_ignore_ascii_case(&translator.data));
        few.push(FewHeads {
            source: "Table 2".to_owned(),
            data: spelled.map_or(&translator.data, |own| &own.data).clone(),
            gates: Scope::All,
            kept: translator.heads(),
            heads: base.heads(),
            change: by_gates - base.bleu_from_scratch,
            scores: Some(Sparse {
                base: base.bleu_from_scratch,
                by_gates,
                from_scratch: translator.bleu_from_scratch,
            }),
        });
    }
    few
}

fn summary(numbers: Vec<Number>) -> Summary {
    let numbers = numbers.into_iter().map(|own| (own.key, own.value));
    Summary::deserialize(MapDeserializer::<_, NoSuchKey>::new(numbers)).expect("a test reads all numbers")
}

/// The rows of a file, which may have more columns than are asked for.
fn rows<T: DeserializeOwned>(text: &str) -> Vec<T> {
    let rows = csv::Reader::from_reader(text.as_bytes()).into_deserialize();
    rows.collect::<Result<_, _>>().expect("a test reads all files")
}

#[cfg(test)]
mod tests {
    use words::fixed;

    use super::*;

    /// The summary and the tables come from different places of the paper and must agree.
    #[test]
    fn published_counts_and_speedups_agree_with_each_other() {
        let paper = &*PAPER;
        let significant: Vec<_> = paper.single_heads.iter().filter(|cell| cell.significant).collect();
        let better = significant.iter().filter(|cell| cell.delta > 0.0).count();
        let counts = [paper.single_heads.len(), significant.len(), better].map(|count| count as f64);
        let Summary { heads, significant, better, .. } = paper.summary;
        assert_eq!(counts, [heads, significant, better]);
        assert_eq!(paper.summary.accuracies().map(|percent| fixed(percent, 1)), ["83.4", "82.4", "83.8"]);
        // Speeds are rounded too: 17.3 / 17.0 is 1.8 % more, not 1.9.
        for pair in paper.timed.chunks(2) {
            assert_eq!((pair[0].pruned_percent, pair[1].pruned_percent), (None, Some(50.0)));
            let more = 100.0 * (pair[1].examples_per_second / pair[0].examples_per_second - 1.0);
            assert!((more - pair[1].speedup_percent.unwrap()).abs() < 0.15);
        }
    }
}
