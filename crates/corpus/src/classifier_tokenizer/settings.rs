//! What a folder says about its tokeniser besides the pieces: `tokenizer_config.json` and, in older folders,
//! `special_tokens_map.json` and `added_tokens.json`.
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use tokenizers::normalizers::BertNormalizer;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, Tokenizer, TruncationDirection};
use words::excerpt;

use super::family::{Family, Specials};
use super::wrong;
use crate::Error;
use crate::foreign::read_json;

/// The settings of a folder; those that it does not state are the family's.
#[derive(Debug)]
pub(super) struct Settings {
    do_lower_case: bool,
    strip_accents: Option<bool>,
    tokenize_chinese_chars: bool,
    /// Whether a text is cut into pieces as if a space stood before it.
    pub(super) add_prefix_space: bool,
    /// Where a text that is too long is cut, if stated.
    pub(super) truncation_side: Option<TruncationDirection>,
    pub(super) specials: Specials<AddedToken>,
    /// The added tokens, by id.
    added: BTreeMap<u32, AddedToken>,
    /// The special tokens that the files name, in the order in which transformers adds them.
    named: Vec<AddedToken>,
    pair: &'static str,
}

/// What the files state.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Stated {
    /// The class of the tokeniser in transformers.
    pub(super) tokenizer_class: Option<String>,
    do_lower_case: Option<bool>,
    strip_accents: Option<bool>,
    tokenize_chinese_chars: Option<bool>,
    add_prefix_space: Option<bool>,
    truncation_side: Option<Side>,
    #[serde(flatten)]
    names: Names,
    added_tokens_decoder: Option<BTreeMap<String, Found>>,
}

