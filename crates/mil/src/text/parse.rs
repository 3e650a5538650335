//! From text to a program.

use std::collections::BTreeMap;

use super::lex::{Lexer, Token, error};
use super::print::opset_word;
use crate::constant::Const;
use crate::decode::{Blobs, MAX_DEPTH};
use crate::error::MilError;
use crate::names::Names;
use crate::port::Ports;
use crate::program::{Argument, Block, Function, Kind, Operation, Program, ValueId};
use crate::types::{DType, Opset, Type};

mod constant;
mod types;

pub(super) type Result<T> = std::result::Result<T, MilError>;

pub(super) fn program(text: &str, blobs: &dyn Blobs) -> Result<Program> {
    let mut p = Parser::new(text, blobs)?;
    p.word("program")?;
    p.mark('(')?;
    let version = p.version()?;
    p.mark(')')?;
    let mut program = Program { version, attributes: p.attributes()?, functions: BTreeMap::new() };
    p.mark('{')?;
    while !p.eat('}')? {
        let at = p.at;
        let (name, function) = p.function()?;
        if program.functions.contains_key(&name) {
            return Err(error(text, at, "a function of another name", format!("another `{name}`")));
        }
        program.functions.insert(name, function);
    }
    match p.token {
        Token::End => Ok(program),
        _ => Err(p.unexpected("the end of the text")),
    }
}

