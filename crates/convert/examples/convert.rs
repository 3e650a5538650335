//! Converts a checkpoint: `cargo run --release -p anemone-convert --example convert -- SOURCE DEST [SCHEME]`.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::path::Path;

use anemone_convert::{Conversion, Options, Source, Watch, quantize};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, source, dest, rest @ ..] = args.as_slice() else {
        return Err("usage: convert SOURCE DEST [SCHEME]".into());
    };
    let scheme = rest.first().map_or("f16", String::as_str);
    let weights = quantize::find(scheme).ok_or("no such scheme")?;
    let source = Source::open(source)?;
    let conversion = Conversion::new(&source, &Options { weights, ..Options::default() })?;
    println!("{:?}", conversion.estimate());
    conversion.run(Path::new(dest), &Watch::default())?;
    Ok(())
}
