//! Setups of translators and summarisers: source and target, prefix, languages.
use std::collections::BTreeMap;
use std::path::Path;

use corpus::labelled::RowKind;
use corpus::tables::{self, Table, TableColumn};

use super::files::{DataFile, Splits, several};
use super::model::InitialModel;
use super::toml_text::{Because, TomlText, column, kind, path};
use super::{Known, ask, roles};
use crate::error::Error;
use crate::translation::prefixes;

/// Targets with fewer words than this share of the source's words are summaries.
const SUMMARY: f64 = 0.5;

/// Language codes and English names, as in the prefixes of T5.
const LANGUAGES: [(&str, &str); 4] =
    [("en", "English"), ("de", "German"), ("fr", "French"), ("ro", "Romanian")];

/// Two-letter language codes, each with the three-letter code that NLLB's codes begin with.
const CODES: &[(&str, &str)] = &[
    ("ar", "arb"),
    ("cs", "ces"),
    ("da", "dan"),
    ("de", "deu"),
    ("en", "eng"),
    ("es", "spa"),
    ("fi", "fin"),
    ("fr", "fra"),
    ("hi", "hin"),
    ("it", "ita"),
    ("ja", "jpn"),
    ("ko", "kor"),
    ("nl", "nld"),
    ("pl", "pol"),
    ("pt", "por"),
    ("ro", "ron"),
    ("ru", "rus"),
    ("sv", "swe"),
    ("tr", "tur"),
    ("zh", "zho"),
];

/// Families whose tokenizers need language codes.
const WITH_CODES: [&str; 2] = ["mbart", "m2m_100"];

/// Source and target of a split.
struct Sides {
    /// Entry of the split, in TOML.
    entry: String,
    /// Names of the sides: file endings or columns.
    names: [String; 2],
    because: Because,
    /// Mean number of words per source and per target.
    words: [f64; 2],
}

pub(super) fn describe(
    toml: &mut TomlText,
    model: &InitialModel,
    known: &Known,
    splits: &Splits,
) -> Result<(), Error> {
    let known = &in_direction(model, known, splits.test())?;
    let all = splits.files.iter().map(|(&split, files)| Ok((split, sides(files, known)?)));
    let all = all.collect::<Result<BTreeMap<_, _>, Error>>()?;
    let test = &all["test"];
    let is_summary = test.words[1] < SUMMARY * test.words[0];
    toml.model("translation", model, &splits.test()[0]);
    let languages = languages(model, known, &test.names)?;
    let prefix = prefix(model, known, is_summary, &test.names)?;
    if languages.is_some() || prefix.is_some() || !splits.has_train() {
        toml.section("data");
    }
    if let Some((prefix, because)) = prefix {
        toml.entry("source_prefix", prefix, because);
    }
    if let Some(([source, target], because)) = languages {
        toml.entry("source_language", source, because.clone());
        toml.entry("target_language", target, because);
    }
    if !splits.has_train() {
        toml.estimate_on_test();
    }
    toml.section("data.splits");
    for (&split, Sides { entry, because, .. }) in &all {
        let because = if splits.assumed_test.is_some() { splits.because(split) } else { because.clone() };
        toml.raw(split, entry, because);
    }
    toml.section("score");
    let (metric, why) = match is_summary {
        true => ("rougeL", "targets are much shorter than sources, so they are summaries"),
        false => ("bleu", "targets are about as long as sources, so they are translations"),
    };
    toml.entry("metric", metric, Because::Assumed(why.to_owned()));
    Ok(())
}

/// Sets source and target by the model's direction, if the data have its languages and the user sets neither.
fn in_direction(model: &InitialModel, known: &Known, files: &[DataFile]) -> Result<Known, Error> {
    let mut known = known.clone();
    let (None, None, Some(languages)) = (&known.source, &known.target, model.languages()) else {
        return Ok(known);
    };
    let names = match files {
        [file] => match tables::kind_of(&file.path) {
            Some(kind) => known.table(&file.path, kind)?.columns.iter().map(TableColumn::name).collect(),
            None => Vec::new(),
        },
        files => files.iter().map(|file| ending(&file.path)).collect(),
    };
    let of = |language: &String| names.iter().find(|name| ending(Path::new(name)) == *language).cloned();
    if let [Some(source), Some(target)] = languages.each_ref().map(of) {
        (known.source, known.target) = (Some(source), Some(target));
    }
    Ok(known)
}

