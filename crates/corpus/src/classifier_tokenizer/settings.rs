//! Settings of a folder's tokeniser besides the pieces: `tokenizer_config.json` and, in older folders,
//! `special_tokens_map.json` and `added_tokens.json`. Where these are silent, the defaults are those of `BertTokenizer` and
//! `RobertaTokenizer` of transformers 4.57.
use std::array;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use tokenizers::normalizers::BertNormalizer;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, ModelWrapper, NormalizerWrapper, Tokenizer, TruncationDirection};
use words::excerpt;

use crate::Error;
use crate::foreign::{read_json, wrong};
use crate::foreign_tokenizer::{Found, Name, read_settings, set_prefix_space};

/// What the tokenisers of some models have in common.
#[derive(Debug)]
pub(super) struct Family {
    /// The `model_type` of these models in `config.json`.
    model_types: &'static [&'static str],
    /// The files that are read if there is no `tokenizer.json`.
    pub(super) files: &'static [&'static str],
    /// Names of the special tokens, in the order of [`Settings::specials`].
    specials: [&'static str; 5],
    /// Whether the mask swallows the spaces before it.
    mask_takes_spaces: bool,
    /// Where special tokens go in a pair; a single text has one at each end.
    pair: &'static str,
}

pub(super) static BERT: Family = Family {
    model_types: &["bert", "distilbert"],
    files: &["vocab.txt"],
    specials: ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
    mask_takes_spaces: false,
    pair: "begin:0 $A:0 separator:0 $B:1 separator:1",
};

static ROBERTA: Family = Family {
    model_types: &["roberta"],
    files: &["vocab.json", "merges.txt"],
    specials: ["<pad>", "<unk>", "<s>", "</s>", "<mask>"],
    mask_takes_spaces: true,
    pair: "begin:0 $A:0 separator:0 separator:0 $B:0 separator:0",
};

impl Family {
    /// The family by the model in a `tokenizer.json`, not by the classifier: a BERT may well use XLM-RoBERTa's pieces.
    pub(super) fn of_model(model: &ModelWrapper) -> &'static Self {
        if matches!(model, ModelWrapper::WordPiece(_)) { &BERT } else { &ROBERTA }
    }

    /// The family of the classifier, or BERT's if there is no `model_type`. XLM-RoBERTa has no lists of its own.
    pub(super) fn of_config(config: &Config) -> Option<&'static Self> {
        let Some(asked) = &config.model_type else { return Some(&BERT) };
        [&BERT, &ROBERTA].into_iter().find(|family| family.model_types.contains(&asked.as_str()))
    }
}

/// What `config.json` says about the tokeniser.
#[derive(Default, serde::Deserialize)]
pub(super) struct Config {
    pub(super) model_type: Option<String>,
    tokenizer_class: Option<String>,
}

impl Config {
    /// The class of the tokeniser in transformers if `tokenizer_config.json` names none.
    fn tokenizer_class(&self) -> Option<&str> {
        self.tokenizer_class.as_deref().or(match self.model_type.as_deref()? {
            "bert" => Some("BertTokenizer"),
            "distilbert" => Some("DistilBertTokenizer"),
            _ => None,
        })
    }
}

/// Classes of tokenisers, with or without `Fast` at the end, whose settings decide on the normaliser:
/// <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/bert/tokenization_bert_fast.py#L94>.
const OF_BERT: [&str; 11] = [
    "BertTokenizer",
    "ConvBertTokenizer",
    "DistilBertTokenizer",
    "ElectraTokenizer",
    "FunnelTokenizer",
    "LayoutLMTokenizer",
    "LxmertTokenizer",
    "MobileBertTokenizer",
    "RealmTokenizer",
    "RetriBertTokenizer",
    "SqueezeBertTokenizer",
];

