//! Published numbers: all `michel2019-*.csv` and what there is of `voita2019-*.csv` in one folder, read in one place as one table
//! and never written in code.
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use records::Attention;
use serde::Deserialize;

/// Everything that Michel et al. (2019) print and results can stand beside; values of other files are absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Paper(BTreeMap<&'static str, Vec<Published>>);

/// A row of any of the files.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Published {
    source: Option<String>,
    what: Option<String>,
    value: Option<f64>,
    pub attention: Option<Attention>,
    pub layer: Option<usize>,
    /// Score minus the base score, in points of BLEU or of accuracy.
    #[serde(alias = "delta_bleu", alias = "delta_accuracy_points")]
    pub delta: Option<f64>,
    /// Whether the cell is underlined (p < 0.01).
    pub significant: Option<bool>,
    pub batch_size: Option<usize>,
    /// `original`, or `pruned-50` without 50 % of the heads.
    pub model: Option<String>,
    pub examples_per_second: Option<f64>,
    pub speedup_percent: Option<f64>,
    pub epoch: Option<usize>,
    pub unpruned_bleu: Option<f64>,
    data: Option<String>,
    encoder_self_heads: Option<usize>,
    decoder_self_heads: Option<usize>,
    decoder_encoder_heads: Option<usize>,
    bleu_from_trained: Option<f64>,
    bleu_from_scratch: Option<f64>,
}

/// The share of heads that can go "without noticeable loss", for one model and test set.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    pub figure: String,
    pub task: String,
    pub percent: f64,
}

/// Numbers that views ask for: source and words of the file.
pub type Named = (&'static str, &'static str);

pub const BASE_BLEU: Named = ("Table 1", "base BLEU of the WMT model on newstest2013");
pub const HEADS: Named = ("Table 1", "heads tested");
pub const SIGNIFICANT: Named = ("Table 1", "heads whose removal changes BLEU at p < 0.01");
pub const BETTER: Named = ("Table 1", "of those: heads whose removal raises BLEU");
/// Accuracy of the intact BERT, 0 to 1, and the ends of the histogram.
pub const FIGURE_1B: [Named; 3] = [
    ("Figure 1b", "base accuracy of BERT on MNLI matched"),
    ("Figure 1b", "lower end of the histogram: accuracy with one head masked"),
    ("Figure 1b", "upper end of the histogram: accuracy with one head masked"),
];
pub const FIGURE_2A: Named = ("Figure 2a", "Pearson r between newstest2013 and MTNT (WMT model)");
pub const FIGURE_2B: Named = ("Figure 2b", "Pearson r between MNLI matched and mismatched (BERT)");
/// In percent of the encoder-decoder heads.
pub const BREAKDOWN: Named = ("Figure 4", "share of Enc-Dec heads after which pruning is catastrophic");
pub const BLEU_LEFT: Named = ("Figure 4", "BLEU left with 20 percent of the Enc-Enc or of the Dec-Dec heads");
/// In percent of the heads.
pub const FIGURE_5: Named =
    ("Figure 5", "share of heads prunable from epoch 10 on within 85-90 percent of BLEU");

/// Where Voita et al. (2019) say what few encoder heads lose, and what such rows start with.
pub const ENCODER_HEADS: Named = ("Voita et al. (2019), Section 6.2", "BLEU lost with ");

/// How often the head for rare tokens looks at one of the two rarest, by the data that the translator was trained on.
#[derive(Debug, Clone, PartialEq)]
pub struct RareTokens {
    pub data: String,
    pub percent: f64,
    /// Whether only this much is said, that it is more.
    pub is_least: bool,
}

/// What their rows on rare tokens start with, and how those end that give a bound.
const RARE_TOKENS: &str = "one of the two rarest tokens hit (";
const MORE_THAN: &str = ": more than";

/// What a translator loses with some of its encoder heads, by the data that it was trained on.
#[derive(Debug, Clone, PartialEq)]
pub struct EncoderHeads {
    pub data: String,
    pub kept: f64,
    pub heads: f64,
    /// In BLEU.
    pub lost: f64,
}

/// A translator without some heads of all attention types (Voita et al. 2019, Table 2), by the data that it was trained on.
#[derive(Debug, Clone, PartialEq)]
pub struct Sparse {
    pub data: String,
    pub kept: usize,
    pub heads: usize,
    /// BLEU with all heads.
    pub base: f64,
    /// BLEU of the trained model that gates made sparse.
    pub by_gates: f64,
    /// BLEU of the same heads in a new model.
    pub from_scratch: f64,
}

