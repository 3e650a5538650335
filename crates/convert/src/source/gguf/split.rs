//! Models split over several GGUF files: `NAME-00001-of-00003.gguf` and so on, all metadata in the first.

use std::path::{Path, PathBuf};

use super::{Gguf, MAX_PARTS};
use crate::error::{ConvertError, Result};

/// Opens `path`, and its siblings if it is a part.
pub(super) fn open(path: &Path) -> Result<Gguf> {
    let opened = Gguf::open_one(path)?;
    let count = part_count(&opened)?;
    if count <= 1 {
        return Ok(opened);
    }
    let paths = siblings(path, count).ok_or_else(|| {
        let problem = format!(
            "the file says that it is one of {count} parts, but its name does not end with -00001-of-{count:05}.gguf; \
             give the parts their names back"
        );
        ConvertError::malformed(path, problem)
    })?;
    if let Some(missing) = paths.iter().find(|path| !path.is_file()) {
        let problem = format!("this part of a model in {count} parts is missing; put it beside the others");
        return Err(ConvertError::NotACheckpoint { path: missing.clone(), problem });
    }

    let mut whole: Option<Gguf> = None;
    for (number, part_path) in paths.iter().enumerate() {
        let part = Gguf::open_one(part_path)?;
        let (found_count, found_number) = (part_count(&part)?, part.metadata.u32("split.no")?);
        if found_count != count || found_number != Some(number as u32) {
            let problem = format!(
                "the file says that it is part {} of {found_count}; its name says part {number} of {count}, counted from 0",
                found_number.map_or("?".to_owned(), |n| n.to_string())
            );
            return Err(ConvertError::malformed(part_path, problem));
        }
        match &mut whole {
            None => whole = Some(part),
            Some(whole) => {
                for info in part.tensors.into_list() {
                    if let Err(info) = whole.tensors.insert(info) {
                        let problem = format!("tensor {:?} is also in an earlier part", info.name);
                        return Err(ConvertError::malformed(part_path, problem));
                    }
                }
            }
        }
    }
    let mut whole = whole.expect("there is at least one part");
    if let Some(expected) = whole.metadata.u32("split.tensors.count")?
        && expected as usize != whole.tensors.len()
    {
        let problem = format!("the parts hold {} tensors; the first says {expected}", whole.tensors.len());
        return Err(ConvertError::malformed(path, problem));
    }
    whole.path = path.to_owned();
    whole.parts = paths;
    Ok(whole)
}

fn part_count(file: &Gguf) -> Result<u64> {
    let count = file.metadata.u32("split.count")?.map_or(1, u64::from);
    if count > MAX_PARTS {
        let problem = format!("{count}; at most {MAX_PARTS} parts are read");
        return Err(ConvertError::setting(&file.path, "split.count", problem));
    }
    Ok(count)
}

/// The paths of all parts, if the name of `path` fits the pattern and the count.
fn siblings(path: &Path, count: u64) -> Option<Vec<PathBuf>> {
    let stem = path.file_name()?.to_str()?.strip_suffix(".gguf")?;
    let (rest, of) = stem.rsplit_once("-of-")?;
    let (name, number) = rest.rsplit_once('-')?;
    let digits = |text: &str| text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(of) || !digits(number) || of.parse() != Ok(count) {
        return None;
    }
    Some((1..=count).map(|i| path.with_file_name(format!("{name}-{i:05}-of-{count:05}.gguf"))).collect())
}
