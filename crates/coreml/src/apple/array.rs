//! Arrays of Objective-C as views.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

use block2::StackBlock;
use objc2::AnyThread;
use objc2::rc::{Retained, autoreleasepool};
use objc2_core_ml::{MLMultiArray, MLMultiArrayDataType, MLState};
use objc2_foundation::{NSArray, NSInteger, NSNumber, NSString};

use super::failure;
use crate::{CoreMlError, ElementType, Failure, Port, Result, View, ViewMut};

/// Non-negative numbers, or nothing.
pub(super) fn numbers(array: &NSArray<NSNumber>) -> Option<Vec<usize>> {
    array.iter().map(|n| usize::try_from(n.as_isize()).ok()).collect()
}

/// An array for a port, its content not set.
pub(super) fn new(port: &Port) -> Result<Retained<MLMultiArray>, Failure> {
    let shape: Vec<Retained<NSNumber>> = port.shape.iter().map(|&n| NSNumber::new_isize(n as isize)).collect();
    let (shape, kind) = (NSArray::from_retained_slice(&shape), MLMultiArrayDataType(port.element.raw()));
    // SAFETY: shape and element type are those of a port whose shape was checked: no zeros, and a bounded size.
    let array = unsafe { MLMultiArray::initWithShape_dataType_error(MLMultiArray::alloc(), &shape, kind) };
    array.map_err(|error| failure::of(&error))
}

pub(super) fn absent(what: &'static str, name: &str) -> CoreMlError {
    CoreMlError::Port {
        function: "loaded".to_owned(),
        what,
        port: name.to_owned(),
        expected: "an array".to_owned(),
        found: "nothing".to_owned(),
    }
}

/// A closure that Core ML calls once, at most, while we wait: what it returns, or its panic, comes out behind the frames of
/// Objective-C.
struct Once<'v, A, T> {
    visit: RefCell<&'v mut dyn FnMut(A) -> T>,
    result: Cell<Option<Result<T, Box<dyn Any + Send>>>>,
}

impl<'v, A, T> Once<'v, A, T> {
    fn new(visit: &'v mut dyn FnMut(A) -> T) -> Self {
        Self { visit: RefCell::new(visit), result: Cell::new(None) }
    }

    fn call(&self, argument: A) {
        let Ok(mut visit) = self.visit.try_borrow_mut() else { return };
        self.result.set(Some(catch_unwind(AssertUnwindSafe(|| visit(argument)))));
    }

    fn result(self) -> Option<T> {
        self.result.into_inner().map(|result| result.unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

/// Shows one array of a state.
pub(super) fn with_state(
    state: &MLState,
    name: &str,
    mut visit: impl FnMut(&MLMultiArray) -> Result<()>,
) -> Result<()> {
    autoreleasepool(|_| {
        let mut visit = |array: NonNull<MLMultiArray>| {
            // SAFETY: Core ML gives an array that is valid while its handler runs, and this runs within it.
            visit(unsafe { array.as_ref() })
        };
        let once = Once::new(&mut visit);
        let block = StackBlock::new(|array: NonNull<MLMultiArray>| once.call(array));
        // SAFETY: the name is one of the description's. The handler is called before this returns, so it may borrow; no
        // prediction on this state runs, since those take the state exclusively.
        unsafe { state.getMultiArrayForStateNamed_handler(&NSString::from_str(name), &block) };
        once.result().unwrap_or_else(|| Err(absent("state", name)))
    })
}

/// The element type, shape and strides of an array.
fn form(array: &MLMultiArray) -> Result<(ElementType, Vec<usize>, Vec<usize>)> {
    // SAFETY: getters.
    let (kind, shape, strides) = unsafe { (array.dataType(), array.shape(), array.strides()) };
    match (ElementType::from_raw(kind.0), numbers(&shape), numbers(&strides)) {
        (Some(element), Some(shape), Some(strides)) => Ok((element, shape, strides)),
        _ => Err(absent("array of a known form", &format!("type {}", kind.0))),
    }
}

/// Shows the elements of an array.
pub(super) fn read(array: &MLMultiArray, visit: &mut dyn FnMut(View<'_>) -> Result<()>) -> Result<()> {
    autoreleasepool(|_| {
        let (element, shape, strides) = form(array)?;
        let mut show = |(start, bytes): (NonNull<c_void>, NSInteger)| {
            let bytes = usize::try_from(bytes).unwrap_or(0);
            // SAFETY: Core ML gives the start and length of memory that is valid, and not written by anybody, while its
            // handler runs; the slice does not leave it. Any bytes are valid as bytes.
            let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr().cast::<u8>(), bytes) };
            visit(View::new(element, &shape, &strides, bytes)?)
        };
        let once = Once::new(&mut show);
        let block = StackBlock::new(|start: NonNull<c_void>, bytes: NSInteger| once.call((start, bytes)));
        // SAFETY: the handler is called before this returns, so it may borrow.
        unsafe { array.getBytesWithHandler(&block) };
        once.result().unwrap_or_else(|| Err(absent("memory", "array")))
    })
}

/// Shows the elements of an array, to be written.
pub(super) fn write(array: &MLMultiArray, visit: &mut dyn FnMut(ViewMut<'_>) -> Result<()>) -> Result<()> {
    autoreleasepool(|_| {
        let (element, shape, _) = form(array)?;
        let mut show = |(start, bytes, strides): (NonNull<c_void>, NSInteger, NonNull<NSArray<NSNumber>>)| {
            // SAFETY: the array of strides is valid while the handler runs. It, and not the property, describes this memory.
            let strides = numbers(unsafe { strides.as_ref() }).ok_or_else(|| absent("strides", "array"))?;
            let bytes = usize::try_from(bytes).unwrap_or(0);
            // SAFETY: Core ML gives the start and length of memory that is ours alone while its handler runs: the array is
            // held by a call or a state that the caller has exclusively. The slice does not leave the handler.
            let bytes = unsafe { std::slice::from_raw_parts_mut(start.as_ptr().cast::<u8>(), bytes) };
            visit(ViewMut::new(element, &shape, &strides, bytes)?)
        };
        let once = Once::new(&mut show);
        let block = StackBlock::new(|start: NonNull<c_void>, bytes: NSInteger, strides: NonNull<NSArray<NSNumber>>| {
            once.call((start, bytes, strides));
        });
        // SAFETY: the handler is called before this returns, so it may borrow.
        unsafe { array.getMutableBytesWithHandler(&block) };
        once.result().unwrap_or_else(|| Err(absent("memory", "array")))
    })
}