/// The statements of the files.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Stated {
    tokenizer_class: Option<String>,
    do_lower_case: Option<bool>,
    strip_accents: Option<bool>,
    tokenize_chinese_chars: Option<bool>,
    add_prefix_space: bool,
    truncation_side: Option<Side>,
    added_tokens_decoder: Option<BTreeMap<u32, Found>>,
    bos_token: Option<Name>,
    eos_token: Option<Name>,
    unk_token: Option<Name>,
    sep_token: Option<Name>,
    pad_token: Option<Name>,
    cls_token: Option<Name>,
    mask_token: Option<Name>,
    additional_special_tokens: Vec<Name>,
}

#[derive(Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Side {
    Left,
    Right,
}

/// The settings of a folder; those that it does not state are the family's.
#[derive(Debug)]
pub(super) struct Settings {
    /// Whether the class of the tokeniser has the settings of BERT decide on the normaliser.
    is_of_bert: bool,
    pub(super) normalizer: BertNormalizer,
    /// Whether a text is cut into pieces as if a space stood before it.
    pub(super) add_prefix_space: bool,
    /// Where a text that is too long is cut, if stated.
    pub(super) truncation_side: Option<TruncationDirection>,
    /// The tokens that every family has, in the order in which [`train`](super::ClassifierTokenizer::train) numbers them:
    /// padding, unknown word, beginning, separator, mask.
    pub(super) specials: [AddedToken; 5],
    /// The added tokens, by id.
    added: BTreeMap<u32, AddedToken>,
    /// The special tokens that the files name, in the order in which transformers adds them.
    named: Vec<AddedToken>,
    pair: &'static str,
}

impl Stated {
    pub(super) fn read(folder: &Path) -> Result<Self, Error> {
        read_settings(folder)
    }

    /// Whether an `added_tokens.json` counts: `added_tokens_decoder` replaces it.
    pub(super) fn needs_older_list(&self) -> bool {
        self.added_tokens_decoder.is_none()
    }

    /// Fills in what is not stated.
    pub(super) fn for_family(self, family: &Family, config: &Config) -> Settings {
        let added = self.added_tokens_decoder.unwrap_or_default();
        let added: BTreeMap<u32, AddedToken> =
            added.into_iter().map(|(id, found)| (id, found.to_token(false))).collect();
        let token = |name: &Name| special(name, false, &added);
        let mask = |name: &Name| special(name, family.mask_takes_spaces, &added);
        let stated = [&self.pad_token, &self.unk_token, &self.cls_token, &self.sep_token, &self.mask_token];
        let specials = array::from_fn(|place| {
            let usual = Name::Plain(family.specials[place].to_owned());
            let name = stated[place].as_ref().unwrap_or(&usual);
            if place == 4 { mask(name) } else { token(name) }
        });
        let plain = [
            &self.bos_token,
            &self.eos_token,
            &self.unk_token,
            &self.sep_token,
            &self.pad_token,
            &self.cls_token,
        ];
        let plain = plain.into_iter().flatten().map(token);
        let additional = self.additional_special_tokens.iter().map(token);
        let named = plain.chain(self.mask_token.iter().map(mask)).chain(additional).collect();
        let class = self.tokenizer_class.as_deref().or_else(|| config.tokenizer_class());
        Settings {
            is_of_bert: class
                .is_some_and(|class| OF_BERT.contains(&class.strip_suffix("Fast").unwrap_or(class))),
            normalizer: BertNormalizer::new(
                true,
                self.tokenize_chinese_chars.unwrap_or(true),
                self.strip_accents,
                self.do_lower_case.unwrap_or(true),
            ),
            add_prefix_space: self.add_prefix_space,
            truncation_side: self.truncation_side.map(|side| match side {
                Side::Left => TruncationDirection::Left,
                Side::Right => TruncationDirection::Right,
            }),
            specials,
            named,
            added,
            pair: family.pair,
        }
    }
}

