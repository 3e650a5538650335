//! Asks a model one question: `cargo run --release --example say -- MODEL "Why is the sky blue?"`.
#![allow(clippy::print_stdout, reason = "an example shows what it gets")]

use std::io::Write;
use std::path::Path;

use anemone::{Event, Generation, Model, ModelOptions, Request, Session};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, question] = arguments.as_slice() else { return Err("give a model and a question".into()) };
    let began = std::time::Instant::now();
    let model = Model::open(Path::new(path), &ModelOptions::default())?;
    println!("opened in {:.1} s", began.elapsed().as_secs_f32());
    println!("{:#?}", model.info());
    let mut session = Session::new(model.into())?;
    let request = Request::new(Generation { max_tokens: Some(24), ..Generation::default() });
    let turn = session.say(question, &request, &mut |event| {
        if let Event::Text(text) = event {
            print!("{text}");
            let _ = std::io::stdout().flush();
        }
    })?;
    println!("\n{turn:?}");
    Ok(())
}
