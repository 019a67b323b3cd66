//! What can be drawn of one subject: for each artefact its name, the results that it is made of, and its view. `all`, the commands
//! of single artefacts and reports go through this list.
use charts::chart::Chart;
use charts::write::Sheet;
use findings::functions::Others;
use findings::{
    BestHeads, Contrasts, Dynamics, Film, Functions, Gates, Groups, Importance, LeftOut, Orders, Pair,
    Pruning, Result, ResultFile, Results, Retrained, Speed, Sweep, experiment,
};
use records::Row;

use crate::artefact::{Artefact, Chapter, Options, Reads, Takes};
use crate::view::{
    Asked, agreement, best_heads, cross_domain, dynamics, film, functions, gates, groups, heat_map,
    pruning_curves, sheet, single_heads, speed,
};

/// Everything that can be drawn of one subject.
pub const ARTEFACTS: &[Artefact] = &[
    Artefact {
        name: "table1",
        recipe: "reproduce-table1",
        chapter: Chapter::SingleHeads,
        about: "Score change for each masked head, layer x head, with the significant ones marked",
        reads: Reads::Each(experiment::SWEEP),
        draw: |file, asked, _| single_heads::tables(&Results::read(file)?, asked),
        options: Options {
            detail: "for BERT in the same layout",
            takes: Takes::AttentionAndFigure,
            ..Options::NONE
        },
    },
    Artefact {
        name: "figure1",
        recipe: "reproduce-table1",
        chapter: Chapter::SingleHeads,
        about: "Histogram of the scores with one head masked, beside the score of the intact model",
        reads: Reads::Each(experiment::SWEEP),
        draw: |file, asked, _| single_heads::figures(&Results::read(file)?, asked),
        options: Options { detail: "for BERT, Figure 1b", takes: Takes::Attention, ..Options::NONE },
    },
    Artefact {
        name: "heads",
        recipe: "reproduce-table1",
        chapter: Chapter::SingleHeads,
        about: "Heat map of what masking each head does to the score, layer x head",
        reads: Reads::Each(experiment::SWEEP),
        draw: |file, asked, _| {
            figure(file, heat_map::EFFECTS, |found| heat_map::effects(found, asked.criterion))
        },
        options: Options::NONE,
    },
    Artefact {
        name: "table2",
        recipe: "reproduce-table2",
        chapter: Chapter::BestHeads,
        about: "Best single head of each layer, chosen and reported on one split",
        reads: Reads::Best { other_split: false },
        draw: best,
        options: Options { alias: Some("table3"), detail: "for BERT, Table 3", ..Options::NONE },
    },
    Artefact {
        name: "table5",
        recipe: "reproduce-table5",
        chapter: Chapter::BestHeads,
        about: "Best single head of each layer, chosen on another split than reported",
        reads: Reads::Best { other_split: true },
        draw: best,
        options: Options { alias: Some("table6"), detail: "for BERT, Table 6", ..Options::NONE },
    },
    Artefact {
        name: "figure3",
        recipe: "reproduce-figure3",
        chapter: Chapter::MoreAndMore,
        about: "Score over the share of masked heads, and how many heads can go",
        reads: Reads::Each(experiment::PRUNING),
        draw: |file, asked, left_out| pruning_curves::third(&Pruning::read(file, left_out)?, asked, left_out),
        options: Options {
            alias: Some("figure6"),
            detail: "for classifiers other than MNLI, Figure 6",
            ..Options::NONE
        },
    },
    Artefact {
        name: "figure4",
        recipe: "reproduce-figure4",
        chapter: Chapter::MoreAndMore,
        about: "Score over the share of masked heads of each attention type",
        reads: Reads::Each(experiment::PRUNING),
        draw: |file, asked, left_out| {
            pruning_curves::fourth(&Pruning::read(file, left_out)?, asked, left_out)
        },
        options: Options::NONE,
    },
    Artefact {
        name: "prune-and-retrain",
        recipe: "prune-and-retrain",
        chapter: Chapter::MoreAndMore,
        about: "Score over the share of masked heads after retraining without them, compared with no retraining",
        reads: Reads::Each(experiment::RETRAINED),
        draw: |file, asked, left_out| {
            let found = Retrained::read(file, left_out)?;
            let table = pruning_curves::retrained_table(&found, asked.criterion);
            let chart = pruning_curves::retrained(&found, asked.criterion);
            Ok(vec![sheet(&found.after.results.file, pruning_curves::RETRAINED, chart, [table])])
        },
        options: Options::NONE,
    },
    Artefact {
        name: "figure2",
        recipe: "reproduce-figure2",
        chapter: Chapter::OtherData,
        about: "Scores with one head masked on two splits, and how far noise lets them agree",
        reads: Reads::Pairs,
        draw: |file, asked, _| Ok(vec![cross_domain::sheet(&Pair::read(file, &asked.folders.results)?)]),
        options: Options { detail: "after `cross-domain`", takes: Takes::Against, ..Options::NONE },
    },
    Artefact {
        name: "table4",
        recipe: "reproduce-table4",
        chapter: Chapter::Speed,
        about: "Segments a second with all heads and without some, and what else is saved",
        reads: Reads::Each(experiment::SPEED),
        draw: |file, _, _| {
            let found = Speed::of_file(file)?;
            Ok(vec![sheet(&found.file, speed::STEM, None, speed::tables(&found))])
        },
        options: Options::NONE,
    },
    Artefact {
        name: "figure5",
        recipe: "reproduce-figure5",
        chapter: Chapter::Training,
        about: "Scores with more and more heads masked while the model is trained, in percent of the unpruned ones",
        reads: Reads::Each(experiment::DYNAMICS),
        draw: |file, _, left_out| {
            let found = Dynamics::read(file)?;
            // A training without a score so far has tables alone.
            let chart = left_out.keep(dynamics::figure5(&found));
            Ok(vec![sheet(&found.file, dynamics::STEM, chart, dynamics::tables(&found))])
        },
        options: Options::NONE,
    },
    Artefact {
        name: "v19-table1",
        recipe: "reproduce-v19-table1",
        chapter: Chapter::Functions,
        about: "The head that does each thing best, beside its position alone and shuffled targets (Voita et al. 2019)",
        reads: Reads::Each(experiment::FUNCTIONS),
        draw: |file, asked, left_out| {
            let found = Functions::read(file)?;
            let others = Others::beside(&found.file, left_out);
            let same_heads = functions::same_heads(&found, &others, asked.criterion);
            let tables = std::iter::once(functions::table1(&found)).chain(same_heads);
            Ok(vec![sheet(&found.file, functions::TABLE, None, tables)])
        },
        options: Options::NONE,
    },
    Artefact {
        name: "v19-figure1c",
        recipe: "reproduce-v19-figure1c",
        chapter: Chapter::Functions,
        about: "What the heads of each layer do (Voita et al. 2019)",
        reads: Reads::Each(experiment::FUNCTIONS),
        draw: |file, _, _| figure(file, functions::CENSUS, functions::figure1c),
        options: Options { alias: Some("v19-figure2b"), ..Options::NONE },
    },
    Artefact {
        name: "v19-figure1a",
        recipe: "reproduce-v19-figure1a",
        chapter: Chapter::Functions,
        about: "Heat map of the relevance of each head, layer x head (Voita et al. 2019)",
        reads: Reads::Every(experiment::RELEVANCE),
        draw: |file, _, _| figure(file, heat_map::RELEVANCE, heat_map::relevance),
        options: Options { alias: Some("v19-figure2a"), ..Options::NONE },
    },
    Artefact {
        name: "v19-figure7",
        recipe: "reproduce-v19-figure7",
        chapter: Chapter::Gates,
        about: "Score with the heads that learned gates keep, and of controls, after further training (Voita et al. 2019)",
        reads: Reads::Each(experiment::GATES),
        draw: |file, asked, left_out| {
            let found = Gates::read(file)?;
            let pruning = Pruning::of_model(&found.file, left_out);
            let pruning = left_out.keep(pruning).flatten();
            let chart = gates::figure7(&found, pruning.as_ref(), asked.criterion);
            Ok(vec![sheet(&found.file, gates::CURVES, chart, [])])
        },
        options: Options::NONE,
    },
    Artefact {
        name: "v19-figure8",
        recipe: "reproduce-v19-figure8",
        chapter: Chapter::Gates,
        about: "Functions of the heads that learned gates keep (Voita et al. 2019)",
        reads: Reads::Each(experiment::GATES),
        draw: |file, asked, left_out| {
            let found = Gates::read(file)?;
            let functions = asked.if_there(Functions::of_model(&found.file), left_out)?;
            let torn = functions.as_ref().and_then(|functions| functions.file.torn());
            torn.into_iter().for_each(|torn| left_out.note(torn));
            let chart = functions.and_then(|functions| gates::figure8(&found, &functions));
            Ok(vec![sheet(&found.file, gates::FUNCTIONS, chart, [])])
        },
        options: Options { detail: "after `head-functions`", ..Options::NONE },
    },
    Artefact {
        name: "v19-figure9",
        recipe: "reproduce-v19-figure9",
        chapter: Chapter::Gates,
        about: "Heads that learned gates keep, by attention type and layer (Voita et al. 2019)",
        reads: Reads::Each(experiment::GATES),
        draw: |file, _, _| figure(file, gates::LAYERS, gates::figure9),
        options: Options { alias: Some("v19-figure10"), ..Options::NONE },
    },
    Artefact {
        name: "v19-table2",
        recipe: "reproduce-v19-table2",
        chapter: Chapter::Gates,
        about: "Heads kept and the score, by how the heads were chosen, after equal training (Voita et al. 2019)",
        reads: Reads::Each(experiment::GATES),
        draw: |file, asked, _| {
            let found = Gates::read(file)?;
            Ok(vec![sheet(&found.file, gates::TABLE, None, [gates::table(&found, asked.criterion)])])
        },
        options: Options::NONE,
    },
    Artefact {
        name: gates::CONTRASTS,
        recipe: "reproduce-v19-figure7",
        chapter: Chapter::Gates,
        about: "Whether learned gates choose better heads, and what training them costs: methods of Figure 7 tested in pairs",
        reads: Reads::Each(experiment::GATES),
        draw: |file, asked, left_out| {
            let found = asked.if_there(Gates::read(file).and_then(Contrasts::read), left_out)?;
            let table = |found: &Contrasts| gates::contrasts(found, asked.criterion);
            Ok(found
                .iter()
                .map(|found| sheet(&found.gates.file, gates::CONTRASTS, None, [table(found)]))
                .collect())
        },
        options: Options::NONE,
    },
    Artefact {
        name: "gate-film",
        recipe: "reproduce-v19-figure7",
        chapter: Chapter::Gates,
        about: "Gates that close, epoch by epoch, of the model that keeps about a quarter of its heads",
        reads: Reads::Each(experiment::FILM),
        draw: |file, _, _| {
            let found = Film::read(file)?;
            let sheet = sheet(&found.file, film::STEM, film::stills(&found), []);
            Ok(vec![Sheet { frames: film::frames(&found), ..sheet }])
        },
        options: Options { detail: "a film beside it", ..Options::NONE },
    },
    Artefact {
        name: "agreement",
        recipe: "importance",
        chapter: Chapter::Orders,
        about: "Rank correlations of what heads can be ordered by, as a matrix and a table",
        reads: Reads::Each(experiment::IMPORTANCE),
        draw: |file, _, left_out| {
            let found = Orders::read(file, left_out)?;
            Ok(vec![agreement::sheet(&found)?])
        },
        options: Options {
            detail: "where heads share keys and values, also the sums over such groups",
            ..Options::NONE
        },
    },
    Artefact {
        name: "scores",
        recipe: "importance",
        chapter: Chapter::SingleHeads,
        about: "Heat maps of what heads can be ordered by, layer x head",
        reads: Reads::Each(experiment::IMPORTANCE),
        draw: |file, asked, left_out| {
            let found = Importance::read(file)?;
            let sweep = left_out
                .keep(Sweep::beside_model(&found.file, experiment::SWEEP, experiment::SWEEP))
                .flatten();
            let chart = heat_map::scores(&found, sweep.as_ref(), asked.criterion);
            Ok(vec![sheet(&found.file, heat_map::SCORES, chart, [])])
        },
        options: Options::NONE,
    },
    Artefact {
        name: "groups",
        recipe: "groups",
        chapter: Chapter::OtherData,
        about: "Accuracy by group of segments, such as the paradigms of BLiMP, and the heads that each group needs",
        reads: Reads::Groups,
        draw: |file, asked, _| {
            let found = Groups::read(Results::read(file)?)?;
            let alpha = asked.criterion.alpha;
            let (chart, tables) = (groups::figure(&found, alpha), groups::tables(&found, alpha));
            Ok(vec![sheet(&found.sweep.file, groups::STEM, chart, tables)])
        },
        options: Options::NONE,
    },
];

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
    let stem = best_heads::published(&best).stem;
    Ok(vec![sheet(&best.sweep.file, stem, None, [best_heads::table(&best, asked.criterion)])])
}
