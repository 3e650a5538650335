//! A model that was opened before, by the same program and in the same way: its programs are not read again.

use std::sync::Arc;
use std::thread;

use anemone_cpu::{Plan, Pool};
use anemone_mil::lower::PackCache;
use anemone_package::{Package, bundle};

use super::PackageRunner;
use super::assemble::{Calls, assemble};
use super::at_once::{at_once, joined};
use super::call::PlannedCall;
use super::options::ModelOptions;
use super::packed_file::PackedFile;
use super::plans_file::{KeptCall, PlansFile};
use crate::location::Location;
use crate::packed::PackedFolder;
use crate::seen::Checked;
use crate::signature::named;

/// A runner of kept plans and packed weights; none if one of them is missing, was made of something else, or if somebody has
/// written to the packages since their digests were found to be `digests`. Opening the model as if it were new then tells
/// what is wrong, if anything is.
pub(super) fn reopen(
    location: &Location,
    options: &ModelOptions,
    plans: &PlansFile,
    digests: &[[u8; 32]],
    folder: &PackedFolder,
) -> Option<PackageRunner> {
    let begin = std::time::Instant::now();
    let (outline, bytes) = plans.read()?;
    if outline.weight_files.len() != location.parts.len() {
        return None;
    }
    let (packages, arenas) = thread::scope(|scope| {
        let read = || digests.iter().map(|digest| PackedFile::new(folder, digest).read().map(Arc::new)).collect();
        let arenas = scope.spawn::<_, Option<Vec<_>>>(read);
        let open = location.parts.iter().zip(&outline.weight_files);
        let packages = open.map(|(path, names)| Package::open_known(path, names).ok()).collect::<Option<Vec<_>>>();
        (packages, joined(arenas))
    });
    let (packages, arenas) = (packages?, arenas?);
    if options.verify {
        let known = |(package, digest): (&Package, &[u8; 32])| Checked::known(package, folder) == Some(*digest);
        packages.iter().zip(digests).all(known).then_some(())?;
    }
    let mut caches = Vec::new();
    for (package, arena) in packages.iter().zip(&arenas) {
        let files = package.weight_file_names().into_iter().map(|name| package.weight_file(name));
        caches.push(PackCache::new(Arc::clone(arena), files.collect::<Result<_, _>>().ok()?));
    }
    // Each call with its part, and its plan's bytes.
    let (mut calls, mut rest) = (Vec::new(), &bytes[..]);
    let parts = outline.steps.iter().flat_map(|step| step.iter().enumerate());
    for (part, kept) in parts.chain(outline.checking.iter().map(|kept| (0, kept))) {
        let (bytes, later) = rest.split_at_checked(kept.bytes)?;
        calls.push((caches.get(part)?, kept, bytes));
        rest = later;
    }
    let threads = options.thread_count();
    let pool = Pool::new(threads);
    let planned = |(cache, kept, bytes): (&PackCache, &KeptCall, &[u8])| {
        let plan = Plan::from_kept(bytes, cache).filter(|plan| PlannedCall::fits(&kept.call, plan))?;
        let (call, pool) = (kept.call.clone(), pool.clone());
        match kept.fewest {
            Some(fewest) => PlannedCall::of_widths(call, plan, fewest, pool).ok(),
            None => PlannedCall::new(call, plan, pool).ok(),
        }
    };
    let mut planned = at_once(threads, calls.len(), &|i| planned(calls[i])).into_iter();
    let steps = outline.steps.iter().map(|step| planned.by_ref().take(step.len()).collect::<Option<Vec<_>>>());
    let steps = steps.collect::<Option<Vec<_>>>()?;
    let whole = steps.first().is_some_and(|first| first.len() == location.parts.len());
    let checking = planned.next().map_or(Some(None), |call| call.map(Some))?;
    // Weights that were not packed before would be missing the next time too.
    let complete = whole && rest.is_empty() && arenas.iter().all(|arena| !arena.is_new());
    let calls = Calls { signature: named(&outline.signature).filter(|_| complete)?, steps, checking };
    drop(caches);
    let packages = Arc::new(packages);
    let runner = assemble(location, &packages, arenas, calls, bundle::digest_of_parts(digests), options).ok()?;
    packages.iter().for_each(Package::release_memory);
    tracing::debug!("{}: opened as it was before in {:?}", plans.path().display(), begin.elapsed());
    Some(runner)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::super::open::claimed;
    use super::*;

    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            match entry.path().is_dir() {
                true => copy(&entry.path(), &to.join(entry.file_name())),
                false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
            }
        }
    }

    #[test]
    fn a_model_is_opened_again_without_its_program() {
        let root = tempfile::tempdir().unwrap();
        let (model, packed) = (root.path().join("model"), root.path().join("packed"));
        copy(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../goldens/tiny/model")), &model);
        let options = ModelOptions { threads: Some(2), packed: Some(packed.clone()), ..ModelOptions::default() };
        let folder = PackedFolder::new(&packed);
        let again = |options: &ModelOptions| {
            let location = Location::find(&model).unwrap();
            let digests = claimed(&location).unwrap().unwrap();
            let owner = bundle::digest_of_parts(&digests);
            let plans = PlansFile::new(&folder, &owner, location.manifest.as_ref().unwrap(), options).unwrap();
            reopen(&location, options, &plans, &digests, &folder)
        };
        assert!(again(&options).is_none(), "it was never opened");
        let first = PackageRunner::open(&model, &options).unwrap();
        assert!(again(&options).is_none(), "its files were written just now");
        let end = Instant::now() + Duration::from_secs(20);
        let runner = loop {
            assert!(Instant::now() < end, "they were left alone");
            PackageRunner::open(&model, &options).unwrap();
            match again(&options) {
                Some(runner) => break runner,
                None => thread::sleep(Duration::from_millis(300)),
            }
        };
        assert_eq!(runner.info(), first.info());
        let feed = |runner: &PackageRunner| {
            let mut state = crate::Runner::new_state(runner).unwrap();
            let mut logits = vec![0.0; crate::Runner::vocabulary(runner)];
            for (position, tokens) in [(0, &[5, 6, 7, 8, 9][..]), (5, &[10])] {
                crate::Runner::feed(runner, &mut state, position, tokens, &mut logits).unwrap();
            }
            logits.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        assert_eq!(feed(&runner), feed(&first));

        assert!(again(&ModelOptions { exact: true, ..options.clone() }).is_none(), "never opened so");
        let manifest = model.join("anemone.json");
        let text = fs::read_to_string(&manifest).unwrap();
        fs::write(&manifest, text.replacen("\"name\": \"", "\"name\": \"x", 1)).unwrap();
        assert!(again(&options).is_none(), "another manifest");
        fs::write(&manifest, text).unwrap();
        assert!(again(&options).is_some());
        let weights = model.join("model.mlpackage/Data/com.apple.CoreML/weights/weight.bin");
        let bytes = fs::read(&weights).unwrap();
        fs::write(&weights, &bytes).unwrap();
        assert!(again(&options).is_none(), "somebody wrote to it");
        let unchecked = ModelOptions { verify: false, ..options };
        assert!(again(&unchecked).is_some(), "and it was not to be checked");
        fs::write(&weights, &bytes[..64]).unwrap();
        assert!(again(&unchecked).is_none(), "constants lie beyond its end");
    }
}
