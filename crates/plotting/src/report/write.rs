//! Renders pages from templates and writes them.
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use minijinja::{Environment, UndefinedBehavior, Value, context, escape_formatter};
use sha2::{Digest, Sha256};
use words::{one_line, visible, with_minus};

use crate::report::args::Args;
use crate::report::gather::{Comparison, Gathered};
use crate::report::pages;
use crate::report::tables::sentence;

const STYLE: &str = include_str!("../../templates/report.css");
const SCRIPT: &str = include_str!("../../templates/report.js");
const TEMPLATES: [(&str, &str); 6] = [
    ("base.html", include_str!("../../templates/base.html")),
    ("macros.html", include_str!("../../templates/macros.html")),
    ("subject.html", include_str!("../../templates/subject.html")),
    ("index.html", include_str!("../../templates/index.html")),
    ("comparison.html", include_str!("../../templates/comparison.html")),
    ("look.html", include_str!("../../templates/look.html")),
];

/// Style and script that only the page of a text has.
const OF_LOOK: [&str; 2] =
    [include_str!("../../templates/look.css"), include_str!("../../templates/look.js")];

pub struct Writer<'a> {
    args: &'a Args,
    templates: Environment<'static>,
}

impl<'a> Writer<'a> {
    pub fn new(args: &'a Args) -> Result<Self> {
        Ok(Self { args, templates: templates(STYLE, SCRIPT)? })
    }

    /// Writes the report of a setup to `out` or next to its results.
    pub fn subject(&self, gathered: &Gathered, out: Option<&Path>) -> Result<()> {
        let path = self.args.folders.results.join(&gathered.subject.name).join("report.html");
        let page = pages::subject(gathered);
        let has_index = context! { has_index => self.args.all };
        self.write("subject.html", context! { ..page, ..has_index }, out.map_or(path, Path::to_owned))
    }

    /// Writes the page that links to all reports.
    pub fn index(&self, all: &[Gathered]) -> Result<()> {
        self.write("index.html", pages::index(all), self.args.folders.results.join("report.html"))
    }

    /// Writes the page that compares all setups.
    pub fn comparison(&self, comparisons: &[Comparison], faults: &[String]) -> Result<()> {
        let path = self.args.folders.results.join("comparison.html");
        self.write("comparison.html", pages::comparison(comparisons, faults), path)
    }

    fn write(&self, template: &str, page: Value, path: PathBuf) -> Result<()> {
        write(&self.templates, template, page, &path)?;
        words::say!("wrote {}", one_line(&path.display().to_string()));
        Ok(())
    }
}

pub fn look(page: Value, path: &Path) -> Result<()> {
    let [style, script] = OF_LOOK;
    write(&templates(&[STYLE, style].concat(), &[SCRIPT, script].concat())?, "look.html", page, path)
}

/// Returns all templates for pages with this style and script.
fn templates(style: &str, script: &str) -> Result<Environment<'static>> {
    let mut templates = Environment::new();
    // an unknown name in a template is an error instead of empty
    templates.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    // texts come from files and must not control what displays them
    templates.set_formatter(|out, state, value| match value.as_str().filter(|_| !value.is_safe()) {
        Some(text) => escape_formatter(out, state, &visible(text).into()),
        None => escape_formatter(out, state, value),
    });
    templates.add_filter("sentence", |text: &str| sentence(text));
    templates.add_filter("with_minus", |text: &str| with_minus(text));
    for (name, source) in TEMPLATES {
        templates.add_template(name, source)?;
    }
    templates.add_global("style", Value::from_safe_string(style.to_owned()));
    templates.add_global("script", Value::from_safe_string(script.to_owned()));
    templates.add_global("font", Value::from_safe_string(BASE64_STANDARD.encode(charts::FONT)));
    // only this script runs, whatever texts the page contains
    let hash = BASE64_STANDARD.encode(Sha256::digest(script));
    templates.add_global("script_hash", Value::from_safe_string(hash));
    templates.add_global("version", env!("CARGO_PKG_VERSION"));
    Ok(templates)
}

fn write(templates: &Environment<'_>, template: &str, page: Value, path: &Path) -> Result<()> {
    let context = || format!("cannot write `{}`", path.display());
    let html = templates.get_template(template).and_then(|found| found.render(page)).with_context(context)?;
    std::fs::create_dir_all(durable::parent(path)).with_context(context)?;
    durable::write(path, html).with_context(context)?;
    Ok(())
}
