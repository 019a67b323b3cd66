//! The whole command on an image classifier that trains in a second: heads, answers, a setup, and a smaller model.
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use records::{AblationRow, CurveRow};
use test_support::{IMAGES, program, refusal, rows, score_of_export, with_model};

fn command(program: &str, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = test_support::command(program, folder);
    command.args(arguments);
    command
}

#[test]
fn heads_of_images_are_masked_and_a_smaller_model_scores_as_its_row() {
    let folder = with_model(IMAGES);
    command("ablate-one", folder.path(), &["--resamples", "99"]).assert().success();
    let masked: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    assert_eq!(masked.len(), 2 * 3);
    assert!(masked[0].base_score > 90.0, "a bright half must be learnt: {}", masked[0].base_score);
    assert!(masked.iter().any(|row| row.score_delta != 0.0), "masking must change something");

    let curve = ["--resamples", "99", "--step-percent", "50", "--order", "importance"];
    command("iterative-prune", folder.path(), &curve).assert().success();
    let steps: Vec<CurveRow> = rows(folder.path(), "iterative-prune.csv");
    let row = steps.iter().find(|row| row.masked == 3 && !row.complement).unwrap();
    for form in ["cut", "zeros"] {
        command("export-model", folder.path(), &[form, "--form", form, "--percent", "50"]).assert().success();
        assert!(folder.path().join(form).join("preprocessor_config.json").exists());
        assert_eq!(score_of_export(folder.path(), form, IMAGES), row.score, "{form}");
    }
}

#[test]
fn an_image_is_classified_and_texts_are_asked_for_nowhere() {
    let folder = with_model(IMAGES);
    let image = "data/stripes/test/top/2001.png";
    let mut say = command("say", folder.path(), &[image, "--mask", "self:1:2"]);
    let said = String::from_utf8(say.assert().success().get_output().stdout.clone()).unwrap();
    assert!(said.starts_with("all heads: top (") && said.lines().count() == 2, "{said}");
    let mean = [image, "--mask", "self:1:2", "--ablation", "mean"];
    command("say", folder.path(), &mean).assert().success();
    let fault = refusal(&mut command("say", folder.path(), &["nowhere.png"]));
    assert!(fault.contains("nowhere.png"), "{fault}");
    for program in ["look", "head-functions", "relevance"] {
        let arguments: &[&str] = if program == "look" { &["A text"] } else { &[] };
        let fault = refusal(&mut command(program, folder.path(), arguments));
        assert!(fault.contains("images") || fault.contains("unlike `vit`"), "{program}: {fault}");
    }
}

#[test]
fn init_describes_a_model_and_folders_of_images() {
    let folder = with_model(IMAGES);
    program("init", folder.path()).args(["mine", "models/tiny", "stripes"]).assert().success();
    let setup = fs::read_to_string(folder.path().join("experiments/mine.toml")).unwrap();
    for part in [
        "ViTForImageClassification",
        "labels = [\"bottom\", \"top\"]",
        "test = { images = \"stripes/test\" }",
    ] {
        assert!(setup.contains(part), "{part}\n{setup}");
    }
    program("ablate-one", folder.path()).args(["mine", "--quiet", "--resamples", "0"]).assert().success();
}

#[test]
fn data_that_do_not_fit_the_model_are_refused_by_their_file() {
    let folder = with_model(IMAGES);
    let refuse = |expected: &str| {
        let fault = refusal(&mut command("ablate-one", folder.path(), &["--resamples", "0"]));
        assert!(fault.contains(expected), "{fault}");
    };
    let test = folder.path().join("data/stripes/test");
    let image = test.join("top/2001.png");
    fs::create_dir(test.join("left")).unwrap();
    fs::copy(&image, test.join("left/1.png")).unwrap();
    refuse("left/1.png`: label `left` is not one of `bottom`, `top`");
    fs::remove_dir_all(test.join("left")).unwrap();

    let bytes = fs::read(&image).unwrap();
    fs::write(&image, &bytes[..bytes.len() / 2]).unwrap();
    refuse("2001.png`: not a complete PNG or JPEG image");
    fs::write(&image, bytes).unwrap();

    fs::remove_file(folder.path().join("data/models/tiny/preprocessor_config.json")).unwrap();
    refuse("preprocessor_config.json");
    let spec = IMAGES.replace("image = { size = 6, patch = 2, channels = 1 }\n", "");
    fs::write(folder.path().join("tiny.toml"), spec).unwrap();
    refuse("[model] needs model.image");
}
