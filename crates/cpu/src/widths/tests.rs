use std::sync::Arc;

use anemone_mil::lower::PackCache;
use anemone_mil::model::Model;
use anemone_mil::{Data, DataMut};

use super::Widths;
use crate::{Instance, Plan, PlanOptions, Pool, State};

fn tiny() -> Model {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../goldens/tiny/model/model.mlpackage");
    anemone_mil::load::load(path.as_ref()).unwrap()
}

const WIDE: usize = 16;
/// More than any function of the package takes.
const MOST: usize = 2 * WIDE + 3;

fn feed(instance: &mut Instance, state: &mut State, tokens: &[i32], position: usize) -> Vec<f32> {
    for (name, first, step) in [("input_ids", 0, 0), ("cache_position", position as i32, 1)] {
        let index = instance.input_index(name).unwrap();
        let DataMut::I32(port) = instance.input_mut(index) else { panic!("{name} is not of integers") };
        assert_eq!(port.len(), tokens.len());
        for (i, to) in port.iter_mut().enumerate() {
            *to = if step == 0 { tokens[i] } else { first + i as i32 };
        }
    }
    instance.run(state).unwrap();
    let Data::F32(logits) = instance.output(0) else { panic!("logits are not floats") };
    logits.to_vec()
}

fn close(a: &[f32], b: &[f32]) -> bool {
    let top = b.iter().fold(0.0f32, |m, x| m.max(x.abs()));
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-3 * top)
}

#[test]
fn every_width_gives_what_single_tokens_give() {
    let model = tiny();
    let (narrow, wide) = (model.function(Some("decode")).unwrap(), model.function(Some("prefill")).unwrap());
    let cache = PackCache::default();
    let options = PlanOptions { exact: true, ..PlanOptions::default() };
    let one = Plan::new(narrow, &options, &cache).unwrap();
    let (last, each) = (
        Widths::of_wide((narrow, 1), (wide, WIDE), MOST).expect("the last row is picked"),
        Widths::of_narrow((narrow, 1), (wide, WIDE)).expect("the same operations"),
    );
    assert_eq!((last.range(), each.range()), ((2, MOST), (2, WIDE)));
    let pool = Pool::new(2);
    let mut one = Instance::new(Arc::new(one), pool.clone());
    let mut last = Instance::new(Arc::new(Plan::of_widths(&last, &options, &cache).unwrap()), pool.clone());
    let mut each = Instance::new(Arc::new(Plan::of_widths(&each, &options, &cache).unwrap()), pool);
    let tokens: Vec<i32> = (0..40).map(|i| 1 + i * 7 % 90).collect();
    let vocabulary = one.plan().outputs()[0].shape.iter().product::<usize>();
    for width in 2..=MOST {
        let mut states: Vec<State> = (0..3).map(|_| State::new(one.plan().states().clone())).collect();
        let mut position = 0;
        while position + width <= tokens.len() {
            let now = &tokens[position..position + width];
            let singly: Vec<f32> =
                now.iter().enumerate().flat_map(|(i, &t)| feed(&mut one, &mut states[0], &[t], position + i)).collect();
            let both = [(&mut last, 1), (&mut each, 2)].into_iter().take(if width > WIDE { 1 } else { 2 });
            for (instance, state) in both {
                instance.set_extent(width).unwrap();
                let found = feed(instance, &mut states[state], now, position);
                let expected = &singly[singly.len() - found.len()..];
                assert_eq!(found.len() / vocabulary, if state == 1 { 1 } else { width });
                assert!(close(&found, expected), "width {width} at {position}, call {state}");
            }
            position += width;
        }
    }
}

#[test]
fn what_differs_in_more_than_the_width_is_no_family() {
    let model = tiny();
    let (narrow, wide) = (model.function(Some("decode")).unwrap(), model.function(Some("prefill")).unwrap());
    // Another row than the last.
    let mut first = wide.clone();
    let sub = first.body.ops.iter_mut().find(|op| op.name_of_kind == "sub" && op.label() == Some("last_row")).unwrap();
    let swapped = sub.inputs[1].1.clone();
    sub.inputs[0].1 = swapped;
    assert!(Widths::of_wide((narrow, 1), (&first, WIDE), 0).is_none());
    // An operation too few.
    let mut short = wide.clone();
    let at = short.body.ops.iter().rposition(|op| op.op().is_some()).unwrap() - 3;
    short.body.ops.remove(at);
    assert!(Widths::of_wide((narrow, 1), (&short, WIDE), 0).is_none());
    // Numbers that lie on no line.
    assert!(Widths::of_wide((narrow, 1), (wide, WIDE + 3), 0).is_none());
}

#[test]
fn between_one_and_two_there_is_no_width() {
    let model = tiny();
    let (narrow, wide) = (model.function(Some("decode")).unwrap(), model.function(Some("prefill")).unwrap());
    assert!(Widths::of_wide((narrow, 1), (wide, 2), 0).is_none());
    assert!(Widths::of_narrow((narrow, 1), (wide, 2)).is_none());
}
