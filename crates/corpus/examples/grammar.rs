//! Prints sentence pairs of the demo language, with a tab between source and target: `grammar <pairs> <seed>`.
use std::io::Write;

use corpus::grammar::{Domain, generate};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let pairs = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let seed = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let mut out = std::io::stdout().lock();
    for sample in generate(Domain::Standard, pairs, seed) {
        writeln!(out, "{}\t{}", sample.source, sample.target)?;
    }
    Ok(())
}
