use std::path::PathBuf;

use half::f16;

use super::*;
use crate::fake::{Counts, Fake, Step};
use crate::{CompileCache, ComputeUnits};

/// The tiny chat model of the repository.
fn tiny() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../goldens/tiny/model/model.mlpackage")
}

struct Loaded {
    fake: Arc<Fake>,
    model: Model<Fake>,
    _folder: tempfile::TempDir,
}

fn compiled(fake: &Fake) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let cache = CompileCache::new(folder.path());
    let path = cache.get(fake, &tiny(), &[7; 32], ComputeUnits::default(), &mut |_| {}).unwrap().path;
    (folder, path)
}

fn loaded() -> Loaded {
    let fake = Arc::new(Fake::new());
    let (folder, path) = compiled(&fake);
    let options =
        ModelOptions { functions: vec!["decode".into(), "prefill".into()], owner: [7; 32], ..Default::default() };
    let model = Model::load(&fake, &path, &options).unwrap();
    Loaded { fake, model, _folder: folder }
}

/// Logits after `tokens` from `position` on, by the function that is as wide as they are many.
fn feed(model: &Model<Fake>, state: &mut State<Fake>, position: i32, tokens: &[i32]) -> Result<Vec<f32>> {
    let function = &model.functions()[usize::from(tokens.len() > 1)];
    let ids = function.input("input_ids")?;
    let positions: Vec<i32> = (0..tokens.len() as i32).map(|i| position + i).collect();
    let mut logits = Vec::new();
    function.call(
        Some(state),
        &[],
        &mut |index, mut view| view.write_i32(if index == ids { tokens } else { &positions }),
        &["logits".to_owned()],
        &mut |_, view| {
            logits.resize(view.shape().iter().product(), 0.0);
            view.read_f32(0, &mut logits)
        },
    )?;
    Ok(logits)
}

#[test]
fn a_fresh_state_is_zero_whatever_core_ml_left_there() {
    let Loaded { model, .. } = loaded();
    let state = model.new_state().unwrap();
    for port in state.ports() {
        let [outer @ .., columns, _] = &port.shape[..] else { panic!("{port:?}") };
        let mut all = vec![f16::ONE; port.elements().unwrap()];
        state.read_columns(&port.name, 0..outer.iter().product(), 0..*columns, &mut all).unwrap();
        assert!(all.iter().all(|&v| v == f16::ZERO), "{}", port.name);
    }
}

#[test]
fn several_functions_read_and_write_one_state_and_make_no_arrays_for_it() {
    let Loaded { fake, model, .. } = loaded();
    let width = model.functions()[1].ports().inputs[0].shape[0].max(model.functions()[1].ports().inputs[1].shape[1]);
    let tokens: Vec<i32> = (0..width as i32).map(|i| 3 + i % 50).collect();
    let (mut one, mut two) = (model.new_state().unwrap(), model.new_state().unwrap());
    let wide = feed(&model, &mut one, 0, &tokens).unwrap();
    let mut last = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        last = feed(&model, &mut two, i as i32, &[*token]).unwrap();
    }
    let tail = &wide[wide.len() - last.len()..];
    let far = tail.iter().zip(&last).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(far < 1e-2, "{far}");
    let before = fake.counts();
    feed(&model, &mut one, width as i32, &[5]).unwrap();
    assert_eq!(fake.counts(), Counts { predictions: before.predictions + 1, ..before });
}

#[test]
fn columns_are_copied_and_the_copy_goes_on_alike() {
    let Loaded { model, .. } = loaded();
    let (mut one, mut two) = (model.new_state().unwrap(), model.new_state().unwrap());
    for (i, token) in [4, 8, 15, 16].into_iter().enumerate() {
        feed(&model, &mut one, i as i32, &[token]).unwrap();
    }
    two.copy_columns(&one, 3).unwrap();
    // The fourth column of the copy is fresh, so the same token must be read again.
    let again = feed(&model, &mut two, 3, &[16]).unwrap();
    let first = feed(&model, &mut one, 3, &[16]).unwrap();
    assert_eq!(again, first);
    assert!(one.read_columns("nothing", 0..1, 0..1, &mut []).is_err());
}

