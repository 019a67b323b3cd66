//! Tests the pages of `look` with an HTML parser. If `LOOK_PAGES` names a folder, pages are kept there for the test in a browser.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plotting::findings::Folders;
use plotting::report::look::Look;
use records::{Attention, AttentionMaps, HeadId};
use scraper::{Html, Selector};
use serde_json::Value;
use test_support::synthetic_results;

const HOSTILE: &str = "</script><img src=x onerror=alert(1)>&\"'\u{1b}[2J\u{202e}";

fn heads(attention: Attention, layers: usize, heads: usize) -> Vec<HeadId> {
    let of_layer = |layer| (0..heads).map(move |head| HeadId::from_index(attention, layer, head));
    (0..layers).flat_map(of_layer).collect()
}

/// Returns maps in which a query attends most to keys near a position that depends on layer and head.
fn maps(attention: Attention, [queries, keys]: [&[&str]; 2], layers: usize, heads: usize) -> AttentionMaps {
    let is_causal = matches!(attention, Attention::DecDec);
    let layer = |layer: usize| {
        let row = |head: usize, query: usize| {
            let seen = if is_causal { query + 1 } else { keys.len() };
            let center = (query * (head % 3) + layer + head) % seen;
            let weight = move |key: usize| 0.5 * (-(key.abs_diff(center) as f32)).exp();
            (0..keys.len()).map(move |key| if key < seen { weight(key) } else { 0.0 })
        };
        (0..heads).flat_map(|head| (0..queries.len()).flat_map(move |query| row(head, query))).collect()
    };
    let owned = |tokens: &[&str]| tokens.iter().map(|&token| token.to_owned()).collect();
    let layers = (0..layers).map(layer).collect();
    AttentionMaps { attention, queries: owned(queries), keys: owned(keys), is_causal, layers }
}

/// Returns the path of a page: in the folder of `LOOK_PAGES`, or in a temporary one.
fn page(name: &str, beside: &Path) -> PathBuf {
    std::env::var_os("LOOK_PAGES").map_or(beside.to_owned(), PathBuf::from).join(name)
}

fn folders(folder: &Path) -> Folders {
    Folders { results: folder.join("results"), experiments: folder.join("experiments") }
}

fn text(page: &Html, selector: &str) -> String {
    page.select(&Selector::parse(selector).unwrap()).flat_map(|element| element.text()).collect()
}

fn parsed(path: &Path) -> (Html, Value) {
    let page = Html::parse_document(&fs::read_to_string(path).unwrap());
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    let data = serde_json::from_str(&text(&page, "#look")).unwrap();
    (page, data)
}

/// The translator of the synthetic results, on a text that tries to inject markup.
#[test]
fn a_page_contains_escaped_texts_weights_as_bytes_and_facts_about_heads() {
    let folder = synthetic_results();
    let folders = folders(folder.path());
    let (source, target) = (["the", "dog", "\n", HOSTILE, "</s>"], ["le", "  ", "chien", "</s>"]);
    let types = [Attention::EncEnc, Attention::EncDec, Attention::DecDec];
    let all: Vec<HeadId> = types.iter().flat_map(|&attention| heads(attention, 2, 3)).collect();
    let sides: [[&[&str]; 2]; 3] = [[&source, &source], [&target, &source], [&target, &target]];
    let maps = [0, 1, 2].map(|place| maps(types[place], sides[place], 2, 3));
    let look = Look {
        subject: "tiny-translation",
        text: HOSTILE,
        second: None,
        answer: "le chien",
        masked: "enc-enc:1:2",
        weights: Some("ab12"),
        heads: &all[1..],
        maps: &maps,
    };
    let path = page("translation.html", folder.path());
    look.write(&folders, &path).unwrap();
    let (html, data) = parsed(&path);
    let shown = text(&html, "dl.facts");
    for part in ["</script><img", "\\u{1b}[2J\\u{202e}", "Generated translation", "le chien", "enc-enc:1:2"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(html.select(&Selector::parse("img").unwrap()).count(), 0);
    let buttons = Selector::parse("button[data-head]").unwrap();
    assert_eq!(html.select(&buttons).count(), 17, "removed heads have no button");
    let tokens = &data["maps"][0]["keys"];
    assert_eq!((tokens[2].as_str(), data["maps"][1]["queries"][1].as_str()), (Some("↵"), Some("␣␣")));
    assert!(tokens[3].as_str().unwrap().contains("\\u{1b}"), "{tokens}");

    // the third query of the second head: 255 times the square roots of its weights, only for visible keys in a decoder
    for (place, skipped, seen) in [(0, 5 * 5 + 2 * 5, 5), (2, 10 + 3, 3)] {
        let bytes = BASE64_STANDARD.decode(data["maps"][place]["layers"][1].as_str().unwrap()).unwrap();
        let AttentionMaps { keys, queries, layers, .. } = &maps[place];
        let start = (queries.len() + 2) * keys.len();
        let expected: Vec<u8> =
            layers[1][start..start + seen].iter().map(|w| (w.sqrt() * 255.0).round() as u8).collect();
        assert_eq!(bytes[skipped..skipped + seen], expected);
    }
    let names = |data: &Value| -> Vec<String> {
        let facts = data["facts"]["enc-enc:1:2"].as_array().into_iter().flatten();
        facts.map(|fact| fact[0].as_str().unwrap().to_owned()).collect()
    };
    let found = names(&data);
    let facts = ["change in BLEU", "95% interval", "verdict", "what it does"];
    assert!(facts.iter().all(|fact| found.iter().any(|name| name == fact)), "{found:?}");
    // a copy of the sweep serves as one of another kind of ablation
    let own = folder.path().join("results/tiny-translation");
    let mut signature: Value =
        serde_json::from_slice(&fs::read(own.join("ablate-one.json")).unwrap()).unwrap();
    signature["identity"]["arguments"]["ablation"] = "mean".into();
    fs::write(own.join("ablate-one-mean.json"), signature.to_string()).unwrap();
    fs::copy(own.join("ablate-one.csv"), own.join("ablate-one-mean.csv")).unwrap();
    look.write(&folders, &path).unwrap();
    let (_, data) = parsed(&path);
    assert!(names(&data).contains(&"change under mean".to_owned()), "{:?}", names(&data));

    for (look, sentence) in [
        (Look { weights: Some("cd34"), ..look }, "different weights"),
        (Look { subject: "new", ..look }, "has no measurements"),
    ] {
        let path = folder.path().join("other.html");
        look.write(&folders, &path).unwrap();
        let (_, data) = parsed(&path);
        let nothing = data["nothing"].as_str().unwrap();
        assert!(nothing.contains(sentence) && data["facts"].as_object().unwrap().is_empty(), "{data}");
    }
}

/// 36 layers of 32 heads on 64 tokens.
#[test]
fn a_page_of_a_large_model_is_below_ten_megabytes() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["The", "old", "dog", "that", "barks", "at", "night", "sleeps"];
    let tokens: Vec<&str> = (0..64).map(|place| words[place % 8]).collect();
    let maps = [maps(Attention::SelfAttention, [&tokens; 2], 36, 32)];
    let look = Look {
        subject: "large",
        text: &tokens.join(" "),
        second: None,
        answer: "yes",
        masked: "",
        weights: None,
        heads: &heads(Attention::SelfAttention, 36, 32),
        maps: &maps,
    };
    let path = page("large.html", folder.path());
    look.write(&folders(folder.path()), &path).unwrap();
    let size = fs::metadata(&path).unwrap().len();
    assert!(size < 10_000_000, "{size} bytes");
}
