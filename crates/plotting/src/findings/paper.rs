//! Published numbers, read only from the files in `data/paper/`, which are embedded in the program.
use std::collections::BTreeMap;
use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior, Value, context};
use records::{Attention, Scope, SpeedRow};
use serde::de::DeserializeOwned;
use serde::de::value::{Error as NoSuchKey, MapDeserializer};
use serde::{Deserialize, Serialize};

use crate::findings::ablations::Model;
use crate::findings::results::percent;

/// The published numbers.
pub static PAPER: LazyLock<Paper> = LazyLock::new(Paper::read);

/// Everything printed in the papers that results can be compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Paper {
    /// Numbers from the text and the figures.
    pub summary: Summary,
    /// Table 1: single heads masked.
    pub single_heads: Vec<Masked>,
    /// The best head of each layer alone: Tables 2 and 3, and 5 and 6 for heads chosen on other data; translator, then BERT.
    best: [[Vec<Masked>; 2]; 2],
    /// Figures 3 and 6.
    pub shares: Vec<Share>,
    /// Table 4: original and pruned models alternate.
    pub timed: Vec<Timed>,
    /// Figure 5.
    pub epochs: Vec<Epoch>,
    /// The rare-token head, from the text of Voita et al. (2019).
    pub rare_tokens: Vec<RareTokens>,
    /// Translators with the heads that gates keep, from the text and Table 2 of Voita et al. (2019).
    pub few_heads: Vec<FewHeads>,
    /// Table 1 of Voita et al. (2019).
    dependencies: Vec<Dependency>,
}

/// Numbers from the text and the figures, by the keys of `michel2019-summary.csv`, which explains each and names its source.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[expect(missing_docs, reason = "the file says what they are")]
pub struct Summary {
    pub base_bleu: f64,
    pub heads: f64,
    pub significant: f64,
    pub better: f64,
    base_accuracy: f64,
    lowest_accuracy: f64,
    highest_accuracy: f64,
    pub r_of_translator: f64,
    pub r_of_bert: f64,
    pub breakdown_percent: f64,
    pub bleu_left: f64,
    pub prunable_percent: f64,
}

impl Summary {
    /// Returns the accuracy of the full BERT model, and the minimum and maximum with one head masked, in percent: Figure 1b.
    pub fn accuracies(&self) -> [f64; 3] {
        [self.base_accuracy, self.lowest_accuracy, self.highest_accuracy].map(|share| 100.0 * share)
    }
}

/// Change of the score with one head masked, or with all others of its layer masked.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Masked {
    /// Attention type of the layer.
    pub attention: Attention,
    /// Layer, counted from 1.
    pub layer: usize,
    /// Score minus the base score, in points of BLEU or of accuracy.
    #[serde(alias = "delta_bleu", alias = "delta_accuracy_points")]
    pub delta: f64,
    /// `true` if the cell is underlined (p < 0.01).
    pub significant: bool,
}

/// Speed of BERT.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Timed {
    /// Examples per batch.
    pub batch_size: usize,
    /// Share of heads removed, in percent; `None` for the original model.
    pruned_percent: Option<f64>,
    /// Examples per second.
    pub examples_per_second: f64,
    /// Speedup compared with the original model, in percent.
    pub speedup_percent: Option<f64>,
}

/// Score of the full model after an epoch, counted from 1.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[expect(missing_docs, reason = "as in the figure")]
pub struct Epoch {
    pub epoch: usize,
    pub unpruned_bleu: f64,
}

/// Share of heads that can be pruned "without noticeable loss", in percent, for one model and test set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "as in the figure")]
pub struct Share {
    pub figure: String,
    pub task: String,
    pub percent: f64,
}

/// Share of sentences in which the rare-token head attends to one of the two rarest tokens (Voita et al. 2019).
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RareTokens {
    /// Section of the paper.
    pub source: String,
    /// Training data of the translator.
    pub data: String,
    /// Share of the sentences, in percent.
    pub percent: f64,
    /// `true` if the paper only gives this lower bound.
    pub is_least: bool,
}

/// Accuracy, in percent, of the best encoder head for a relation, and of its most frequent position (Voita et al. 2019, Table 1).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "as in the table")]
pub struct Dependency {
    relation: String,
    direction: String,
    #[serde(rename = "wmt_best_head_percent")]
    pub wmt: f64,
    #[serde(rename = "wmt_positional_baseline_percent")]
    pub wmt_position: f64,
    #[serde(rename = "opensubtitles_best_head_percent")]
    pub subtitles: f64,
    #[serde(rename = "opensubtitles_positional_baseline_percent")]
    pub subtitles_position: f64,
}

/// A translator with the heads that gates keep (Voita et al. 2019).
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct FewHeads {
    /// Section or table of the paper.
    pub source: String,
    /// Training data of the translator.
    pub data: String,
    /// Heads with gates.
    pub gates: Scope,
    /// Number of gated heads that are kept.
    pub kept: usize,
    /// Number of gated heads.
    pub heads: usize,
    /// Change of BLEU, if the scores are not printed.
    change: Option<f64>,
    /// BLEU of the full model.
    pub base: Option<f64>,
    /// BLEU after training the gates in a trained model.
    pub by_gates: Option<f64>,
    /// BLEU of a new model trained with only these heads.
    pub from_scratch: Option<f64>,
}

impl FewHeads {
    /// Returns the share of gated heads that are kept, in percent.
    pub fn percent(&self) -> f64 {
        percent(self.kept, self.heads)
    }