#[test]
fn states_of_other_packages_are_refused() {
    let (one, mut other) = (loaded(), loaded());
    other.model.owner = [8; 32];
    let mut foreign = other.model.new_state().unwrap();
    assert!(matches!(feed(&one.model, &mut foreign, 0, &[1]), Err(CoreMlError::Foreign { .. })));
    let mut own = one.model.new_state().unwrap();
    assert!(matches!(own.copy_columns(&foreign, 1), Err(CoreMlError::Foreign { .. })));
}

#[test]
fn a_function_with_states_is_not_called_without_one() {
    let Loaded { model, fake, .. } = loaded();
    let result = model.functions()[0].call(None, &[], &mut |_, _| Ok(()), &["logits".to_owned()], &mut |_, _| Ok(()));
    assert!(matches!(result, Err(CoreMlError::Port { what: "state", .. })));
    assert_eq!(fake.counts().predictions, 0);
}

#[test]
fn a_prediction_that_failed_spoils_its_state_and_no_other() {
    let Loaded { fake, model, .. } = loaded();
    let (mut one, mut two) = (model.new_state().unwrap(), model.new_state().unwrap());
    fake.fail(
        Step::Predict,
        Failure::new("com.apple.appleneuralengine", 8, "Failed with status=0x1d : statusType=0x9"),
    );
    let error = feed(&model, &mut one, 0, &[1]).unwrap_err();
    assert!(error.to_string().contains("anemone explain ane-request"), "{error}");
    assert!(matches!(feed(&model, &mut one, 0, &[1]), Err(CoreMlError::Spoiled)));
    assert!(matches!(one.write_columns("kv_cache", 0..0, 0..0, &[]), Err(CoreMlError::Spoiled)));
    feed(&model, &mut two, 0, &[1]).unwrap();
}

#[test]
fn failures_name_what_was_asked() {
    let fake = Arc::new(Fake::new());
    let (_folder, path) = compiled(&fake);
    fake.fail(Step::Load, Failure::new("com.apple.CoreML", 0, "… with error code: -14."));
    let error = Model::load(&fake, &path, &ModelOptions { functions: vec!["decode".into()], ..Default::default() });
    let text = error.unwrap_err().to_string();
    assert!(text.contains("loading function `decode`") && text.contains("for cpu-and-neural-engine"), "{text}");
    assert!(text.contains("anemone explain minus-14"), "{text}");
    fake.set_supported(false);
    let error = Model::load(&fake, &path, &ModelOptions::default());
    assert!(matches!(error, Err(CoreMlError::System { .. })));
}

#[test]
fn shapes_that_vary_make_new_arrays_and_fixed_ones_do_not() {
    let Loaded { fake, model, .. } = loaded();
    let function = &model.functions()[0];
    let mut state = model.new_state().unwrap();
    let before = fake.counts().arrays;
    let shape = function.ports().inputs[0].shape.clone();
    let mut call = |shapes: &[(usize, Vec<usize>)]| {
        let mut fill = |_, mut view: ViewMut<'_>| {
            view.zero();
            Ok(())
        };
        function.call(Some(&mut state), shapes, &mut fill, &["logits".to_owned()], &mut |_, _| Ok(()))
    };
    call(&[(0, shape)]).unwrap();
    assert_eq!(fake.counts().arrays, before);
    assert!(matches!(call(&[(0, vec![0])]), Err(CoreMlError::Port { .. })));
    assert!(matches!(call(&[(9, vec![1])]), Err(CoreMlError::Port { .. })));
}

#[test]
fn functions_are_shared_between_threads_and_calls_wait_for_each_other() {
    fn shared<T: Send + Sync>(value: &T) -> &T {
        value
    }
    let Loaded { model, .. } = loaded();
    let model = shared(&model);
    let alone = feed(model, &mut model.new_state().unwrap(), 0, &[9]).unwrap();
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| feed(model, &mut model.new_state().unwrap(), 0, &[9]).unwrap())).collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap() == alone));
    });
}
