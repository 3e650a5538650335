//! The text form over every fixture.

mod common;

use anemone_mil::text::parse;
use anemone_mil::{Program, decode};
use anemone_package::Package;

#[test]
fn every_fixture_survives_its_text() {
    for (name, path) in common::packages() {
        let package = Package::open(&path).unwrap();
        let mut program: Program = decode(&package).unwrap().program;
        let text = program.to_string();
        let read = parse(&text, &package).unwrap_or_else(|e| panic!("{name}: {e}"));
        // Ports are no part of the text.
        program.functions.values_mut().for_each(|f| f.ports = Default::default());
        assert!(read == program, "{name}");
        assert!(read.to_string() == text, "{name}: another text");
    }
}

#[test]
fn weights_inside_the_text_come_back_bit_for_bit() {
    for name in ["tiny_guide_kv2_fp16", "zoo_pal3_tensor", "zoo_sparse50", "ios16_lut4", "zoo_lin_int4_block32"] {
        let path = common::fixtures().join(name).join("model.mlpackage");
        let mut program = common::model(&path).program;
        for function in program.functions.values_mut() {
            function.ports = Default::default();
            for op in &mut function.body.ops {
                let attributes = op.attributes.values_mut();
                let literals = op.inputs.iter_mut().flat_map(|(_, args)| args).filter_map(|arg| match arg {
                    anemone_mil::Argument::Literal(c) => Some(c),
                    anemone_mil::Argument::Value(_) => None,
                });
                for constant in attributes.chain(literals) {
                    if let anemone_mil::Const::Tensor(t) = constant {
                        t.blob = None;
                    }
                }
            }
        }
        let read = parse(&program.to_string(), &anemone_mil::text::NoBlobs).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(read == program, "{name}");
    }
}