#[derive(Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Side {
    Left,
    Right,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Names {
    bos_token: Option<Name>,
    eos_token: Option<Name>,
    unk_token: Option<Name>,
    sep_token: Option<Name>,
    pad_token: Option<Name>,
    cls_token: Option<Name>,
    mask_token: Option<Name>,
    additional_special_tokens: Option<Vec<Name>>,
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

    /// The special token of this name. How it is found in texts is taken from `added` or from the details; without
    /// either, it swallows the spaces before it if `lstrip`.
    fn token(&self, lstrip: bool, added: &BTreeMap<u32, AddedToken>) -> AddedToken {
        let listed = added.values().find(|token| token.content == self.as_str());
        let token = match (listed, self) {
            (Some(listed), _) => listed.clone(),
            (None, Self::Detailed(found)) => Found { special: true, ..found.clone() }.into_token(),
            (None, Self::Plain(name)) => AddedToken::from(name.as_str(), true).lstrip(lstrip),
        };
        token.special(true)
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
    /// If not stated, true for all but special tokens.
    normalized: Option<bool>,
    #[serde(default)]
    special: bool,
}

impl Stated {
    /// Reads the files that there are. As in transformers, the names in `special_tokens_map.json` override those in
    /// `tokenizer_config.json`, unless the latter lists the added tokens.
    pub(super) fn read(folder: &Path) -> Result<Self, Error> {
        let mut stated: Self = read_if_there(&folder.join("tokenizer_config.json"))?;
        if stated.added_tokens_decoder.is_none() {
            let names: Names = read_if_there(&folder.join("special_tokens_map.json"))?;
            stated.names = names.or(stated.names);
        }
        Ok(stated)
    }

    /// The `added_tokens.json` of an older folder; `added_tokens_decoder` replaces it.
    pub(super) fn older_list(&self, folder: &Path) -> Option<PathBuf> {
        let path = folder.join("added_tokens.json");
        (self.added_tokens_decoder.is_none() && path.exists()).then_some(path)
    }

    /// Fills in what is not stated. The error names an added token whose id is not a number.
    pub(super) fn for_family(self, family: &Family) -> Result<Settings, String> {
        let mut added = BTreeMap::new();
        for (id, found) in self.added_tokens_decoder.unwrap_or_default() {
            let number = id.parse().map_err(|_| format!("`{}` is no id of a token", excerpt(&id)))?;
            added.insert(number, found.into_token());
        }
        let (specials, named) = (self.names.specials(family, &added), self.names.named(family, &added));
        Ok(Settings {
            do_lower_case: self.do_lower_case.unwrap_or(true),
            strip_accents: self.strip_accents,
            tokenize_chinese_chars: self.tokenize_chinese_chars.unwrap_or(true),
            add_prefix_space: self.add_prefix_space.unwrap_or(false),
            truncation_side: self.truncation_side.map(Side::into_direction),
            specials,
            named,
            added,
            pair: family.pair,
        })
    }
}

impl Side {
    fn into_direction(self) -> TruncationDirection {
        match self {
            Self::Left => TruncationDirection::Left,
            Self::Right => TruncationDirection::Right,
        }
    }
}

impl Names {
    /// The tokens that every family has, by the names stated or else by the family's.
    fn specials(&self, family: &Family, added: &BTreeMap<u32, AddedToken>) -> Specials<AddedToken> {
        let token = |name: &Option<Name>, usual: &str, lstrip: bool| match name {
            Some(name) => name.token(lstrip, added),
            None => Name::Plain(usual.to_owned()).token(lstrip, added),
        };
        let usual = &family.specials;
        Specials {
            unknown: token(&self.unk_token, usual.unknown, false),
            separator: token(&self.sep_token, usual.separator, false),
            pad: token(&self.pad_token, usual.pad, false),
            begin: token(&self.cls_token, usual.begin, false),
            mask: token(&self.mask_token, usual.mask, family.mask_takes_spaces),
        }
    }

    /// All tokens that are named, in the order in which transformers adds them.
    fn named(&self, family: &Family, added: &BTreeMap<u32, AddedToken>) -> Vec<AddedToken> {
        let plain = [
            &self.bos_token,
            &self.eos_token,
            &self.unk_token,
            &self.sep_token,
            &self.pad_token,
            &self.cls_token,
        ];
        let plain = plain.into_iter().flatten().map(|name| name.token(false, added));
        let mask = self.mask_token.iter().map(|name| name.token(family.mask_takes_spaces, added));
        let additional = self.additional_special_tokens.iter().flatten();
        plain.chain(mask).chain(additional.map(|name| name.token(false, added))).collect()
    }

    fn or(self, other: Self) -> Self {
        let lists = [other.additional_special_tokens, self.additional_special_tokens];
        Self {
            bos_token: self.bos_token.or(other.bos_token),
            eos_token: self.eos_token.or(other.eos_token),
            unk_token: self.unk_token.or(other.unk_token),
            sep_token: self.sep_token.or(other.sep_token),
            pad_token: self.pad_token.or(other.pad_token),
            cls_token: self.cls_token.or(other.cls_token),
            mask_token: self.mask_token.or(other.mask_token),
            additional_special_tokens: Some(lists.into_iter().flatten().flatten().collect()),
        }
    }
}

impl Found {
    fn into_token(self) -> AddedToken {
        AddedToken::from(self.content, self.special)
            .single_word(self.single_word)
            .lstrip(self.lstrip)
            .rstrip(self.rstrip)
            .normalized(self.normalized.unwrap_or(!self.special))
    }
}

impl Settings {
    /// The normaliser of BERT.
    pub(super) fn bert_normalizer(&self) -> BertNormalizer {
        BertNormalizer::new(true, self.tokenize_chinese_chars, self.strip_accents, self.do_lower_case)
    }

    /// Gives a tokeniser made of lists its special tokens and its template. The error says what the pieces lack.
    pub(super) fn complete(&self, mut inner: Tokenizer) -> Result<Tokenizer, String> {
        self.add_listed(&mut inner)?;
        let specials = self.specials.all();
        if let Some(token) = specials.iter().find(|token| inner.token_to_id(&token.content).is_none()) {
            return Err(format!("it lacks `{}`", excerpt(&token.content)));
        }
        inner.add_special_tokens(&specials.map(Clone::clone));
        self.add_named(&mut inner);
        let template = self.template(&inner)?;
        inner.with_post_processor(Some(template));
        Ok(inner)
    }

    /// Adds the tokens that the other files name and `tokenizer.json` lacks. The error names a token whose ids differ.
    pub(super) fn supplement(&self, inner: &mut Tokenizer) -> Result<(), String> {
        self.add_listed(inner)?;
        let pad = &self.specials.pad.content;
        if inner.token_to_id(pad).is_none() {
            return Err(format!("it lacks `{}`", excerpt(pad)));
        }
        self.add_named(inner);
        Ok(())
    }

    fn add_listed(&self, inner: &mut Tokenizer) -> Result<(), String> {
        for (&id, token) in &self.added {
            inner.add_tokens(std::slice::from_ref(token));
            let given = inner.token_to_id(&token.content);
            if given != Some(id) {
                let given = given.map_or_else(|| "none".to_owned(), |given| given.to_string());
                return Err(format!(
                    "`added_tokens_decoder` gives `{}` the id {id}, but its id is {given}",
                    excerpt(&token.content)
                ));
            }
        }
        Ok(())
    }

    /// Adds the named tokens that are not added yet.
    fn add_named(&self, inner: &mut Tokenizer) {
        let added = inner.get_added_tokens_decoder().into_values();
        let mut known: HashSet<String> = added.map(|token| token.content).collect();
        let new = self.named.iter().filter(|token| known.insert(token.content.clone()));
        inner.add_special_tokens(&new.cloned().collect::<Vec<_>>());
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
            .map_err(|error| excerpt(&error.to_string()))?
            .special_tokens(numbered)
            .build()
            .map_err(|error| excerpt(&error.to_string()))
    }
}

/// Refuses tokens that only an `added_tokens.json` names: they are not supported, and without them the ids would differ.
pub(super) fn check_older_list(path: &Path, inner: &Tokenizer) -> Result<(), Error> {
    let listed: BTreeMap<String, u32> = read_json(path, wrong)?;
    let known = inner.get_added_tokens_decoder();
    let is_known = |token: &str, id: &u32| known.get(id).is_some_and(|known| known.content == token);
    match listed.iter().find(|(token, id)| !is_known(token, id)) {
        None => Ok(()),
        Some((token, id)) => Err(wrong(
            path,
            format!(
                "it adds `{}` with the id {id}, which no other file does: write the folder anew, with \
                 `save_pretrained` of transformers",
                excerpt(token)
            ),
        )),
    }
}

/// Reads a file; the defaults if there is none.
fn read_if_there<T: Default + serde::de::DeserializeOwned>(path: &Path) -> Result<T, Error> {
    if path.exists() { read_json(path, wrong) } else { Ok(T::default()) }
}
