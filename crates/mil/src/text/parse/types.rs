//! Types.

use super::{Parser, Result};
use crate::decode::check_size;
use crate::text::lex::{Token, error};
use crate::types::{DType, Dim, TensorType, Type};

impl Parser<'_> {
    pub(super) fn ty(&mut self) -> Result<Type> {
        let Token::Word(word) = self.token else { return Err(self.unexpected("a type")) };
        match word {
            "tensor" => {
                self.next()?;
                Ok(Type::Tensor(self.tensor_type()?))
            }
            "state" => {
                self.next()?;
                self.mark('<')?;
                let at = self.at;
                let inner = self.nested(Self::ty)?;
                self.mark('>')?;
                match inner {
                    Type::Tensor(t) => Ok(Type::State(t)),
                    other => Err(error(self.text, at, "a tensor type", other.to_string())),
                }
            }
            "list" => {
                self.next()?;
                self.mark('<')?;
                let element = self.nested(Self::ty)?;
                self.mark(',')?;
                let length = match self.extent()? {
                    Dim::Known(n) => Some(n),
                    Dim::Unknown => None,
                };
                self.mark('>')?;
                Ok(Type::List(Box::new(element), length))
            }
            "tuple" => {
                self.next()?;
                self.mark('<')?;
                Ok(Type::Tuple(self.nested(|p| p.list('>', Self::ty))?))
            }
            "dict" => {
                self.next()?;
                self.mark('<')?;
                let key = self.nested(Self::ty)?;
                self.mark(',')?;
                let value = self.nested(Self::ty)?;
                self.mark('>')?;
                Ok(Type::Dictionary(Box::new(key), Box::new(value)))
            }
            _ => match DType::from_name(word) {
                Some(dtype) => {
                    self.next()?;
                    Ok(Type::Tensor(TensorType { dtype, shape: Some(Vec::new()) }))
                }
                None => Err(self.unexpected("a type")),
            },
        }
    }

    /// `<fp16, [1, ?]>`
    fn tensor_type(&mut self) -> Result<TensorType> {
        self.mark('<')?;
        let dtype = match self.token {
            Token::Word(word) => DType::from_name(word),
            _ => None,
        };
        let dtype = dtype.ok_or_else(|| self.unexpected("an element type"))?;
        self.next()?;
        self.mark(',')?;
        let at = self.at;
        self.mark('[')?;
        let shape = if self.token == Token::Ellipsis {
            self.next()?;
            self.mark(']')?;
            None
        } else {
            Some(self.list(']', Self::extent)?)
        };
        if let Some(Err(fault)) = shape.as_deref().map(check_size) {
            return Err(error(self.text, at, fault.expected, fault.found));
        }
        self.mark('>')?;
        Ok(TensorType { dtype, shape })
    }

    fn extent(&mut self) -> Result<Dim> {
        let extent = match &self.token {
            Token::Mark('?') => Some(Dim::Unknown),
            Token::Number(n) if !n.starts_with(['-', '+']) => n.parse().ok().map(Dim::Known),
            _ => None,
        };
        let extent = extent.ok_or_else(|| self.unexpected("an extent or `?`"))?;
        self.next()?;
        Ok(extent)
    }
}
