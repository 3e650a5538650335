//! Constants.

use super::{Parser, Result};
use crate::constant::{BlobRef, Const, TensorConst};
use crate::decode::check_size;
use crate::text::elements::Packer;
use crate::text::lex::{Token, error};
use crate::text::literal::is_open;
use crate::types::{DType, Dim, Shape, StaticType, TensorType, Type};

impl Parser<'_> {
    /// A constant with its type: `tensor<int32, [2]>([1, 2])`.
    pub(super) fn constant(&mut self) -> Result<Const> {
        let ty = self.ty()?;
        self.mark('(')?;
        let value = self.content(&ty)?;
        self.mark(')')?;
        Ok(value)
    }

    /// A constant whose type is known from around it, or written all the same.
    fn member(&mut self, ty: &Type) -> Result<Const> {
        match self.token {
            Token::Word(word) if !matches!(word, "BLOBFILE" | "true" | "false" | "inf" | "nan" | "bits") => {
                self.nested(Self::constant)
            }
            _ => self.nested(|p| p.content(ty)),
        }
    }

    fn content(&mut self, ty: &Type) -> Result<Const> {
        match ty {
            Type::Tensor(t) if self.token == Token::Word("BLOBFILE") => self.blob(t),
            Type::Tensor(t) => self.tensor(t),
            Type::List(element, length) => {
                let at = self.at;
                self.mark('[')?;
                let items = self.list(']', |p| p.member(element))?;
                match length {
                    Some(n) if *n != items.len() => {
                        Err(error(self.text, at, format!("{n} elements, as the type says"), items.len().to_string()))
                    }
                    _ => Ok(Const::List((**element).clone(), items)),
                }
            }
            Type::Tuple(types) => {
                let at = self.at;
                self.mark('(')?;
                let mut given = 0;
                let members = self.list(')', |p| {
                    let ty = types.get(given).ok_or_else(|| p.unexpected("`)`: the type has no more members"))?;
                    given += 1;
                    p.member(ty)
                })?;
                if given != types.len() {
                    return Err(error(
                        self.text,
                        at,
                        format!("{} members, as the type says", types.len()),
                        given.to_string(),
                    ));
                }
                Ok(Const::Tuple(members))
            }
            Type::Dictionary(key, value) => {
                self.mark('{')?;
                let entries = self.list('}', |p| {
                    p.mark('{')?;
                    let k = p.member(key)?;
                    p.mark(',')?;
                    let v = p.member(value)?;
                    p.mark('}')?;
                    Ok((k, v))
                })?;
                Ok(Const::Dictionary((**key).clone(), (**value).clone(), entries))
            }
            Type::State(_) => Err(self.unexpected("a constant; a state is none")),
        }
    }

    /// `BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(64))`
    fn blob(&mut self, ty: &TensorType) -> Result<Const> {
        let at = self.at;
        self.next()?;
        self.mark('(')?;
        self.word("path")?;
        self.mark('=')?;
        let path_at = self.at;
        let path = self.nested(Self::constant)?;
        let file = path.str().ok_or_else(|| error(self.text, path_at, "a string", path.ty().to_string()))?.to_owned();
        self.mark(',')?;
        self.word("offset")?;
        self.mark('=')?;
        let offset_at = self.at;
        let offset = match self.nested(Self::constant)? {
            Const::Tensor(t) if t.ty == StaticType::new(DType::U64, &[]) => {
                t.ints(0..1).next().expect("one element") as u64
            }
            other => return Err(error(self.text, offset_at, "a uint64", other.ty().to_string())),
        };
        self.mark(')')?;
        let Some(ty) = ty.to_static() else {
            return Err(error(self.text, at, "a tensor type of fixed shape for a blob", ty.to_string()));
        };
        let (dtype, bytes) = self
            .blobs
            .blob(&file, offset)
            .map_err(|why| error(self.text, at, format!("a blob at offset {offset} of `{file}`"), why))?;
        if dtype != ty.dtype {
            return Err(error(self.text, at, format!("a blob of {}", ty.dtype), dtype.name()));
        }
        let mut tensor =
            TensorConst::new(ty, bytes).map_err(|e| error(self.text, at, "a blob that fits", e.to_string()))?;
        tensor.blob = Some(BlobRef { file, offset });
        Ok(Const::Tensor(tensor))
    }

    fn tensor(&mut self, ty: &TensorType) -> Result<Const> {
        let at = self.at;
        let Some(declared) = &ty.shape else {
            return Err(self.unexpected("a constant of a type whose rank is known"));
        };
        let mut elements = Elements::new(ty.dtype);
        let shape = if declared.contains(&Dim::Known(0)) && !is_open(ty) {
            // All that can be told of it is in its type.
            self.mark('[')?;
            self.mark(']')?;
            ty.to_static().expect("no axis is open").shape
        } else {
            let mut found = vec![None; declared.len()];
            self.axis(declared, 0, &mut found, &mut elements)?;
            found.into_iter().map(|n| n.unwrap_or(0)).collect::<Shape>()
        };
        let dims: Vec<Dim> = shape.iter().map(|&n| Dim::Known(n)).collect();
        if let Err(fault) = check_size(&dims) {
            return Err(error(self.text, at, fault.expected, fault.found));
        }
        let ty = StaticType { dtype: ty.dtype, shape };
        match elements {
            Elements::Strings(strings) => Ok(Const::texts(ty.shape, strings)),
            Elements::Packed(packer) => TensorConst::new(ty, packer.finish().into())
                .map(Const::Tensor)
                .map_err(|e| error(self.text, at, "as many elements as the type says", e.to_string())),
        }
    }

    /// The elements along axis `depth`. `found` has the extents of axes that were read once.
    fn axis(
        &mut self,
        declared: &[Dim],
        depth: usize,
        found: &mut [Option<usize>],
        elements: &mut Elements,
    ) -> Result<()> {
        if depth == declared.len() {
            return self.element(elements);
        }
        let at = self.at;
        self.mark('[')?;
        let count = self.list(']', |p| p.axis(declared, depth + 1, found, elements))?.len();
        let expected = match declared[depth] {
            Dim::Known(n) => Some(n),
            Dim::Unknown => found[depth],
        };
        if let Some(n) = expected
            && n != count
        {
            return Err(error(self.text, at, format!("{n} elements in this axis"), count.to_string()));
        }
        found[depth] = Some(count);
        Ok(())
    }

    fn element(&mut self, elements: &mut Elements) -> Result<()> {
        let at = self.at;
        match elements {
            Elements::Strings(strings) => match self.next()? {
                Token::Text(t) => strings.push(t.into_owned()),
                other => return Err(error(self.text, at, "a string", other.describe())),
            },
            Elements::Packed(packer) => {
                let dtype = packer.dtype();
                let expected = || format!("an element of {dtype}");
                let fits = match self.next()? {
                    Token::Word("bits") => {
                        self.mark('(')?;
                        let raw = match &self.token {
                            Token::Number(n) => n.strip_prefix("0x").and_then(|n| u64::from_str_radix(n, 16).ok()),
                            _ => None,
                        };
                        let raw = raw.ok_or_else(|| self.unexpected("bits such as `0x7e01`"))?;
                        self.next()?;
                        self.mark(')')?;
                        packer.push_bits(raw)
                    }
                    Token::Word(text) | Token::Number(text) => packer.push(text),
                    other => return Err(error(self.text, at, expected(), other.describe())),
                };
                if !fits {
                    let found = self.text[at..].split([',', ']', ')']).next().unwrap_or_default();
                    let found: String = found.chars().take(60).collect();
                    return Err(error(self.text, at, expected(), format!("`{}`", found.trim_end())));
                }
            }
        }
        Ok(())
    }
}

/// Elements that were read so far.
enum Elements {
    Strings(Vec<String>),
    Packed(Packer),
}

impl Elements {
    fn new(dtype: DType) -> Self {
        match dtype {
            DType::String => Elements::Strings(Vec::new()),
            _ => Elements::Packed(Packer::new(dtype)),
        }
    }
}
