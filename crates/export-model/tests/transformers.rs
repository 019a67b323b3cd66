//! Loads exports of every family in transformers with `check_export.py --table`, and compares with the table in `experiments/REFERENCE.md`.
//! `PYTHON` names a Python with torch and transformers.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use core_masking::families::{CLASSIFIERS, LANGUAGE_MODELS};
use core_masking::{
    Classifier, GatedModel, HeadId, HeadSet, LanguageConfig, LanguageModel, Removal, Translator,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::copy_files;

const OPTIONS: (tch::Kind, tch::Device) = (tch::Kind::Float, tch::Device::Cpu);
const CRATE: &str = env!("CARGO_MANIFEST_DIR");
/// The last column on the page, and the version that its first table names.
const ONNX_COLUMN: usize = 4;
const ONNX_RUNTIME: &str = "onnxruntime 1.32.0";

/// Returns true for heads to remove, so that layers and groups become unequal; one module in three loses its first half.
fn goes(module: usize, head: usize, heads: usize) -> bool {
    match module % 3 {
        0 => head == 1,
        1 => head == 0 || head + 1 == heads,
        _ => head < heads / 2,
    }
}

/// Writes a model without a few heads, also without its whole first layer, and with equal numbers removed from all groups.
fn write_exports(model: &impl GatedModel, family: &Path) {
    let layout = model.layout();
    let modules = layout.heads_by_module();
    let choose = |goes: &dyn Fn(usize, &HeadId, usize) -> bool| -> HeadSet {
        let of_module = |(number, module): (usize, &Vec<HeadId>)| {
            let number = if layout.is_one_layer() { 0 } else { number };
            module.iter().filter(|id| goes(number, id, module.len())).copied().collect::<Vec<_>>()
        };
        modules.iter().enumerate().flat_map(of_module).collect()
    };
    let some = |number, id: &HeadId, heads| goes(number, id.head_index(), heads);
    let layer = |number, id: &HeadId, heads| id.layer_index() == 0 || some(number, id, heads);
    let first_of_group = |_, id: &HeadId, _| {
        let module = layout.module(id.attention(), id.layer_index());
        let (head, group) = (id.head_index() as i64, |head| module.key_value_of(head));
        head == 0 || group(head) != group(head - 1) && module.kept_key_values().len() < module.kept.len()
    };
    for (name, heads) in
        [("some", choose(&some)), ("layer", choose(&layer)), ("same", choose(&first_of_group))]
    {
        let forms = [("cut", Removal::Cut), ("dense", Removal::Zeros), ("uniform", Removal::Uniform)];
        for (form, removal) in forms.into_iter().filter(|(form, _)| (*form == "uniform") == (name == "same"))
        {
            // all layers of ALBERT share the first one's weights; few families can be uniform
            let Ok(without) = model.without_heads(&heads, removal) else { continue };
            let (original, folder) = (family.join("original"), family.join(name).join(form));
            fs::create_dir_all(&folder).unwrap();
            without.save(&folder).unwrap();
            experiment::complete_folder(&original, &folder).unwrap();
            let search = "generation_config.json";
            if original.join(search).exists() {
                fs::copy(original.join(search), folder.join(search)).unwrap();
            }
            let about = json!({ "identity": { "arguments": { "removed_heads": heads.to_string() } } });
            fs::write(folder.join("pruning.json"), about.to_string()).unwrap();
        }
    }
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Makes a folder for each family with reference numbers, and for the first Gemma.
fn write_families(folder: &Path) {
    let golden = Path::new(CRATE).join("../test-support/golden");
    for place in ["", "families", "more", "tokens-images"] {
        let mut sources: Vec<_> =
            fs::read_dir(golden.join(place)).unwrap().map(|entry| entry.unwrap().path()).collect();
        sources.sort();
        for source in sources.iter().filter(|source| source.join("config.json").exists()) {
            let model_type = json_of(&source.join("config.json"))["model_type"].as_str().unwrap().to_owned();
            let original = folder.join(model_type).join("original");
            if !original.exists() {
                copy_files(source, &original);
            }
        }
    }
    let gemma = folder.join("gemma/original");
    fs::create_dir_all(&gemma).unwrap();
    let config = json!({
        "model_type": "gemma", "architectures": ["GemmaForCausalLM"], "vocab_size": 61, "hidden_size": 24, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 14, "rms_norm_eps": 1e-6,
        "max_position_embeddings": 64, "hidden_act": "gelu_pytorch_tanh", "initializer_range": 0.3, "pad_token_id": 0,
    });
    fs::write(gemma.join("config.json"), config.to_string()).unwrap();
    let config = LanguageConfig::read(&gemma.join("config.json")).unwrap();
    LanguageModel::random(config, 5, OPTIONS).unwrap().save(&gemma).unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let family = entry.unwrap().path();
        let (original, name) = (family.join("original"), family.file_name().unwrap().to_str().unwrap());
        if CLASSIFIERS.iter().any(|family| family.model_type == name) {
            write_exports(&Classifier::load(&original, OPTIONS).unwrap(), &family);
        } else if LANGUAGE_MODELS.iter().any(|family| family.model_type == name) {
            write_exports(&LanguageModel::load(&original, OPTIONS).unwrap(), &family);
        } else {
            write_exports(&Translator::load(&original, OPTIONS).unwrap(), &family);
        }
    }
}

/// Returns the cells on the page by family, such as `4*, 5`.
fn cells_on_page() -> BTreeMap<String, Vec<String>> {
    let page = fs::read_to_string(Path::new(CRATE).join("../../experiments/REFERENCE.md")).unwrap();
    let below = page.split("### What transformers reads\n").nth(1).unwrap();
    let rows = below.split("| model type |").nth(1).unwrap();
    let rows =
        rows.lines().skip_while(|line| !line.starts_with("| `")).take_while(|line| line.starts_with('|'));
    let mut families = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
        for name in cells[0].split('`').skip(1).step_by(2) {
            families.insert(name.to_owned(), cells[1..].iter().map(ToString::to_string).collect());
        }
    }
    families
}

