//! The row types, one for each kind of result file.

mod ablation;
mod correlation;
mod dynamics;
mod importance;
mod pruning;
mod speed;
mod training;

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use ablation::AblationRow;
pub use correlation::CorrelationRow;
pub use dynamics::DynamicsRow;
pub use importance::ImportanceRow;
pub use pruning::{PruningRow, before_first_loss};
pub use speed::SpeedRow;
pub use training::TrainingRow;

/// A line of a result file. Rows are flat, and their text has no line breaks.
pub trait Row: Serialize + DeserializeOwned {
    /// What makes a row unique in its file; a finished file is in the order of its keys.
    type Key: Ord + Debug;

    /// The header: the names of the fields, in their order.
    const COLUMNS: &'static [&'static str];

    /// The key of this row.
    fn key(&self) -> Self::Key;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<R: Row>(row: &R) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.serialize(row).unwrap();
        let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
        text.lines().next().unwrap().to_owned()
    }

    /// Plots and other people's scripts read columns by name.
    #[test]
    fn headers_are_pinned() {
        let ablation = AblationRow::untested("self", (1, 1), "bleu", 1.0, 1.0);
        let header = "attention,layer,head,metric,base_score,score,score_delta,delta_low,delta_high,\
                      p_value,p_holm,p_benjamini_hochberg,p_unpaired_t,p_mcnemar";
        assert_eq!(fields(&ablation), header);
        assert_eq!(AblationRow::COLUMNS.join(","), header);

        let training = TrainingRow {
            epoch: 1,
            step: 1,
            train_loss: 1.0,
            dev_loss: 1.0,
            dev_score: None,
            learning_rate: 1.0,
            best: true,
        };
        let header = "epoch,step,train_loss,dev_loss,dev_score,learning_rate,best";
        assert_eq!(fields(&training), header);
        assert_eq!(TrainingRow::COLUMNS.join(","), header);

        let importance = ImportanceRow {
            attention: "self".to_owned(),
            layer: 1,
            head: 1,
            example: 1.0,
            example_normalised: 1.0,
            token: 1.0,
            token_normalised: 1.0,
            attention_gradient: 1.0,
            entropy: 1.0,
            confidence: 1.0,
            importance_entropy: 1.0,
            oracle: None,
        };
        let header = "attention,layer,head,example,example_normalised,token,token_normalised,attention_gradient,\
                      entropy,confidence,importance_entropy,oracle";
        assert_eq!(fields(&importance), header);
        assert_eq!(ImportanceRow::COLUMNS.join(","), header);

        let pruning = PruningRow {
            attention: "all".to_owned(),
            order: "importance".to_owned(),
            order_seed: None,
            step: 0,
            masked: 0,
            heads: 1,
            metric: "bleu".to_owned(),
            base_score: 1.0,
            score: 1.0,
            score_delta: 0.0,
            delta_low: None,
            delta_high: None,
            p_value: None,
            p_holm: None,
            p_benjamini_hochberg: None,
            p_unpaired_t: None,
            p_mcnemar: None,
            search_score: None,
            masked_heads: String::new(),
        };
        let header = "attention,order,order_seed,step,masked,heads,metric,base_score,score,score_delta,delta_low,\
                      delta_high,p_value,p_holm,p_benjamini_hochberg,p_unpaired_t,p_mcnemar,search_score,masked_heads";
        assert_eq!(fields(&pruning), header);
        assert_eq!(PruningRow::COLUMNS.join(","), header);

        let correlation = CorrelationRow {
            attention: "all".to_owned(),
            heads: 1,
            metric: "bleu".to_owned(),
            first_base_score: 1.0,
            second_base_score: 1.0,
            pearson: None,
            pearson_p_value: None,
            spearman: None,
            spearman_p_value: None,
            top: 1,
            top_overlap: 1.0,
            top_overlap_by_chance: 1.0,
        };
        let header = "attention,heads,metric,first_base_score,second_base_score,pearson,pearson_p_value,spearman,\
                      spearman_p_value,top,top_overlap,top_overlap_by_chance";
        assert_eq!(fields(&correlation), header);
        assert_eq!(CorrelationRow::COLUMNS.join(","), header);

        let speed = SpeedRow {
            removed: 1,
            heads: 2,
            batch_size: 1,
            segments: 1,
            repeats: 1,
            original_per_second: 1.0,
            original_deviation: 1.0,
            pruned_per_second: 1.0,
            pruned_deviation: 1.0,
            ratio: 1.0,
            ratio_low: 1.0,
            ratio_high: 1.0,
            predicted_ratio: 1.0,
            original_multiply_adds: 1,
            pruned_multiply_adds: 1,
            original_parameters: 1,
            pruned_parameters: 1,
            original_peak_bytes: None,
            pruned_peak_bytes: None,
            removed_heads: String::new(),
        };
        let header = "removed,heads,batch_size,segments,repeats,original_per_second,original_deviation,\
                      pruned_per_second,pruned_deviation,ratio,ratio_low,ratio_high,predicted_ratio,\
                      original_multiply_adds,pruned_multiply_adds,original_parameters,pruned_parameters,\
                      original_peak_bytes,pruned_peak_bytes,removed_heads";
        assert_eq!(fields(&speed), header);
        assert_eq!(SpeedRow::COLUMNS.join(","), header);

        let dynamics = DynamicsRow {
            epoch: None,
            updates: 1,
            step: 0,
            masked: 0,
            heads: 1,
            metric: "bleu".to_owned(),
            base_score: 1.0,
            score: 1.0,
            score_delta: 0.0,
            delta_low: None,
            delta_high: None,
            p_value: None,
            p_holm: None,
            p_benjamini_hochberg: None,
            p_unpaired_t: None,
            p_mcnemar: None,
            masked_heads: String::new(),
        };
        let header = "epoch,updates,step,masked,heads,metric,base_score,score,score_delta,delta_low,delta_high,\
                      p_value,p_holm,p_benjamini_hochberg,p_unpaired_t,p_mcnemar,masked_heads";
        assert_eq!(fields(&dynamics), header);
        assert_eq!(DynamicsRow::COLUMNS.join(","), header);
    }
}
