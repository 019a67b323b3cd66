use super::*;
use crate::{Measure, Order, Scope};

fn fields<R: Row>(row: &R) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.serialize(row).unwrap();
    let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
    text.lines().next().unwrap().to_owned()
}

/// Plots and other people's scripts read columns by name.
#[test]
fn headers_are_pinned() {
    let ablation = AblationRow::untested("self:1:1".parse().unwrap(), MetricName::Bleu, 1.0, 1.0);
    let header = "attention,layer,head,metric,base_score,score,score_delta,delta_low,delta_high,\
                  p_value,p_koehn,p_adjusted,p_benjamini_hochberg,p_unpaired_t,p_mcnemar";
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

    let score = ScoreRow::new("self:1:1".parse().unwrap(), Measure::Example, 1.0);
    let header = "attention,layer,head,measure,value";
    assert_eq!(fields(&score), header);
    assert_eq!(ScoreRow::COLUMNS.join(","), header);

    let pruning = PruningRow {
        attention: Scope::All,
        order: Order::Importance,
        order_seed: None,
        complement: false,
        step: 0,
        masked: 0,
        heads: 1,
        metric: MetricName::Bleu,
        base_score: 1.0,
        score: 1.0,
        score_delta: 0.0,
        delta_low: None,
        delta_high: None,
        p_value: None,
        p_koehn: None,
        p_adjusted: None,
        p_benjamini_hochberg: None,
        p_unpaired_t: None,
        p_mcnemar: None,
        search_score: None,
        masked_heads: String::new(),
    };
    let header = "attention,order,order_seed,complement,step,masked,heads,metric,base_score,score,score_delta,delta_low,\
                  delta_high,p_value,p_koehn,p_adjusted,p_benjamini_hochberg,p_unpaired_t,p_mcnemar,search_score,masked_heads";
    assert_eq!(fields(&pruning), header);
    assert_eq!(PruningRow::COLUMNS.join(","), header);

    let correlation = CorrelationRow {
        attention: Scope::All,
        heads: 1,
        metric: MetricName::Bleu,
        first_base_score: 1.0,
        second_base_score: 1.0,
        pearson: None,
        pearson_p_value: None,
        pearson_low: None,
        pearson_high: None,
        first_reliability: None,
        second_reliability: None,
        pearson_ceiling: None,
        spearman: None,
        spearman_p_value: None,
        top: 1,
        top_overlap: 1.0,
        top_overlap_by_chance: 1.0,
    };
    let header = "attention,heads,metric,first_base_score,second_base_score,pearson,pearson_p_value,pearson_low,\
                  pearson_high,first_reliability,second_reliability,pearson_ceiling,spearman,\
                  spearman_p_value,top,top_overlap,top_overlap_by_chance";
    assert_eq!(fields(&correlation), header);
    assert_eq!(CorrelationRow::COLUMNS.join(","), header);

    let speed = SpeedRow {
        removed: 1,
        heads: 2,
        batch_size: 1,
        segments: 1,
        tokens: 1,
        repeats: 1,
        original_per_second: 1.0,
        original_deviation: 1.0,
        pruned_per_second: 1.0,
        pruned_deviation: 1.0,
        ratio: 1.0,
        ratio_low: 1.0,
        ratio_high: 1.0,
        neighbours: None,
        predicted_ratio: 1.0,
        original_multiply_adds: 1,
        pruned_multiply_adds: 1,
        original_parameters: 1,
        pruned_parameters: 1,
        original_peak_bytes: None,
        pruned_peak_bytes: None,
        removed_heads: String::new(),
    };
    let header = "removed,heads,batch_size,segments,tokens,repeats,original_per_second,original_deviation,\
                  pruned_per_second,pruned_deviation,ratio,ratio_low,ratio_high,neighbours,predicted_ratio,\
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
        metric: MetricName::Bleu,
        base_score: 1.0,
        score: 1.0,
        score_delta: 0.0,
        delta_low: None,
        delta_high: None,
        p_value: None,
        p_koehn: None,
        p_adjusted: None,
        p_benjamini_hochberg: None,
        p_unpaired_t: None,
        p_mcnemar: None,
        masked_heads: String::new(),
    };
    let header = "epoch,updates,step,masked,heads,metric,base_score,score,score_delta,delta_low,delta_high,\
                  p_value,p_koehn,p_adjusted,p_benjamini_hochberg,p_unpaired_t,p_mcnemar,masked_heads";
    assert_eq!(fields(&dynamics), header);
    assert_eq!(DynamicsRow::COLUMNS.join(","), header);
}
