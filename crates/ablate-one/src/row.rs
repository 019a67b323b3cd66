//! Heads and comparisons as rows of the result file.
use core_masking::{HeadId, HeadLayout};
use records::AblationRow;
use stats::Comparison;
use stats::adjust::{benjamini_hochberg, holm};

/// The row of a head; adjusted p-values follow when the whole family is there.
pub fn row(id: HeadId, metric: &str, comparison: &Comparison) -> AblationRow {
    AblationRow {
        attention: id.attention().to_string(),
        layer: id.layer_number(),
        head: id.head_number(),
        metric: metric.to_owned(),
        base_score: comparison.base,
        score: comparison.variant,
        score_delta: comparison.delta,
        delta_low: comparison.interval.map(|(low, _)| low),
        delta_high: comparison.interval.map(|(_, high)| high),
        p_value: comparison.p_value,
        p_holm: None,
        p_benjamini_hochberg: None,
        p_unpaired_t: comparison.p_unpaired_t,
        p_mcnemar: comparison.p_mcnemar,
    }
}

/// Whether a row is that of a head.
pub fn is_of(row: &AblationRow, id: HeadId) -> bool {
    row.layer == id.layer_number()
        && row.head == id.head_number()
        && row.attention == id.attention().to_string()
}

/// The attention types all of whose heads have their row, with adjusted p-values if they were tested: what a run that
/// finished leaves, and one that was killed does not.
pub fn finished(rows: &[&AblationRow], layout: &HeadLayout) -> Vec<String> {
    let is_finished = |name: &String, heads: usize| {
        let mut family = rows.iter().filter(|row| row.attention == *name);
        family.clone().count() == heads && family.all(|row| row.p_value.is_some() == row.p_holm.is_some())
    };
    let names = layout.types().map(|(attention, shape)| (attention.to_string(), shape.layers * shape.heads));
    names.filter(|(name, heads)| is_finished(name, *heads)).map(|(name, _)| name).collect()
}

/// Fills in the adjusted p-values of each attention type whose heads have all been tested: a family of tests.
pub fn adjust(rows: &mut [AblationRow], layout: &HeadLayout) {
    for (attention, shape) in layout.types() {
        let name = attention.to_string();
        let mut family: Vec<&mut AblationRow> =
            rows.iter_mut().filter(|row| row.attention == name && row.p_value.is_some()).collect();
        if family.len() < shape.layers * shape.heads {
            continue;
        }
        let p_values: Vec<f64> = family.iter().filter_map(|row| row.p_value).collect();
        let adjusted = holm(&p_values).into_iter().zip(benjamini_hochberg(&p_values));
        for (row, (holm, benjamini_hochberg)) in family.iter_mut().zip(adjusted) {
            row.p_holm = Some(holm);
            row.p_benjamini_hochberg = Some(benjamini_hochberg);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_masking::{Attention, LayerShape};

    fn rows(p_values: &[(&str, f64)]) -> Vec<AblationRow> {
        let comparison = |p| Comparison {
            base: 30.0,
            variant: 29.0,
            delta: -1.0,
            p_value: Some(p),
            interval: None,
            p_unpaired_t: None,
            p_mcnemar: None,
        };
        p_values.iter().map(|&(name, p)| row(name.parse().unwrap(), "bleu", &comparison(p))).collect()
    }

    fn layout() -> HeadLayout {
        let shape = LayerShape { layers: 1, heads: 3 };
        HeadLayout::new([(Attention::EncEnc, shape), (Attention::DecDec, shape)])
    }

    /// Holm: 3 * 0.01, 2 * 0.02, 1 * 0.5. Benjamini-Hochberg: 3/1 * 0.01, 3/2 * 0.02, 3/3 * 0.5.
    #[test]
    fn a_whole_family_is_adjusted_by_itself() {
        let mut rows = rows(&[
            ("enc-enc:1:1", 0.5),
            ("enc-enc:1:2", 0.01),
            ("enc-enc:1:3", 0.02),
            ("dec-dec:1:1", 0.001),
        ]);
        adjust(&mut rows, &layout());
        let holm: Vec<_> = rows.iter().map(|row| row.p_holm).collect();
        assert_eq!(holm, [Some(0.5), Some(0.03), Some(0.04), None]);
        let controlled: Vec<_> = rows.iter().map(|row| row.p_benjamini_hochberg).collect();
        assert_eq!(controlled, [Some(0.5), Some(0.03), Some(0.03), None]);
    }

    #[test]
    fn a_family_is_finished_when_all_its_rows_are_adjusted() {
        let names = |rows: &[AblationRow]| finished(&rows.iter().collect::<Vec<_>>(), &layout());
        let mut rows = rows(&[("enc-enc:1:1", 0.5), ("enc-enc:1:2", 0.01), ("enc-enc:1:3", 0.02)]);
        assert!(names(&rows).is_empty(), "killed after the last row");
        adjust(&mut rows, &layout());
        assert_eq!(names(&rows), ["enc-enc"]);
        assert!(names(&rows[..2]).is_empty());
    }

    #[test]
    fn a_row_belongs_to_its_head_alone() {
        let rows = rows(&[("enc-enc:1:2", 0.5)]);
        assert!(is_of(&rows[0], "enc-enc:1:2".parse().unwrap()));
        for other in ["enc-enc:1:1", "enc-enc:2:2", "dec-dec:1:2"] {
            assert!(!is_of(&rows[0], other.parse().unwrap()), "{other}");
        }
    }
}
