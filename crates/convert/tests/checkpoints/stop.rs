//! A conversion that is stopped leaves nothing behind, whenever that is.

use std::sync::atomic::Ordering;

use anemone_convert::{Conversion, ConvertError, Options, Source, Watch};

use crate::architectures::folder;

#[test]
fn nothing_is_left_behind() {
    let source = Source::open(folder("llama")).unwrap();
    let options = Options { context: Some(64), prefill: Some(16), ..Options::default() };
    let conversion = Conversion::new(&source, &options).unwrap();
    let place = tempfile::tempdir().unwrap();
    let dest = place.path().join("model");
    let all = 3 * conversion.estimate().weights;
    let mut stopped = 0;
    for part in 0..12 {
        let watch = Watch::default();
        let stop = std::thread::spawn({
            let watch = watch.clone();
            // As Ctrl-C does: from another thread, once so much is done.
            move || {
                while watch.done.load(Ordering::Relaxed) < part * all / 12 && !watch.stop.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                watch.stop.store(true, Ordering::Relaxed);
            }
        });
        if part == 0 {
            // Certainly before anything.
            watch.stop.store(true, Ordering::Relaxed);
        }
        match conversion.run(&dest, &watch) {
            Err(error) => {
                assert!(matches!(error, ConvertError::Stopped), "{error}");
                stopped += 1;
                let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().collect();
                assert!(left.is_empty(), "{left:?}");
            }
            // It was quicker.
            Ok(_) => std::fs::remove_dir_all(&dest).unwrap(),
        }
        watch.stop.store(true, Ordering::Relaxed);
        stop.join().unwrap();
    }
    assert!(stopped > 0);
}
