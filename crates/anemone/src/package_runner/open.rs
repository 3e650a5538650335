//! From a path to a runner.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

use anemone_cpu::{Plan, PlanOptions, Pool};
use anemone_mil::MilError;
use anemone_mil::lower::PackCache;
use anemone_mil::model::Model;
use anemone_package::bundle::{self, BundleError, BundleManifest, hex};
use anemone_package::{Package, PackageError};

use super::PackageRunner;
use super::call::PlannedCall;
use super::info::{CallInfo, RunnerInfo, notes, states};
use super::packed_file::PackedFile;
use crate::location::Location;
use crate::signature::{recognize, unwritten_state};
use crate::{Backend, BackendOptions};
use crate::{CacheLayout, CacheTensor, Error, Result};

/// How a model is opened.
#[derive(Clone, Debug)]
pub struct ModelOptions {
    /// Threads that share the work, the caller's included; as many as the machine offers if none. Results are the same
    /// bits for any number.
    pub threads: Option<usize>,
    /// Whether the package of a converted folder must have the digest that its manifest states. All of its weights are
    /// read for that (about 0.2 s for 250 MB, while the plans are made). A state remembers the digest, so without the
    /// check the manifest is taken at its word. A bare package has no manifest; its digest is computed in any case.
    pub verify: bool,
    /// Whether all is computed in floats. Else activations are quantized to 8 bits where they meet weights of integers,
    /// which is faster; `docs/numerics.md` says how far that is from exact.
    pub exact: bool,
    /// A folder to keep packed weights in, about as large as the package's own: a second start reads them instead of packing
    /// them again. Files are known by the package's digest and the processor's instruction set; what is stale or damaged is
    /// made anew. None are kept without a folder.
    pub packed: Option<PathBuf>,
    /// Which runtime, for those who open a [`ModelRunner`](crate::ModelRunner) or a [`Model`](crate::Model).
    pub backend: BackendOptions,
}

impl Default for ModelOptions {
    /// All threads of the machine, and the digest verified.
    fn default() -> Self {
        let backend = BackendOptions::default();
        Self { threads: None, verify: true, exact: false, packed: None, backend }
    }
}

impl ModelOptions {
    /// The number of threads to use.
    fn thread_count(&self) -> usize {
        self.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, |n| n.get())).clamp(1, MAX_THREADS)
    }
}

/// More threads than this are not started.
const MAX_THREADS: usize = 512;

impl PackageRunner {
    /// Opens a converted folder or a package, plans its functions and packs its weights. A tokenizer is not needed.
    ///
    /// # Errors
    /// [`Error::NotAModel`] for other paths; [`Error::Bundle`] for a manifest that is broken or tells of another package;
    /// [`Error::Program`] for a package that cannot be read or holds unsupported operations; [`Error::Stateless`],
    /// [`Error::StateIgnored`] and [`Error::Signature`] for one that no conversation can be held with; [`Error::Plan`].
    pub fn open(path: &Path, options: &ModelOptions) -> Result<Self> {
        Self::open_at(&Location::find(path)?, options)
    }

