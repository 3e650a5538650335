use super::*;

/// A padded array (2, 3, 2) of half floats: rows of 2 take 5 elements, planes 17.
const SHAPE: [usize; 3] = [2, 3, 2];
const STRIDES: [usize; 3] = [17, 5, 1];
const SENTINEL: u8 = 0xab;

fn halves(values: &[f32]) -> Vec<f16> {
    values.iter().map(|&v| f16::from_f32(v)).collect()
}

fn room() -> Vec<u8> {
    vec![SENTINEL; 2 * (17 + 2 * 5 + 2)]
}

#[test]
fn padded_rows_are_written_and_read_by_strides() {
    let mut bytes = room();
    let values: Vec<f32> = (0..12).map(|v| v as f32).collect();
    ViewMut::new(ElementType::F16, &SHAPE, &STRIDES, &mut bytes).unwrap().write_f32(&values).unwrap();
    let view = View::new(ElementType::F16, &SHAPE, &STRIDES, &bytes).unwrap();
    let mut all = [0.0; 12];
    view.read_f32(0, &mut all).unwrap();
    assert_eq!(all[..], values);
    let mut some = [0.0; 5];
    view.read_f32(3, &mut some).unwrap();
    assert_eq!(some[..], values[3..8]);
    // Everything between the rows is as it was.
    let untouched = bytes.iter().filter(|&&b| b == SENTINEL).count();
    assert_eq!(untouched, bytes.len() - 24);
    assert!(view.read_f32(3, &mut [0.0; 10]).is_err());
    assert!(view.read_f32(usize::MAX, &mut some).is_err());
}

#[test]
fn columns_are_copied_and_others_left() {
    let mut bytes = room();
    let mut view = ViewMut::new(ElementType::F16, &SHAPE, &STRIDES, &mut bytes).unwrap();
    view.zero();
    view.write_columns(0..2, 1..3, &halves(&[1., 2., 3., 4., 5., 6., 7., 8.])).unwrap();
    let mut all = [9.0; 12];
    view.as_view().read_f32(0, &mut all).unwrap();
    assert_eq!(all, [0., 0., 1., 2., 3., 4., 0., 0., 5., 6., 7., 8.]);
    let mut column = halves(&[9.; 4]);
    view.as_view().read_columns(0..2, 2..3, &mut column).unwrap();
    assert_eq!(column, halves(&[3., 4., 7., 8.]));
    let mut second = halves(&[9.; 4]);
    view.as_view().read_columns(1..2, 1..3, &mut second).unwrap();
    assert_eq!(second, halves(&[5., 6., 7., 8.]));
    assert!(view.as_view().read_columns(1..3, 1..2, &mut second).is_err());
    let mut nothing = [];
    view.as_view().read_columns(0..2, 3..3, &mut nothing).unwrap();
    assert!(view.as_view().read_columns(0..2, 2..4, &mut halves(&[0.; 8])).is_err());
    assert!(view.write_columns(0..2, 0..1, &halves(&[0.; 3])).is_err());
}

#[test]
fn integers_and_other_types() {
    let mut bytes = vec![0; 12];
    ViewMut::new(ElementType::I32, &[3], &[1], &mut bytes).unwrap().write_i32(&[1, -2, 3]).unwrap();
    let view = View::new(ElementType::I32, &[3], &[1], &bytes).unwrap();
    let mut ints = [0; 3];
    view.read_i32(&mut ints).unwrap();
    assert_eq!(ints, [1, -2, 3]);
    let mut floats = [0.0; 3];
    view.read_f32(0, &mut floats).unwrap();
    assert_eq!(floats, [1., -2., 3.]);
    assert!(ViewMut::new(ElementType::I32, &[3], &[1], &mut bytes).unwrap().write_f32(&[0.0; 3]).is_err());
    assert!(ViewMut::new(ElementType::I32, &[3], &[1], &mut bytes).unwrap().write_columns(0..1, 0..1, &[]).is_err());
    for element in [ElementType::F32, ElementType::F64, ElementType::F16] {
        let mut bytes = vec![0; 3 * element.bytes()];
        ViewMut::new(element, &[3], &[1], &mut bytes).unwrap().write_f32(&[0.5, -1.0, 8.0]).unwrap();
        View::new(element, &[3], &[1], &bytes).unwrap().read_f32(0, &mut floats).unwrap();
        assert_eq!(floats, [0.5, -1.0, 8.0]);
    }
}

#[test]
fn what_reaches_beyond_its_memory_is_refused() {
    let bytes = vec![0; 20];
    let new = |shape: &[usize], strides: &[usize]| View::new(ElementType::F16, shape, strides, &bytes).is_ok();
    assert!(new(&[2, 5], &[5, 1]));
    assert!(!new(&[2, 5], &[6, 1]));
    assert!(!new(&[2, 5], &[1]));
    assert!(!new(&[usize::MAX, 5], &[usize::MAX, 1]));
    assert!(!new(&[1; 9], &[1; 9]));
    assert!(new(&[0, usize::MAX], &[usize::MAX, 1]));
    // A scalar has no axes.
    let mut one = [0.0];
    View::new(ElementType::F16, &[], &[], &bytes).unwrap().read_f32(0, &mut one).unwrap();
    assert!(View::new(ElementType::F16, &[], &[], &[]).is_err());
}
