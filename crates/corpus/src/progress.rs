//! Progress of downloads on stderr.
use indicatif::{ProgressBar, ProgressStyle};

/// Returns a bar for one file after another; its message is the file name, its position the bytes.
pub fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:24} {bar:30} {bytes}/{total_bytes} {eta}");
    ProgressBar::no_length().with_style(style.expect("the template is well-formed"))
}