#[test]
fn the_table_of_programs_counts_the_families_of_each_form() {
    let families = cells_on_page();
    let reads = |column: usize, version: &str| {
        let count = families.values().filter(|cells| cells[column].contains(version)).count();
        if count == 0 { "–".to_owned() } else { count.to_string() }
    };
    let page = fs::read_to_string(Path::new(CRATE).join("../../experiments/REFERENCE.md")).unwrap();
    for (form, column) in [("cut", 1), ("zeros", 2), ("uniform", 3)] {
        let row = format!("| `--form {form}` | {} | {} | – | ", reads(column, "4"), reads(column, "5"));
        assert!(page.contains(&row), "the page lacks `{row}`");
    }
    let row = format!("| `--form onnx` | – | – | {} | – |", reads(ONNX_COLUMN, "5"));
    assert!(page.contains(&row), "the page lacks `{row}`");
    for version in ["transformers 4.57.1", "5.24.0", "ONNX Runtime 1.32.0"] {
        assert!(page.contains(version), "the page lacks {version}");
    }
}

#[test]
fn every_family_is_read_by_transformers_as_the_page_says() {
    let folder = TempDir::new().unwrap();
    write_families(folder.path());
    let on_page = cells_on_page();
    for (name, cells) in &on_page {
        let cut = folder.path().join(name).join("some/cut");
        let map = json_of(&cut.join("config.json"))["auto_map"].to_string();
        let has_code = cut.join("modeling_headcount.py").exists() && map.contains("modeling_headcount.");
        assert_eq!(has_code, cells[1] != "–", "{name}: {map}");
    }

    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let packages =
        Command::new(&python).args(["-c", "import torch, transformers"]).stderr(Stdio::null()).status();
    if !packages.is_ok_and(|status| status.success()) {
        return test_support::skipped(&format!(
            "{python} has no torch and transformers: PYTHON can name one"
        ));
    }
    let mut check = Command::new(&python);
    check.arg(format!("{CRATE}/tests/check_export.py")).arg("--table").arg(folder.path());
    check.env("HF_HUB_OFFLINE", "1").env("HF_MODULES_CACHE", folder.path().with_extension("code"));
    let output = check.stderr(Stdio::inherit()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    println!("{text}");
    assert!(output.status.success() && text.ends_with("passed\n"));
    let version = text.lines().next().unwrap().rsplit(' ').next().unwrap();
    if !["4.57.1", "5.24.0"].contains(&version) {
        return test_support::skipped(&format!("the page has no results of transformers {version}"));
    }
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let mut found = BTreeMap::new();
    for row in rows {
        let cells: Vec<String> = row.trim_matches(['|', ' ']).split(" | ").map(ToOwned::to_owned).collect();
        found.insert(cells[0].trim_matches('`').to_owned(), cells[1..].to_vec());
    }
    let with_onnx = text.contains(ONNX_RUNTIME);
    if !with_onnx {
        test_support::skipped(&format!(
            "{python} has no onnx with {ONNX_RUNTIME}: the column `onnx` is not checked"
        ));
    }
    let of_version = |cell: &String| {
        let reads = cell.split(", ").find(|reads| reads.starts_with(&version[..1]));
        reads.unwrap_or("–").to_owned()
    };
    let mut expected: BTreeMap<String, Vec<String>> =
        on_page.into_iter().map(|(name, cells)| (name, cells.iter().map(of_version).collect())).collect();
    if !with_onnx {
        found.values_mut().chain(expected.values_mut()).for_each(|cells| cells.truncate(ONNX_COLUMN));
    }
    assert_eq!(found, expected);
}