/// Finds source and target: two line-parallel files, or two columns of a table.
fn sides(files: &[DataFile], known: &Known) -> Result<Sides, Error> {
    match files {
        [file] => match tables::kind_of(&file.path) {
            Some(kind) => of_table(file, &known.table(&file.path, kind)?, known),
            None => Err(ask(
                format!("`{}` is one side of line-parallel files", file.path.display()),
                "name the other file as well, source first",
            )),
        },
        [first, second] => {
            let endings = [ending(&first.path), ending(&second.path)];
            let sides = match (&known.source, &known.target) {
                (Some(source), _) if endings[1] == *source => [second, first],
                (_, Some(target)) if endings[0] == *target => [second, first],
                (Some(source), _) if endings[0] != *source => {
                    let [first, second] = &endings;
                    return Err(Error::Invalid(format!(
                        "--source {source}: the files end in {first} and {second}"
                    )));
                }
                _ => [first, second],
            };
            let because = match known.source.is_some() || known.target.is_some() {
                true => Because::Told,
                false => Because::Assumed(
                    "the first file is the source; --source ENDING overrides this".to_owned(),
                ),
            };
            let [source, target] = sides.map(|file| path(&file.shown));
            let words = |file: &DataFile| -> Result<f64, Error> {
                let text = tables::read_text(&file.path)?;
                Ok(text.split_whitespace().count() as f64 / text.lines().count().max(1) as f64)
            };
            Ok(Sides {
                entry: format!("{{ source = {source}, target = {target} }}"),
                names: sides.map(|file| ending(&file.path)),
                because,
                words: [words(sides[0])?, words(sides[1])?],
            })
        }
        _ => Err(several(files, "name a table, or source and target, with --test")),
    }
}

/// Returns the ending of a file name without `.gz` and `.zst`.
fn ending(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.trim_end_matches(".gz").trim_end_matches(".zst").rsplit('.').next().unwrap_or_default().to_owned()
}

fn of_table(file: &DataFile, table: &Table, known: &Known) -> Result<Sides, Error> {
    let told =
        |name: &Option<String>| name.as_ref().map(|name| roles::told(table, &file.path, name)).transpose();
    let by_language = || {
        let is_code = |column: &&TableColumn| ending(Path::new(&column.name())).len() == 2;
        let coded: Vec<&TableColumn> = roles::texts(table, &[]).into_iter().filter(is_code).collect();
        if let [source, target] = coded[..] { Some([source, target]) } else { None }
    };
    let ([source, target], because) = match (told(&known.source)?, told(&known.target)?) {
        (Some(source), Some(target)) => ([source, target], Because::Told),
        (None, None) => match (roles::pair_by_name(table, roles::SUMMARIES), by_language()) {
            (Some(pair), _) => (pair, Because::Found("the header".to_owned())),
            (None, Some(pair)) => (
                pair,
                Because::Assumed(
                    "the first language is the source; --source and --target override this".to_owned(),
                ),
            ),
            (None, None) => match roles::texts(table, &[])[..] {
                [source, target] => {
                    let why = "the first column of texts is the source; --source and --target override this";
                    ([source, target], Because::Assumed(why.to_owned()))
                }
                _ => {
                    let what = "it is not clear which columns are source and target";
                    return Err(roles::which(
                        table,
                        &file.path,
                        what,
                        "--source COLUMN --target COLUMN name them",
                    ));
                }
            },
        },
        _ => return Err(ask("--source and --target must be given together", "name both columns")),
    };
    let rows = match (table.kind, table.has_header) {
        (RowKind::Tsv, false) => String::new(),
        (rows, _) => format!("kind = {}, ", kind(rows)),
    };
    let pairs = path(&file.shown);
    Ok(Sides {
        entry: format!(
            "{{ pairs = {pairs}, {rows}source = {}, target = {} }}",
            column(&source.column),
            column(&target.column)
        ),
        names: [source, target].map(|column| ending(Path::new(&column.name()))),
        because,
        words: [source.words(), target.words()],
    })
}

