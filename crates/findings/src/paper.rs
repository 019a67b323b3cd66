//! Published numbers: all `michel2019-*.csv` and what there is of `voita2019-*.csv` in one folder, read in one place and never
//! written in code.
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use records::{Attention, SpeedRow};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Everything that the papers print and results can stand beside; nothing where their numbers are not at hand.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Paper {
    numbers: Vec<Number>,
    /// By the name of the table.
    masked: BTreeMap<&'static str, Vec<Masked>>,
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
    /// Table 2 of Voita et al. (2019).
    translators: Vec<Translator>,
}

/// A number of the text or of a figure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Number {
    source: String,
    what: String,
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
    model: String,
    /// Its speed.
    pub examples_per_second: f64,
    /// By how much it is faster than the original one.
    pub speedup_percent: Option<f64>,
}

impl Timed {
    /// Share of heads that it lacks, in percent; absent for the original model.
    pub fn pruned_percent(&self) -> Option<f64> {
        self.model.strip_prefix("pruned-")?.parse().ok()
    }
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

/// What a translator loses with some of its encoder heads, by the data that it was trained on (Voita et al. 2019).
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct EncoderHeads {
    /// The section.
    pub source: String,
    /// What the translator was trained on.
    pub data: String,
    /// Heads that stay.
    pub kept: f64,
    /// Of so many.
    pub heads: f64,
    /// By so much it is worse.
    pub lost_bleu: f64,
}

/// A translator without some heads of all attention types, by the data that it was trained on.
#[derive(Debug, Clone, PartialEq)]
pub struct Sparse {
    /// What the translator was trained on.
    pub data: String,
    /// Heads that stay.
    pub kept: usize,
    /// Of so many.
    pub heads: usize,
    /// BLEU with all heads.
    pub base: f64,
    /// BLEU of the trained model that gates made sparse.
    pub by_gates: f64,
    /// BLEU of the same heads in a new model.
    pub from_scratch: f64,
}

/// Numbers that views ask for: source and words of the file.
pub type Named = (&'static str, &'static str);

/// The intact translator.
pub const BASE_BLEU: Named = ("Table 1", "base BLEU of the WMT model on newstest2013");
/// Encoder heads that were masked one at a time.
pub const HEADS: Named = ("Table 1", "heads tested");
/// How many of them matter.
pub const SIGNIFICANT: Named = ("Table 1", "heads whose removal changes BLEU at p < 0.01");
/// How many of these are better gone.
pub const BETTER: Named = ("Table 1", "of those: heads whose removal raises BLEU");
/// Accuracy of the intact BERT, 0 to 1, and the ends of the histogram.
pub const FIGURE_1B: [Named; 3] = [
    ("Figure 1b", "base accuracy of BERT on MNLI matched"),
    ("Figure 1b", "lower end of the histogram: accuracy with one head masked"),
    ("Figure 1b", "upper end of the histogram: accuracy with one head masked"),
];
/// Of the translator.
pub const FIGURE_2A: Named = ("Figure 2a", "Pearson r between newstest2013 and MTNT (WMT model)");
/// Of BERT.
pub const FIGURE_2B: Named = ("Figure 2b", "Pearson r between MNLI matched and mismatched (BERT)");
/// In percent of the encoder-decoder heads.
pub const BREAKDOWN: Named = ("Figure 4", "share of Enc-Dec heads after which pruning is catastrophic");
/// Of the translator.
pub const BLEU_LEFT: Named = ("Figure 4", "BLEU left with 20 percent of the Enc-Enc or of the Dec-Dec heads");
/// In percent of the heads.
pub const FIGURE_5: Named =
    ("Figure 5", "share of heads prunable from epoch 10 on within 85-90 percent of BLEU");

impl Paper {
    /// Reads all files; none may lack a number that views ask for.
    pub fn read(folder: &Path) -> Result<Self> {
        let tables = ["table1", "table2", "table3", "table5", "table6"];
        let masked = |table| Ok((table, rows(folder, &format!("michel2019-{table}"))?));
        let paper = Self {
            numbers: rows(folder, "michel2019-summary")?,
            masked: tables.into_iter().map(masked).collect::<Result<_>>()?,
            shares: rows(folder, "michel2019-shares")?,
            timed: rows(folder, "michel2019-table4")?,
            epochs: rows(folder, "michel2019-figure5")?,
            rare_tokens: rows(folder, "voita2019-rare-tokens")?,
            encoder_heads: rows(folder, "voita2019-encoder-heads")?,
            translators: rows(folder, "voita2019-table2-all-heads")?,
        };
        let single =
            [BASE_BLEU, HEADS, SIGNIFICANT, BETTER, FIGURE_2A, FIGURE_2B, BREAKDOWN, BLEU_LEFT, FIGURE_5];
        let mut named = single.into_iter().chain(FIGURE_1B);
        if let Some((_, what)) = named.find(|&name| paper.value(name).is_none()) {
            bail!("`{}` has no row `{what}`", folder.join("michel2019-summary.csv").display());
        }
        Ok(paper)
    }

