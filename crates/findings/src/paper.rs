//! Published numbers: all `michel2019-*.csv` and what there is of `voita2019-*.csv` in one folder, read in one place and never
//! written in code.
use std::io;
use std::path::{Path, PathBuf};

use records::{Attention, SpeedRow};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde::de::value::{Error as NoSuchKey, MapDeserializer};

use crate::error::{Result, faulty, unreadable};
use crate::sweep::Model;

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
    /// What is lost with few encoder heads, by the same text.
    pub encoder_heads: Vec<EncoderHeads>,
    /// Table 1 of the same.
    dependencies: Vec<Dependency>,
    /// Table 2 of the same.
    translators: Vec<Translator>,
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

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Translator {
    data: String,
    model: String,
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

/// What a translator loses with some of its encoder heads, by the data that it was trained on (Voita et al. 2019).
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct EncoderHeads {
    /// The section.
    pub source: String,
    /// What the translator was trained on.
    pub data: String,
    /// Number of heads kept.
    pub kept: f64,
    /// Number of heads that it had.
    pub heads: f64,
    /// By how much it is worse, in points of BLEU.
    pub lost_bleu: f64,
}

/// A translator without some heads of all attention types, by the data that it was trained on.
#[derive(Debug, Clone, PartialEq)]
pub struct Sparse {
    /// What the translator was trained on.
    pub data: String,
    /// Number of heads kept.
    pub kept: usize,
    /// Number of heads that it had.
    pub heads: usize,
    /// BLEU with all heads.
    pub base: f64,
    /// BLEU of the trained model that gates made sparse.
    pub by_gates: f64,
    /// BLEU of the same heads in a new model.
    pub from_scratch: f64,
}

/// What tables of Voita et al. (2019) call the data of the translator that Michel et al. (2019) prune too.
pub const WMT: &str = "WMT";

impl Paper {
    /// Reads all files; none may lack a number that views ask for.
    pub fn read(folder: &Path) -> Result<Self> {
        let michel = |name: &str| format!("michel2019-{name}");
        let both = |[one, other]: [&str; 2]| -> Result<_> {
            Ok([rows(folder, &michel(one))?, rows(folder, &michel(other))?])
        };
        Ok(Self {
            summary: summary(folder, &michel("summary"))?,
            single_heads: rows(folder, &michel("table1"))?,
            best: both(["table2", "table3"])?,
            best_elsewhere: both(["table5", "table6"])?,
            shares: rows(folder, &michel("shares"))?,
            timed: rows(folder, &michel("table4"))?,
            epochs: rows(folder, &michel("figure5"))?,
            rare_tokens: rows(folder, "voita2019-rare-tokens")?,
            encoder_heads: rows(folder, "voita2019-encoder-heads")?,
            dependencies: rows(folder, "voita2019-table1")?,
            translators: rows(folder, "voita2019-table2-all-heads")?,
        })
    }

    /// The same; nothing where there is no such folder, since a table or figure without published numbers is better than none.
    pub fn read_if_there(folder: &Path) -> Result<Option<Self>> {
        folder.is_dir().then(|| Self::read(folder)).transpose()
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

    /// Translators without some heads of all attention types (Voita et al. 2019, Table 2).
    pub fn sparse(&self) -> Vec<Sparse> {
        // the table writes in lower case what the text spells
        let data: Vec<String> = self.encoder_heads.iter().map(|own| own.data.clone()).collect();
        let spelled =
            |name: &String| data.iter().find(|own| own.eq_ignore_ascii_case(name)).unwrap_or(name).to_owned();
        let found = |own: &Translator| {
            let is_base = |other: &&Translator| other.model == "baseline" && other.data == own.data;
            let base = self.translators.iter().find(is_base)?;
            Some(Sparse {
                data: spelled(&own.data),
                kept: own.heads(),
                heads: base.heads(),
                base: base.bleu_from_scratch,
                by_gates: own.bleu_from_trained?,
                from_scratch: own.bleu_from_scratch,
            })
        };
        self.translators.iter().filter_map(found).collect()
    }
}

fn summary(folder: &Path, name: &str) -> Result<Summary> {
    let numbers: Vec<Number> = rows(folder, name)?;
    let fields = MapDeserializer::<_, NoSuchKey>::new(numbers.into_iter().map(|own| (own.key, own.value)));
    Summary::deserialize(fields).map_err(unreadable(&file(folder, name)))
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.csv"))
}

/// The rows of a file, which may have more columns than are asked for.
fn rows<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Vec<T>> {
    let path = file(folder, name);
    let text = durable::open_regular(&path).and_then(io::read_to_string).map_err(unreadable(&path))?;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let mut rows = Vec::new();
    let columns = reader.headers().map_err(unreadable(&path))?.clone();
    for record in reader.into_records() {
        let record = record.map_err(unreadable(&path))?;
        let is_not_finite = |cell: &&str| cell.parse().is_ok_and(|number: f64| !number.is_finite());
        if let Some(cell) = record.iter().find(is_not_finite) {
            let line = record.position().map_or(0, csv::Position::line);
            return Err(faulty(&path, format!("has `{cell}` in line {line}, which is not a finite number")));
        }
        rows.push(record.deserialize(Some(&columns)).map_err(unreadable(&path))?);
    }
    if rows.is_empty() { Err(faulty(&path, "has no rows")) } else { Ok(rows) }
}

#[cfg(test)]
mod tests {
    use words::fixed;

    use super::*;

    fn paper() -> Paper {
        Paper::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/paper")).unwrap()
    }

    /// The summary and the tables come from different places of the paper and must agree.
    #[test]
    fn published_counts_and_speedups_agree_with_each_other() {
        let paper = paper();
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
