//! What can be drawn: for each artefact its name, the results that it is made of, and its view. `all` and the commands of
//! single artefacts go through this list.
use std::path::{Path, PathBuf};

use anyhow::Result;
use charts::chart::Chart;
use charts::table::Table;
use charts::write::Sheet;
use findings::best_heads::BestHeads;
use findings::contrasts::Contrasts;
use findings::dynamics::Dynamics;
use findings::error::{Fault, LeftOut};
use findings::functions::Functions;
use findings::gates::{Film, Gates};
use findings::groups::Groups;
use findings::importance::Importance;
use findings::pair::{self, Pair};
use findings::pruning::Pruning;
use findings::results::Results;
use findings::retrained::Retrained;
use findings::source::{ResultFile, Source, experiment};
use findings::speed::Speed;
use findings::sweep::Sweep;
use records::{Attention, Row};

use crate::view::{
    Context, agreement, best_heads, cross_domain, dynamics, film, functions, gates, groups, heat_map,
    pruning_curves, pruning_table, single_heads, speed,
};

/// What a command asks for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// What views need.
    pub context: Context<'a>,
    /// The folder with the results of all subjects.
    pub results: &'a Path,
    /// What tables and figures of single heads show.
    pub attention: Selection,
    /// The second split of a comparison; any if absent.
    pub against: Option<&'a str>,
    /// Whether everything is drawn, so that an artefact that does not apply is left out and not an error.
    pub is_all: bool,
}

/// Which attention types a table or figure shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Selection {
    /// `enc-enc` as in the paper if it is present, else all.
    #[default]
    Paper,
    /// One of them.
    One(Attention),
    /// Every one.
    All,
}

impl Selection {
    /// The types to show of those `present`.
    fn of(self, present: &[Attention]) -> Vec<Attention> {
        match self {
            Self::Paper if present.contains(&Attention::EncEnc) => vec![Attention::EncEnc],
            Self::One(attention) => vec![attention],
            Self::Paper | Self::All => present.to_vec(),
        }
    }
}