    /// The same; nothing where there is no such folder, since a table or figure without published numbers is better than none.
    pub fn read_if_there(folder: &Path) -> Result<Option<Self>> {
        folder.is_dir().then(|| Self::read(folder)).transpose()
    }

    /// One number; absent only where none are at hand.
    pub fn value(&self, (source, what): Named) -> Option<f64> {
        Some(self.numbers.iter().find(|number| number.source == source && number.what == what)?.value)
    }

    /// Several of them.
    pub fn values<const N: usize>(&self, names: [Named; N]) -> Option<[f64; N]> {
        let values: Option<Vec<f64>> = names.into_iter().map(|name| self.value(name)).collect();
        values?.try_into().ok()
    }

    /// The speedup at the batch size of a row, of a share of heads that is the row's but for less than one head.
    pub fn speedup(&self, row: &SpeedRow) -> Option<f64> {
        let is_near = |share: f64| (share / 100.0 * row.heads as f64 - row.removed as f64).abs() < 1.0;
        let is_same = |model: &&Timed| {
            model.batch_size == row.batch_size && model.pruned_percent().is_some_and(is_near)
        };
        self.timed.iter().find(is_same)?.speedup_percent
    }

    /// The cells of a table on masked heads; none of others.
    pub fn masked(&self, table: &str) -> &[Masked] {
        self.masked.get(table).map_or(&[], Vec::as_slice)
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

/// The rows of a file, which may have more columns than are asked for.
fn rows<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Vec<T>> {
    let path = folder.join(format!("{name}.csv"));
    let context = || format!("cannot read `{}`", path.display());
    let text = std::fs::read_to_string(&path).with_context(context)?;
    let rows = csv::Reader::from_reader(text.as_bytes()).into_deserialize();
    let rows: Vec<T> = rows.collect::<Result<_, _>>().with_context(context)?;
    ensure!(!rows.is_empty(), "`{}` has no rows", path.display());
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paper() -> Paper {
        Paper::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/paper")).unwrap()
    }

    /// 14 + 31 + 30 of 3 x 48 heads are the first row of the table, 6 + 9 + 13 the last.
    #[test]
    fn sparse_translators_are_read_with_their_base() {
        let found = paper().sparse();
        let of = |own: &Sparse| {
            (own.data.clone(), own.kept, own.heads, [own.base, own.by_gates, own.from_scratch])
        };
        assert_eq!(found.len(), 7);
        assert_eq!(of(&found[0]), ("WMT".to_owned(), 75, 144, [29.6, 29.62, 29.47]));
        assert_eq!(of(&found[6]), ("OpenSubtitles".to_owned(), 28, 144, [32.4, 32.27, 31.84]));
    }

    #[test]
    fn what_the_text_of_voita_says_is_read_whole() {
        let paper = paper();
        let rare =
            paper.rare_tokens.iter().map(|own| (&own.source[..], &own.data[..], own.percent, own.is_least));
        let heads = paper.encoder_heads.iter();
        let heads = heads.map(|own| (&own.source[..], &own.data[..], own.kept, own.heads, own.lost_bleu));
        assert_eq!(
            (Vec::from_iter(rare), Vec::from_iter(heads)),
            (
                vec![("Section 5.3", "OpenSubtitles", 83.0, false), ("Section 5.3", "WMT", 50.0, true)],
                vec![
                    ("Section 6.2", "OpenSubtitles", 4.0, 48.0, 0.25),
                    ("Section 6.2", "WMT", 10.0, 48.0, 0.15)
                ],
            )
        );
    }

    /// The summary and the tables come from different places of the paper and must agree.
    #[test]
    fn published_counts_shares_and_speedups_agree_with_each_other() {
        let paper = paper();
        let table1 = paper.masked("table1");
        let significant: Vec<_> = table1.iter().filter(|cell| cell.significant).collect();
        let better = significant.iter().filter(|cell| cell.delta > 0.0).count();
        let counts = [table1.len(), significant.len(), better].map(|count| count as f64);
        assert_eq!(Some(counts), paper.values([HEADS, SIGNIFICANT, BETTER]));
        assert_eq!(
            paper.values(FIGURE_1B).unwrap().map(|value| format!("{value:.3}")),
            ["0.834", "0.824", "0.838"]
        );
        let shares: Vec<_> = paper.shares.iter().map(|share| (&share.figure[..], share.percent)).collect();
        let expected = [("Figure 3a", 20.0), ("Figure 3b", 40.0), ("Figure 6a", 60.0), ("Figure 6b", 50.0)];
        assert_eq!(shares, [&expected[..], &[("Figure 6c", 50.0), ("Figure 6d", 20.0)]].concat());
        // Speeds are rounded too: 17.3 / 17.0 is 1.8 % more, not 1.9.
        for pair in paper.timed.chunks(2) {
            assert_eq!((pair[0].pruned_percent(), pair[1].pruned_percent()), (None, Some(50.0)));
            let more = 100.0 * (pair[1].examples_per_second / pair[0].examples_per_second - 1.0);
            assert!((more - pair[1].speedup_percent.unwrap()).abs() < 0.15);
        }
    }
}
