//! Artefacts of one subject: for each its command, its recipe, its chapter of a report, what it shows, the results that it is
//! made of, and its view. `all`, the commands of single artefacts and reports go through this list.
use crate::findings::error::{no_kinds, no_replicates};
use crate::findings::functions::Others;
use crate::findings::{
    Ablations, BestHeads, Contrasts, Dynamics, Film, Functions, Gates, Groups, Importance, Kinds,
    KindsOfCurves, LeftOut, Methods, Named, Orders, Pair, Pruning, Replicates, Result, ResultFile, Results,
    Retrained, Speed, experiment,
};
use charts::chart::Chart;
use charts::write::Sheet;
use records::Row;

use crate::artefact::{Artefact, Reads, Takes, chapter};
use crate::view::{
    Asked, agreement, best_heads, cross_domain, dynamics, film, functions, gates, groups, heat_map, kinds,
    llama_cpp, methods, named_heads, pruning_curves, pruning_kinds, replicates, sheet, single_heads, speed,
};

/// Everything that can be drawn of one subject.
pub const ARTEFACTS: &[Artefact] = &[
    Artefact::new(
        ["table1", "heads", chapter::SINGLE_HEADS],
        "Score change for each masked head, layer x head, with verdicts: needed, dispensable, undecided",
        Reads::Each(experiment::SWEEP),
        |file, asked, left_out| {
            let sweep = Results::read(file)?;
            single_heads::tables(&sweep, replicates_of(&sweep, left_out).as_ref(), asked)
        },
    )
    .detail("for BERT in the same layout")
    .takes(Takes::AttentionAndFigure),
    Artefact::new(
        ["figure1", "heads", chapter::SINGLE_HEADS],
        "Histogram of the scores with one head masked, and the score of the full model",
        Reads::Each(experiment::SWEEP),
        |file, asked, left_out| {
            let sweep = Results::read(file)?;
            single_heads::figures(&sweep, replicates_of(&sweep, left_out).as_ref(), asked)
        },
    )
    .detail("for BERT, Figure 1b")
    .takes(Takes::Attention),
    Artefact::new(
        ["heads", "heads", chapter::SINGLE_HEADS],
        "Heat map of what masking each head does to the score, layer x head",
        Reads::Each(experiment::SWEEP),
        |file, asked, left_out| {
            let sweep = Results::read(file)?;
            let others = replicates_of(&sweep, left_out);
            let others = others.and_then(|found| replicates::needed_in_all(&found, asked.criterion));
            let chart = heat_map::effects(&sweep, asked.criterion).note(others);
            Ok(vec![sheet(&sweep.file, heat_map::EFFECTS, chart, [])])
        },
    ),
    Artefact::new(
        [replicates::STEM, "heads", chapter::SINGLE_HEADS],
        "Effect of masking each head in several runs with different seeds, and how far the runs agree",
        Reads::Each(experiment::SWEEP),
        |file, asked, left_out| {
            let found = Replicates::read(file.clone(), left_out)?;
            let sheet = found.map(|found| replicates::sheet(&found, asked.criterion));
            asked.sheet_or(sheet, || no_replicates(&file))
        },
    )
    .detail("after `--replicate all`"),
    Artefact::new(
        [kinds::STEM, "kinds", chapter::SINGLE_HEADS],
        "What masking each head does under each kind of ablation: zeros, its mean context, or its context in another text",
        Reads::Each(experiment::SWEEP),
        |file, asked, _| {
            let found = Kinds::read(file.clone())?;
            let sheet = found.map(|found| kinds::sheet(&found, asked.criterion));
            asked.sheet_or(sheet, || no_kinds(&file, experiment::SWEEP))
        },
    )
    .detail("after `--ablation mean` and `--ablation resample`"),
    Artefact::new(
        ["table2", "layers", chapter::BEST_HEADS],
        "Best single head of each layer, chosen and reported on one split",
        Reads::Best { other_split: false },
        best,
    )
    .also("table3")
    .detail("for BERT, Table 3"),
    Artefact::new(
        ["table5", "reproduce-table5", chapter::BEST_HEADS],
        "Best single head of each layer, chosen on another split than reported",
        Reads::Best { other_split: true },
        best,
    )
    .also("table6")
    .detail("for BERT, Table 6"),
    Artefact::new(
        ["figure3", "prune", chapter::MORE_AND_MORE],
        "Score over the share of masked heads, and how many heads can go",
        Reads::Each(experiment::PRUNING),
        |file, asked, left_out| pruning_curves::third(&Pruning::read(file, left_out)?, asked, left_out),
    )
    .also("figure6")
    .detail("for classifiers other than MNLI, Figure 6"),
    Artefact::new(
        ["figure4", "reproduce-figure4", chapter::MORE_AND_MORE],
        "Score over the share of masked heads of each attention type",
        Reads::Each(experiment::PRUNING),
        |file, asked, left_out| pruning_curves::fourth(&Pruning::read(file, left_out)?, asked, left_out),
    ),
    Artefact::new(
        [pruning_kinds::STEM, "pruning-kinds", chapter::MORE_AND_MORE],
        "Score over the share of masked heads under each kind of ablation, and how many more heads can go than with zeros",
        Reads::Each(experiment::PRUNING),
        |file, asked, left_out| {
            let found = KindsOfCurves::read(file.clone(), left_out)?;
            let sheet = found.map(|found| Ok(pruning_kinds::sheet(&found, asked.criterion)));
            asked.sheet_or(sheet, || no_kinds(&file, experiment::PRUNING))
        },
    )
    .detail("after `--ablation mean` and `--ablation resample`"),
    Artefact::new(
        ["prune-and-retrain", "retrain", chapter::MORE_AND_MORE],
        "Score over the share of masked heads after retraining without them, compared with no retraining",
        Reads::Each(experiment::RETRAINED),
        |file, asked, left_out| {
            let found = Retrained::read(file, left_out)?;
            let table = pruning_curves::retrained_table(&found, asked.criterion);
            let chart = pruning_curves::retrained(&found, asked.criterion);
            Ok(vec![sheet(&found.after.results.file, pruning_curves::RETRAINED, chart, [table])])
        },
    ),
    Artefact::new(
        [methods::STEM, "methods", chapter::MORE_AND_MORE],
        "Methods that choose heads side by side, with repairs: which to use, curves, areas under them, scores at each number of heads",
        Reads::EachOrReplicate(experiment::METHODS),
        |file, asked, left_out| methods::sheets(&Methods::read(file, left_out)?, asked, left_out),
    ),
    Artefact::new(
        ["figure2", "domains", chapter::OTHER_DATA],
        "Scores with one head masked on two splits, and how far noise lets them agree",
        Reads::Pairs,
        |file, asked, _| Ok(vec![cross_domain::sheet(&Pair::read(file, &asked.folders.results)?)]),
    )
    .detail("after `cross-domain`")
    .takes(Takes::Against),
    Artefact::new(
        ["table4", "speed", chapter::SPEED],
        "Segments a second with all heads and without some, and what else is saved",
        Reads::Each(experiment::SPEED),
        |file, _, left_out| {
            let folded = left_out.keep(Speed::folded(&file)).flatten();
            let found = Speed::of_file(file)?;
            Ok(vec![sheet(&found.file, speed::STEM, None, speed::tables(&found, folded.as_ref()))])
        },
    ),
    Artefact::new(
        [llama_cpp::STEM, "llama-cpp", chapter::SPEED],
        "Pruned models in llama.cpp: perplexity over speed and key-value cache",
        Reads::Each(experiment::LLAMA_CPP),
        |file, _, _| Ok(vec![llama_cpp::sheet(&Results::read(file)?)]),
    ),
    Artefact::new(
        ["figure5", "training", chapter::TRAINING],
        "Scores with more and more heads masked while the model is trained, in percent of the unpruned ones",
        Reads::Each(experiment::DYNAMICS),
        |file, _, left_out| {
            let found = Dynamics::read(file)?;
            // A training without a score so far has tables alone.
            let chart = left_out.keep(dynamics::figure5(&found));
            Ok(vec![sheet(&found.file, dynamics::STEM, chart, dynamics::tables(&found))])
        },
    ),
    Artefact::new(
        ["v19-table1", "functions", chapter::FUNCTIONS],
        "The best head for each function, compared with its position alone and shuffled targets (Voita et al. 2019)",
        Reads::Each(experiment::FUNCTIONS),
        |file, asked, left_out| {
            let found = Functions::read(file)?;
            let others = Others::beside(&found.file, left_out);
            let same_heads = functions::same_heads(&found, &others, asked.criterion);
            let tables = std::iter::once(functions::table1(&found)).chain(same_heads);
            Ok(vec![sheet(&found.file, functions::TABLE, None, tables)])
        },
    ),
    Artefact::new(
        ["v19-figure1c", "functions", chapter::FUNCTIONS],
        "What the heads of each layer do (Voita et al. 2019)",
        Reads::Each(experiment::FUNCTIONS),
        |file, _, _| figure(file, functions::CENSUS, functions::figure1c),
    )
    .also("v19-figure2b"),
    Artefact::new(
        [named_heads::STEM, "named-heads", chapter::FUNCTIONS],
        "What heads of language models attend to: induction, duplicate token, previous token, sink; and what masking them costs",
        Reads::Each(experiment::NAMED),
        |file, asked, left_out| Ok(vec![named_heads::sheet(&Named::read(file, left_out)?, asked.criterion)]),
    ),
    Artefact::new(
        ["v19-figure1a", "relevance", chapter::FUNCTIONS],
        "Heat map of the relevance of each head, layer x head (Voita et al. 2019)",
        Reads::Every(experiment::RELEVANCE),
        |file, _, _| figure(file, heat_map::RELEVANCE, heat_map::relevance),
    )
    .also("v19-figure2a"),
    Artefact::new(
        ["v19-figure7", "gates", chapter::GATES],
        "Score with the heads that learned gates keep, and of controls, after further training (Voita et al. 2019)",
        Reads::Each(experiment::GATES),
        |file, asked, left_out| {
            let found = Gates::read(file)?;
            let (before, found) = (found.base(), found.against_control(left_out));
            let chart = gates::figure7(&found, before, asked.criterion);
            Ok(vec![sheet(&found.file, gates::CURVES, chart, [])])
        },
    ),
    Artefact::new(
        ["v19-figure8", "reproduce-v19-figure8", chapter::GATES],
        "Functions of the heads that learned gates keep (Voita et al. 2019)",
        Reads::Each(experiment::GATES),
        |file, asked, left_out| {
            let found = Gates::read(file)?;
            let functions = asked.if_there(Functions::of_model(&found.file), left_out)?;
            let torn = functions.as_ref().and_then(|functions| functions.file.torn());
            torn.into_iter().for_each(|torn| left_out.note(torn));
            let chart = functions.and_then(|functions| gates::figure8(&found, &functions));
            Ok(vec![sheet(&found.file, gates::FUNCTIONS, chart, [])])
        },
    )
    .detail("after `head-functions`"),
    Artefact::new(
        ["v19-figure9", "reproduce-v19-figure9", chapter::GATES],
        "Heads that learned gates keep, by attention type and layer (Voita et al. 2019)",
        Reads::Each(experiment::GATES),
        |file, _, _| figure(file, gates::LAYERS, gates::figure9),
    )
    .also("v19-figure10"),
    Artefact::new(
        ["v19-table2", "reproduce-v19-table2", chapter::GATES],
        "Heads kept and the score, by how the heads were chosen, after equal training (Voita et al. 2019)",
        Reads::Each(experiment::GATES),
        |file, asked, left_out| {
            let found = Gates::read(file)?;
            let (before, found) = (found.base(), found.against_control(left_out));
            Ok(vec![sheet(&found.file, gates::TABLE, None, [gates::table(&found, before, asked.criterion)])])
        },
    ),
    Artefact::new(
        [gates::CONTRASTS, "gates", chapter::GATES],
        "Whether learned gates choose better heads, and what training them costs: methods of Figure 7 tested in pairs",
        Reads::Each(experiment::GATES),
        |file, asked, left_out| {
            let found = asked.if_there(Gates::read(file).and_then(Contrasts::read), left_out)?;
            let table = |found: &Contrasts| gates::contrasts(found, asked.criterion);
            Ok(found
                .iter()
                .map(|found| sheet(&found.gates.file, gates::CONTRASTS, None, [table(found)]))
                .collect())
        },
    ),
    Artefact::new(
        ["gate-film", "gates", chapter::GATES],
        "Gates that close, epoch by epoch, of the model that keeps about a quarter of its heads",
        Reads::Each(experiment::FILM),
        |file, _, _| {
            let found = Film::read(file)?;
            let sheet = sheet(&found.file, film::STEM, film::stills(&found), []);
            Ok(vec![Sheet { frames: film::frames(&found), ..sheet }])
        },
    )
    .detail("with a film"),
    Artefact::new(
        ["agreement", "importance", chapter::ORDERS],
        "Rank correlations of what heads can be ordered by, as a matrix and a table",
        Reads::Each(experiment::IMPORTANCE),
        |file, _, left_out| {
            let found = Orders::read(file, left_out)?;
            Ok(vec![agreement::sheet(&found)?])
        },
    )
    .detail("where heads share keys and values, also the sums over such groups"),
    Artefact::new(
        ["scores", "importance", chapter::SINGLE_HEADS],
        "Heat maps of what heads can be ordered by, layer x head",
        Reads::Each(experiment::IMPORTANCE),
        |file, asked, left_out| {
            let found = Importance::read(file)?;
            let sweep = left_out
                .keep(Ablations::beside_model(&found.file, experiment::SWEEP, experiment::SWEEP))
                .flatten();
            let chart = heat_map::scores(&found, sweep.as_ref(), asked.criterion);
            Ok(vec![sheet(&found.file, heat_map::SCORES, chart, [])])
        },
    ),
    Artefact::new(
        ["groups", "groups", chapter::OTHER_DATA],
        "Accuracy by group of segments, such as the paradigms of BLiMP, and the heads that each group needs",
        Reads::Groups,
        |file, asked, _| {
            let found = Groups::read(Results::read(file)?)?;
            let criterion = asked.criterion;
            let (chart, tables) = (groups::figure(&found, criterion), groups::tables(&found, criterion));
            Ok(vec![sheet(&found.sweep.file, groups::STEM, chart, tables)])
        },
    ),
];

/// The same sweep of other trainings; none where there is none, or a fault in one, which is then left out.
fn replicates_of(sweep: &Ablations, left_out: &mut LeftOut) -> Option<Replicates> {
    left_out.keep_if_there(Replicates::beside(sweep.clone())).flatten()
}

/// A figure of the rows of one file, or none where they have nothing for it.
fn figure<R: Row, C: Into<Option<Chart>>>(
    file: ResultFile,
    stem: &str,
    draw: impl Fn(&Results<R>) -> C,
) -> Result<Vec<Sheet>> {
    let found = Results::read(file)?;
    Ok(vec![sheet(&found.file, stem, draw(&found), [])])
}

fn best(file: ResultFile, asked: &Asked<'_>, _: &mut LeftOut) -> Result<Vec<Sheet>> {
    let best = BestHeads::read(file)?;
    let [stem, ..] = best_heads::published(&best);
    Ok(vec![sheet(&best.sweep.file, stem, None, [best_heads::table(&best, asked.criterion)])])
}
