//! Runs the commands on the pages as a reader would, with small setups named like those in `experiments/`.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]
mod recipes;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use flate2::{Compression, write::GzEncoder};
use rayon::prelude::*;
use recipes::{just, options, root, run_without_cargo};
use tempfile::TempDir;
use test_support::{CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, copy_files, write_reviews};

/// Pages with commands for readers.
const PAGES: [&str; 8] = [
    "README.md",
    "experiments/README.md",
    "experiments/REFERENCE.md",
    "experiments/slurm/README.md",
    "results/README.md",
    "results/FILES.md",
    "crates/README.md",
    ".github/CONTRIBUTING.md",
];

/// Recipes that are only looked up: they build or check the repository, need llama.cpp, or need the reader's files.
const LOOKED_UP: [&str; 9] = [
    "bench",
    "check-export",
    "export-gguf",
    "import-model",
    "lint",
    "llama-cpp",
    "setup-cuda",
    "test",
    "test-browser",
];

/// Smaller arguments for the small setups.
const SMALLER: [(&str, &str); 5] = [
    ("--heads 48,24,12", "--heads 4,2"),
    ("--split blimp", "--split agreement"),
    ("L2H4 L2H8", "L2H3"),
    ("just speed", "just speed demo-inference --width 90"),
    ("just reproduce-table4", "just reproduce-table4 demo-inference --width 90"),
];

/// Finds commands that start with `just`, `headcount` or `cargo run`, in shell blocks and inline code. `<setup>` becomes the demo, and
/// `[options]` are left out.
fn commands_in(page: &str) -> Vec<String> {
    let blocks: Vec<&str> = page.split("```").collect();
    let mut commands = Vec::new();
    for (place, block) in blocks.iter().enumerate() {
        let code: Vec<&str> = if place % 2 == 0 {
            block.split('`').skip(1).step_by(2).collect()
        } else {
            let lines = block.strip_prefix("sh\n").unwrap_or_default().lines();
            lines.map(|line| line.split(" #").next().unwrap_or_default()).collect()
        };
        for code in code.into_iter().flat_map(|code| code.split("&&")) {
            let words = code.split_whitespace().collect::<Vec<_>>().join(" ");
            let needed = words.split('[').next().unwrap_or_default().trim_end();
            let filled = needed.replace("<setup>", "demo-translation");
            if ["just ", "headcount ", "cargo run "].iter().any(|start| filled.starts_with(start)) {
                commands.push(filled);
            }
        }
    }
    commands
}

fn zipped(text: &str) -> Vec<u8> {
    let mut zipped = GzEncoder::new(Vec::new(), Compression::fast());
    zipped.write_all(text.as_bytes()).unwrap();
    zipped.finish().unwrap()
}

/// A folder with everything that the commands need; a clone is a copy.
struct Desk(TempDir);

impl Clone for Desk {
    fn clone(&self) -> Self {
        let copy = tempfile::tempdir().unwrap();
        let from = self.path().join(".");
        assert!(Command::new("cp").arg("-R").args([&from, copy.path()]).status().unwrap().success());
        Self(copy)
    }
}