pub(super) struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    /// The present token and where it begins.
    token: Token<'a>,
    at: usize,
    blobs: &'a dyn Blobs,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, blobs: &'a dyn Blobs) -> Result<Self> {
        let mut lexer = Lexer::new(text);
        let (at, token) = lexer.next()?;
        Ok(Self { text, lexer, token, at, blobs, depth: 0 })
    }

    fn unexpected(&self, expected: &str) -> MilError {
        error(self.text, self.at, expected, self.token.describe())
    }

    /// The present token; the next one becomes present.
    fn next(&mut self) -> Result<Token<'a>> {
        let (at, token) = self.lexer.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.token, token))
    }

    /// The token after the present one.
    fn peek(&self) -> Result<Token<'a>> {
        Ok(self.lexer.clone().next()?.1)
    }

    fn is(&self, mark: char) -> bool {
        self.token == Token::Mark(mark)
    }

    fn eat(&mut self, mark: char) -> Result<bool> {
        let is = self.is(mark);
        if is {
            self.next()?;
        }
        Ok(is)
    }

    fn mark(&mut self, mark: char) -> Result<()> {
        if self.eat(mark)? { Ok(()) } else { Err(self.unexpected(&format!("`{mark}`"))) }
    }

    fn word(&mut self, word: &str) -> Result<()> {
        if self.token == Token::Word(word) {
            self.next()?;
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{word}`")))
        }
    }

    /// A name; quoted, if it is no identifier.
    fn name(&mut self, what: &str) -> Result<String> {
        match &self.token {
            Token::Word(_) | Token::Text(_) => match self.next()? {
                Token::Word(w) => Ok(w.to_owned()),
                Token::Text(t) => Ok(t.into_owned()),
                _ => unreachable!("the token was a word or a text"),
            },
            _ => Err(self.unexpected(what)),
        }
    }

    /// `open item, item, … close`, with the opening mark read already.
    fn list<T>(&mut self, close: char, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = Vec::new();
        if self.eat(close)? {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(close)? {
                return Ok(items);
            }
            if !self.eat(',')? {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
        }
    }

    /// Goes one level deeper while `inside` runs.
    fn nested<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAX_DEPTH {
            return Err(error(self.text, self.at, format!("nesting at most {MAX_DEPTH} deep"), "a deeper one"));
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    fn version(&mut self) -> Result<i64> {
        let whole = match &self.token {
            Token::Number(n) => n
                .split_once('.')
                .map_or(Some(*n), |(whole, part)| part.bytes().all(|b| b.is_ascii_digit()).then_some(whole)),
            _ => None,
        };
        let version = whole.and_then(|n| n.parse().ok()).ok_or_else(|| self.unexpected("a version such as `1.3`"))?;
        self.next()?;
        Ok(version)
    }

    fn function(&mut self) -> Result<(String, Function)> {
        self.word("func")?;
        let name = self.name("the function's name")?;
        self.mark('<')?;
        let opset = self.name("an operation set such as `ios18`")?;
        let opset = Opset::ALL.into_iter().find(|o| opset_word(*o) == opset).map_or(opset, |o| o.name().to_owned());
        self.mark('>')?;
        let mut names = Names::new();
        let inputs = self.inputs(&mut names)?;
        let attributes = self.attributes()?;
        let body = self.block(inputs.clone(), &mut names)?;
        let body = Block { inputs: Vec::new(), ..body };
        self.eat(';')?;
        Ok((name, Function { opset, values: names.values, inputs, body, attributes, ports: Ports::default() }))
    }

    fn inputs(&mut self, names: &mut Names) -> Result<Vec<ValueId>> {
        self.mark('(')?;
        let inputs = self.list(')', |p| p.typed())?;
        Ok(inputs.into_iter().map(|(ty, name)| names.define(&name, ty)).collect())
    }

    fn typed(&mut self) -> Result<(Type, String)> {
        Ok((self.ty()?, self.name("a name")?))
    }

    fn block(&mut self, inputs: Vec<ValueId>, names: &mut Names) -> Result<Block> {
        self.mark('{')?;
        let mut ops = Vec::new();
        while !self.eat('}')? {
            ops.push(self.operation(names)?);
        }
        match self.token {
            Token::Arrow => self.next()?,
            _ => return Err(self.unexpected("`->`")),
        };
        self.mark('(')?;
        let outputs = self.list(')', |p| p.name("the name of an output"))?;
        let outputs = outputs.iter().map(|name| names.resolve(name)).collect();
        Ok(Block { inputs, ops, outputs, attributes: self.attributes()? })
    }

    fn operation(&mut self, names: &mut Names) -> Result<Operation> {
        let results = if self.eat('(')? {
            let results = self.list(')', |p| p.typed())?;
            self.mark('=')?;
            results
        } else if self.assigns()? {
            let result = self.typed()?;
            self.mark('=')?;
            vec![result]
        } else {
            Vec::new()
        };
        let name_of_kind = self.name("the name of an operation")?;
        self.mark('(')?;
        let inputs = self.list(')', |p| {
            let param = p.name("a parameter")?;
            p.mark('=')?;
            let args = if p.eat('(')? { p.list(')', |p| p.argument(names))? } else { vec![p.argument(names)?] };
            Ok((param, args))
        })?;
        let attributes = self.attributes()?;
        let mut blocks = Vec::new();
        while self.token == Token::Word("block") {
            self.next()?;
            names.enter();
            let inputs = self.inputs(names)?;
            blocks.push(self.nested(|p| p.block(inputs, names))?);
            names.leave();
        }
        self.mark(';')?;
        let outputs = results.into_iter().map(|(ty, name)| names.define(&name, ty)).collect();
        Ok(Operation { kind: Kind::of(&name_of_kind), name_of_kind, inputs, outputs, blocks, attributes })
    }

    /// Whether a statement begins with the type of a result.
    fn assigns(&self) -> Result<bool> {
        let Token::Word(word) = self.token else { return Ok(false) };
        Ok(match self.peek()? {
            Token::Mark('<') => true,
            Token::Word(_) | Token::Text(_) => DType::from_name(word).is_some(),
            _ => false,
        })
    }

    fn argument(&mut self, names: &mut Names) -> Result<Argument> {
        if let Token::Word(_) = self.token
            && matches!(self.peek()?, Token::Mark('<' | '('))
        {
            return Ok(Argument::Literal(self.constant()?));
        }
        Ok(Argument::Value(names.resolve(&self.name("the name of a value, or a literal")?)))
    }

    /// `[name = value, …]`, or nothing.
    fn attributes(&mut self) -> Result<BTreeMap<String, Const>> {
        let mut all = BTreeMap::new();
        if !self.eat('[')? {
            return Ok(all);
        }
        let entries = self.list(']', |p| {
            let at = p.at;
            let name = p.name("the name of an attribute")?;
            p.mark('=')?;
            Ok((at, name, p.constant()?))
        })?;
        for (at, name, value) in entries {
            if all.contains_key(&name) {
                return Err(error(self.text, at, "an attribute of another name", format!("another `{name}`")));
            }
            all.insert(name, value);
        }
        Ok(all)
    }
}
