use super::*;
use crate::port::{Port, PortKind, PortShape, StatePort};
use crate::text::{NoBlobs, parse};
use crate::types::DType;

/// A model of one function with a matching description.
fn model() -> Model {
    let text = "program(1.3) { func main<ios18>(tensor<fp16, [?, 2]> x, state<tensor<fp16, [2]>> s) {
        tensor<fp16, [2]> old = read_state(input = s);
        tensor<fp16, [?, 2]> y = add(x = x, y = old);
    } -> (y, old); }";
    let program = parse(text, &NoBlobs).unwrap();
    let mut model = Model { specification_version: 9, program, ..Model::default() };
    let ports = &mut ports(&mut model);
    let bounds = vec![(1, None), (2, Some(2))];
    ports.inputs.push(array("x", PortShape::Range { default: vec![1, 2], bounds }));
    ports.outputs.push(array("y", PortShape::Unspecified));
    ports.outputs.push(array("old", PortShape::Fixed(vec![2])));
    ports.states.push(StatePort {
        name: "s".into(),
        description: String::new(),
        ty: StaticType::new(DType::F16, &[2]),
    });
    model
}

fn ports(model: &mut Model) -> &mut crate::port::Ports {
    &mut model.program.functions.get_mut("main").unwrap().ports
}

fn array(name: &str, shape: PortShape) -> Port {
    Port {
        name: name.into(),
        description: String::new(),
        kind: PortKind::Array { dtype: DType::F16, shape },
        optional: None,
    }
}

/// What is wrong after a change.
fn faults(change: impl FnOnce(&mut Model)) -> Vec<String> {
    let mut model = model();
    change(&mut model);
    verify_model(&model).iter().map(ToString::to_string).collect()
}

#[test]
fn a_description_that_matches_is_valid() {
    assert_eq!(faults(|_| {}), [""; 0]);
}

#[test]
fn ports_agree_with_the_program_by_name_and_type() {
    assert_eq!(
        faults(|m| ports(m).inputs[0].name = "z".into()),
        [
            "function `main`, input port `z`: the program has no input `z`; it has `x`",
            "function `main`, input port `x`: the model description does not declare the input `x`",
        ]
    );
    assert_eq!(
        faults(|m| ports(m).outputs.push(array("y", PortShape::Unspecified))),
        ["function `main`, output port `y`: the model description declares the output `y` twice"]
    );
    assert_eq!(
        faults(|m| ports(m).states.clear()),
        ["function `main`, state port `s`: the model description does not declare the state `s`"]
    );
    assert_eq!(
        faults(|m| ports(m).states[0].ty.shape[0] = 3),
        [
            "function `main`, state port `s`: the model description declares tensor<fp16, [3]>; in the program it is tensor<fp16, [2]>"
        ]
    );
    let shapes = vec![vec![1, 2], vec![1, 3]];
    for (shape, declared) in [
        (PortShape::Fixed(vec![2]), "fp16 [2]"),
        (PortShape::Fixed(vec![1, 3]), "fp16 [1, 3]"),
        (PortShape::Enumerated { default: vec![1, 2], shapes }, "fp16 [1, 2] or [1, 3]"),
        (PortShape::Range { default: vec![1, 2], bounds: vec![(1, Some(4)), (2, None)] }, "fp16 [1..=4, 2..]"),
    ] {
        assert_eq!(
            faults(|m| ports(m).inputs[0] = array("x", shape)),
            [format!(
                "function `main`, input port `x`: the model description declares {declared}; in the program it is tensor<fp16, [?, 2]>"
            )]
        );
    }
    assert_eq!(
        faults(|m| ports(m).outputs[1].kind = PortKind::Array { dtype: DType::F32, shape: PortShape::Fixed(vec![2]) }),
        [
            "function `main`, output port `old`: the model description declares fp32 [2]; in the program it is tensor<fp16, [2]>"
        ]
    );
}

#[test]
fn a_model_has_a_default_function_with_ports_and_a_version_that_knows_its_operations() {
    assert_eq!(
        faults(|m| m.default_function = Some("decode".into())),
        ["model: the default function `decode` is no function of the program; it has `main`"]
    );
    assert_eq!(
        faults(|m| m.specification_version = 8),
        ["function `main`: operation set CoreML8 needs specification version 9 or later, found 8"]
    );
    assert_eq!(
        faults(|m| *ports(m) = Default::default()),
        [
            "function `main`: the model description does not declare the output `y`",
            "function `main`: the model description does not declare the output `old`",
        ]
    );
}

#[test]
fn ids_of_another_function_and_constants_of_the_wrong_size_are_found() {
    let found = faults(|m| {
        let main = m.program.functions.get_mut("main").unwrap();
        main.body.ops[1].inputs[0].1[0] = Argument::Value(ValueId(77));
        main.body.outputs.push(ValueId(78));
        let mut c = Const::ints(DType::I32, &[2], &[1, 2]);
        if let Const::Tensor(t) = &mut c {
            t.ty.shape[0] = 3;
        }
        main.attributes.insert("short".into(), Const::Tuple(vec![c]));
    });
    assert_eq!(
        found,
        [
            "function `main`: attribute `short`: expected 12 bytes for tensor<int32, [3]>, found 8",
            "function `main`, op 1 `add` (`y`): value 77 is no value of the function",
            "function `main`, outputs: value 78 is no value of the function",
        ]
    );
}

#[test]
fn unknown_operations_are_told_all_at_once_by_name_and_place() {
    let text = "program(1.3) { func main<ios18>(fp16 x) {
        fp16 a = frobnicate(x = x); fp16 b = frobnicate(x = a); fp16 c = mystery(x = b);
    } -> (c); }";
    let all = verify(&parse(text, &NoBlobs).unwrap());
    assert_eq!(
        crate::MilError::UnknownOps { all }.to_string(),
        "2 operations are not supported:\n  `frobnicate` of operation set CoreML8, 2 times:\n    function `main`, op 0 \
         `frobnicate` (`a`)\n    function `main`, op 1 `frobnicate` (`b`)\n  `mystery` of operation set CoreML8, 1 time:\n    \
         function `main`, op 2 `mystery` (`c`)\nConvert the model without them, or ask for them by name."
    );
}