/// Which results an artefact is made of: those of an experiment, of which a command of its own draws one file or, where several
/// stand beside each other, every one; or sweeps with groups of segments, comparisons, and heads that were chosen on the split
/// that is reported or on another.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reads {
    Each(&'static str),
    Every(&'static str),
    Groups,
    Pairs,
    Best { other_split: bool },
}

impl Reads {
    /// The files for everything that there is, of which there may be none, or those that a single command draws.
    pub fn files(self, source: &Source, asked: &Asked<'_>) -> Result<Vec<ResultFile>> {
        let each = |experiment| {
            if asked.is_all { source.all(experiment) } else { Ok(vec![source.one(experiment)?]) }
        };
        match self {
            Self::Each(experiment) => each(experiment),
            Self::Every(experiment) => {
                let files = source.all(experiment)?;
                if files.is_empty() { each(experiment) } else { Ok(files) }
            }
            Self::Groups => {
                let is_meant = |file: &ResultFile| !asked.is_all || file.groups().is_some();
                Ok(each(experiment::SWEEP)?.into_iter().filter(is_meant).collect())
            }
            Self::Pairs if asked.is_all => each(experiment::PAIR),
            Self::Pairs => Pair::files(source, asked.against),
            Self::Best { other_split } if asked.is_all => BestHeads::files(source, other_split),
            Self::Best { other_split: false } => each(experiment::BEST_HEADS),
            Self::Best { other_split: true } => BestHeads::largest_files(source),
        }
    }
}

type Draw = fn(ResultFile, &Asked<'_>, &mut LeftOut) -> Result<Vec<Sheet>>;

/// One table or figure, or some that belong together.
pub struct Artefact {
    /// The command that draws it.
    pub name: &'static str,
    pub(crate) alias: Option<&'static str>,
    /// What measures it first.
    pub recipe: &'static str,
    /// What it shows.
    pub about: &'static str,
    pub(crate) reads: Reads,
    /// How what it reads is drawn, file by file.
    draw: Draw,
}

impl Artefact {
    /// What is drawn of all files that are meant, each sheet with its folder; absent if there was no such file. Sheets of one
    /// folder and name share their files, as those of heads that were chosen on several splits.
    pub fn sheets(
        &self,
        source: &Source,
        asked: &Asked<'_>,
        left_out: &mut LeftOut,
    ) -> Result<Option<Vec<(PathBuf, Sheet)>>> {
        let (mut sheets, mut has_any) = (Vec::<(PathBuf, Sheet)>::new(), false);
        for file in self.reads.files(source, asked)? {
            let folder = file.figures();
            let drawn = (self.draw)(file, asked, left_out);
            let Some(drawn) = (if asked.is_all { left_out.keep(drawn)? } else { Some(drawn?) }) else {
                continue;
            };
            has_any = true;
            for mut sheet in drawn {
                let mut there = sheets.iter_mut();
                match there.find(|(other, there)| *other == folder && there.stem == sheet.stem) {
                    Some((_, there)) => there.tables.append(&mut sheet.tables),
                    None => sheets.push((folder.clone(), sheet)),
                }
            }
        }
        Ok(has_any.then_some(sheets))
    }
}

const fn artefact(names: [&'static str; 3], about: &'static str, reads: Reads, draw: Draw) -> Artefact {
    let [name, alias, recipe] = names;
    Artefact { name, alias: if alias.is_empty() { None } else { Some(alias) }, recipe, about, reads, draw }
}

/// Everything that can be drawn of one subject.
pub const ARTEFACTS: &[Artefact] = &[
    artefact(
        ["table1", "", "reproduce-table1"],
        "Score change for each masked head, layer x head, with the significant ones marked; for BERT in the same layout",
        Reads::Each(experiment::SWEEP),
        |file, asked, _| table1(&Sweep::read(file)?, asked),
    ),
    artefact(
        ["figure1", "", "reproduce-table1"],
        "Histogram of the scores with one head masked, beside the score of the intact model; for BERT, Figure 1b",
        Reads::Each(experiment::SWEEP),
        |file, asked, _| figure1(&Sweep::read(file)?, asked),
    ),
    artefact(
        ["heads", "", "reproduce-table1"],
        "Heat map of what masking each head does to the score, layer x head",
        Reads::Each(experiment::SWEEP),
        |file, asked, _| figure(file, heat_map::EFFECTS, |sweep| heat_map::effects(sweep, asked.context)),
    ),
    artefact(
        ["table2", "table3", "reproduce-table2"],
        "Best single head of each layer, chosen and reported on one split; for BERT, Table 3",
        Reads::Best { other_split: false },
        best,
    ),
    artefact(
        ["table5", "table6", "reproduce-table5"],
        "Best single head of each layer, chosen on another split than reported; for BERT, Table 6",
        Reads::Best { other_split: true },
        best,
    ),
    artefact(
        ["figure3", "figure6", "reproduce-figure3"],
        "Score over the share of masked heads, and how many heads can go; for classifiers other than MNLI, Figure 6",
        Reads::Each(experiment::PRUNING),
        |file, asked, left_out| figure3(&Pruning::read(file, left_out)?, asked),
    ),
    artefact(
        ["figure4", "", "reproduce-figure4"],
        "Score over the share of masked heads of each attention type",
        Reads::Each(experiment::PRUNING),
        |file, asked, left_out| {
            let pruning = Pruning::read(file, left_out)?;
            let chart = if_asked(pruning_curves::figure4(&pruning, asked.context), asked)?;
            Ok(chart.map(|chart| sheet(&pruning.results.file, "figure4", chart, [])).into_iter().collect())
        },
    ),
    artefact(
        ["prune-and-retrain", "", "prune-and-retrain"],
        "Score over the share of closed heads after training on without them, beside the model as it was",
        Reads::Each(experiment::RETRAINED),
        |file, asked, left_out| {
            let found = Retrained::read(file, left_out)?;
            let table = pruning_curves::retrained_table(&found, asked.context);
            let chart = pruning_curves::retrained(&found, asked.context);
            Ok(vec![sheet(&found.after.results.file, pruning_curves::RETRAINED, chart, [table])])
        },
    ),
    artefact(
        ["figure2", "", "reproduce-figure2"],
        "Scores with one head masked on two splits, and how far noise lets them agree; after `cross-domain`",
        Reads::Pairs,
        |file, asked, _| figure2(&Pair::read(file, asked.results)?, asked),
    ),
    artefact(
        ["table4", "", "reproduce-table4"],
        "Segments a second with all heads and without some, and what else is saved",
        Reads::Each(experiment::SPEED),
        |file, asked, _| {
            let found = Speed::read_limited(file)?;
            Ok(vec![sheet(&found.file, speed::STEM, None, speed::tables(&found, asked.context))])
        },
    ),
    artefact(
        ["figure5", "", "reproduce-figure5"],
        "Scores with more and more heads masked while the model is trained, in percent of the unpruned ones",
        Reads::Each(experiment::DYNAMICS),
        |file, asked, left_out| {
            let found = Dynamics::read(file)?;
            // A training without a score so far has tables alone.
            let chart = left_out.keep(dynamics::figure5(&found))?;
            Ok(vec![sheet(&found.file, dynamics::STEM, chart, dynamics::tables(&found, asked.context))])
        },
    ),
    artefact(
        ["v19-table1", "", "reproduce-v19-table1"],
        "The head that does each thing best, beside its position alone and shuffled targets (Voita et al. 2019)",
        Reads::Each(experiment::FUNCTIONS),
        |file, _, _| table(file, functions::TABLE, functions::table1),
    ),
    artefact(
        ["v19-figure1c", "v19-figure2b", "reproduce-v19-figure1c"],
        "What the heads of each layer do (Voita et al. 2019)",
        Reads::Each(experiment::FUNCTIONS),
        |file, _, _| figure(file, functions::CENSUS, functions::figure1c),
    ),
    artefact(
        ["v19-figure1a", "v19-figure2a", "reproduce-v19-figure1a"],
        "Heat map of the relevance of each head, layer x head (Voita et al. 2019)",
        Reads::Every(experiment::RELEVANCE),
        |file, _, _| figure(file, heat_map::RELEVANCE, heat_map::relevance),
    ),
    artefact(
        ["v19-figure7", "", "reproduce-v19-figure7"],
        "Score of models that were trained on with the heads that gates leave, and of controls (Voita et al. 2019)",
        Reads::Each(experiment::GATES),
        |file, asked, _| figure(file, gates::CURVES, |found| gates::figure7(found, asked.context)),
    ),
    artefact(
        ["v19-figure8", "", "reproduce-v19-figure8"],
        "What the heads did before that gates leave (Voita et al. 2019); after `head-functions`",
        Reads::Each(experiment::GATES),
        |file, asked, left_out| {
            let found = Gates::read(file)?;
            let functions = if_there(Functions::of_model(&found.file), asked, left_out)?;
            let chart = functions.and_then(|functions| gates::figure8(&found, &functions));
            Ok(vec![sheet(&found.file, gates::FUNCTIONS, chart, [])])
        },
    ),
    artefact(
        ["v19-figure9", "v19-figure10", "reproduce-v19-figure9"],
        "Heads that gates leave, by attention type and layer (Voita et al. 2019)",
        Reads::Each(experiment::GATES),
        |file, _, _| figure(file, gates::LAYERS, gates::figure9),
    ),
    artefact(
        ["v19-table2", "", "reproduce-v19-table2"],
        "Heads that stay and the score by how they were chosen, after as many updates (Voita et al. 2019)",
        Reads::Each(experiment::GATES),
        |file, asked, _| table(file, gates::TABLE, |found| gates::table(found, asked.context)),
    ),
    artefact(
        [gates::CONTRASTS, "", "reproduce-v19-figure7"],
        "Whether gates choose better heads, and what training them costs: methods of Figure 7 tested against each other",
        Reads::Each(experiment::GATES),
        |file, asked, left_out| {
            let found = if_there(Gates::read(file).and_then(Contrasts::read), asked, left_out)?;
            let draw = |found: Contrasts| {
                let table = gates::contrasts(&found, asked.context);
                sheet(&found.gates.file, gates::CONTRASTS, None, [table])
            };
            Ok(found.into_iter().map(draw).collect())
        },
    ),
    artefact(
        ["gate-film", "", "reproduce-v19-figure7"],
        "Gates that close, epoch by epoch, of the model whose gates close most; a film beside it",
        Reads::Each(experiment::FILM),
        |file, _, _| {
            let found = Film::read(file)?;
            let sheet = sheet(&found.file, film::STEM, film::stills(&found), []);
            Ok(vec![Sheet { frames: film::frames(&found), ..sheet }])
        },
    ),
    artefact(
        ["agreement", "", "importance"],
        "Rank correlations of what heads can be ordered by, as a matrix and a table; where heads share keys and values, also the \
         sums over such groups",
        Reads::Each(experiment::IMPORTANCE),
        |file, _, _| {
            let found = Importance::read(file)?;
            let (chart, tables) = (agreement::figure(&found)?, agreement::tables(&found)?);
            Ok(vec![sheet(&found.file, agreement::STEM, chart, tables)])
        },
    ),
    artefact(
        ["scores", "", "importance"],
        "Heat maps of what heads can be ordered by, layer x head",
        Reads::Each(experiment::IMPORTANCE),
        |file, _, _| figure(file, heat_map::SCORES, heat_map::scores),
    ),
    artefact(
        ["groups", "", "groups"],
        "Accuracy by group of segments, such as the paradigms of BLiMP, and the heads that each group needs",
        Reads::Groups,
        |file, asked, _| {
            let found = Groups::read(Sweep::read(file)?)?;
            let alpha = asked.context.criterion.alpha;
            let (chart, tables) = (groups::figure(&found, alpha), groups::tables(&found, alpha));
            Ok(vec![sheet(&found.sweep.file, groups::STEM, chart, tables)])
        },
    ),
];

/// What is drawn from a file under a name, with what the signature cannot vouch for.
fn sheet(
    file: &ResultFile,
    name: &str,
    chart: impl Into<Option<Chart>>,
    tables: impl IntoIterator<Item = Table>,
) -> Sheet {
    Sheet::new(&file.stem(name), chart, tables).remark(file.remark())
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

/// A table of the rows of one file.
fn table<R: Row>(file: ResultFile, stem: &str, draw: impl Fn(&Results<R>) -> Table) -> Result<Vec<Sheet>> {
    let found = Results::read(file)?;
    Ok(vec![sheet(&found.file, stem, None, [draw(&found)])])
}

/// A chart that not every file has: nothing, if everything is drawn and this does not apply.
fn if_asked<T>(chart: Result<T>, asked: &Asked<'_>) -> Result<Option<T>> {
    match chart {
        Err(error) if asked.is_all && matches!(error.downcast_ref(), Some(Fault::Asked(_))) => Ok(None),
        chart => chart.map(Some),
    }
}

/// What another experiment has to have measured too: nothing, if everything is drawn and that was not run.
fn if_there<T>(read: Result<T>, asked: &Asked<'_>, left_out: &mut LeftOut) -> Result<Option<T>> {
    if asked.is_all { left_out.keep_if_there(read) } else { read.map(Some) }
}

/// Draws a sweep by attention types, those of the paper or those that were asked for; of everything also all of them where there
/// are more than the paper's, else what an earlier run drew of all is removed.
fn by_selection(
    sweep: &Sweep,
    asked: &Asked<'_>,
    names: [&'static str; 3],
    draw: impl Fn(&str, &[Attention]) -> Sheet,
) -> Result<Vec<Sheet>> {
    let present = sweep.attentions();
    let is_paper_all = Selection::Paper.of(&present) == present;
    let chosen = match (asked.is_all, is_paper_all) {
        (false, _) => vec![asked.attention],
        (true, true) => vec![Selection::Paper],
        (true, false) => vec![Selection::Paper, Selection::All],
    };
    let mut sheets = Vec::new();
    for selection in chosen {
        let types = selection.of(&present);
        if let Some(missing) = types.iter().find(|attention| !present.contains(attention)) {
            let list: Vec<_> = present.iter().map(|attention| attention.name()).collect();
            let (path, list) = (sweep.file.path.display(), list.join(", "));
            let fault = format!("no rows for attention type {missing}: `{path}` has {list}");
            return Err(Fault::Asked(fault).into());
        }
        let stem = match selection {
            _ if types == [Attention::SelfAttention] => sweep.stem(names).to_owned(),
            Selection::Paper => names[0].to_owned(),
            Selection::One(attention) => format!("{}-{attention}", names[0]),
            Selection::All => format!("{}-all", names[0]),
        };
        sheets.push(draw(&stem, &types));
    }
    let outdated =
        (asked.is_all && is_paper_all).then(|| sheet(&sweep.file, &format!("{}-all", names[0]), None, []));
    Ok(sheets.into_iter().chain(outdated).collect())
}

fn table1(sweep: &Sweep, asked: &Asked<'_>) -> Result<Vec<Sheet>> {
    let draw = |stem: &str, types: &[Attention]| {
        let tables = types.iter().map(|&attention| single_heads::table1(sweep, attention, asked.context));
        sheet(&sweep.file, stem, None, tables)
    };
    let mut sheets = by_selection(sweep, asked, single_heads::STEMS, draw)?;
    // The last has all that the first has.
    let last = sheets.iter().rposition(|sheet| !sheet.tables.is_empty());
    sheets.iter_mut().enumerate().for_each(|(place, sheet)| sheet.is_printed = Some(place) == last);
    Ok(sheets)
}

fn figure1(sweep: &Sweep, asked: &Asked<'_>) -> Result<Vec<Sheet>> {
    by_selection(sweep, asked, single_heads::HISTOGRAMS, |stem, types| {
        sheet(&sweep.file, stem, single_heads::figure1(sweep, types, asked.context), [])
    })
}

fn best(file: ResultFile, asked: &Asked<'_>, _: &mut LeftOut) -> Result<Vec<Sheet>> {
    let best = BestHeads::read(file)?;
    Ok(vec![sheet(&best.sweep.file, best.stem(), None, [best_heads::table(&best, asked.context)])])
}

fn figure3(pruning: &Pruning, asked: &Asked<'_>) -> Result<Vec<Sheet>> {
    let (file, table) = (&pruning.results.file, pruning_table::table(pruning, asked.context));
    let chart = if_asked(pruning_curves::figure3(pruning, asked.context), asked)?;
    let chart = chart.map(|chart| sheet(file, pruning_curves::stem(pruning), chart, []));
    Ok([sheet(file, pruning_table::STEM, None, [table])].into_iter().chain(chart).collect())
}

/// Named after the second split, and after both if another comparison beside it has the same second one.
fn figure2(pair: &Pair, asked: &Asked<'_>) -> Result<Vec<Sheet>> {
    let source = Source::subject(asked.results, &pair.file.subject);
    let others = source.all(experiment::PAIR).unwrap_or_default();
    let [first, second] = &pair.splits;
    let is_other = |[one, two]: [String; 2]| two == *second && one != *first;
    let has_other = others.iter().filter_map(pair::splits).any(is_other);
    let name = if has_other { format!("figure2-{first}-{second}") } else { format!("figure2-{second}") };
    let chart = cross_domain::figure2(pair, asked.context);
    Ok(vec![sheet(&pair.file, &name, chart, [cross_domain::table(pair)])])
}