/// What the rows on shares of heads start with.
const SHARE: &str = "share of heads prunable without noticeable loss";

/// The files, with a column that tells that a file is what it should be.
const FILES: [&str; 8] = ["summary", "table1", "table2", "table3", "table4", "table5", "table6", "figure5"];

/// What Voita et al. (2019) say, by the names of its files without extension.
const VOITA: &str = "voita2019-summary";
const VOITA_SPARSE: &str = "voita2019-table2-all-heads";
/// The model of theirs that has all heads.
const BASELINE: &str = "baseline";

impl Paper {
    /// Reads all files; none may lack a number that views ask for.
    pub fn read(folder: &Path) -> Result<Self> {
        let mut paper = Self::default();
        let michel = FILES.map(|name| (name, format!("michel2019-{name}")));
        let voita = [VOITA, VOITA_SPARSE].map(|name| (name, name.to_owned()));
        for (name, file) in michel.into_iter().chain(voita) {
            let path = folder.join(format!("{file}.csv"));
            let context = || format!("cannot read `{}`", path.display());
            let text = std::fs::read_to_string(&path).with_context(context)?;
            let rows: Vec<Published> = csv::Reader::from_reader(text.as_bytes())
                .into_deserialize()
                .collect::<Result<_, _>>()
                .with_context(context)?;
            let lacks = rows.iter().any(|row| match name {
                "summary" | VOITA => row.value.is_none() || row.what.is_none(),
                VOITA_SPARSE => {
                    row.data.is_none() || row.heads().is_none() || row.bleu_from_scratch.is_none()
                }
                "table4" => row.examples_per_second.is_none() || row.batch_size.is_none(),
                "figure5" => row.unpruned_bleu.is_none() || row.epoch.is_none(),
                _ => {
                    row.attention.is_none()
                        || row.layer.is_none()
                        || row.delta.is_none()
                        || row.significant.is_none()
                }
            });
            if lacks || rows.is_empty() {
                bail!("`{}` is not the published `{name}`: a column is missing or empty", path.display());
            }
            paper.0.insert(name, rows);
        }
        let single =
            [BASE_BLEU, HEADS, SIGNIFICANT, BETTER, FIGURE_2A, FIGURE_2B, BREAKDOWN, BLEU_LEFT, FIGURE_5];
        let missing = single.into_iter().chain(FIGURE_1B).find(|&name| paper.find(name).is_none());
        let missing = missing.map(|(_, what)| what).or(paper.shares().is_empty().then_some(SHARE));
        if let Some(what) = missing {
            bail!("`{}` has no row `{what}`", folder.join("michel2019-summary.csv").display());
        }
        Ok(paper)
    }

    /// The rows of a table or figure; none of others.
    pub fn rows(&self, name: &str) -> &[Published] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    fn find(&self, (source, what): Named) -> Option<f64> {
        let is_meant =
            |row: &&Published| row.source.as_deref() == Some(source) && row.what.as_deref() == Some(what);
        self.rows("summary").iter().find(is_meant)?.value
    }

    /// One number, which has been read.
    pub fn value(&self, name: Named) -> f64 {
        self.find(name).unwrap_or(f64::NAN)
    }

    /// What few encoder heads lose (Voita et al. 2019, Section 6.2).
    pub fn encoder_heads(&self) -> Vec<EncoderHeads> {
        let found = |row: &Published| {
            let (number, rest) = row.what.as_ref()?.strip_prefix(ENCODER_HEADS.1)?.split_once(" of ")?;
            let (heads, data) = rest.split_once(" encoder heads (")?;
            let data = data.trim_end_matches(')').to_owned();
            Some(EncoderHeads {
                data,
                kept: number.parse().ok()?,
                heads: heads.parse().ok()?,
                lost: row.value?,
            })
        };
        self.rows(VOITA).iter().filter_map(found).collect()
    }

    /// How often a head looks at one of the two rarest tokens (Voita et al. 2019, Section 5.3).
    pub fn rare_tokens(&self) -> Vec<RareTokens> {
        let found = |row: &Published| {
            let rest = row.what.as_ref()?.strip_prefix(RARE_TOKENS)?.trim_end_matches(')');
            let data = rest.strip_suffix(MORE_THAN).unwrap_or(rest).to_owned();
            Some(RareTokens { data, percent: row.value?, is_least: rest.ends_with(MORE_THAN) })
        };
        self.rows(VOITA).iter().filter_map(found).collect()
    }

