//! The scalars of a YAML text, each with the keys that lead to it.

use saphyr_parser::{Event, Parser};

/// Events that are read at most: what a file within its bound of length can have.
const MOST_EVENTS: usize = 1 << 20;
/// Mappings within one another at most.
const MOST_DEPTH: usize = 32;

/// Every scalar that mappings alone lead to, in order. What lies in sequences is passed over, and aliases are not followed.
///
/// # Errors
/// What is wrong with the text, with its line.
pub(super) fn scalars(text: &str) -> Result<Vec<(Vec<String>, String)>, String> {
    let mut found = Vec::new();
    // The keys on the way, each with whether its value is to come.
    let mut path: Vec<Option<String>> = Vec::new();
    // How many sequences, or mappings that are keys or in sequences, are open.
    let mut skipped = 0usize;
    for event in Parser::new_from_str(text).take(MOST_EVENTS) {
        let (event, _) = event.map_err(|error| error.to_string())?;
        match event {
            Event::MappingStart(..) if skipped == 0 && path.last().is_none_or(Option::is_some) => {
                if path.len() == MOST_DEPTH {
                    return Err(format!("mappings lie more than {MOST_DEPTH} deep"));
                }
                path.push(None);
            }
            Event::MappingStart(..) | Event::SequenceStart(..) => skipped += 1,
            Event::SequenceEnd | Event::MappingEnd if skipped > 0 => {
                skipped -= 1;
                if skipped == 0 {
                    end(&mut path);
                }
            }
            Event::MappingEnd => {
                path.pop();
                end(&mut path);
            }
            Event::Scalar(value, ..) if skipped == 0 => match path.last_mut() {
                None => {}
                Some(key @ None) => *key = Some(value.into_owned()),
                Some(Some(_)) => {
                    found.push((path.iter().flatten().cloned().collect(), value.into_owned()));
                    end(&mut path);
                }
            },
            Event::Alias(_) if skipped == 0 => end(&mut path),
            _ => {}
        }
    }
    Ok(found)
}

/// A value has ended: the next scalar is a key. What ends where a key should stand is one.
fn end(path: &mut [Option<String>]) {
    if let Some(key) = path.last_mut() {
        *key = if key.is_none() { Some(String::new()) } else { None };
    }
}

#[cfg(test)]
mod tests {
    use super::scalars;

    #[test]
    fn scalars_have_the_keys_that_lead_to_them() {
        let text = "a:\n  b: 1\n  c: |\n    x: y\n    z\n  d: [1, {e: 2}]\n  f: \"g: h\"\n? [k]\n: v\ni: {j: k} # l\nm:\nn: 5\n";
        let found = scalars(text).unwrap();
        let found: Vec<(String, &str)> = found.iter().map(|(path, value)| (path.join("."), value.as_str())).collect();
        assert_eq!(
            found,
            [("a.b", "1"), ("a.c", "x: y\nz\n"), ("a.f", "g: h"), ("", "v"), ("i.j", "k"), ("m", ""), ("n", "5")]
                .map(|(path, value)| (path.to_owned(), value))
        );
    }

    #[test]
    fn broken_texts_and_bombs_end() {
        assert!(scalars("a: [").is_err());
        assert!(scalars(&"{a: ".repeat(100)).is_err());
        let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\nd: 1\n";
        assert_eq!(scalars(bomb).unwrap(), [(vec!["d".to_owned()], "1".to_owned())]);
        assert!(scalars(&"[".repeat(100_000)).is_ok() || scalars(&"[".repeat(100_000)).is_err());
    }
}
