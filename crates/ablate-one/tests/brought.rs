//! Variants of checkpoint folders: each must give the results of the plain folder, or be refused with a fitting message.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::fs;
use std::path::Path;

use records::AblationRow;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use test_support::{CLASSIFIER, LANGUAGE_MODEL, command, copy_files, refuses, rows, said, with_model};

const WEIGHTS: &str = "model.safetensors";
const EMBEDDINGS: &str = "model.embed_tokens.weight";

/// A change to a model's folder, and the message of the refusal; `None` if the model must open as before.
type Case = (fn(&Path), Option<&'static str>);

/// Makes a setup with the folder of a trained model as a ready-made checkpoint.
fn brought(spec: &'static str) -> TempDir {
    let folder = with_model(spec);
    let (head, _) = spec.split_once("[tokenizer]").unwrap();
    let head = head.split_once("[model]").map_or(head, |(head, _)| head);
    let checkpoint = format!("{head}[checkpoint]\nfrom = \"models/tiny\"\n");
    fs::write(folder.path().join("tiny.toml"), checkpoint).unwrap();
    folder
}

/// Makes a setup with a translator in the format of the hub.
fn translator() -> TempDir {
    let folder = test_support::folder(
        "description = \"A folder\"\ncheckpoint.from = \"models/tiny\"\ndata.splits.test = { source = \"a\", target = \"b\" }\n",
    );
    let hub = concat!(env!("CARGO_MANIFEST_DIR"), "/../core-masking/tests/fixtures/tiny-marian");
    copy_files(Path::new(hub), &folder.path().join("data/models/tiny"));
    fs::write(folder.path().join("data/a"), "The dog sees the cat.\nA man sleeps.\n").unwrap();
    fs::write(folder.path().join("data/b"), "lu pesak lu tivun zifesk\nen fotal pasosk\n").unwrap();
    folder
}

fn edit(folder: &Path, file: &str, change: impl FnOnce(&mut Value)) {
    let path = folder.join(file);
    let mut json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut json);
    fs::write(path, json.to_string()).unwrap();
}

fn edit_header(folder: &Path, change: impl FnOnce(Map<String, Value>) -> Map<String, Value>) {
    let bytes = fs::read(folder.join(WEIGHTS)).unwrap();
    let end = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = serde_json::to_vec(&change(serde_json::from_slice(&bytes[8..end]).unwrap())).unwrap();
    let length = (header.len() as u64).to_le_bytes();
    fs::write(folder.join(WEIGHTS), [&length, &header[..], &bytes[end..]].concat()).unwrap();
}

fn rename(folder: &Path, new: impl Fn(String) -> String) {
    let new = |name: String| if name == "__metadata__" { name } else { new(name) };
    edit_header(folder, |header| header.into_iter().map(|(name, entry)| (new(name), entry)).collect());
}

/// Stores the embeddings under the name of the output layer, with which they are tied.
fn untie(folder: &Path) {
    rename(folder, |name| if name == EMBEDDINGS { "lm_head.weight".to_owned() } else { name });
}

/// Leaves only the class in `architectures` to name the family.
fn forget_type(folder: &Path) {
    edit(folder, "config.json", |json| drop(json.as_object_mut().unwrap().remove("model_type")));
}

fn check(new: impl Fn() -> TempDir, cases: &[Case]) {
    let run = |folder: &Path| {
        let mut command = command("ablate-one", folder);
        command.args(["--resamples", "0"]);
        command
    };
    let plain = new();
    run(plain.path()).assert().success();
    let expected: Vec<AblationRow> = rows(plain.path(), "ablate-one.csv");
    for (place, (change, message)) in cases.iter().enumerate() {
        let folder = new();
        change(&folder.path().join("data/models/tiny"));
        if let Some(message) = message {
            refuses(&mut run(folder.path()), message);
            let left = fs::read_dir(folder.path().join("results/tiny")).map_or(0, Iterator::count);
            assert_eq!(left, 0, "case {place}");
        } else {
            run(folder.path()).assert().success();
            assert_eq!(rows::<AblationRow>(folder.path(), "ablate-one.csv"), expected, "case {place}");
        }
    }
}

