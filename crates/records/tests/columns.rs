//! The tables of columns in `results/FILES.md` are the doc comments of the row types; `GOLDEN=write cargo test -p records --test columns`
//! writes them.
#![expect(clippy::unwrap_used, reason = "a page or a file that cannot be read should fail the test")]
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use records::{
    AblationRow, AuditRow, CorrelationRow, CurveRow, DynamicsRow, GateRow, HeadFunctionRow, LlamaCppRow,
    RelevanceRow, Row, ScoreRow, SpeedRow, TrainingRow, columns,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the columns of a row type with the first paragraph of their doc comments.
fn documented(file: &str, row_type: &str) -> Vec<(String, String)> {
    let source = |file| fs::read_to_string(root().join("crates/records/src/rows").join(file)).unwrap();
    let fields_of = |source: &str, begin: &str| {
        let fields = source.split_once(begin).unwrap().1;
        fields.lines().take_while(|line| !line.trim().starts_with(['}', '$'])).collect::<Vec<_>>().join("\n")
    };
    let fields = fields_of(&source(file), &format!("pub struct {row_type} {{\n"));
    let tested = fields_of(&source("tested.rs"), "$($(#[$key_meta])* pub $key: $key_type,)*\n");
    let fields = fields.replace("[tests]", &tested);
    let (mut found, mut comment) = (Vec::new(), Vec::new());
    for line in fields.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            comment.push(text.trim());
        } else if let Some((field, _)) = line.strip_prefix("pub ").and_then(|field| field.split_once(':')) {
            let first: Vec<&str> = comment.iter().copied().take_while(|text| !text.is_empty()).collect();
            found.push((field.to_owned(), first.join(" ")));
            comment.clear();
        }
    }
    found
}

/// Returns the table of a row type without columns that an earlier table describes in identical words.
fn table(file: &str, row_type: &str, described: &mut BTreeSet<(String, String)>) -> String {
    let mut table = "| column | meaning |\n|---|---|\n".to_owned();
    for column in documented(file, row_type) {
        if described.insert(column.clone()) {
            writeln!(table, "| `{}` | {} |", column.0, column.1).unwrap();
        }
    }
    table
}

#[test]
fn tables_of_columns_are_the_comments_of_the_row_types() {
    let path = root().join("results/FILES.md");
    let page = fs::read_to_string(&path).unwrap();
    let mut described = BTreeSet::new();
    let mut parts = page.split("<!-- columns: ");
    let mut expected = parts.next().unwrap().to_owned();
    for part in parts {
        let (row, rest) = part.split_once(" -->\n").unwrap();
        let (file, row_type) = row.split_once(' ').unwrap();
        let after = rest.split_once("<!-- end of columns -->").unwrap().1;
        let table = table(file, row_type, &mut described);
        write!(expected, "<!-- columns: {row} -->\n{table}<!-- end of columns -->{after}").unwrap();
    }
    if std::env::var_os("GOLDEN").is_some_and(|value| value == "write") {
        fs::write(&path, &expected).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap(), expected, "GOLDEN=write writes results/FILES.md");
}

#[test]
fn every_column_of_every_row_type_is_on_the_page() {
    macro_rules! all {
        ($($row:ident)*) => { [$((stringify!($row), columns::<$row>())),*] };
    }
    let page = fs::read_to_string(root().join("results/FILES.md")).unwrap();
    for (row_type, columns) in all! {
        AblationRow AuditRow CorrelationRow CurveRow DynamicsRow GateRow HeadFunctionRow
        LlamaCppRow RelevanceRow ScoreRow SpeedRow TrainingRow
    } {
        let end = format!(" {row_type} -->");
        let (file, _) = page.split("<!-- columns: ").find_map(|part| part.split_once(&end)).expect(row_type);
        let documented: Vec<String> = documented(file, row_type).into_iter().map(|(name, _)| name).collect();
        assert_eq!(documented, columns, "{row_type}");
    }
}

/// Plots and other people's scripts read columns by name.
#[test]
fn headers_are_pinned() {
    fn pinned<R: Row>(header: &str) {
        let tests = "metric,base_score,score,score_delta,delta_low,delta_high,simultaneous_low,simultaneous_high,p_value,p_bootstrap,\
            p_koehn,p_adjusted,p_benjamini_hochberg,p_unpaired_t,p_mcnemar,power,segments_for_power";
        assert_eq!(columns::<R>().join(","), header.replace("[tests]", tests));
    }
    pinned::<TrainingRow>("epoch,step,train_loss,dev_loss,dev_score,learning_rate,best");
    pinned::<ScoreRow>("attention,layer,head,measure,value,value_low,value_high");
    pinned::<HeadFunctionRow>(
        "attention,layer,head,function,detail,numerator,denominator,share,share_low,share_high,best,shuffled,baseline_position,\
        baseline,margin_points,margin_points_low,margin_points_high,margin_percent,holds,holds_relative",
    );
    pinned::<RelevanceRow>(
        "attention,layer,head,relevance,relevance_low,relevance_high,undivided,lost,targets",
    );
    pinned::<GateRow>(
        "attention,method,method_seed,lambda,target,kept,heads,kept_enc_enc,kept_enc_dec,kept_dec_dec,kept_self,[tests],dev_score,\
        dev_loss,epoch,steps,gap,kept_heads",
    );
    pinned::<AblationRow>("attention,layer,head,[tests],looks,correlation");
    pinned::<AuditRow>(
        "draw,[tests],rank,draws,p_rank,found_again,found_again_by_chance,p_found_again,masked_heads",
    );
    pinned::<CurveRow>(
        "repair,attention,order,order_seed,complement,step,masked,heads,[tests],reached_dispensable,reached_without_loss,\
        search_score,dev_loss,epoch,updates,forward,backward,selection_updates,masked_heads",
    );
    pinned::<CorrelationRow>(
        "attention,heads,metric,first_base_score,second_base_score,pearson,pearson_p_value,pearson_low,pearson_high,\
        first_reliability,second_reliability,pearson_ceiling,pearson_ceiling_low,pearson_ceiling_high,spearman,spearman_p_value,\
        influential_head,pearson_without,spearman_without,top,top_overlap,top_overlap_by_chance",
    );
    pinned::<SpeedRow>(
        "removed,heads,batch_size,segments,tokens,repeats,original_per_second,original_deviation,pruned_per_second,\
        pruned_deviation,ratio,ratio_low,ratio_high,neighbours,predicted_ratio,original_multiply_adds,pruned_multiply_adds,\
        original_parameters,pruned_parameters,original_peak_bytes,pruned_peak_bytes,removed_heads",
    );
    pinned::<LlamaCppRow>(
        "removal,removed,heads,file_bytes,cache_bytes,cache_tokens,predictions,nats,nats_delta,delta_low,delta_high,rounds,\
        prompt_per_second,prompt_ratio,prompt_ratio_low,prompt_ratio_high,generated_per_second,generated_ratio,\
        generated_ratio_low,generated_ratio_high",
    );
    pinned::<DynamicsRow>("epoch,updates,step,masked,heads,[tests],masked_heads");
}
