use proptest::prelude::*;

use super::*;
use crate::constant::Const;
use crate::types::{Shape, TensorType, Type};

const STATEFUL: &str = r#"program(1.3)
[buildInfo = dict<string, string>({{"coremltools-version", "9.0"}, {"note", "a \"b\"\n\\ é \u{1}"}})]
{
    func main<ios18>(tensor<fp16, [1, 2]> x, state<tensor<fp16, [2]>> total) {
        tensor<fp16, [2]> old = read_state(input = total)[name = string("old")];
        int32 axis = const()[name = string("axis"), val = int32(-1)];
        tensor<fp16, [2]> w = const()[name = string("w"), val = tensor<fp16, [2]>([0x1p+0, -inf])];
        tensor<uint3, [2, 3]> u = const()[name = string("u"), val = tensor<uint3, [2, 3]>([[0, 1, 2], [5, 6, 7]])];
        tensor<bool, [2, 0]> none = const()[val = tensor<bool, [2, 0]>([])];
        tensor<fp16, [?, 2]> both = concat(axis = axis, values = (old, w, tensor<fp16, [1]>([nan])), interleave = bool(true));
        (tensor<fp16, [1]> a, tensor<fp16, [...]> b) = split(x = both, num_splits = int32(2))[name = string("a")];
        write_state(data = w, input = total)[name = string("old_write_state")];
        tensor<fp16, [1]> c = cond(pred = p)[name = string("c")]
        block() {
        } -> (a)
        block(int32 i) {
            tensor<fp16, [1]> d = relu(x = a);
        } -> (d)[label = string("inner")];
        tensor<fp16, [1]> "not a name" = mystery(x = ());
    } -> (b, "not a name")[label = string("own")];
}
"#;

#[test]
fn a_text_that_uses_everything_comes_back_as_it_was() {
    let program = parse(STATEFUL, &NoBlobs).unwrap();
    assert_eq!(program.to_string(), STATEFUL);
    let main = &program.functions["main"];
    assert_eq!(main.opset, "CoreML8");
    assert_eq!(main.body.ops.len(), 10);
    assert_eq!(program.attributes["buildInfo"].ty().to_string(), "dict<tensor<string, []>, tensor<string, []>>");
}

#[test]
fn both_spellings_of_scalars_mean_the_same() {
    let long = r#"program(1.0) [buildInfo = dict<tensor<string, []>, tensor<string, []>>({})] { // a comment
        func main<ios16>(tensor<fp32, [1]> x) [FlexibleShapeInformation =
            tuple<tuple<tensor<string, []>, dict<tensor<string, []>, list<tensor<int32, [2]>, ?>>>>((("RangeDims", {{"x", [[1, 1], [1, 9]]}})))] {
            tensor<int32, []> a = const()[name = tensor<string, []>("a"), val = tensor<int32, []>(1)];
        } -> (a);
    }"#;
    let short = long.replace("tensor<string, []>", "string").replace("tensor<int32, []>", "int32");
    let program = parse(long, &NoBlobs).unwrap();
    assert!(program == parse(&short, &NoBlobs).unwrap());
    let text = program.to_string();
    assert!(text.starts_with("program(1.0)") && text.contains("tensor<int32, []> a = "), "{text}");
    assert!(parse(&text, &NoBlobs).unwrap() == program);
}

#[test]
fn members_of_open_types_say_what_they_are() {
    let scalar = |t| Type::Tensor(TensorType { dtype: t, shape: Some(Vec::new()) });
    let open = Type::Tensor(TensorType { dtype: DType::I32, shape: Some(vec![crate::types::Dim::Unknown; 2]) });
    let list = Const::List(
        open.clone(),
        vec![
            Const::ints(DType::I32, &[1, 2], &[1, 2]),
            Const::ints(DType::I32, &[0, 7], &[]),
            Const::texts(Shape::new(), vec!["another type".into()]),
        ],
    );
    let nested = Const::Dictionary(
        scalar(DType::String),
        Type::List(Box::new(open), None),
        vec![(Const::text("k"), list.clone()), (Const::Tuple(vec![list.clone(), 1.5f32.into()]), Const::Tuple(vec![]))],
    );
    let mut program = Program { version: 1, ..Program::default() };
    program.attributes.insert("list".into(), list);
    program.attributes.insert("not an identifier".into(), nested);
    assert!(parse(&program.to_string(), &NoBlobs).unwrap() == program, "{program}");
}

