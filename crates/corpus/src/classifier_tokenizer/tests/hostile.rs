//! Files that would make the library panic, drop text, or draw at random.
use serde_json::{Value, json};

use super::families::{charsmap, copied, model, with_charsmap};
use super::*;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/classifiers");

fn fixture(name: &str) -> String {
    fs::read_to_string(Path::new(FIXTURES).join(name)).unwrap()
}

/// Why a copy of a fixture is refused in which one file is another.
fn refusal_of(name: &str, file: &str, content: &str) -> String {
    let folder = copied(name, &[(file, content)]);
    let error = ClassifierTokenizer::load(folder.path(), 16).unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

/// Why a `tokenizer.json` is refused of which a part is another.
fn json_refusal(name: &str, change: impl FnOnce(&mut Value)) -> String {
    let text = with_charsmap(&fixture(&format!("{name}/tokenizer.json")), &charsmap());
    let mut json = serde_json::from_str(&text).unwrap();
    change(&mut json);
    refusal_of(name, "tokenizer.json", &json.to_string())
}

#[test]
fn an_unknown_family_without_json_is_refused_with_the_known_ones() {
    let error = refusal_of("roberta-lists", "config.json", r#"{"model_type": "gpt\n2"}"#);
    assert!(
        error.ends_with(
            "config.json` is not a classifier's tokeniser: without `tokenizer.json`, its `model_type` must be one of \
             bert, distilbert, roberta, xlm-roberta, not `gpt\\n2`"
        ),
        "{error}"
    );
    let error = refusal_of("roberta-lists", "config.json", r#"{"model_type": "rob"#);
    assert!(error.contains("config.json` is not a classifier's tokeniser: EOF"), "{error}");
}

#[test]
fn the_file_that_a_family_lacks_is_named() {
    for (name, file) in [
        ("roberta-lists", "vocab.json"),
        ("roberta-lists", "merges.txt"),
        ("distilbert-list", "vocab.txt"),
        ("xlm-roberta-pieces", "sentencepiece.bpe.model"),
    ] {
        let folder = copied(name, &[]);
        fs::remove_file(folder.path().join(file)).unwrap();
        let error = ClassifierTokenizer::load(folder.path(), 16).unwrap_err().to_string();
        assert!(error.ends_with(&format!("it holds neither `tokenizer.json` nor `{file}`")), "{error}");
    }
}

#[test]
fn pieces_that_share_an_id_or_have_two_are_refused_by_name() {
    let vocabulary = fixture("roberta-lists/vocab.json");
    let shared = vocabulary.replacen("\"<mask>\":4", "\"<mask>\":3", 1);
    let error = refusal_of("roberta-lists", "vocab.json", &shared);
    assert!(error.ends_with("tokeniser: `<unk>` and `<mask>` both have the id 3"), "{error}");
    let twice = vocabulary.replacen("\"<mask>\":4", "\"<mask>\":4,\"<mask>\":9999", 1);
    let error = refusal_of("roberta-lists", "vocab.json", &twice);
    assert!(error.ends_with("tokeniser: `<mask>` has two ids, 4 and 9999"), "{error}");
    let json =
        fixture("roberta-json/tokenizer.json").replacen("\"<mask>\":4", "\"<mask>\":4,\"<mask>\":9", 1);
    let error = refusal_of("roberta-json", "tokenizer.json", &json);
    assert!(error.ends_with("tokeniser: `<mask>` has two ids, 4 and 9"), "{error}");
    let json = super::json().replacen("\"[PAD]\": 0,", "\"[PAD]\": 0, \"x\": 1,", 1);
    let error = refusal(&[("tokenizer.json", &json)]);
    assert!(error.ends_with("both have the id 1"), "{error}");
    for number in ["-1", "1.5", "4294967296", "null", "\"4\""] {
        let other = vocabulary.replacen("\"<mask>\":4", &format!("\"<mask>\":{number}"), 1);
        assert!(
            refusal_of("roberta-lists", "vocab.json", &other).contains("tokeniser: invalid "),
            "{number}"
        );
    }
}

#[test]
fn a_missing_special_token_is_named() {
    let vocabulary = fixture("roberta-lists/vocab.json");
    for token in ["<s>", "</s>", "<pad>", "<unk>", "<mask>"] {
        let other = vocabulary.replacen(&format!("\"{token}\""), "\"<other>\"", 1);
        let error = refusal_of("roberta-lists", "vocab.json", &other);
        assert!(
            error.ends_with(&format!("vocab.json` is not a classifier's tokeniser: it lacks `{token}`")),
            "{error}"
        );
    }
    let error = refusal_of("roberta-json", "tokenizer_config.json", r#"{"pad_token": "<fill>"}"#);
    assert!(error.ends_with("tokenizer.json` is not a classifier's tokeniser: it lacks `<fill>`"), "{error}");
}

#[test]
fn torn_merges_and_merges_of_unknown_pieces_are_refused_by_line() {
    let merges = fixture("roberta-lists/merges.txt");
    let (first, _) = merges.split_once('\n').unwrap();
    for (text, reason) in [
        ("", "its first line must begin with `#version`"),
        (merges.split_once('\n').unwrap().1, "its first line must begin with `#version`"),
        (merges.trim_end(), "its last line has no end"),
        (&format!("{first}\ne r\nh\n"), "line 3: it must hold two pieces with a space between them"),
        (&format!("{first}\ne r\n\n"), "line 3: it must hold two pieces with a space between them"),
        (&format!("{first}\ne r h\n"), "line 2: it must hold two pieces with a space between them"),
        (&format!("{first}\ne r\ne r\n"), "line 3: its merge stands above too"),
        (&format!("{first}\nqqq r\n"), "line 2: `vocab.json` lacks `qqq`"),
        (&format!("{first}\n! \u{7}\n"), r"line 2: `vocab.json` lacks `\u{7}`"),
        (&format!("{first}\n! !\n"), "line 2: `vocab.json` lacks `!!`"),
    ] {
        let error = refusal_of("roberta-lists", "merges.txt", text);
        assert!(
            error.ends_with(&format!("merges.txt` is not a classifier's tokeniser: {reason}")),
            "{error}"
        );
    }
    let error = json_refusal("roberta-json", |json| json["model"]["merges"][0] = json!(["qqq", "r"]));
    assert!(error.contains("qqq"), "{error}");
}

#[test]
fn a_torn_vocabulary_is_refused_in_one_line() {
    for (name, file) in [
        ("roberta-lists", "vocab.json"),
        ("roberta-json", "tokenizer.json"),
        ("roberta-added", "tokenizer_config.json"),
    ] {
        let whole = fixture(&format!("{name}/{file}"));
        for length in (0..whole.trim_end().len()).step_by(whole.len() / 9) {
            let error = refusal_of(name, file, &whole[..whole.floor_char_boundary(length)]);
            assert!(error.contains(&format!("{file}` is not a classifier's tokeniser: EOF")), "{error}");
        }
    }
}

/// The library would leave out what it does not know.
#[test]
fn a_vocabulary_without_all_bytes_is_refused() {
    let vocabulary = fixture("roberta-lists/vocab.json").replacen("\"ÿ\":", "\"ÿÿ\":", 1);
    let reason = "its vocabulary lacks 1 of the 256 bytes, such as `ÿ`";
    let error = refusal_of("roberta-lists", "vocab.json", &vocabulary);
    assert!(error.ends_with(reason), "{error}");
    let error =
        json_refusal("roberta-json", |json| json["pre_tokenizer"] = json!({"type": "WhitespaceSplit"}));
    assert!(error.ends_with("its pre-tokeniser must be `ByteLevel`"), "{error}");
}

#[test]
fn merges_at_random_and_affixes_are_refused() {
    let error = json_refusal("roberta-json", |json| json["model"]["dropout"] = json!(0.1));
    assert!(error.ends_with("its model leaves out merges at random: `dropout` is 0.1"), "{error}");
    // The library cuts merges at this length, also within a letter.
    for part in ["continuing_subword_prefix", "end_of_word_suffix"] {
        let error = json_refusal("roberta-json", |json| json["model"][part] = json!("##########"));
        assert!(error.ends_with(&format!("its merges have a `{part}`, which is not supported")), "{error}");
    }
    let error = json_refusal("roberta-json", |json| json["model"]["unk_token"] = json!("<nothing>"));
    assert!(error.ends_with("its vocabulary lacks `<nothing>`"), "{error}");
}

#[test]
fn unigrams_without_unknown_piece_or_with_other_scores_than_logarithms_are_refused() {
    let error = json_refusal("xlm-roberta-json", |json| json["model"]["unk_id"] = Value::Null);
    assert!(error.ends_with("its model has no `unk_id`, the unknown piece"), "{error}");
    let error = json_refusal("xlm-roberta-json", |json| json["model"]["unk_id"] = json!(402));
    assert!(error.contains("UnkIdNotInVocabulary"), "{error}");
    let error = json_refusal("xlm-roberta-json", |json| json["model"]["vocab"][5][1] = json!(-1e300));
    assert!(
        error.contains("has the score -1000") && error.ends_with("no logarithm of a probability"),
        "{error}"
    );
    for score in [Value::Null, json!("NaN")] {
        let error = json_refusal("xlm-roberta-json", |json| json["model"]["vocab"][5][1] = score);
        assert!(error.contains("tokenizer.json` is not a classifier's tokeniser: "), "{error}");
    }
    let error = json_refusal("xlm-roberta-json", |json| {
        json["model"]["vocab"][5] = json["model"]["vocab"][4].clone()
    });
    assert!(error.ends_with("its piece `▁` is repeated"), "{error}");
    let error = json_refusal("xlm-roberta-json", |json| json["model"]["vocab"] = json!([]));
    assert!(error.contains("EmptyVocabulary"), "{error}");
}

#[test]
fn a_model_of_pieces_that_is_not_fairseqs_is_refused() {
    let load = |bytes: &[u8]| {
        let folder = copied("xlm-roberta-pieces", &[]);
        fs::write(folder.path().join("sentencepiece.bpe.model"), bytes).unwrap();
        ClassifierTokenizer::load(folder.path(), 16).unwrap_err().to_string()
    };
    let bpe = fs::read(Path::new(FIXTURES).join("../sentencepiece/bpe.spm")).unwrap();
    let normalizer =
        model().split_off(fs::read(Path::new(FIXTURES).join("../sentencepiece/unigram.spm")).unwrap().len());
    let error = load(&[bpe, normalizer].concat());
    assert!(error.ends_with("is not a SentencePiece model: it is no unigram model"), "{error}");
    let mut other = model();
    let place = other.windows(3).position(|bytes| bytes == b"<s>").unwrap();
    other[place + 1] = b'x';
    let error = load(&other);
    assert!(
        error.ends_with("is not a classifier's tokeniser: its first pieces must be <unk>, <s>, </s>"),
        "{error}"
    );
    // A piece of its own that has the name of one of ours.
    let piece = [&[0x0a, 15, 0x0a, 6][..], b"<mask>", &[0x15, 0, 0, 0x80, 0xbf, 0x18, 1]].concat();
    let error = load(&[model(), piece].concat());
    assert!(error.ends_with("its piece `<mask>` is repeated"), "{error}");
    let whole = model();
    for length in (0..whole.len()).step_by(40_009) {
        assert!(load(&whole[..length]).contains("sentencepiece.bpe.model` is not a "), "{length}");
    }
}

/// The library panics on each of these, most of them in the middle of a text.
#[test]
fn tables_that_lead_out_of_bounds_are_refused() {
    let whole = charsmap();
    let json = fixture("xlm-roberta-json/tokenizer.json");
    let refused = |table: &[u8]| {
        let error = refusal_of("xlm-roberta-json", "tokenizer.json", &with_charsmap(&json, table));
        assert!(
            error.ends_with("its normaliser `Precompiled`: its table of normalisation is malformed"),
            "{error}"
        );
    };
    let size = u32::from_le_bytes(*whole.first_chunk().unwrap()) as usize;
    let with_unit = |place: usize, unit: u32| {
        let mut table = whole.clone();
        table[4 + 4 * place..][..4].copy_from_slice(&unit.to_le_bytes());
        table
    };
    refused(&[]);
    refused(&[0; 3]);
    refused(&[0; 8]); // no trie
    refused(&[&u32::MAX.to_le_bytes()[..], &[0; 40]].concat()); // a trie longer than the table
    refused(&[&1020_u32.to_le_bytes()[..], &[0; 1021]].concat()); // no room for all bytes
    refused(&with_unit(0, u32::MAX)); // first steps lead out of the trie
    refused(&whole[..4 + size]); // no texts
    refused(&[&whole[..], &[0xff]].concat()); // not UTF-8
    let error = json_refusal("xlm-roberta-json", |json| {
        json["normalizer"]["normalizers"][0]["precompiled_charsmap"] = "A*".into();
    });
    assert!(error.ends_with("its normaliser `Precompiled`: its table is not base64"), "{error}");
}

/// Whatever a table says, it is refused or does no harm.
#[test]
fn no_altered_unit_of_a_table_makes_the_library_panic() {
    use tokenizers::normalizers::Precompiled;
    let whole = charsmap();
    let size = u32::from_le_bytes(*whole.first_chunk().unwrap()) as usize;
    let (mut refused, mut read) = (0, 0);
    for (turn, place) in (4..4 + size).step_by(size / 150).enumerate() {
        let mut altered = whole.clone();
        altered[place] ^= [0x01, 0x80, 0xff, 0x10][turn % 4];
        if crate::foreign_tokenizer::charsmap::check_charsmap(&altered).is_err() {
            refused += 1;
            continue;
        }
        read += 1;
        let table = Precompiled::from(&altered).unwrap();
        for letter in (1..0x3_0000).filter_map(char::from_u32) {
            table.transform(letter.encode_utf8(&mut [0; 4]));
        }
    }
    assert!(refused > 9 && read > 9, "{refused} refused, {read} read");
}

#[test]
fn added_tokens_with_other_ids_or_without_text_are_refused() {
    let settings =
        |id: &str, content: &str| json!({"added_tokens_decoder": {id: {"content": content}}}).to_string();
    let refused = |settings: &str| refusal_of("roberta-lists", "tokenizer_config.json", settings);
    let error = refused(&settings("777", "new"));
    assert!(error.ends_with("`added_tokens_decoder` gives `new` the id 777, but its id is 400"), "{error}");
    let error = refused(&settings("400", "<mask>"));
    assert!(error.ends_with("`added_tokens_decoder` gives `<mask>` the id 400, but its id is 4"), "{error}");
    let error = refused(&settings("400", ""));
    assert!(error.ends_with("`added_tokens_decoder` gives `` the id 400, but its id is none"), "{error}");
    let error = refused(&settings("x\n", "new"));
    assert!(error.ends_with(r"`x\n` is no id of a token"), "{error}");
}

#[test]
fn an_added_token_that_gets_the_id_of_a_piece_is_refused() {
    let error = json_refusal("roberta-json", |json| {
        let vocabulary = json["model"]["vocab"].as_object_mut().unwrap();
        let size = vocabulary.len();
        vocabulary["!"] = size.into();
        let mut token = json["added_tokens"][0].clone();
        token["content"] = "<new>".into();
        json["added_tokens"].as_array_mut().unwrap().push(token);
    });
    assert!(error.ends_with("`!` and `<new>` both have the id 400"), "{error}");
}

/// The library would find the token in the middle of letters.
#[test]
fn an_added_token_that_normalisation_leaves_nothing_of_is_refused() {
    let error = json_refusal("xlm-roberta-json", |json| {
        json["added_tokens"]
            .as_array_mut()
            .unwrap()
            .push(json!({"id": 402, "content": "\u{200b} ", "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": true, "special": false}));
    });
    assert!(error.ends_with(r"normalisation leaves nothing of its added token `\u{200b} `"), "{error}");
}

/// The library would find the second token where the first has taken its space.
#[test]
fn an_added_token_that_takes_the_space_of_another_is_refused() {
    let settings = json!({"added_tokens_decoder": {"400": {"content": "new", "rstrip": true}, "401": {"content": "\n\n"}}});
    let error = refusal_of("roberta-lists", "tokenizer_config.json", &settings.to_string());
    let reason = r"its added token `\n\n` begins with a space, but another takes the spaces after it";
    assert!(error.ends_with(reason), "{error}");
}

#[test]
fn a_template_with_a_third_segment_is_refused() {
    let error = json_refusal("xlm-roberta-json", |json| {
        json["post_processor"]["pair"][4]["Sequence"]["type_id"] = 7.into()
    });
    assert!(error.ends_with("its template has the segment 7: there are only 0 and 1"), "{error}");
}

fn replacement(replaced: &str, content: &str) -> Value {
    json!({"type": "Replace", "pattern": {"String": replaced}, "content": content})
}

fn sequence(kind: &str, list: &str, parts: Vec<Value>) -> Value {
    json!({"type": kind, list: parts})
}

/// Twelve of them would make 10^36 letters of one.
#[test]
fn normalisers_and_pre_tokenisers_that_would_make_endless_texts_are_refused() {
    let end = "times as long: 10000 times is the most";
    let refused = |part: &str, value: Value| {
        let error = json_refusal("roberta-json", |json| json[part] = value);
        assert!(error.contains("its normaliser and pre-tokeniser could make a text "), "{error}");
        assert!(error.ends_with(end), "{error}");
    };
    let thousand = replacement("a", &"a".repeat(1000));
    refused("normalizer", sequence("Sequence", "normalizers", vec![thousand.clone(); 12]));
    let nested = sequence("Sequence", "normalizers", vec![replacement("aa", &"a".repeat(22)); 2]);
    refused("normalizer", sequence("Sequence", "normalizers", vec![nested; 2]));
    let unicode = [replacement("a", "\u{fdfa}"), json!({"type": "NFKC"}), replacement("\u{644}", "\u{fdfa}")];
    refused("normalizer", sequence("Sequence", "normalizers", [&unicode[..]; 4].concat()));
    let bytes =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    refused("pre_tokenizer", sequence("Sequence", "pretokenizers", vec![bytes; 40]));
}

#[test]
fn tables_that_put_in_endless_texts_are_refused() {
    let table = [&charsmap()[..], &[b'a'; 33], b"\0"].concat();
    let json = fixture("xlm-roberta-json/tokenizer.json");
    let error = refusal_of("xlm-roberta-json", "tokenizer.json", &with_charsmap(&json, &table));
    let reason = "its table of normalisation puts in 33 letters at once: 32 are the most";
    assert!(error.ends_with(reason), "{error}");
}

/// What ALBERT's, XLM-RoBERTa's and RoBERTa's do, all at once.
#[test]
fn normalisers_in_use_are_not_refused() {
    let table = charsmap();
    let mut json: Value = serde_json::from_str(&fixture("xlm-roberta-json/tokenizer.json")).unwrap();
    let parts = [json!({"type": "NFKD"}), json!({"type": "StripAccents"}), json!({"type": "Lowercase"})];
    let spaces = json!({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"});
    let precompiled = json!({"type": "Precompiled", "precompiled_charsmap": ""});
    let texts = [replacement("``", "\""), replacement("''", "\""), replacement(" ", "▁")];
    let all = [&[precompiled][..], &texts, &parts, &[spaces]].concat();
    json["normalizer"] = sequence("Sequence", "normalizers", all);
    let folder = copied("xlm-roberta-json", &[("tokenizer.json", &with_charsmap(&json.to_string(), &table))]);
    ClassifierTokenizer::load(folder.path(), 16).unwrap();
}

#[test]
fn tokens_that_only_an_older_list_adds_are_refused() {
    let refused = |name: &str, list: &str, id: u32| {
        let error = refusal_of(name, "added_tokens.json", list);
        let reason = format!(
            "added_tokens.json` is not a classifier's tokeniser: it adds `new` with the id {id}, which no other file \
             does: write the folder anew, with `save_pretrained` of transformers"
        );
        assert!(error.ends_with(&reason), "{error}");
    };
    refused("bert-list", r#"{"new": 197}"#, 197);
    refused("distilbert-silent", r#"{"[MASK]": 4, "new": 194}"#, 194);
    let error = refusal_of("bert-list", "added_tokens.json", r#"{"[MASK]": 5}"#);
    assert!(error.contains("it adds `[MASK]` with the id 5, which no other"), "{error}");
    assert!(refusal_of("bert-list", "added_tokens.json", "[").contains("added_tokens.json` is not a"));
}

/// transformers wrote an empty list once, and does not look at one where `tokenizer_config.json` has its own.
#[test]
fn older_lists_that_change_nothing_are_accepted() {
    let load = |name: &str, files: &[(&str, &str)]| {
        ClassifierTokenizer::load(copied(name, files).path(), 16).unwrap();
    };
    for list in ["{}", r#"{"[MASK]": 4, "<url>": 195}"#] {
        load("bert-list", &[("added_tokens.json", list)]);
    }
    load("roberta-added", &[("added_tokens.json", r#"{"new": 777}"#)]);
}

#[test]
fn a_side_to_cut_on_that_does_not_exist_is_refused() {
    let error = refusal_of("distilbert-list", "tokenizer_config.json", r#"{"truncation_side": "up"}"#);
    assert!(error.contains("unknown variant `up`, expected `left` or `right`"), "{error}");
}

/// The places of all parts of a JSON value, as pointers, but for the long lists of pieces.
fn places(json: &Value, place: String, places: &mut Vec<String>) {
    let members: Vec<(String, &Value)> = match json {
        Value::Object(members) => members.iter().map(|(key, member)| (key.clone(), member)).collect(),
        Value::Array(members) => (0..).map(|number: usize| number.to_string()).zip(members).collect(),
        _ => Vec::new(),
    };
    for (key, member) in members.into_iter().take(6) {
        self::places(member, format!("{place}/{}", key.replace('~', "~0").replace('/', "~1")), places);
    }
    places.push(place);
}

#[test]
fn no_altered_part_of_a_json_does_harm() {
    let others = [
        json!(null),
        json!(true),
        json!(-1),
        json!(7),
        json!(1e300),
        json!(""),
        json!("犬 "),
        json!([]),
        json!({}),
    ];
    let texts = ["", " a  b ", "犬 e\u{301}\u{1}", "the <mask>x</s><s>", "▁▁ \u{200b} door"];
    let no_replacements = [&1024_u32.to_le_bytes()[..], &[0; 1024]].concat();
    let (mut read, mut faults) = (0, Vec::new());
    for name in ["roberta-json", "xlm-roberta-json", "xlm-roberta-hub"] {
        let whole = with_charsmap(&fixture(&format!("{name}/tokenizer.json")), &no_replacements);
        let whole: Value = serde_json::from_str(&whole).unwrap();
        let mut all = Vec::new();
        places(&whole, String::new(), &mut all);
        let folder = tempfile::tempdir().unwrap();
        for (place, other) in all.iter().flat_map(|place| others.iter().map(move |other| (place, other))) {
            let mut json = whole.clone();
            *json.pointer_mut(place).unwrap() = other.clone();
            fs::write(folder.path().join("tokenizer.json"), json.to_string()).unwrap();
            let attempt = std::panic::catch_unwind(|| match ClassifierTokenizer::load(folder.path(), 8) {
                Ok(tokenizer) => texts.map(|text| tokenizer.encode(text, Some("a b 犬"))).len(),
                Err(error) => usize::from(error.to_string().contains('\n')),
            });
            match attempt {
                Ok(count) if count != 1 => read += usize::from(count > 1),
                _ => faults.push(format!("{name}: {place} is {other}")),
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(read > 99, "{read}");
}

#[test]
fn endless_texts_do_no_harm() {
    for name in ["roberta-lists", "xlm-roberta-pieces"] {
        let tokenizer = ClassifierTokenizer::load(copied(name, &[]).path(), 16).unwrap();
        for unit in [" ", "a", "犬", "\u{0301}", "\n", "<mask>"] {
            let text = unit.repeat(60_000);
            assert!(tokenizer.encode(&(text + "x"), None).ids.len() <= 16, "{name}: {unit:?}");
        }
    }
}
