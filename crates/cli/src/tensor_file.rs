//! Named tensors in files: safetensors.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;

use anemone_mil::Tensor;
use anyhow::{Context, Result, anyhow, bail};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::values::{Kind, Values, encode};

/// What a safetensors file holds.
pub struct TensorFile<'a> {
    /// Tensors by name.
    pub tensors: BTreeMap<String, Values<'a>>,
    /// The header's own entries.
    pub metadata: HashMap<String, String>,
}

const KINDS: [(Dtype, Kind); 13] = [
    (Dtype::BOOL, Kind::Bool),
    (Dtype::I8, Kind::I8),
    (Dtype::I16, Kind::I16),
    (Dtype::I32, Kind::I32),
    (Dtype::I64, Kind::I64),
    (Dtype::U8, Kind::U8),
    (Dtype::U16, Kind::U16),
    (Dtype::U32, Kind::U32),
    (Dtype::U64, Kind::U64),
    (Dtype::F16, Kind::F16),
    (Dtype::BF16, Kind::BF16),
    (Dtype::F32, Kind::F32),
    (Dtype::F64, Kind::F64),
];

/// Reads the content of a file; the tensors borrow from it.
///
/// # Errors
/// If it is no such file, or has elements of a type that is not taken.
pub fn read(bytes: &[u8]) -> Result<TensorFile<'_>> {
    let wrong = |error| anyhow!("no safetensors file: {error}; if it was one, copy or write it again");
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(wrong)?;
    let metadata = header.metadata().clone().unwrap_or_default();
    let mut tensors = BTreeMap::new();
    for (name, view) in SafeTensors::deserialize(bytes).map_err(wrong)?.tensors() {
        let Some((_, kind)) = KINDS.iter().find(|(dtype, _)| *dtype == view.dtype()) else {
            bail!("tensor `{name}` has elements of type {:?}, which is not taken", view.dtype());
        };
        let values = Values { kind: *kind, shape: view.shape().to_vec(), bytes: view.data().into() };
        tensors.insert(name, values);
    }
    Ok(TensorFile { tensors, metadata })
}

/// Writes tensors, each in its declared type. The file appears complete or not at all; one of that name is replaced.
///
/// # Errors
/// If a type cannot be written, or the system refuses.
pub fn write(path: &Path, tensors: &BTreeMap<String, Tensor>, metadata: HashMap<String, String>) -> Result<()> {
    let mut encoded = Vec::with_capacity(tensors.len());
    for (name, tensor) in tensors {
        let encoding = encode(tensor.ty.dtype, tensor.data.view(tensor.data.len()));
        let (kind, bytes) = encoding.with_context(|| format!("`{name}`"))?;
        let dtype = KINDS.iter().find(|(_, k)| *k == kind).map(|(dtype, _)| *dtype).expect("the table has every kind");
        encoded.push((name, dtype, tensor.ty.shape.to_vec(), bytes));
    }
    let mut views = Vec::with_capacity(encoded.len());
    for (name, dtype, shape, bytes) in &encoded {
        let view = TensorView::new(*dtype, shape.clone(), bytes).with_context(|| format!("`{name}`"))?;
        views.push((name.as_str(), view));
    }
    let metadata = (!metadata.is_empty()).then_some(metadata);
    let bytes = safetensors::serialize(views, metadata).context("cannot be written as safetensors")?;
    replace(path, &bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Refuses a path at which no file can be.
///
/// # Errors
/// If it is a folder, or the folder that it should be in does not exist.
pub fn check_place(path: &Path) -> Result<()> {
    if path.is_dir() {
        bail!("{} is a folder; give the name of a file", path.display());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        bail!("{}: there is no folder {} to write it in", path.display(), folder.display());
    }
    Ok(())
}

/// Writes a file under another name, then gives it its own. What is no file, such as `/dev/null`, is written to as it is;
/// a link stays one.
fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let there = path.metadata();
    if there.as_ref().is_ok_and(|metadata| !metadata.is_file()) {
        return Ok(std::fs::File::options().write(true).open(path)?.write_all(bytes)?);
    }
    let real = if there.is_ok() { path.canonicalize()? } else { path.to_owned() };
    let path = real.as_path();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.prefix(".anemone-").tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use anemone_mil::types::DType;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_not_replaced_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let (link, file) = (folder.path().join("link"), folder.path().join("file"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        assert!(replace(folder.path(), b"new").is_err());
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| std::fs::read(&pipe).unwrap());
            replace(&pipe, b"through").unwrap();
            assert_eq!(reader.join().unwrap(), b"through");
        });
    }

    #[test]
    fn tensors_are_read_as_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.safetensors");
        std::fs::write(&path, "what was there before").unwrap();
        let tensors = BTreeMap::from([
            ("half".to_owned(), Tensor::floats(DType::F16, &[1, 2], &[0.5, -1.0])),
            ("wide".to_owned(), Tensor::floats(DType::F64, &[1], &[2.0])),
            ("none".to_owned(), Tensor::ints(DType::I32, &[0], &[])),
        ]);
        write(&path, &tensors, HashMap::from([("a".into(), "b".into())])).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let file = read(&bytes).unwrap();
        assert_eq!(file.metadata["a"], "b");
        let kinds: Vec<_> = file.tensors.iter().map(|(n, v)| (n.as_str(), v.kind, v.shape.as_slice())).collect();
        assert_eq!(
            kinds,
            [("half", Kind::F16, &[1, 2][..]), ("none", Kind::I32, &[0][..]), ("wide", Kind::F64, &[1][..])]
        );
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn other_files_are_refused() {
        for bytes in [&b""[..], b"GGUF\0\0\0\0\0\0", &[0xff; 64], b"\x02\0\0\0\0\0\0\0[]"] {
            let error = read(bytes).err().unwrap();
            assert!(format!("{error:#}").contains("no safetensors file"), "{error:#}");
        }
    }
}