#[test]
fn open_axes_take_the_extents_of_the_literal() {
    let text = "program(1) [a = tensor<int32, [?, 2]>([[1, 2], [3, 4], [5, 6]])] { }";
    let program = parse(text, &NoBlobs).unwrap();
    assert!(program.attributes["a"] == Const::ints(DType::I32, &[3, 2], &[1, 2, 3, 4, 5, 6]));
}

#[test]
fn errors_say_where_and_what() {
    let main = |body: &str| format!("program(1.3)\n{{\n  func main<ios18>(fp16 x) {{\n{body}\n  }} -> (y);\n}}");
    for (text, message) in [
        (String::new(), "line 1, column 1: expected `program`, found the end of the text"),
        ("program(x)".into(), "line 1, column 9: expected a version such as `1.3`, found `x`"),
        ("program(1.3) { func f<ios18>(fp99 x) {} }".into(), "line 1, column 30: expected a type, found `fp99`"),
        (main("fp16 y = relu(x = x)"), "line 5, column 3: expected `;`, found `}`"),
        (main("é"), "line 4, column 1: expected MIL text, found 'é'"),
        (
            main("fp16 y = relu(x = \"a"),
            "line 4, column 19: expected a string that ends with `\"`, found the end of the text",
        ),
        (
            main("fp16 y = const()[val = tensor<fp16, [2]>([1.0])];"),
            "line 4, column 42: expected 2 elements in this axis, found 1",
        ),
        (main("fp16 y = const()[val = uint8(256)];"), "line 4, column 30: expected an element of uint8, found `256`"),
        (
            main("fp16 y = const()[val = fp16(BLOBFILE(path = string(\"w\"), offset = uint64(64)))];"),
            "line 4, column 29: expected a blob at offset 64 of `w`, found no weight files are given, and `w` is asked for",
        ),
        (
            main("tensor<fp16, [1099511627776, 2]> y = const();"),
            "line 4, column 14: expected at most 1099511627776 elements, found axes [1099511627776, 2]",
        ),
        (
            "program(1) [a = bool(true), a = bool(true)] {}".into(),
            "line 1, column 29: expected an attribute of another name, found another `a`",
        ),
    ] {
        assert_eq!(parse(&text, &NoBlobs).unwrap_err().to_string(), message, "{text}");
    }
}

#[test]
fn nesting_is_bounded_everywhere() {
    let n = 100_000;
    for (open, close) in [
        ("program(1) [a = ".to_owned() + &"list<".repeat(n), ""),
        ("program(1) [a = ".to_owned() + &"state<".repeat(n), ""),
        ("program(1) [a = ".to_owned() + &"tuple<".repeat(n), ""),
        ("program(1) [a = ".to_owned() + &"fp16(BLOBFILE(path = ".repeat(n), ""),
        ("program(1) [a = list<int32, ?>(".to_owned() + &"list<int32, ?>([".repeat(n), ""),
        ("program(1) { func f<ios18>() { ".to_owned() + &"f() block() {".repeat(n), ""),
        ("program(1) [a = tensor<int32, [?, ?]>(".to_owned() + &"[".repeat(n), ""),
    ] {
        assert!(parse(&(open + close), &NoBlobs).is_err());
    }
}

proptest! {
    #[test]
    fn mutated_texts_never_panic(cut in 0usize..2000, length in 0usize..40, insert in "[\\[\\](){}<>,;=?\"\\\\0-9a-z.+-]{0,12}") {
        let bytes = STATEFUL.as_bytes();
        let cut = cut.min(bytes.len());
        let end = (cut + length).min(bytes.len());
        let text = [&bytes[..cut], insert.as_bytes(), &bytes[end..]].concat();
        if let Ok(program) = parse(&String::from_utf8_lossy(&text), &NoBlobs) {
            let again = parse(&program.to_string(), &NoBlobs);
            prop_assert!(again.is_ok_and(|again| again == program));
        }
    }

    #[test]
    fn texts_of_tokens_never_panic(tokens in prop::collection::vec(prop::sample::select(vec![
        "program", "(", ")", "[", "]", "{", "}", "<", ">", ",", ";", "=", "?", "->", "...", "tensor", "list", "dict",
        "tuple", "state", "fp16", "int4", "string", "BLOBFILE", "bits", "func", "block", "x", "\"s\"", "1", "-0x1p-3", "nan",
    ]), 0..60)) {
        let _ = parse(&format!("program(1) {}", tokens.join(" ")), &NoBlobs);
    }
}
