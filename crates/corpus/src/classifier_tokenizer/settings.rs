//! What a folder says about its tokeniser beside the pieces: `tokenizer_config.json`, and in older folders
//! `special_tokens_map.json`.
use std::collections::BTreeMap;
use std::path::Path;

use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, Tokenizer};

use super::family::{Family, Specials};
use super::{read, wrong};
use crate::Error;
use crate::foreign::shown;

/// The settings of a folder, with the family's where it has none.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) do_lower_case: bool,
    pub(super) strip_accents: Option<bool>,
    pub(super) tokenize_chinese_chars: bool,
    /// Whether a text is cut as if a space stood before it.
    pub(super) add_prefix_space: bool,
    pub(super) specials: Specials<AddedToken>,
    /// Tokens beside the pieces, by their ids.
    added: BTreeMap<u32, AddedToken>,
    pair: &'static str,
}

/// What the files state.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Stated {
    do_lower_case: Option<bool>,
    strip_accents: Option<bool>,
    tokenize_chinese_chars: Option<bool>,
    add_prefix_space: Option<bool>,
    #[serde(flatten)]
    names: Names,
    added_tokens_decoder: Option<BTreeMap<String, Found>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Names {
    unk_token: Option<Name>,
    sep_token: Option<Name>,
    pad_token: Option<Name>,
    cls_token: Option<Name>,
    mask_token: Option<Name>,
}

/// A special token, with or without details of how it is found.
#[derive(serde::Deserialize)]
#[serde(untagged)]
pub(crate) enum Name {
    Plain(String),
    Detailed(Found),
}

impl Name {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Plain(name) | Self::Detailed(Found { content: name, .. }) => name,
        }
    }
}

/// How a token is found in a text.
#[derive(Clone, serde::Deserialize)]
pub(crate) struct Found {
    content: String,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    normalized: bool,
    #[serde(default)]
    special: bool,
}

impl Stated {
    /// Nothing where there are no files. As in transformers, the names in `special_tokens_map.json` come first, unless
    /// `tokenizer_config.json` lists the added tokens.
    pub(super) fn read(folder: &Path) -> Result<Self, Error> {
        let mut stated: Self = read_settings(&folder.join("tokenizer_config.json"))?;
        if stated.added_tokens_decoder.is_none() {
            let names: Names = read_settings(&folder.join("special_tokens_map.json"))?;
            stated.names = names.or(stated.names);
        }
        Ok(stated)
    }

    /// The error names an added token whose id is no number.
    pub(super) fn for_family(self, family: &Family) -> Result<Settings, String> {
        let mut added = BTreeMap::new();
        for (id, found) in self.added_tokens_decoder.unwrap_or_default() {
            let number = id.parse().map_err(|_| format!("`{}` is no id of a token", shown(&id)))?;
            added.insert(number, found.into_token());
        }
        let token = |stated: Option<Name>, usual: &str, lstrip: bool| {
            let plain = match stated {
                Some(Name::Detailed(found)) => return Found { special: true, ..found }.into_token(),
                Some(Name::Plain(name)) => name,
                None => usual.to_owned(),
            };
            let listed = added.values().find(|token| token.content == plain).cloned();
            listed.unwrap_or_else(|| AddedToken::from(plain, true).lstrip(lstrip)).special(true)
        };
        let usual = &family.specials;
        let specials = Specials {
            unknown: token(self.names.unk_token, usual.unknown, false),
            separator: token(self.names.sep_token, usual.separator, false),
            pad: token(self.names.pad_token, usual.pad, false),
            begin: token(self.names.cls_token, usual.begin, false),
            mask: token(self.names.mask_token, usual.mask, family.mask_takes_spaces),
        };
        Ok(Settings {
            do_lower_case: self.do_lower_case.unwrap_or(true),
            strip_accents: self.strip_accents,
            tokenize_chinese_chars: self.tokenize_chinese_chars.unwrap_or(true),
            add_prefix_space: self.add_prefix_space.unwrap_or(false),
            specials,
            added,
            pair: family.pair,
        })
    }
}

impl Names {
    fn or(self, other: Self) -> Self {
        Self {
            unk_token: self.unk_token.or(other.unk_token),
            sep_token: self.sep_token.or(other.sep_token),
            pad_token: self.pad_token.or(other.pad_token),
            cls_token: self.cls_token.or(other.cls_token),
            mask_token: self.mask_token.or(other.mask_token),
        }
    }
}

impl Found {
    fn into_token(self) -> AddedToken {
        AddedToken::from(self.content, self.special)
            .single_word(self.single_word)
            .lstrip(self.lstrip)
            .rstrip(self.rstrip)
            .normalized(self.normalized)
    }
}

impl Settings {
    /// Adds special tokens, and puts them around texts and pairs; the error says what the pieces lack.
    pub(super) fn complete(&self, mut inner: Tokenizer) -> Result<Tokenizer, String> {
        for (&id, token) in &self.added {
            inner.add_tokens(std::slice::from_ref(token));
            let given = inner.token_to_id(&token.content);
            if given != Some(id) {
                let given = given.map_or_else(|| "none".to_owned(), |given| given.to_string());
                return Err(format!(
                    "`added_tokens_decoder` gives `{}` the id {id}, but its id is {given}",
                    shown(&token.content)
                ));
            }
        }
        let specials = self.specials.all();
        if let Some(token) = specials.iter().find(|token| inner.token_to_id(&token.content).is_none()) {
            return Err(format!("it lacks `{}`", shown(&token.content)));
        }
        inner.add_special_tokens(&specials.map(Clone::clone));
        let template = self.template(&inner)?;
        inner.with_post_processor(Some(template));
        Ok(inner)
    }

    fn template(&self, inner: &Tokenizer) -> Result<TemplateProcessing, String> {
        let (begin, separator) = (&self.specials.begin.content, &self.specials.separator.content);
        let pieces = |pattern: &str| -> Vec<String> {
            let named = |piece: &str| {
                let role = |role: &str, name: &str| Some(format!("{name}{}", piece.strip_prefix(role)?));
                role("begin", begin)
                    .or_else(|| role("separator", separator))
                    .unwrap_or_else(|| piece.to_owned())
            };
            pattern.split(' ').map(named).collect()
        };
        let id = |name| inner.token_to_id(name).expect("`complete` has looked for it");
        let numbered = vec![(begin.as_str(), id(begin)), (separator, id(separator))];
        TemplateProcessing::builder()
            .try_single(pieces("begin $A separator"))
            .and_then(|builder| builder.try_pair(pieces(self.pair)))
            .map_err(|error| shown(&error.to_string()))?
            .special_tokens(numbered)
            .build()
            .map_err(|error| shown(&error.to_string()))
    }
}

/// The defaults where there is no file.
fn read_settings<T: Default + serde::de::DeserializeOwned>(path: &Path) -> Result<T, Error> {
    if !path.exists() {
        return Ok(T::default());
    }
    serde_json::from_str(&read(path)?).map_err(|error| wrong(path, shown(&error.to_string())))
}
