//! Tests of the row types.
use super::*;
use crate::Order;
use crate::table::columns;

/// Plots and other people's scripts read columns by name.
#[test]
fn headers_are_pinned() {
    fn pinned<R: Row>(header: &str) {
        let tests = "metric,base_score,score,score_delta,delta_low,delta_high,simultaneous_low,simultaneous_high,\
                     p_value,p_bootstrap,p_koehn,p_adjusted,p_benjamini_hochberg,p_unpaired_t,p_mcnemar,power,\
                     segments_for_power";
        assert_eq!(columns::<R>().join(","), header.replace("[tests]", tests));
    }
    pinned::<TrainingRow>("epoch,step,train_loss,dev_loss,dev_score,learning_rate,best");
    pinned::<ScoreRow>("attention,layer,head,measure,value,value_low,value_high");
    pinned::<HeadFunctionRow>(
        "attention,layer,head,function,detail,numerator,denominator,share,share_low,share_high,best,shuffled,\
         baseline_position,baseline,margin_points,margin_points_low,margin_points_high,margin_percent,holds,\
         holds_relative",
    );
    pinned::<RelevanceRow>(
        "attention,layer,head,relevance,relevance_low,relevance_high,undivided,lost,targets",
    );
    pinned::<GateRow>(
        "attention,method,method_seed,lambda,target,kept,heads,kept_enc_enc,kept_enc_dec,kept_dec_dec,\
         kept_self,[tests],dev_score,dev_loss,epoch,steps,gap,kept_heads",
    );
    pinned::<GateFilmRow>("gates,point,epoch,attention,layer,head,log_alpha,p_open");
    pinned::<AblationRow>("attention,layer,head,[tests],looks,correlation");
    pinned::<AuditRow>(
        "draw,[tests],rank,draws,p_rank,found_again,found_again_by_chance,p_found_again,masked_heads",
    );
    pinned::<CurveRow>(
        "repair,attention,order,order_seed,complement,step,masked,heads,[tests],reached_dispensable,\
         reached_without_loss,search_score,dev_loss,epoch,updates,forward,backward,selection_updates,\
         masked_heads",
    );
    pinned::<CorrelationRow>(
        "attention,heads,metric,first_base_score,second_base_score,pearson,pearson_p_value,pearson_low,\
         pearson_high,first_reliability,second_reliability,pearson_ceiling,pearson_ceiling_low,\
         pearson_ceiling_high,spearman,spearman_p_value,influential_head,pearson_without,spearman_without,\
         top,top_overlap,top_overlap_by_chance",
    );
    pinned::<SpeedRow>(
        "removed,heads,batch_size,segments,tokens,repeats,original_per_second,original_deviation,\
         pruned_per_second,pruned_deviation,ratio,ratio_low,ratio_high,neighbours,predicted_ratio,\
         original_multiply_adds,pruned_multiply_adds,original_parameters,pruned_parameters,\
         original_peak_bytes,pruned_peak_bytes,removed_heads",
    );
    pinned::<LlamaCppRow>(
        "removal,removed,heads,file_bytes,cache_bytes,cache_tokens,predictions,nats,nats_delta,delta_low,\
         delta_high,rounds,prompt_per_second,prompt_ratio,prompt_ratio_low,prompt_ratio_high,\
         generated_per_second,generated_ratio,generated_ratio_low,generated_ratio_high",
    );
    pinned::<DynamicsRow>("epoch,updates,step,masked,heads,[tests],masked_heads");
}

/// With a repair, step 0 differs from the full model, so it is tested; names of retrained rows do not contain the repair.
#[test]
fn rows_of_a_curve_are_named_by_step_and_repair() {
    let step = CurveRow {
        order: Order::Random,
        order_seed: Some(7),
        complement: true,
        step: 3,
        masked: 1,
        heads: 6,
        masked_heads: "self:1:2".to_owned(),
        ..CurveRow::default()
    };
    let repaired = |repair| CurveRow { repair: Some(repair), ..step.clone() };
    assert_eq!(step.name(), "all/random-7/complement/3");
    assert_eq!(repaired(Repair::Training).name(), step.name());
    assert_eq!(repaired(Repair::Mean).name(), format!("{}/mean", step.name()));
    assert_eq!(repaired(Repair::None).family(), "all/random-7/complement/none");
    assert!(step.fault().is_none() && CurveRow { masked: 2, ..step.clone() }.fault().is_some());
    let first = CurveRow::default();
    assert!(first.is_intact() && first.step().is_some());
    let first = CurveRow { repair: Some(Repair::Training), ..first };
    assert!(!first.is_intact() && first.step().is_none());
}
