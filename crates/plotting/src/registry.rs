//! What can be drawn: for each artefact its name, the results that it is made of, and its view. `all` and the commands of
//! single artefacts go through this list.
use std::path::Path;

use anyhow::Result;
use records::Attention;

use crate::data::best_heads::{self as chosen, BestHeads};
use crate::data::contrasts::Contrasts;
use crate::data::dynamics::{self, Dynamics};
use crate::data::functions::{self as heads_do, Functions, Relevance};
use crate::data::gates::{self, Film, Gates};
use crate::data::groups::Groups;
use crate::data::pair::{self, Pair};
use crate::data::pruning::{self, Pruning};
use crate::data::retrained::{self, Retrained};
use crate::data::sweep::{self, Sweep};
use crate::error::{Fault, LeftOut};
use crate::source::{ResultFile, Source};
use crate::view::agreement::{self, Importance};
use crate::view::speed::{self, Speed};
use crate::view::{
    Context, best_heads, contrasts, cross_domain, dynamics as training, film, functions, gates as gated,
    groups, heat_map, histogram, pruning_curves, pruning_table, retrained as trained_on, single_heads,
};
use crate::write::Sheet;

/// What a command asks for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub context: Context<'a>,
    /// The folder with the results of all subjects.
    pub results: &'a Path,
    pub attention: Selection,
    /// The second split of a comparison; any if absent.
    pub against: Option<&'a str>,
    /// Whether everything is drawn, so that an artefact that does not apply is left out and not an error.
    pub is_all: bool,
}

/// Which attention types a table or figure shows: `enc-enc` as in the paper if it is present, else all; one; or every one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Selection {
    #[default]
    Paper,
    One(Attention),
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
pub enum Reads {
    Each(&'static str),
    Every(&'static str),
    Groups,
    Pairs,
    SameSplit,
    OtherSplit,
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
                Ok(each(sweep::EXPERIMENT)?.into_iter().filter(is_meant).collect())
            }
            Self::Pairs if asked.is_all => each(pair::EXPERIMENT),
            Self::Pairs => Pair::files(source, asked.against),
            Self::SameSplit if asked.is_all => BestHeads::same_split(source),
            Self::SameSplit => each(chosen::EXPERIMENT),
            Self::OtherSplit if asked.is_all => BestHeads::other_split(source),
            Self::OtherSplit => BestHeads::largest_files(source),
        }
    }
}

