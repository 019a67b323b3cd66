//! Renders tables and captions with templates as Markdown (pipe tables of GitHub and pandoc) and LaTeX (needs `booktabs` and `graphicx`),
//! and pages of them. Values are escaped, so that any text is shown literally.
use std::sync::LazyLock;

use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior, Value, context};
use words::{capitalised, one_line, with_minus};

use super::Format;
use crate::chart::{Chart, TEXT};
use crate::table::{Row, Table, are_numbers};

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(templates);

/// Returns the templates of tables and captions, to which a page can be added: `rows.md` prints [`of_rows`] with column names and remarks.
/// The ending of a template's name decides whether values are escaped for LaTeX or Markdown.
pub fn templates() -> Environment<'static> {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.set_keep_trailing_newline(true);
    templates.set_auto_escape_callback(|name| {
        AutoEscape::Custom(if is_latex(name) { "latex" } else { "markdown" })
    });
    templates.set_formatter(|out, state, value| {
        // texts may come from files: they must stay on one line and not control the terminal
        let text = || one_line(&value.to_string());
        let text = if value.is_safe() {
            value.to_string()
        } else if is_latex(state.name()) {
            latex(&text())
        } else {
            markdown(&text())
        };
        Ok(out.write_str(&text)?)
    });
    add_functions(&mut templates);
    for (name, source) in [
        ("caption.md", include_str!("templates/caption.md")),
        ("caption.tex", include_str!("templates/caption.tex")),
        ("grid.md", include_str!("templates/grid.md")),
        ("rows.md", include_str!("templates/rows.md")),
        ("table.md", include_str!("templates/table.md")),
        ("table.tex", include_str!("templates/table.tex")),
    ] {
        templates.add_template(name, source).expect("templates are part of the program, which is tested");
    }
    templates
}

fn add_functions(templates: &mut Environment<'_>) {
    templates.add_filter("capitalised", |text: String| capitalised(&text));
    templates.add_filter("key", |text: String| {
        // `\label` does not allow special characters
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect::<String>()
    });
    templates.add_filter("alternative", |text: String| {
        Value::from_safe_string(markdown(&one_line(&text)).replace(']', "\\]"))
    });
    templates.add_filter("signs", |text: String| {
        // at the start of a row these would be arguments of the preceding line break
        let guard = if text.starts_with(['[', '*']) { "{}" } else { "" };
        // before escaping, which adds hyphens
        let printed = latex(&with_minus(&one_line(&text))).replace('+', "$+$");
        Value::from_safe_string(format!("{guard}{printed}"))
    });
    templates.add_filter("comment", |text: String| Value::from_safe_string(one_line(&text)));
    templates.add_function("rule", |is_numeric: bool| if is_numeric { "--:" } else { "---" });
}

fn is_latex(name: &str) -> bool {
    name.ends_with(".tex")
}

pub(super) fn render(template: &str, values: Value) -> Result<String, Error> {
    TEMPLATES.get_template(template)?.render(values)
}

pub(super) fn of_table(table: &Table) -> Value {
    let rows = of_rows(&table.rows, table.columns.len());
    context! { corner => table.corner(), ..context! { ..rows, ..Value::from_serialize(table) } }
}

/// Returns rows as template values, with flags for numeric columns and row labels.
pub fn of_rows(rows: &[Row], columns: usize) -> Value {
    let column = |place: usize| are_numbers(rows.iter().filter_map(|row| row.cells.get(place)));
    let numeric: Vec<bool> = (0..columns).map(column).collect();
    context! { numeric, is_numbered => are_numbers(rows.iter().map(|row| &row.label)), rows }
}

pub(super) fn of_figure(chart: &Chart, stem: &str, shown: Format) -> Value {
    context! {
        picture => format!("{stem}.{}", shown.extension()),
        name => chart.name,
        label => chart.label,
        title => chart.title,
        notes => chart.notes,
        width => chart.width,
        float => if chart.width < TEXT { "figure" } else { "figure*" },
        stem,
    }
}

/// Escapes `text` so that Markdown shows it literally, HTML included.
fn markdown(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            _ if r"\|*_`<[$~".contains(character) => escaped.extend(['\\', character]),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Escapes `text` so that LaTeX prints it literally.
fn latex(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str(r"\textbackslash{}"),
            '~' => escaped.push_str(r"\textasciitilde{}"),
            '^' => escaped.push_str(r"\textasciicircum{}"),
            '\u{2212}' => escaped.push_str("$-$"),
            '\u{3bb}' => escaped.push_str(r"$\lambda$"),
            '\u{3c1}' => escaped.push_str(r"$\rho$"),
            '\u{3c4}' => escaped.push_str(r"$\tau$"),
            '<' | '>' | '|' => escaped.push_str(&format!("${character}$")),
            '\u{2265}' => escaped.push_str(r"$\geq$"),
            '\u{b1}' => escaped.push_str(r"$\pm$"),
            '\u{2013}' => escaped.push_str("--"),
            '{' | '}' | '$' | '&' | '#' | '_' | '%' => escaped.extend(['\\', character]),
            _ => escaped.push(character),
        }
    }
    escaped
}
