//! Tokenizer settings of a model folder, without the vocabulary. Missing settings have the defaults of `BertTokenizer` and
//! `RobertaTokenizer` in transformers 4.57.
use std::array;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use tokenizers::normalizers::BertNormalizer;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, ModelWrapper, NormalizerWrapper, Tokenizer};
use words::excerpt;

use crate::foreign_tokenizer::{NAMES, Name, TokenizerSettings, set_prefix_space};

/// Default settings of a tokenizer family.
#[derive(Debug)]
pub(super) struct Family {
    /// Values of `model_type` in `config.json`.
    model_types: &'static [&'static str],
    /// Vocabulary files, read if there is no `tokenizer.json`.
    pub(super) files: &'static [&'static str],
    /// Special tokens, in the order of [`SPECIALS`].
    specials: [&'static str; 5],
    /// True if the mask token absorbs spaces before it.
    mask_takes_spaces: bool,
    /// Template of a text pair; a single text has a special token at each end.
    pair: &'static str,
}

pub(super) static BERT: Family = Family {
    model_types: &["bert", "distilbert", "electra"],
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
    /// Returns the family by the model in `tokenizer.json`, not by the classifier: a BERT may use XLM-RoBERTa's vocabulary.
    pub(super) fn of_model(model: &ModelWrapper) -> &'static Self {
        if matches!(model, ModelWrapper::WordPiece(_)) { &BERT } else { &ROBERTA }
    }

    /// Returns the family by `model_type`, by default BERT; `None` for models without vocabulary files, such as XLM-RoBERTa.
    pub(super) fn of_config(config: &Config) -> Option<&'static Self> {
        let Some(asked) = &config.model_type else { return Some(&BERT) };
        [&BERT, &ROBERTA].into_iter().find(|family| family.model_types.contains(&asked.as_str()))
    }
}

/// The entries of `config.json` about the tokenizer.
#[derive(Default, serde::Deserialize)]
pub(super) struct Config {
    model_type: Option<String>,
    tokenizer_class: Option<String>,
}

/// Parts of names of tokenizer classes whose settings override the normalizer:
/// <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/bert/tokenization_bert_fast.py#L94>.
const OF_BERT: [&str; 6] = ["Bert", "Electra", "Funnel", "LayoutLMTokenizer", "Lxmert", "Realm"];

/// Special tokens of every family, in the order in which [`train`](super::ClassifierTokenizer::train) numbers them.
const SPECIALS: [&str; 5] = ["pad_token", "unk_token", "cls_token", "sep_token", "mask_token"];

/// The settings of a folder; defaults are the family's.
pub(super) struct Settings {
    pub(super) stated: TokenizerSettings,
    family: &'static Family,
    /// Added tokens by id.
    added: BTreeMap<u32, AddedToken>,
}

impl Settings {
    pub(super) fn new(stated: TokenizerSettings, family: &'static Family) -> Self {
        let listed = stated.added_tokens_decoder.iter().map(|(&id, found)| (id, found.to_token(false)));
        let added = listed.collect();
        Self { stated, family, added }
    }

    pub(super) fn normalizer(&self) -> BertNormalizer {
        let TokenizerSettings { do_lower_case, strip_accents, tokenize_chinese_chars, .. } = self.stated;
        BertNormalizer::new(
            true,
            tokenize_chinese_chars.unwrap_or(true),
            strip_accents,
            do_lower_case.unwrap_or(true),
        )
    }

    /// Warns that texts are lower-cased, the default of transformers, although the vocabulary has capitals.
    pub(super) fn warn_of_case(&self, inner: &Tokenizer, folder: &Path) {
        let Some(NormalizerWrapper::BertNormalizer(BertNormalizer { lowercase: true, .. })) =
            inner.get_normalizer()
        else {
            return;
        };
        let is_capital = |piece: &String| piece.contains(|letter: char| letter.is_ascii_uppercase());
        let pieces = inner.get_vocab(false).into_keys();
        let capital = pieces.filter(|piece| !piece.starts_with('[') && is_capital(piece)).min();
        if let (None, Some(piece)) = (self.stated.do_lower_case, capital) {
            words::warn(&format!(
                "the vocabulary in `{}` has capitals, such as `{}`, but texts are lower-cased, as in transformers; to \
                 keep capitals, set \"do_lower_case\": false in its tokenizer_config.json",
                folder.display(),
                excerpt(&piece)
            ));
        }
    }

    /// Returns the special tokens in the order of [`SPECIALS`].
    pub(super) fn specials(&self) -> [AddedToken; 5] {
        array::from_fn(|place| {
            let usual = Name::Plain(self.family.specials[place].to_owned());
            let key = SPECIALS[place];
            self.special(key, self.stated.names.get(key).unwrap_or(&usual))
        })
    }