    /// Translators without some heads of all attention types (Voita et al. 2019, Table 2).
    pub fn sparse(&self) -> Vec<Sparse> {
        let rows = self.rows(VOITA_SPARSE);
        // the table writes in lower case what the text spells
        let data: Vec<String> = self.encoder_heads().into_iter().map(|own| own.data).collect();
        let spelled = |name: &str| {
            data.iter().find(|own| own.eq_ignore_ascii_case(name)).map_or(name, String::as_str).to_owned()
        };
        let is_baseline = |row: &&Published| row.model.as_deref() == Some(BASELINE);
        let found = |row: &Published| {
            let base = rows.iter().filter(is_baseline).find(|base| base.data == row.data)?;
            Some(Sparse {
                data: spelled(row.data.as_deref()?),
                kept: row.heads()?,
                heads: base.heads()?,
                base: base.bleu_from_scratch?,
                by_gates: row.bleu_from_trained?,
                from_scratch: row.bleu_from_scratch?,
            })
        };
        rows.iter().filter_map(found).collect()
    }

    pub fn shares(&self) -> Vec<Share> {
        let share = |row: &Published| {
            let task = row.what.as_ref()?.strip_prefix(SHARE)?.trim().trim_matches(['(', ')']).to_owned();
            Some(Share { figure: row.source.clone()?, task, percent: row.value? })
        };
        self.rows("summary").iter().filter_map(share).collect()
    }
}

impl Published {
    /// Share of heads that a timed model lacks, in percent; absent for the original one.
    pub fn pruned_percent(&self) -> Option<f64> {
        self.model.as_ref()?.strip_prefix("pruned-")?.parse().ok()
    }

    /// Heads of all attention types.
    fn heads(&self) -> Option<usize> {
        Some(self.encoder_self_heads? + self.decoder_self_heads? + self.decoder_encoder_heads?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::paper;

    #[test]
    fn what_few_encoder_heads_lose_is_read() {
        let found = paper().encoder_heads();
        let found: Vec<_> =
            found.iter().map(|own| (own.data.as_str(), own.kept, own.heads, own.lost)).collect();
        assert_eq!(found, [("OpenSubtitles", 4.0, 48.0, 0.25), ("WMT", 10.0, 48.0, 0.15)]);
    }

    /// 14 + 31 + 30 of 3 x 48 heads are the first row, 6 + 9 + 13 the last.
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
    fn how_often_rare_tokens_are_hit_is_read() {
        let found = paper().rare_tokens();
        let found: Vec<_> = found.iter().map(|own| (own.data.as_str(), own.percent, own.is_least)).collect();
        assert_eq!(found, [("OpenSubtitles", 83.0, false), ("WMT", 50.0, true)]);
    }

    /// The summary and the tables come from different places of the paper and must agree.
    #[test]
    fn published_counts_shares_and_speedups_agree_with_each_other() {
        let paper = paper();
        let table1 = paper.rows("table1");
        let significant: Vec<_> = table1.iter().filter(|cell| cell.significant == Some(true)).collect();
        let better = significant.iter().filter(|cell| cell.delta > Some(0.0)).count();
        let counts = [table1.len(), significant.len(), better].map(|count| count as f64);
        assert_eq!(counts, [HEADS, SIGNIFICANT, BETTER].map(|name| paper.value(name)));
        assert_eq!(FIGURE_1B.map(|name| format!("{:.3}", paper.value(name))), ["0.834", "0.824", "0.838"]);
        let shares: Vec<_> = paper.shares().into_iter().map(|share| (share.figure, share.percent)).collect();
        let expected = [("3a", 20.0), ("3b", 40.0), ("6a", 60.0), ("6b", 50.0), ("6c", 50.0), ("6d", 20.0)];
        assert_eq!(shares, expected.map(|(figure, percent)| (format!("Figure {figure}"), percent)));
        // Speeds are rounded too: 17.3 / 17.0 is 1.8 % more, not 1.9.
        for pair in paper.rows("table4").chunks(2) {
            assert_eq!((pair[0].pruned_percent(), pair[1].pruned_percent()), (None, Some(50.0)));
            let [before, after] = [&pair[0], &pair[1]].map(|row| row.examples_per_second.unwrap());
            assert!((100.0 * (after / before - 1.0) - pair[1].speedup_percent.unwrap()).abs() < 0.15);
        }
    }
}
