use std::path::{Path, PathBuf};

use anemone_coreml::fake::Fake;
use anemone_coreml::{CompileCache, Configuration, Framework};

use super::*;

fn tiny() -> (PathBuf, Model) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../goldens/tiny/model/model.mlpackage");
    let model = anemone_mil::load(&path).unwrap();
    (path, model)
}

fn text(placement: &Placement, all: bool) -> String {
    let mut out = Vec::new();
    write_report(&mut out, placement, all).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_prediction_says_that_it_is_one_and_calls_out_states() {
    let (_, model) = tiny();
    let units = ComputeUnits::CpuAndNeuralEngine;
    let placement = Placement::of(Source::Prediction, units, &predicted(&model, units), &model);
    assert_eq!(placement.functions.len(), model.program.functions.len());
    for function in &placement.functions {
        assert!(!function.state_operations.is_empty(), "{}", function.name);
        assert_eq!(function.devices.values().sum::<usize>(), function.operations);
        let elsewhere = function.elsewhere.len() as f64 / function.operations as f64;
        assert!((function.neural_engine_share + elsewhere - 1.0).abs() < 1e-9);
        assert!(function.elsewhere.iter().all(|line| !line.reason.is_empty()), "{:?}", function.elsewhere);
    }
    let text = text(&placement, false);
    assert!(text.starts_with("A prediction for cpu-and-neural-engine"), "{text}");
    assert!(text.contains("slice_update") && text.contains("no hardware was asked"), "{text}");
}

#[test]
fn the_processor_alone_means_nothing_on_the_engine() {
    let (_, model) = tiny();
    let units = ComputeUnits::CpuOnly;
    let placement = Placement::of(Source::Prediction, units, &predicted(&model, units), &model);
    assert_eq!(placement.least_share(), 0.0);
    assert!(placement.functions.iter().all(|f| f.devices.keys().eq([&DeviceKind::Cpu])));
}

#[test]
fn core_mls_plan_is_reported_alike() {
    let ((path, model), fake, folder) = (tiny(), Fake::new(), tempfile::tempdir().unwrap());
    let units = ComputeUnits::CpuAndNeuralEngine;
    let compiled = CompileCache::new(folder.path()).get(&fake, &path, &[1; 32], units, &mut |_| {}).unwrap();
    let mut plan = fake.plan(&compiled.path, &Configuration { units, ..Configuration::default() }).unwrap();
    let placement = Placement::of(Source::ComputePlan, units, &plan, &model);
    assert_eq!(placement.least_share(), 1.0);
    assert!(text(&placement, true).starts_with("Core ML's plan on this machine"));
    // A write of a state falls back to the CPU, at half of the cost.
    let decode = plan.functions.iter_mut().find(|f| f.name == "decode").unwrap();
    let running: Vec<usize> =
        (0..decode.operations.len()).filter(|&i| decode.operations[i].preferred.is_some()).collect();
    for &i in &running {
        decode.operations[i].cost = Some(0.5 / (running.len() - 1) as f64);
    }
    let written = running.iter().copied().find(|&i| decode.operations[i].kind == "slice_update").unwrap();
    decode.operations[written].preferred = Some(DeviceKind::Cpu);
    decode.operations[written].cost = Some(0.5);
    let placement = Placement::of(Source::ComputePlan, units, &plan, &model);
    let decode = placement.functions.iter().find(|f| f.name == "decode").unwrap();
    assert_eq!((decode.elsewhere.len(), decode.elsewhere[0].operation.as_str()), (1, "slice_update"));
    assert!((decode.neural_engine_cost_share.unwrap() - 0.5).abs() < 1e-9 && decode.neural_engine_share > 0.9);
    assert!(placement.least_share() < 1.0);
    let text = text(&placement, false);
    assert!(
        text.contains("slice_update          1 on the CPU") && text.contains("50.0 % of the estimated cost"),
        "{text}"
    );
}
