//! NumPy's `.npy` files, by the format that NumPy documents (`numpy.lib.format`, versions 1 to 3).

use anyhow::{Context, Result, bail};

use crate::values::{Kind, Values};

const MAGIC: &[u8] = b"\x93NUMPY";
/// A header may be this long, in bytes.
const MAX_HEADER: usize = 1 << 16;

/// Reads a whole file.
///
/// # Errors
/// If it is no such file, or of a type that is not taken.
pub fn read(bytes: &[u8]) -> Result<Values<'_>> {
    let rest = bytes.strip_prefix(MAGIC).context("no NumPy file: it does not begin as one")?;
    let (length, rest) = match rest {
        [1, _, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
        [2 | 3, _, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
        [version, ..] => bail!("version {version} of NumPy files; expected 1, 2 or 3"),
        [] => bail!("a NumPy file that ends in its first bytes"),
    };
    if length > MAX_HEADER {
        bail!("a header of {length} bytes; at most {MAX_HEADER} are read");
    }
    if length > rest.len() {
        let left = rest.len();
        bail!("a header of {length} bytes, of which {left} are there: the file is cut short; write or copy it again");
    }
    let (header, data) = rest.split_at(length);
    let header = Header::parse(std::str::from_utf8(header).context("a header that is no text")?)?;
    let size = header.kind.bytes();
    let expected = header.shape.iter().try_fold(size, |all, &n| all.checked_mul(n));
    if expected != Some(data.len()) {
        let expected = expected.map_or_else(|| "more than there can be".to_owned(), |n| n.to_string());
        bail!("{} bytes of elements; shape {:?} asks for {expected}", data.len(), header.shape);
    }
    let mut bytes = std::borrow::Cow::Borrowed(data);
    if header.swapped && size > 1 {
        bytes.to_mut().chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    if header.columns_first && header.shape.len() > 1 {
        bytes = row_major(&bytes, &header.shape, size).into();
    }
    Ok(Values { kind: header.kind, shape: header.shape, bytes })
}

struct Header {
    kind: Kind,
    swapped: bool,
    columns_first: bool,
    shape: Vec<usize>,
}

impl Header {
    /// Reads the header, a Python dictionary such as `{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }`.
    fn parse(text: &str) -> Result<Header> {
        let after = |key: &str| {
            let quoted = [format!("'{key}'"), format!("\"{key}\"")];
            let rest = quoted.iter().find_map(|q| Some(&text[text.find(q.as_str())? + q.len()..]));
            let rest = rest.and_then(|rest| rest.trim_start().strip_prefix(':')).map(str::trim_start);
            rest.with_context(|| format!("a header without `{key}`: {}", text.trim()))
        };
        let descr = after("descr")?;
        let descr = descr.strip_prefix(['\'', '"']).and_then(|d| d.split(['\'', '"']).next());
        let descr = descr.context("a header whose `descr` is no simple type; records are not taken")?;
        let (order, code) = descr.split_at(descr.chars().next().map_or(0, char::len_utf8));
        let kind = match code {
            "b1" => Kind::Bool,
            "i1" => Kind::I8,
            "i2" => Kind::I16,
            "i4" => Kind::I32,
            "i8" => Kind::I64,
            "u1" => Kind::U8,
            "u2" => Kind::U16,
            "u4" => Kind::U32,
            "u8" => Kind::U64,
            "f2" => Kind::F16,
            "f4" => Kind::F32,
            "f8" => Kind::F64,
            _ => bail!("elements of NumPy's type {descr:?}; expected bool, int8–64, uint8–64 or float16–64"),
        };
        let swapped = match order {
            "<" | "|" => false,
            ">" => true,
            "=" => cfg!(target_endian = "big"),
            _ => bail!("elements of NumPy's type {descr:?}, whose order of bytes is not known"),
        };
        let order = after("fortran_order")?;
        let columns_first = match (order.starts_with("True"), order.starts_with("False")) {
            (false, false) => bail!("a header whose `fortran_order` is neither True nor False"),
            (is_true, _) => is_true,
        };
        let shape = after("shape")?.strip_prefix('(').and_then(|shape| shape.split_once(')'));
        let (shape, _) = shape.context("a header whose `shape` is no tuple")?;
        let extents = shape.split(',').map(str::trim).filter(|n| !n.is_empty());
        let shape = extents.map(|n| n.parse().with_context(|| format!("the extent {n:?}"))).collect::<Result<_>>()?;
        Ok(Header { kind, swapped, columns_first, shape })
    }
}

/// Elements that lie with the first axis innermost, in row-major order.
fn row_major(from: &[u8], shape: &[usize], size: usize) -> Vec<u8> {
    let mut to = Vec::with_capacity(from.len());
    let mut index = vec![0; shape.len()];
    for _ in 0..from.len() / size {
        let at = index.iter().zip(shape).rev().fold(0, |at, (i, n)| at * n + i);
        to.extend_from_slice(&from[at * size..(at + 1) * size]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    to
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_file_that_is_cut_short_says_so() {
        let error = super::read(b"\x93NUMPY\x01\x00\x76\x00{").unwrap_err().to_string();
        assert!(error.contains("118 bytes, of which 1 are there") && error.contains("cut short"), "{error}");
    }

    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn what_numpy_writes() {
        let data: Vec<u8> = [1.0f32, 2.0, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }          \n";
        let bytes = file(text, &data);
        let values = read(&bytes).unwrap();
        assert_eq!((values.kind, values.shape.as_slice(), &*values.bytes), (Kind::F32, &[1, 3][..], &data[..]));
        let bytes = file("{'descr': '|b1', 'fortran_order': False, 'shape': (), }", &[1]);
        assert_eq!(read(&bytes).unwrap().shape, [0; 0]);
        let bytes = file("{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", &[7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((read(&bytes).unwrap().kind, read(&bytes).unwrap().shape), (Kind::I64, vec![1]));
    }

    #[test]
    fn other_orders_of_bytes_and_axes() {
        let bytes = file("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", &[0, 1, 2, 0]);
        assert_eq!(&*read(&bytes).unwrap().bytes, [1, 0, 0, 2]);
        let bytes = file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", &[0, 10, 1, 11, 2, 12]);
        assert_eq!(&*read(&bytes).unwrap().bytes, [0, 1, 2, 10, 11, 12]);
    }

    #[test]
    fn broken_files_are_refused_with_what_is_wrong() {
        let good = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }";
        for (bytes, text) in [
            (Vec::new(), "does not begin"),
            (b"\x93NUMPY".to_vec(), "ends in its first bytes"),
            (b"\x93NUMPY\x09\x00".to_vec(), "version 9"),
            (b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(), "a header of"),
            (file(good, &[0; 11]), "asks for 12"),
            (file(&good.replace("1, 3", "4294967296, 4294967296"), &[]), "more than there can be"),
            (file(&good.replace("<f4", "<c8"), &[]), "<c8"),
            (file(&good.replace("'<f4'", "[('a', '<f4')]"), &[]), "records"),
            (file(&good.replace("shape", "form"), &[]), "without `shape`"),
            (file(&good.replace("1, 3", "1, x"), &[]), "\"x\""),
            (file(&good.replace("False", "Maybe"), &[]), "neither True nor False"),
        ] {
            let error = read(&bytes).unwrap_err();
            assert!(format!("{error:#}").contains(text), "{text}: {error:#}");
        }
    }
}