    /// Returns the change of BLEU, in points.
    pub fn change(&self) -> f64 {
        let printed = self.by_gates.zip(self.base).map(|(by_gates, base)| by_gates - base);
        printed.or(self.change).expect("a test reads all rows")
    }
}

/// Reads the rows of a file in `data/paper/`.
macro_rules! published {
    ($name:literal) => {
        rows(include_str!(concat!("../../../../data/paper/", $name, ".csv")))
    };
}

impl Paper {
    fn read() -> Self {
        Self {
            summary: summary(published!("michel2019-summary")),
            single_heads: published!("michel2019-table1"),
            best: [
                [published!("michel2019-table2"), published!("michel2019-table3")],
                [published!("michel2019-table5"), published!("michel2019-table6")],
            ],
            shares: published!("michel2019-shares"),
            timed: published!("michel2019-table4"),
            epochs: published!("michel2019-figure5"),
            rare_tokens: published!("voita2019-rare-tokens"),
            few_heads: published!("voita2019-few-heads"),
            dependencies: published!("voita2019-table1"),
        }
    }

    /// Returns a sentence on published numbers for comparison with ours: the template of this name in `paper.toml`.
    pub fn sentence(&self, name: &str) -> String {
        self.sentence_on(name, Scope::All)
    }

    /// Like [`sentence`](Self::sentence), for translators with gates on these heads.
    pub fn sentence_on(&self, name: &str, scope: Scope) -> String {
        let templates: BTreeMap<String, String> =
            toml::from_str(include_str!("paper.toml")).expect("a test reads all sentences");
        let Self { summary, timed, epochs, few_heads, .. } = self;
        let gated = few_heads.iter().filter(|own| own.gates == scope);
        let gated = gated.map(|own| context! { change => own.change(), ..Value::from_serialize(own) });
        let gated = gated.collect::<Vec<_>>();
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.add_function("fixed", words::fixed);
        environment.add_function("signed", words::signed);
        environment.add_function("tenths", words::tenths);
        environment.add_function("typeset", words::typeset);
        let sentence = environment.render_str(&templates[name], context! { summary, timed, epochs, gated });
        sentence.expect("a test reads all sentences")
    }

    /// Returns published changes with the best head of each layer alone, chosen on other data or not; empty for language models.
    pub fn best_heads(&self, model: Model, is_other_split: bool) -> &[Masked] {
        let [translator, bert] = &self.best[usize::from(is_other_split)];
        match model {
            Model::Translator => translator,
            Model::Classifier => bert,
            Model::Language => &[],
        }
    }

    /// Returns the speedup at the row's batch size for the row's share of removed heads, within one head.
    pub fn speedup(&self, row: &SpeedRow) -> Option<f64> {
        let is_near = |share: f64| (share / 100.0 * row.heads as f64 - row.removed as f64).abs() < 1.0;
        let is_same =
            |model: &&Timed| model.batch_size == row.batch_size && model.pruned_percent.is_some_and(is_near);
        self.timed.iter().find(is_same)?.speedup_percent
    }

    /// Returns a relation by its name in `head-functions`, such as `obj:verb->object`; CoreNLP's `dobj` is `obj` in Universal Dependencies.
    pub fn dependency(&self, name: &str) -> Option<&Dependency> {
        let (relation, direction) = name.split_once(':')?;
        let relation = if relation == "obj" { "dobj" } else { relation };
        self.dependencies.iter().find(|own| own.relation == relation && own.direction == direction)
    }
}

fn summary(numbers: Vec<Number>) -> Summary {
    let numbers = numbers.into_iter().map(|own| (own.key, own.value));
    Summary::deserialize(MapDeserializer::<_, NoSuchKey>::new(numbers)).expect("a test reads all numbers")
}

/// A row of the file read into a [`Summary`].
#[derive(Debug, Deserialize)]
struct Number {
    key: String,
    value: f64,
}

/// Parses a file, which may have more columns than are read.
fn rows<T: DeserializeOwned>(text: &str) -> Vec<T> {
    let rows = csv::Reader::from_reader(text.as_bytes()).into_deserialize();
    rows.collect::<Result<_, _>>().expect("a test reads all files")
}

#[cfg(test)]
mod tests {
    use words::fixed;

    use super::*;

    /// The summary and the tables come from different parts of the paper and must agree.
    #[test]
    fn published_counts_and_speedups_agree_with_each_other() {
        let paper = &*PAPER;
        let significant: Vec<_> = paper.single_heads.iter().filter(|cell| cell.significant).collect();
        let better = significant.iter().filter(|cell| cell.delta > 0.0).count();
        let counts = [paper.single_heads.len(), significant.len(), better].map(|count| count as f64);
        let Summary { heads, significant, better, .. } = paper.summary;
        assert_eq!(counts, [heads, significant, better]);
        assert!(PAPER.sentence("figure2b").ends_with("r = 0.68"), "{}", PAPER.sentence("figure2b"));
        assert_eq!(paper.summary.accuracies().map(|percent| fixed(percent, 1)), ["83.4", "82.4", "83.8"]);
        assert!(paper.few_heads.iter().all(|own| own.change().abs() < 1.0));
        // speeds are rounded too: 17.3 / 17.0 is 1.8% more, not 1.9%
        for pair in paper.timed.chunks(2) {
            assert_eq!((pair[0].pruned_percent, pair[1].pruned_percent), (None, Some(50.0)));
            let more = 100.0 * (pair[1].examples_per_second / pair[0].examples_per_second - 1.0);
            assert!((more - pair[1].speedup_percent.unwrap()).abs() < 0.15);
        }
    }
}