/// Returns the source prefix; `None` if none is given and the model lists none.
fn prefix(
    model: &InitialModel,
    known: &Known,
    is_summary: bool,
    names: &[String; 2],
) -> Result<Option<(String, Because)>, Error> {
    if let Some(prefix) = &known.prefix {
        return Ok(Some((prefix.clone(), Because::Told)));
    }
    let (known_by, listed) = prefixes(&model.folder);
    let language = |code: &str| LANGUAGES.iter().find(|(known, _)| *known == code).map(|(_, name)| *name);
    let wanted = match (is_summary, language(&names[0]), language(&names[1])) {
        (true, ..) => Some("summarize: ".to_owned()),
        (false, Some(source), Some(target)) => Some(format!("translate {source} to {target}: ")),
        _ => None,
    };
    if listed.is_empty() {
        return Ok(None);
    }
    let is_usual = |prefix: &String| listed.contains(prefix) || prefix.starts_with("translate ");
    match (wanted.filter(is_usual), &listed[..]) {
        (Some(prefix), _) => {
            Ok(Some((prefix, Because::Assumed(format!("{known_by}, and this one fits the data")))))
        }
        (None, [only]) => Ok(Some((only.clone(), Because::Found(known_by.to_owned())))),
        (None, several) => {
            let what =
                format!("{known_by} such as {}", crate::error::quoted(&several[..several.len().min(4)]));
            Err(ask(what, "set one with --prefix TEXT, or none with --prefix ''"))
        }
    }
}

/// Returns the language codes; `None` if the tokenizer has none.
fn languages(
    model: &InitialModel,
    known: &Known,
    names: &[String; 2],
) -> Result<Option<([String; 2], Because)>, Error> {
    if !WITH_CODES.contains(&model.family()) {
        return Ok(None);
    }
    if let Some(languages) = &known.languages {
        return Ok(Some((languages.clone(), Because::Told)));
    }
    let codes = codes(&model.folder);
    let found = names.each_ref().map(|name| code(&codes, name));
    if let [Some(source), Some(target)] = found {
        let why = format!("{} and {} by the names of the data", names[0], names[1]);
        return Ok(Some(([source, target], Because::Assumed(why))));
    }
    let some = crate::error::quoted(&codes[..codes.len().min(4)]);
    let what = format!("the tokenizer needs the codes of both languages, such as {some}");
    Err(ask(what, "--languages SOURCE,TARGET names them"))
}

/// Returns the tokenizer's code for a language.
fn code(codes: &[String], language: &str) -> Option<String> {
    let language = language.to_lowercase();
    let long = CODES.iter().find(|(short, _)| *short == language).map(|(_, long)| *long);
    let is_of = |code: &&String| {
        let code = code.trim_matches('_');
        let begin = code.split('_').next().unwrap_or_default();
        begin == language || Some(begin) == long
    };
    codes.iter().find(is_of).cloned()
}

/// Returns the language codes in the tokenizer, in alphabetical order.
fn codes(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("tokenizer.json")).unwrap_or_default();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let added = json["added_tokens"].as_array().into_iter().flatten();
    let names = added.filter_map(|token| token["content"].as_str());
    let mut codes: Vec<String> = names.filter(|name| name.contains('_')).map(str::to_owned).collect();
    codes.sort();
    codes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_languages_are_found_in_all_spellings() {
        let codes = ["__de__", "de_DE", "deu_Latn", "en_XX"].map(str::to_owned);
        let of = |known: &[String], language: &str| code(known, language);
        assert_eq!(of(&codes[..1], "de").as_deref(), Some("__de__"));
        assert_eq!(of(&codes[1..2], "DE").as_deref(), Some("de_DE"));
        assert_eq!(of(&codes[2..], "de").as_deref(), Some("deu_Latn"));
        assert_eq!(of(&codes, "fr"), None);
    }
}