/// The special token of this name. How it is found in texts is taken from `added` or from the details; without either, it
/// swallows the spaces before it if `lstrip`.
fn special(name: &Name, lstrip: bool, added: &BTreeMap<u32, AddedToken>) -> AddedToken {
    let listed = added.values().find(|token| token.content == name.as_str());
    match (listed, name) {
        (Some(listed), _) => listed.clone().special(true),
        (None, Name::Detailed(found)) => found.to_token(true),
        (None, Name::Plain(name)) => AddedToken::from(name.as_str(), true).lstrip(lstrip),
    }
}

impl Settings {
    /// Gives a tokeniser made of lists its special tokens and its template. The error says what the pieces lack.
    pub(super) fn complete(&self, mut inner: Tokenizer) -> Result<Tokenizer, String> {
        self.add_listed(&mut inner)?;
        if let Some(token) = self.specials.iter().find(|token| inner.token_to_id(&token.content).is_none()) {
            return Err(format!("it lacks `{}`", excerpt(&token.content)));
        }
        inner.add_special_tokens(&self.specials);
        self.add_named(&mut inner);
        let template = self.template(&inner).map_err(|error| excerpt(&error))?;
        inner.with_post_processor(Some(template));
        Ok(inner)
    }

    /// Changes a tokeniser of a `tokenizer.json` as the other files have it. The error names a token that is missing, or
    /// whose ids differ.
    pub(super) fn supplement(&self, inner: &mut Tokenizer) -> Result<(), String> {
        self.add_listed(inner)?;
        self.add_named(inner);
        set_prefix_space(inner, self.add_prefix_space);
        if let (true, Some(NormalizerWrapper::BertNormalizer(stated))) =
            (self.is_of_bert, inner.get_normalizer())
        {
            let mut normalizer = self.normalizer;
            normalizer.clean_text = stated.clean_text;
            inner.with_normalizer(Some(normalizer));
        }
        Ok(())
    }

    fn add_listed(&self, inner: &mut Tokenizer) -> Result<(), String> {
        for (&id, token) in &self.added {
            inner.add_tokens(std::slice::from_ref(token));
            let given = inner.token_to_id(&token.content);
            if given != Some(id) {
                let given = given.map_or_else(|| "none".to_owned(), |given| given.to_string());
                let token = excerpt(&token.content);
                return Err(format!(
                    "`added_tokens_decoder` gives `{token}` the id {id}, but its id is {given}"
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
        let [_, _, begin, separator, _] = self.specials.each_ref().map(|token| token.content.as_str());
        let named = |pattern: &str| -> Vec<String> {
            let pieces = pattern.split(' ');
            pieces.map(|piece| piece.replace("begin", begin).replace("separator", separator)).collect()
        };
        let id = |name| inner.token_to_id(name).expect("`complete` has looked for it");
        TemplateProcessing::builder()
            .try_single(named("begin $A separator"))
            .and_then(|builder| builder.try_pair(named(self.pair)))?
            .special_tokens(vec![(begin, id(begin)), (separator, id(separator))])
            .build()
            .map_err(|error| error.to_string())
    }
}

/// Refuses tokens that only an `added_tokens.json` names: they are not supported, and without them the ids would differ.
pub(super) fn check_older_list(folder: &Path, inner: &Tokenizer) -> Result<(), Error> {
    let path = folder.join("added_tokens.json");
    if !path.exists() {
        return Ok(());
    }
    let listed: BTreeMap<String, u32> = read_json(&path)?;
    let known = inner.get_added_tokens_decoder();
    let is_known = |token: &str, id: &u32| known.get(id).is_some_and(|known| known.content == token);
    match listed.iter().find(|(token, id)| !is_known(token, id)) {
        None => Ok(()),
        Some((token, id)) => Err(wrong(
            &path,
            format!(
                "it adds `{}` with the id {id}, which no other file does: write the folder anew, with \
                 `save_pretrained` of transformers",
                excerpt(token)
            ),
        )),
    }
}