type Draw = fn(ResultFile, &Asked<'_>, &mut LeftOut) -> Result<Vec<Sheet>>;

/// One table or figure, or some that belong together: the command that draws it with its alias, the recipe that measures it
/// first, what it shows, the results that it reads, and how one of them is drawn.
pub struct Artefact {
    pub name: &'static str,
    pub alias: Option<&'static str>,
    pub recipe: &'static str,
    pub about: &'static str,
    pub reads: Reads,
    pub draw: Draw,
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
        Reads::Each(sweep::EXPERIMENT),
        |file, asked, _| table1(&Sweep::read(file, sweep::EXPERIMENT)?, asked),
    ),
    artefact(
        ["figure1", "", "reproduce-table1"],
        "Histogram of the scores with one head masked, beside the score of the intact model; for BERT, Figure 1b",
        Reads::Each(sweep::EXPERIMENT),
        |file, asked, _| figure1(&Sweep::read(file, sweep::EXPERIMENT)?, asked),
    ),
    artefact(
        ["heads", "", "reproduce-table1"],
        "Heat map of what masking each head does to the score, layer x head",
        Reads::Each(sweep::EXPERIMENT),
        |file, asked, _| {
            let sweep = Sweep::read(file, sweep::EXPERIMENT)?;
            let chart = heat_map::effects(&sweep, asked.context);
            Ok(vec![Sheet::of(&sweep.file, heat_map::EFFECTS, chart, Vec::new())])
        },
    ),
    artefact(
        ["table2", "table3", "reproduce-table2"],
        "Best single head of each layer, chosen and reported on one split; for BERT, Table 3",
        Reads::SameSplit,
        best,
    ),
    artefact(
        ["table5", "table6", "reproduce-table5"],
        "Best single head of each layer, chosen on another split than reported; for BERT, Table 6",
        Reads::OtherSplit,
        best,
    ),
    artefact(
        ["figure3", "figure6", "reproduce-figure3"],
        "Score over the share of masked heads, and how many heads can go; for classifiers other than MNLI, Figure 6",
        Reads::Each(pruning::EXPERIMENT),
        |file, asked, left_out| figure3(&Pruning::read(file, left_out)?, asked),
    ),
    artefact(
        ["figure4", "", "reproduce-figure4"],
        "Score over the share of masked heads of each attention type",
        Reads::Each(pruning::EXPERIMENT),
        |file, asked, left_out| {
            let pruning = Pruning::read(file, left_out)?;
            let chart = if_asked(pruning_curves::figure4(&pruning, asked.context), asked)?;
            let sheet = |chart| Sheet::of(&pruning.file, "figure4", chart, Vec::new());
            Ok(chart.into_iter().map(sheet).collect())
        },
    ),
    artefact(
        ["prune-and-retrain", "", "prune-and-retrain"],
        "Score over the share of closed heads after training on without them, beside the model as it was",
        Reads::Each(retrained::EXPERIMENT),
        |file, asked, left_out| {
            let found = Retrained::read(file, left_out)?;
            let (chart, table) =
                (trained_on::figure(&found, asked.context), trained_on::table(&found, asked.context));
            Ok(vec![Sheet::of(&found.after.file, trained_on::STEM, chart, vec![table])])
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
        Reads::Each(speed::EXPERIMENT),
        |file, asked, _| {
            let found = Speed::read(file)?;
            let tables = speed::tables(&found, asked.context);
            Ok(vec![Sheet::of(&found.file, speed::STEM, None, tables)])
        },
    ),
    artefact(
        ["figure5", "", "reproduce-figure5"],
        "Scores with more and more heads masked while the model is trained, in percent of the unpruned ones",
        Reads::Each(dynamics::EXPERIMENT),
        |file, asked, left_out| {
            let found = Dynamics::read(file)?;
            // A training without a score so far has tables alone.
            let chart = left_out.keep(training::figure5(&found))?;
            let tables = training::tables(&found, asked.context);
            Ok(vec![Sheet::of(&found.file, training::STEM, chart, tables)])
        },
    ),
    artefact(
        ["v19-table1", "", "reproduce-v19-table1"],
        "The head that does each thing best, beside its position alone and shuffled targets (Voita et al. 2019)",
        Reads::Each(heads_do::FUNCTIONS),
        |file, _, _| {
            let found = Functions::read(file)?;
            Ok(vec![Sheet::of(&found.file, functions::TABLE, None, vec![functions::table1(&found)])])
        },
    ),
    artefact(
        ["v19-figure1c", "v19-figure2b", "reproduce-v19-figure1c"],
        "What the heads of each layer do (Voita et al. 2019)",
        Reads::Each(heads_do::FUNCTIONS),
        |file, _, _| {
            let found = Functions::read(file)?;
            Ok(vec![Sheet::of(&found.file, functions::CENSUS, functions::figure1c(&found), Vec::new())])
        },
    ),
    artefact(
        ["v19-figure1a", "v19-figure2a", "reproduce-v19-figure1a"],
        "Heat map of the relevance of each head, layer x head (Voita et al. 2019)",
        Reads::Every(heads_do::RELEVANCE),
        |file, _, _| {
            let found = Relevance::read(file)?;
            let chart = heat_map::relevance(&found);
            Ok(vec![Sheet::of(&found.file, heat_map::RELEVANCE, chart, Vec::new())])
        },
    ),
    artefact(
        ["v19-figure7", "", "reproduce-v19-figure7"],
        "Score of models that were trained on with the heads that gates leave, and of controls (Voita et al. 2019)",
        Reads::Each(gates::EXPERIMENT),
        |file, asked, _| {
            let found = Gates::read(file)?;
            let chart = gated::figure7(&found, asked.context);
            Ok(vec![Sheet::of(&found.file, gated::CURVES, chart, Vec::new())])
        },
    ),
    artefact(
        ["v19-figure8", "", "reproduce-v19-figure8"],
        "What the heads did before that gates leave (Voita et al. 2019); after `head-functions`",
        Reads::Each(gates::EXPERIMENT),
        |file, asked, left_out| {
            let found = Gates::read(file)?;
            let functions = Functions::beside(&found.file);
            let functions = if asked.is_all { left_out.keep_if_there(functions)? } else { Some(functions?) };
            let chart = functions.and_then(|functions| gated::figure8(&found, &functions));
            Ok(vec![Sheet::of(&found.file, gated::FUNCTIONS, chart, Vec::new())])
        },
    ),
    artefact(
        ["v19-figure9", "v19-figure10", "reproduce-v19-figure9"],
        "Heads that gates leave, by attention type and layer (Voita et al. 2019)",
        Reads::Each(gates::EXPERIMENT),
        |file, _, _| {
            let found = Gates::read(file)?;
            let sheet = |chart| Sheet::of(&found.file, gated::LAYERS, chart, Vec::new());
            Ok(gated::figure9(&found).into_iter().map(sheet).collect())
        },
    ),
    artefact(
        ["v19-table2", "", "reproduce-v19-table2"],
        "Heads that stay and the score by how they were chosen, after as many updates (Voita et al. 2019)",
        Reads::Each(gates::EXPERIMENT),
        |file, asked, _| {
            let found = Gates::read(file)?;
            let table = gated::table(&found, asked.context);
            Ok(vec![Sheet::of(&found.file, gated::TABLE, None, vec![table])])
        },
    ),
    artefact(
        [contrasts::STEM, "", "reproduce-v19-figure7"],
        "Whether gates choose better heads, and what training them costs: methods of Figure 7 tested against each other",
        Reads::Each(gates::EXPERIMENT),
        |file, asked, left_out| {
            let found = Gates::read(file).and_then(Contrasts::read);
            let found = if asked.is_all { left_out.keep_if_there(found)? } else { Some(found?) };
            let sheet = |found: Contrasts| {
                let table = contrasts::table(&found, asked.context);
                Sheet::of(&found.gates.file, contrasts::STEM, None, vec![table])
            };
            Ok(found.into_iter().map(sheet).collect())
        },
    ),
    artefact(
        ["gate-film", "", "reproduce-v19-figure7"],
        "Gates that close, epoch by epoch, of the model whose gates close most; a film beside it",
        Reads::Each(gates::FILM),
        |file, _, _| {
            let found = Film::read(file)?;
            let sheet = Sheet::of(&found.file, film::STEM, film::stills(&found), Vec::new());
            Ok(vec![Sheet { frames: film::frames(&found), ..sheet }])
        },
    ),
    artefact(
        ["agreement", "", "importance"],
        "Rank correlations of what heads can be ordered by, as a matrix and a table; where heads share keys and values, also the \
         sums over such groups",
        Reads::Each(agreement::EXPERIMENT),
        |file, _, _| {
            let found = Importance::read(file)?;
            let (chart, tables) = (agreement::figure(&found)?, agreement::tables(&found)?);
            Ok(vec![Sheet::of(&found.file, agreement::STEM, chart, tables)])
        },
    ),
    artefact(
        ["scores", "", "importance"],
        "Heat maps of what heads can be ordered by, layer x head",
        Reads::Each(agreement::EXPERIMENT),
        |file, _, _| {
            let found = Importance::read(file)?;
            Ok(vec![Sheet::of(&found.file, heat_map::SCORES, heat_map::scores(&found), Vec::new())])
        },
    ),
    artefact(
        ["groups", "", "groups"],
        "Accuracy by group of segments, such as the paradigms of BLiMP, and the heads that each group needs",
        Reads::Groups,
        |file, asked, _| {
            let found = Groups::read(Sweep::read(file, sweep::EXPERIMENT)?)?;
            let alpha = asked.context.criterion.alpha;
            let (chart, tables) = (groups::figure(&found, alpha), groups::tables(&found, alpha));
            Ok(vec![Sheet::of(&found.sweep.file, groups::STEM, chart, tables)])
        },
    ),
];

/// A chart that not every file has: nothing, if everything is drawn and this does not apply.
fn if_asked<T>(chart: Result<T>, asked: &Asked<'_>) -> Result<Option<T>> {
    match chart {
        Err(error) if asked.is_all && matches!(error.downcast_ref(), Some(Fault::Asked(_))) => Ok(None),
        chart => chart.map(Some),
    }
}

/// Attention types that are drawn together, and the name of the drawing.
type Selected = (Vec<Attention>, String);

/// The selections that are drawn, each with its name: of everything the paper's types, and all of them where there are
/// more; else what an earlier run drew of all types is to be removed.
fn selections(
    sweep: &Sweep,
    asked: &Asked<'_>,
    names: [&'static str; 3],
) -> Result<(Vec<Selected>, Option<Sheet>)> {
    let present = sweep.attentions();
    let is_paper_all = Selection::Paper.of(&present) == present;
    let chosen = match (asked.is_all, is_paper_all) {
        (false, _) => vec![asked.attention],
        (true, true) => vec![Selection::Paper],
        (true, false) => vec![Selection::Paper, Selection::All],
    };
    let named = |selection: Selection| {
        let types = selection.of(&present);
        if let Some(missing) = types.iter().find(|attention| !present.contains(attention)) {
            let list: Vec<_> = present.iter().map(Attention::to_string).collect();
            let (path, list) = (sweep.file.path.display(), list.join(", "));
            return Err(
                Fault::Asked(format!("no rows for attention type {missing}: `{path}` has {list}")).into()
            );
        }
        let stem = match selection {
            _ if types == [Attention::SelfAttention] => sweep.stem(names).to_owned(),
            Selection::Paper => names[0].to_owned(),
            Selection::One(attention) => format!("{}-{attention}", names[0]),
            Selection::All => format!("{}-all", names[0]),
        };
        Ok((types, stem))
    };
    let outdated = Sheet::of(&sweep.file, &format!("{}-all", names[0]), None, Vec::new());
    let outdated = (asked.is_all && is_paper_all).then_some(outdated);
    Ok((chosen.into_iter().map(named).collect::<Result<_>>()?, outdated))
}

fn table1(sweep: &Sweep, asked: &Asked<'_>) -> Result<Vec<Sheet>> {
    let (selections, outdated) = selections(sweep, asked, single_heads::STEMS)?;
    let last = selections.len();
    let sheet = |(place, (types, stem)): (usize, Selected)| {
        let tables = types.iter().map(|&attention| single_heads::table1(sweep, attention, asked.context));
        // The last has all that the first has.
        Sheet { is_printed: place + 1 == last, ..Sheet::of(&sweep.file, &stem, None, tables.collect()) }
    };
    Ok(selections.into_iter().enumerate().map(sheet).chain(outdated).collect())
}

fn figure1(sweep: &Sweep, asked: &Asked<'_>) -> Result<Vec<Sheet>> {
    let (selections, outdated) = selections(sweep, asked, histogram::STEMS)?;
    let draw = |(types, stem): Selected| {
        Sheet::of(&sweep.file, &stem, histogram::figure1(sweep, &types, asked.context), Vec::new())
    };
    Ok(selections.into_iter().map(draw).chain(outdated).collect())
}

fn best(file: ResultFile, asked: &Asked<'_>, _: &mut LeftOut) -> Result<Vec<Sheet>> {
    let best = BestHeads::read(file)?;
    let table = best_heads::table(&best, asked.context);
    Ok(vec![Sheet::of(&best.sweep.file, best.stem(), None, vec![table])])
}

fn figure3(pruning: &Pruning, asked: &Asked<'_>) -> Result<Vec<Sheet>> {
    let table = pruning_table::table(pruning, asked.context);
    let table = Sheet::of(&pruning.file, pruning_table::STEM, None, vec![table]);
    let chart = if_asked(pruning_curves::figure3(pruning, asked.context), asked)?;
    let stem = pruning_curves::stem(pruning);
    let chart = chart.map(|chart| Sheet::of(&pruning.file, stem, chart, Vec::new()));
    Ok([table].into_iter().chain(chart).collect())
}

/// Named after the second split, and after both if another comparison beside it has the same second one.
fn figure2(pair: &Pair, asked: &Asked<'_>) -> Result<Vec<Sheet>> {
    let source = Source::subject(asked.results, &pair.file.subject);
    let others = source.all(pair::EXPERIMENT).unwrap_or_default();
    let [first, second] = &pair.splits;
    let is_other = |[one, two]: [String; 2]| two == *second && one != *first;
    let has_other = others.iter().filter_map(pair::splits).any(is_other);
    let name = if has_other { format!("figure2-{first}-{second}") } else { format!("figure2-{second}") };
    let chart = cross_domain::figure2(pair, asked.context);
    Ok(vec![Sheet::of(&pair.file, &name, chart, vec![cross_domain::table(pair)])])
}