    pub(crate) fn open_at(location: &Location, options: &ModelOptions) -> Result<Self> {
        let package = Package::open(&location.package).map_err(|e| program(location, e))?;
        let claimed = location.manifest.as_ref().map(|manifest| claimed(location, manifest)).transpose()?;
        thread::scope(|scope| {
            let needed = claimed.is_none() || options.verify;
            let digest = needed.then(|| scope.spawn(|| package.digest()));
            let model = anemone_mil::load_package(&package).map_err(|e| program(location, e))?;
            let joined = |digest: Digest<'_>| match digest.join() {
                Ok(digest) => digest.map_err(|e| program(location, e)),
                Err(panic) => std::panic::resume_unwind(panic),
            };
            let (owner, unchecked) = match (claimed, digest) {
                (Some(claimed), digest) => (claimed, digest),
                (None, Some(digest)) => (joined(digest)?, None),
                (None, None) => unreachable!("the digest of a bare package is computed"),
            };
            let kept = options.packed.as_deref().map(|folder| PackedFile::new(folder, &owner));
            let arena = Arc::new(kept.as_ref().and_then(PackedFile::read).unwrap_or_default());
            let files = package.weight_file_names().into_iter().map(|name| package.weight_file(name));
            let files = files.collect::<Result<Vec<_>, _>>().map_err(|e| program(location, e))?;
            let cache = PackCache::new(Arc::clone(&arena), files);
            let runner = Self::plan(location, &package, &model, owner, &cache, options)?;
            if let Some(found) = unchecked.map(joined).transpose()?.filter(|found| *found != owner) {
                let (path, expected, found) = (location.package.clone(), hex(&owner), hex(&found));
                return Err(Error::bundle(BundleError::Changed { path, expected, found }));
            }
            if let Some(kept) = kept.filter(|_| arena.is_new()) {
                kept.write(&arena);
            }
            // What was read to be packed and checked need not stay in memory.
            package.release_memory();
            Ok(runner)
        })
    }

    fn plan(
        location: &Location,
        package: &Package,
        model: &Model,
        owner: [u8; 32],
        cache: &PackCache,
        options: &ModelOptions,
    ) -> Result<Self> {
        let (threads, exact) = (options.thread_count(), options.exact);
        let path = &location.package;
        let functions = &model.program.functions;
        if functions.values().all(|f| f.states().next().is_none()) {
            return Err(Error::Stateless { path: path.clone() });
        }
        let (signature, calls) = recognize(model).map_err(|tried| Error::Signature { path: path.clone(), tried })?;
        let pool = Pool::new(threads);
        let mut planned: Vec<PlannedCall> = Vec::new();
        for call in calls {
            let name = call.function.clone();
            let function = &functions[&name];
            if let Some(state) = unwritten_state(function) {
                return Err(Error::StateIgnored { path: path.clone(), function: name, state: state.to_owned() });
            }
            let (shapes, varying) = (call.shapes.clone(), call.varying.clone());
            let options = PlanOptions { shapes, varying, owner, exact };
            let plan = Plan::new(function, &options, cache).map_err(|source| Error::Plan {
                path: path.clone(),
                function: name.clone(),
                source: Box::new(source),
            })?;
            let other = planned.first().filter(|first| first.plan().states().states != plan.states().states);
            if let Some(first) = other {
                let problem = format!("it declares other states than function `{}`", first.function());
                return Err(Error::Interface { path: path.clone(), function: name, problem });
            }
            let call = PlannedCall::new(call, plan, pool.clone()).map_err(|problem| Error::Interface {
                path: path.clone(),
                function: name,
                problem,
            })?;
            planned.push(call);
        }
        let first = planned.first().expect("a signature has a call of one token");
        let layout = Arc::clone(first.plan().states());
        let (context, vocabulary) = (first.context(), first.vocabulary());
        let states = states(first.plan());
        // A mask may leave less of the states than there is.
        let length = layout.states.first().and_then(|s| s.shape.iter().rev().nth(1)).copied().unwrap_or(context);
        let tensors = layout.states.iter().map(|s| {
            let tensor = CacheTensor::of_halves(&s.name, &s.shape, length);
            tensor.expect("a signature asks for states of (…, context, head dim)")
        });
        let tensors = tensors.collect();
        let cache = CacheLayout { package: owner, context, tensors };
        let mut weight_bytes = 0;
        for name in package.weight_file_names() {
            weight_bytes += package.weight_file(name).map_err(|e| program(location, e))?.len() as u64;
        }
        let info = RunnerInfo {
            name: location.name(),
            backend: Backend::Cpu.to_string(),
            units: None,
            signature: signature.name,
            context,
            vocabulary,
            calls: planned.iter().map(CallInfo::of).collect(),
            state_bytes: states.iter().map(|s| s.bytes).sum(),
            states,
            weight_bytes,
            threads,
            notes: notes(&planned),
        };
        info.notes.iter().for_each(|note| tracing::info!("{note}"));
        Ok(Self { calls: planned, layout, cache, context, vocabulary, info })
    }
}

type Digest<'s> = ScopedJoinHandle<'s, Result<[u8; 32], PackageError>>;

pub(crate) fn program(location: &Location, source: impl Into<MilError>) -> Error {
    Error::Program { path: location.package.clone(), source: Box::new(source.into()) }
}

/// The digest that the manifest states.
pub(crate) fn claimed(location: &Location, manifest: &BundleManifest) -> Result<[u8; 32]> {
    let text = &manifest.package_sha256;
    let mut digest = [0; 32];
    let byte = |i: usize| u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok();
    let whole =
        text.len() == 64 && digest.iter_mut().enumerate().all(|(i, b)| byte(i).map(|found| *b = found).is_some());
    if whole {
        return Ok(digest);
    }
    let path = location.folder().join(bundle::MANIFEST);
    let problem = format!("`package_sha256` is {text:?}; expected 64 hexadecimal digits");
    Err(Error::bundle(BundleError::Malformed { path, problem }))
}
