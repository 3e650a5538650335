//! Guesses that are checked in one call change no answer; and calls of any number of tokens compute what single ones do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anemone::{Generation, Model, ModelOptions, PackageRunner, Request, Runner, Session, Speculation};

fn tiny() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../goldens/tiny/model")
}

fn open(path: &Path, speculation: Speculation, threads: usize) -> Model {
    Model::open(path, &ModelOptions { speculation, threads: Some(threads), ..ModelOptions::default() }).unwrap()
}

/// Some of a text that goes in circles, and then not.
fn tokens(n: usize, vocabulary: usize) -> Vec<u32> {
    (0..n).map(|i| (if i % 23 < 15 { 5 + i % 5 * 11 } else { 3 + i * i % 97 }) % vocabulary).map(|t| t as u32).collect()
}

fn checked_calls_give_the_bits_of_single_ones(path: &Path) {
    for threads in [1, 2] {
        let speculation = Speculation::Always(Speculation::MOST);
        let options = ModelOptions { speculation, threads: Some(threads), ..ModelOptions::default() };
        let runner = PackageRunner::open(path, &options).unwrap();
        assert_eq!(runner.each(), Speculation::MOST + 1);
        let vocabulary = runner.vocabulary();
        let (mut single, mut several) = (runner.new_state().unwrap(), runner.new_state().unwrap());
        let all = tokens(60, vocabulary);
        let mut position = 0;
        for width in [2, 3, 16, 5, 8, 15, 4, 7] {
            let now = &all[position..position + width];
            let mut expected = vec![0.0; width * vocabulary];
            for (i, (logits, &token)) in expected.chunks_exact_mut(vocabulary).zip(now).enumerate() {
                runner.feed(&mut single, position + i, &[token], logits).unwrap();
            }
            let mut found = vec![0.0; width * vocabulary];
            runner.feed_each(&mut several, position, now, &mut found).unwrap();
            assert!(found == expected, "{width} tokens at {position}, {threads} threads");
            // And so do calls of which the last logits alone are wanted.
            let mut last = vec![0.0; vocabulary];
            runner.feed(&mut several, position, now, &mut last).unwrap();
            assert!(last == expected[(width - 1) * vocabulary..], "{width} tokens, {threads} threads");
            position += width;
        }
    }
}

fn answers_are_the_same(path: &Path, message: &str, length: usize) {
    let plain = Generation { max_tokens: Some(length), ..Generation::default() };
    let drawn = Generation { temperature: 0.7, top_p: 0.9, seed: Some(11), repetition_penalty: 1.05, ..plain.clone() };
    let mut answers: Vec<Vec<u32>> = Vec::new();
    for speculation in [Speculation::Off, Speculation::Always(3), Speculation::Always(15), Speculation::Auto] {
        let model = Arc::new(open(path, speculation, 2));
        for (index, generation) in [&plain, &drawn].into_iter().enumerate() {
            let mut session = Session::new(Arc::clone(&model)).unwrap();
            let turn = session.say(message, &Request::new(generation.clone()), &mut |_| {}).unwrap();
            assert!(turn.tokens_accepted <= turn.tokens_drafted);
            match speculation {
                Speculation::Off => {
                    assert_eq!(turn.tokens_drafted, 0);
                    answers.push(session.transcript().to_vec());
                }
                _ => assert_eq!(session.transcript(), answers[index], "{speculation:?}, {generation:?}"),
            }
            if matches!(speculation, Speculation::Always(_)) && index == 0 {
                assert!(turn.tokens_accepted > 0, "{speculation:?}: {} drafted", turn.tokens_drafted);
            }
            // The cache holds what it says it does: the next turn is the same too.
            let next = session.say("And then?", &Request::new(generation.clone()), &mut |_| {}).unwrap();
            assert!(next.tokens_reused > 0);
        }
    }
}

#[test]
fn the_tiny_model_gives_the_same_bits() {
    checked_calls_give_the_bits_of_single_ones(&tiny());
}

#[test]
fn the_tiny_model_gives_the_same_answers() {
    answers_are_the_same(&tiny(), "la la la la la la la la", 120);
}