impl Desk {
    fn new() -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        // long enough for pages that do not limit the length of texts
        let classifier =
            CLASSIFIER.replace("max_length = 16", "max_length = 128").replace("reviews/", "tables/");
        for entry in fs::read_dir(root().join("experiments")).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if name.ends_with(".toml") {
                let text = fs::read_to_string(entry.path()).unwrap();
                let small = match text.split("task = \"").nth(1).and_then(|rest| rest.split('"').next()) {
                    Some("classification") => &classifier,
                    Some("language-modelling") => LANGUAGE_MODEL,
                    _ => TRANSLATOR,
                };
                desk.write(&format!("experiments/{name}"), small.as_bytes());
            }
        }
        desk.write("data/sources.toml", &fs::read(root().join("data/sources.toml")).unwrap());
        desk.write_texts();
        desk.write_images();
        let models = [
            ("demo-inference", &["my-roberta", "minilm"][..]),
            ("demo-language", &["my-llama"]),
            ("demo-translation", &["my-marian"]),
        ];
        for (subject, names) in models {
            desk.run(&format!("just train {subject} --quiet")).unwrap();
            let data = desk.path().join("data");
            names.iter().for_each(|name| copy_files(&data.join("models").join(subject), &data.join(name)));
        }
        desk
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, file: &str, bytes: &[u8]) {
        let path = self.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Writes the texts for the setups on the pages.
    fn write_texts(&self) {
        write_reviews(self.path());
        let tables = self.path().join("data/tables");
        fs::rename(self.path().join("data/reviews"), &tables).unwrap();
        let read = |split| fs::read_to_string(tables.join(format!("{split}.tsv"))).unwrap();
        for split in ["train", "dev", "test"] {
            self.write(&format!("data/reviews/{split}.csv"), read(split).replace('\t', ",").as_bytes());
        }
        self.write("data/reviews.csv", read("test").replace('\t', ",").as_bytes());
        let reviews = |count| {
            let text = read("train");
            let reviews = text.lines().skip(1).take(count).filter_map(|line| line.split('\t').next());
            reviews.map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        for (file, count) in [("train", 200), ("dev", 20), ("test", 20)] {
            self.write(&format!("data/texts/{file}.txt"), reviews(count).join("\n\n").as_bytes());
            for language in ["en", "de"] {
                self.write(&format!("data/news/{file}.{language}"), reviews(count).join("\n").as_bytes());
            }
        }
        for (run, right) in [("base", 3), ("pruned", 2)] {
            let line = |id: usize| {
                format!("{{\"doc_id\": {id}, \"filter\": \"none\", \"acc\": {}}}\n", u8::from(id % 4 < right))
            };
            let lines: String = (0..20).map(line).collect();
            self.write(&format!("runs/{run}/samples_arc_easy.jsonl"), lines.as_bytes());
        }
        let trees = "1\tthe\t_\t_\t_\t_\t2\tdet\t_\t_\n2\tdog\t_\t_\t_\t_\t0\troot\t_\t_\n\n";
        self.write("data/ud/UD_English-PUD/en_pud-ud-test.conllu.gz", &zipped(&trees.repeat(4)));
    }

    /// Writes a ViT with three classes, and images for them.
    fn write_images(&self) {
        let crates = root().join("crates");
        let read = |file: &str| fs::read(crates.join(file)).unwrap();
        for file in ["config.json", "model.safetensors"] {
            let bytes = read(&format!("test-support/golden/tokens-images/vit/{file}"));
            self.write(&format!("data/my-vit/{file}"), &bytes);
        }
        let processor =
            br#"{"image_processor_type": "ViTImageProcessor", "size": {"height": 24, "width": 24}}"#;
        self.write("data/my-vit/preprocessor_config.json", processor);
        for class in ["bird", "cat", "dog"] {
            let image = read("corpus/tests/fixtures/images/colour.png");
            self.write(&format!("data/pets/test/{class}/1.png"), &image);
        }
    }

    fn run(&self, command: &str) -> Result<(), String> {
        let run = run_without_cargo(self.path());
        let line = match command.split_once(' ').unwrap() {
            ("just", recipe) => format!("just \"$@\" {recipe}"),
            ("headcount", rest) => format!("{run} headcount -- {rest}"),
            (_, rest) => format!("{run} {}", rest.split_once("--bin ").unwrap().1),
        };
        let mut shell = Command::new("sh");
        shell.args(["-c", &line, "sh"]).args(options(self.path())).current_dir(self.path());
        let output = shell.output().unwrap();
        let said = || format!("{command}: {}", String::from_utf8_lossy(&output.stderr));
        if output.status.success() { Ok(()) } else { Err(said()) }
    }

    /// Prepares what a page assumes: results to draw, report or test again, and shards to merge.
    fn prepare(&self, command: &str) -> Result<(), String> {
        let recipes = ["just report", "just retest", "just figures"];
        if let Some(arguments) = recipes.iter().find_map(|recipe| command.strip_prefix(recipe)) {
            let named = arguments.split_whitespace().next().filter(|argument| !argument.starts_with('-'));
            let subject = named.unwrap_or("demo-translation");
            self.run(&format!("cargo run --bin ablate-one -- {subject} --quiet"))?;
        }
        if command.starts_with("just merge") {
            let _ = fs::remove_dir_all(self.path().join("results/demo-translation"));
            for shard in ["1/2", "2/2"] {
                self.run(&format!("cargo run --bin ablate-one -- demo-translation --quiet --shard {shard}"))?;
            }
        }
        Ok(())
    }

    /// Runs a command on a page, as far as possible in tests.
    fn follow(&self, command: &str) -> Result<(), String> {
        let recipe = command.split_whitespace().nth(1).unwrap_or_default();
        // models without a classification head and T5 are missing here, and a mention of `init` names no model
        let is_there = !command.contains("my-t5") && !command.contains("my-bert");
        let is_example = recipe == "init" && (!is_there || command.ends_with("init"));
        if is_example || LOOKED_UP.contains(&recipe) {
            self.run(&command.replacen("just ", "just --dry-run ", 1))
        } else if recipe == "fetch" {
            // Nothing is fetched, but the options and the name must be valid.
            let name = command.split_whitespace().nth(2).filter(|name| !name.starts_with('-'));
            let known = fs::read_to_string(self.path().join("data/sources.toml")).unwrap();
            if name.is_some_and(|name| !known.contains(&format!("[{name}]\n"))) {
                return Err(format!("{command}: there is no such source"));
            }
            self.run(&format!("{command} --help"))
        } else {
            let smaller = |command: String, (of, less): &(&str, &str)| command.replace(of, less);
            let command = SMALLER.iter().fold(command.to_owned(), smaller);
            self.prepare(&command)?;
            self.run(&command)
        }
    }

    /// Runs each command on a page once; returns the failures.
    fn follow_page(&self, page: &str) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let commands = commands_in(&fs::read_to_string(root().join(page)).unwrap()).into_iter();
        let fault = |command: String| self.follow(&command).err().map(|fault| format!("{page}: {fault}"));
        commands.filter(|command| seen.insert(command.clone())).filter_map(fault).collect()
    }
}