    /// Returns the special token of this name. Its matching options come from the added tokens, else from `name`; without
    /// either, the mask token may absorb spaces before it.
    fn special(&self, key: &str, name: &Name) -> AddedToken {
        let listed = self.added.values().find(|token| token.content == name.as_str());
        let lstrip = key == "mask_token" && self.family.mask_takes_spaces;
        match (listed, name) {
            (Some(listed), _) => listed.clone().special(true),
            (None, Name::Detailed(found)) => found.to_token(true),
            (None, Name::Plain(name)) => AddedToken::from(name.as_str(), true).lstrip(lstrip),
        }
    }

    /// Adds special tokens and a template to a tokenizer from vocabulary files; the error names a missing token.
    pub(super) fn complete(&self, mut inner: Tokenizer) -> Result<Tokenizer, String> {
        self.add_listed(&mut inner)?;
        let specials = self.specials();
        if let Some(token) = specials.iter().find(|token| inner.token_to_id(&token.content).is_none()) {
            return Err(format!("it lacks `{}`", excerpt(&token.content)));
        }
        inner.add_special_tokens(&specials);
        self.add_named(&mut inner)?;
        let template = self.template(&inner, &specials).map_err(|error| excerpt(&error))?;
        inner.with_post_processor(Some(template));
        Ok(inner)
    }

    /// Applies the other files' settings to a tokenizer from `tokenizer.json`. The error names a token that is missing or
    /// whose ids differ.
    pub(super) fn supplement(&self, config: &Config, inner: &mut Tokenizer) -> Result<(), String> {
        self.add_listed(inner)?;
        self.add_named(inner)?;
        set_prefix_space(inner, self.stated.add_prefix_space);
        let usual = match config.model_type.as_deref() {
            Some("bert" | "distilbert" | "electra") => "BertTokenizer",
            _ => "",
        };
        let class = self.stated.tokenizer_class.as_deref().or(config.tokenizer_class.as_deref());
        let is_of_bert = OF_BERT.iter().any(|part| class.unwrap_or(usual).contains(part));
        if let (true, Some(NormalizerWrapper::BertNormalizer(before))) = (is_of_bert, inner.get_normalizer())
        {
            let mut normalizer = self.normalizer();
            normalizer.clean_text = before.clean_text;
            inner.with_normalizer(Some(normalizer));
        }
        Ok(())
    }

    fn add_listed(&self, inner: &mut Tokenizer) -> Result<(), String> {
        self.added.iter().try_for_each(|(id, token)| add(inner, *id, token))
    }

    /// Adds the named tokens that are not added yet, in the order of transformers, and then the tokens of the older
    /// `added_tokens.json`.
    fn add_named(&self, inner: &mut Tokenizer) -> Result<(), String> {
        let added = inner.get_added_tokens_decoder().into_values();
        let mut known: HashSet<String> = added.map(|token| token.content).collect();
        let named = NAMES.iter().filter_map(|key| Some(self.special(key, self.stated.names.get(*key)?)));
        let additional = self.stated.additional_special_tokens.iter().map(|name| self.special("", name));
        let new = named.chain(additional).filter(|token| known.insert(token.content.clone()));
        inner.add_special_tokens(&new.collect::<Vec<_>>());
        for (id, token) in &self.stated.older_list {
            if inner.token_to_id(token) != Some(*id) {
                add(inner, *id, &AddedToken::from(token.as_str(), false))?;
            }
        }
        Ok(())
    }

    fn template(&self, inner: &Tokenizer, specials: &[AddedToken; 5]) -> Result<TemplateProcessing, String> {
        let [_, _, begin, separator, _] = specials.each_ref().map(|token| token.content.as_str());
        let named = |pattern: &str| -> Vec<String> {
            let pieces = pattern.split(' ');
            pieces.map(|piece| piece.replace("begin", begin).replace("separator", separator)).collect()
        };
        let id = |name| inner.token_to_id(name).expect("`complete` has looked for it");
        TemplateProcessing::builder()
            .try_single(named("begin $A separator"))
            .and_then(|builder| builder.try_pair(named(self.family.pair)))?
            .special_tokens(vec![(begin, id(begin)), (separator, id(separator))])
            .build()
            .map_err(|error| error.to_string())
    }
}

/// Adds a token; fails if it gets another id.
fn add(inner: &mut Tokenizer, id: u32, token: &AddedToken) -> Result<(), String> {
    inner.add_tokens(std::slice::from_ref(token));
    let given = inner.token_to_id(&token.content);
    if given == Some(id) {
        return Ok(());
    }
    let given = given.map_or("none".to_owned(), |given| given.to_string());
    let token = excerpt(&token.content);
    Err(format!("the added token `{token}` should have the id {id}, but its id is {given}"))
}