#[test]
fn variants_of_a_folder_open_or_are_refused_with_their_fault() {
    check(
        || brought(LANGUAGE_MODEL),
        &[
            (untie, None),
            (
                |folder| {
                    untie(folder);
                    edit_header(folder, |mut header| {
                        header.insert("__metadata__".to_owned(), json!({ EMBEDDINGS: "lm_head.weight" }));
                        header
                    });
                },
                None,
            ),
            // a token that occurs in no text needs no embedding
            (
                |folder| {
                    edit(folder, "tokenizer.json", |json| {
                        let mut added = json["added_tokens"][0].clone();
                        added["id"] = 320.into();
                        added["content"] = "<pad>".into();
                        json["added_tokens"].as_array_mut().unwrap().push(added);
                    });
                },
                None,
            ),
            (forget_type, None),
            (
                |folder| edit(folder, "config.json", |json| *json = json!({"architectures": ["My"]})),
                Some("it lacks model_type: add the line \"model_type\": \"...\" with"),
            ),
            (
                |folder| rename(folder, |name| name.replace("q_proj.weight", "q_proj.qweight")),
                Some("is quantised (F32): use the model that it was made from"),
            ),
            (
                |folder| edit(folder, "config.json", |json| json["vision_config"] = json!({})),
                Some("it is a vision-language model (`vision_config`)"),
            ),
            (
                |folder| fs::rename(folder.join(WEIGHTS), folder.join("pytorch_model.bin")).unwrap(),
                Some("its weights are only in `pytorch_model.bin`"),
            ),
            (
                |folder| fs::remove_file(folder.join("tokenizer.json")).unwrap(),
                Some("it must contain `tokenizer.json`: copy"),
            ),
        ],
    );
    check(|| brought(CLASSIFIER), &[(forget_type, None)]);
}

/// Capitals are lowercased, as in transformers, but a warning is given.
#[test]
fn a_cased_vocabulary_gives_a_warning_unless_the_folder_states_its_case() {
    for (stated, warns) in [(json!({}), true), (json!({"do_lower_case": false}), false)] {
        let folder = brought(CLASSIFIER);
        let model = folder.path().join("data/models/tiny");
        edit(&model, "tokenizer.json", |json| {
            let pieces = json["model"]["vocab"].as_object_mut().unwrap();
            let id = pieces.remove("##w").or_else(|| pieces.remove("w")).unwrap();
            pieces.insert("Q".to_owned(), id);
        });
        fs::write(model.join("tokenizer_config.json"), stated.to_string()).unwrap();
        let said = said(command("ablate-one", folder.path()).arg("--resamples=0"));
        assert_eq!(said.contains("has capitals, such as `Q`"), warns, "{said}");
    }
}

/// One embedding table under both names and one vocabulary under both names are equivalent to one of each.
#[test]
fn marian_with_two_vocabularies_translates_as_with_one() {
    fn separate(folder: &Path) {
        let [encoder, decoder] =
            ["encoder", "decoder"].map(|stack| format!("model.{stack}.embed_tokens.weight"));
        rename(folder, |name| if name == "model.shared.weight" { encoder.clone() } else { name });
        edit_header(folder, |mut header| {
            header.insert("__metadata__".to_owned(), json!({ decoder.as_str(): encoder }));
            header
        });
        edit(folder, "config.json", |json| json["share_encoder_decoder_embeddings"] = false.into());
        edit(folder, "tokenizer_config.json", |json| json["separate_vocabs"] = true.into());
        fs::copy(folder.join("vocab.json"), folder.join("target_vocab.json")).unwrap();
    }
    let renamed: Case = (|folder| rename(folder, |name| name.replace("model.shared", "lm_head")), None);
    check(translator, &[(separate, None), renamed]);
}