#[test]
fn every_command_of_the_pages_runs() {
    if just().is_none() {
        return;
    }
    let desk = Desk::new();
    let faults: Vec<String> = PAGES.par_iter().flat_map(|page| desk.clone().follow_page(page)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Returns the anchors that GitHub gives to the headings of a page.
fn anchors(page: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(page).unwrap();
    let outside: String = text.split("```").step_by(2).collect();
    let headings = outside.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let name = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        name.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_of_the_pages_leads_somewhere() {
    let mut broken = Vec::new();
    for page in PAGES.iter().chain(&["CHANGELOG.md", "results/voita.md", "results/deciding.md"]) {
        let path = root().join(page);
        let text = fs::read_to_string(&path).unwrap();
        let inline = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let named =
            text.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: ")).map(|(_, to)| to);
        // GitHub's releases page is outside the branch
        let is_here = |link: &&str| !link.contains("://") && *link != "../../releases";
        for link in inline.chain(named).filter(is_here) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.with_file_name("").join(file) };
            if !target.exists() || !(anchor.is_empty() || anchors(&target).contains(anchor)) {
                broken.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn pages_stay_short_enough_to_be_read() {
    let read = |page| fs::read_to_string(root().join(page)).unwrap();
    let limits = [
        ("README.md", 900),
        ("results/README.md", 1_800),
        ("results/deciding.md", 600),
        ("experiments/README.md", 1_700),
        ("experiments/REFERENCE.md", 6_900),
    ];
    for (page, most) in limits {
        let words = read(page).split_whitespace().count();
        assert!(words <= most, "{page} has {words} words, more than {most}");
        if page == "experiments/REFERENCE.md" {
            continue; // its tables are complete lists
        }
        let text = read(page);
        let mut cells = text.lines().filter(|line| line.starts_with('|')).flat_map(|row| row.split('|'));
        let long = cells.find(|cell| cell.split_whitespace().count() > 12);
        assert_eq!(long, None, "a cell of {page} has more than 12 words");
    }
    assert!(read("README.md").lines().count() <= 110);
}

#[test]
fn exceptions_are_only_for_commands_on_the_pages() {
    let pages = PAGES.map(|page| fs::read_to_string(root().join(page)).unwrap());
    let commands: Vec<String> = pages.iter().flat_map(|page| commands_in(page)).collect();
    for recipe in LOOKED_UP {
        let is_of = |command: &String| command.split_whitespace().nth(1) == Some(recipe);
        assert!(commands.iter().any(is_of), "{recipe}");
    }
    assert!(SMALLER.iter().all(|(of, _)| commands.iter().any(|command| command.contains(of))));
}
