//! From a path to a runner.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use anemone_cpu::{Plan, PlanOptions, Pool, Varying};
use anemone_kernels::buffer::Arena;
use anemone_mil::MilError;
use anemone_mil::lower::PackCache;
use anemone_mil::model::Model;
use anemone_package::Package;
use anemone_package::bundle::{self, BundleError, hex};

use super::PackageRunner;
use super::assemble::{Calls, assemble};
use super::at_once::{at_once, joined};
use super::call::PlannedCall;
use super::host_cache::as_states;
use super::last_row::last_row;
use super::options::ModelOptions;
use super::packed_file::PackedFile;
use super::plans_file::PlansFile;
use super::reopen::reopen;
use super::widths::Families;
use crate::location::Location;
use crate::packed::PackedFolder;
use crate::seen::Checked;
use crate::signature::{Call, Recognized, Step, recognize, unwritten_state};
use crate::{Error, Result, heap};

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
        let claimed = claimed(location)?;
        let folder = options.packed.as_ref().map(PackedFolder::new);
        let plans = claimed.as_ref().zip(folder.as_ref()).and_then(|(digests, folder)| {
            PlansFile::new(folder, &bundle::digest_of_parts(digests), location.manifest.as_ref()?, options)
        });
        // Where all that it takes is kept, no program is read.
        let again = plans.as_ref().zip(claimed.as_ref()).zip(folder.as_ref());
        let again = again.and_then(|((plans, digests), folder)| reopen(location, options, plans, digests, folder));
        if let Some(runner) = again {
            heap::give_back();
            return Ok(runner);
        }
        let read = |digests: &[[u8; 32]]| -> Kept {
            let kept = |digest| {
                let file = PackedFile::new(folder.as_ref()?, digest);
                let arena = Arc::new(file.read().unwrap_or_default());
                Some((file, arena))
            };
            digests.iter().map(kept).collect()
        };
        let opened = thread::scope(|scope| {
            // While the program is decoded.
            let reading = claimed.as_ref().map(|digests| scope.spawn(|| read(digests)));
            let packages = location.parts.iter().map(|path| Package::open(path).map_err(|e| program(path, e)));
            let mut packages = packages.collect::<Result<Vec<_>>>()?;
            let models = location.parts.iter().zip(&packages);
            let models = models.map(|(path, p)| anemone_mil::load_package(p).map_err(|e| program(path, e)));
            let models = models.collect::<Result<Vec<_>>>()?;
            packages.iter_mut().for_each(Package::drop_model);
            packages.iter().for_each(Package::release_memory);
            let packages = Arc::new(packages);
            let checked = (claimed.is_none() || options.verify).then(|| {
                let (packages, folder) = (Arc::clone(&packages), folder.as_ref());
                let of = move |(package, path): (&Package, &PathBuf)| {
                    Checked::new(package, folder).map_err(|e| program(path, e))
                };
                scope.spawn(move || packages.iter().zip(&location.parts).map(of).collect::<Result<Vec<_>>>())
            });
            let (digests, unchecked) = match (claimed.clone(), checked) {
                (Some(claimed), checked) => (claimed, checked),
                (None, Some(checked)) => {
                    let checked = joined(checked)?;
                    checked
                        .iter()
                        .zip(&*packages)
                        .for_each(|(checked, package)| checked.keep(package, folder.as_ref()));
                    (checked.iter().map(|checked| checked.digest).collect(), None)
                }
                (None, None) => unreachable!("the digest of a bare package is computed"),
            };
            let kept = reading.map_or_else(|| read(&digests), joined);
            let (mut caches, mut arenas) = (Vec::new(), Vec::new());
            for ((path, package), kept) in location.parts.iter().zip(&*packages).zip(&kept) {
                let files = package.weight_file_names().into_iter().map(|name| package.weight_file(name));
                let files = files.collect::<Result<Vec<_>, _>>().map_err(|e| program(path, e))?;
                let arena = kept.as_ref().map_or_else(Arc::default, |(_, arena)| Arc::clone(arena));
                arenas.push(Arc::clone(&arena));
                // What nobody has checked is not kept.
                caches.push(PackCache::new(arena, files).keeping_plans(plans.is_some() && options.verify));
            }
            let parts = Parts { location, packages: packages.clone(), models: &models, caches: &caches, arenas };
            let runner = Self::plan(&parts, bundle::digest_of_parts(&digests), options);
            // What was changed may be why it cannot be planned.
            let found = unchecked.map(joined).transpose()?.unwrap_or_default();
            for ((found, expected), path) in found.iter().zip(&digests).zip(&location.parts) {
                if found.digest != *expected {
                    let (path, expected, found) = (path.clone(), hex(expected), hex(&found.digest));
                    return Err(Error::bundle(BundleError::Changed { path, expected, found }));
                }
            }
            let runner = runner?;
            found.iter().zip(&*packages).for_each(|(found, package)| found.keep(package, folder.as_ref()));
            // Those of a package that will not be known again would never be read.
            let known =
                |package: &Package| folder.as_ref().is_some_and(|folder| Checked::known(package, folder).is_some());
            if let Some(plans) = plans.as_ref().filter(|_| options.verify && packages.iter().all(known)) {
                runner.keep_plans(plans);
            }
            let new: Vec<_> = kept.iter().flatten().filter(|(_, arena)| arena.is_new()).collect();
            new.iter().for_each(|(file, arena)| file.write(arena));
            if let Some(folder) = folder.as_ref().filter(|_| !new.is_empty()) {
                let used = kept.iter().flatten().map(|(file, _)| file.path());
                folder.bound(&used.chain(plans.as_ref().map(PlansFile::path)).collect::<Vec<_>>());
            }
            // What was read to be packed and checked need not stay in memory.
            packages.iter().for_each(Package::release_memory);
            packages.iter().for_each(Package::drop_model_bytes);
            Ok(runner)
        });
        opened.inspect(|_| heap::give_back())
    }

    fn plan(parts: &Parts<'_>, owner: [u8; 32], options: &ModelOptions) -> Result<Self> {
        let location = parts.location;
        let recognized = usable(location, parts.models)?;
        let threads = options.thread_count();
        let pool = Pool::new(threads);
        let families = Families::of(parts.models, parts.caches, &recognized.steps, (owner, options.exact), &pool)
            .unless(options.strict_fp16);
        let planned = |part: usize, call: Call| -> Result<PlannedCall> {
            let (path, function) = (location.parts[part].clone(), call.function.clone());
            let strange = |problem| Error::Interface { path, function, problem };
            let wide = families.wide(&call).or_else(|| parts.flexible(part, &call, owner, options, &pool, true));
            match wide {
                Some(planned) => Ok(planned),
                None => parts.call(part, call, owner, options, &pool)?.map_err(strange),
            }
        };
        let checking = || {
            let tokens = options.speculation.tokens()?;
            families.checking(tokens).or_else(|| parts.checking(&recognized.steps, tokens, owner, options, &pool))
        };
        // Each by itself, so several at a time; the widest takes the longest.
        let calls = recognized.steps.iter().enumerate().rev();
        let calls = calls.flat_map(|(width, step)| step.calls.iter().enumerate().map(move |(part, _)| (width, part)));
        let jobs: Vec<_> = calls.map(Some).chain([None]).collect();
        let mut done: BTreeMap<_, _> = jobs
            .iter()
            .copied()
            .zip(at_once(threads, jobs.len(), &|i| match jobs[i] {
                Some((width, part)) => Planned::Call(planned(part, recognized.steps[width].calls[part].clone())),
                None => Planned::Checking(checking()),
            }))
            .collect();
        let mut steps: Vec<Vec<PlannedCall>> = Vec::new();
        for (width, step) in recognized.steps.iter().enumerate() {
            let of_part = |part| match done.remove(&Some((width, part))) {
                Some(Planned::Call(planned)) => planned,
                _ => unreachable!("every call was planned"),
            };
            steps.push((0..step.calls.len()).map(of_part).collect::<Result<_>>()?);
        }
        let checking = match done.remove(&None) {
            Some(Planned::Checking(checking)) => checking,
            _ => unreachable!("it was planned"),
        };
        let calls = Calls { signature: recognized.name, steps, checking };
        assemble(location, &parts.packages, parts.arenas.clone(), calls, owner, options)
    }
}

/// The packages of a model, opened.
struct Parts<'a> {
    location: &'a Location,
    packages: Arc<Vec<Package>>,
    models: &'a [Model],
    caches: &'a [PackCache],
    arenas: Vec<Arc<Arena>>,
}

impl Parts<'_> {
    /// Plans a call of a part; what is wrong with its outputs is left to the caller.
    fn call(
        &self,
        part: usize,
        call: Call,
        owner: [u8; 32],
        options: &ModelOptions,
        pool: &Pool,
    ) -> Result<Result<PlannedCall, String>> {
        let function = &self.models[part].program.functions[&call.function];
        let rewritten = (!call.caches.is_empty()).then(|| as_states(function, &call.caches));
        let function = rewritten.as_ref().unwrap_or(function);
        let (shapes, varying) = (call.shapes.clone(), call.varying.clone());
        let (exact, strict) = (options.exact, options.strict_fp16);
        let options = PlanOptions { shapes, varying, tokens: None, owner, exact, strict };
        let plan = Plan::new(function, &options, &self.caches[part]).map_err(|source| Error::Plan {
            path: self.location.parts[part].clone(),
            function: call.function.clone(),
            source: Box::new(source),
        })?;
        Ok(PlannedCall::new(call, plan, pool.clone()))
    }
}

impl Parts<'_> {
    /// A call of any number of tokens up to the width, of a function that takes any: with the logits of the last one alone if
    /// `last`. None where its program does not show what a number in between is.
    fn flexible(
        &self,
        part: usize,
        call: &Call,
        owner: [u8; 32],
        options: &ModelOptions,
        pool: &Pool,
        last: bool,
    ) -> Option<PlannedCall> {
        let tokens = call.tokens.clone().filter(|_| !options.strict_fp16 && call.caches.is_empty())?;
        let function = &self.models[part].program.functions[&call.function];
        let rewritten = call.outputs.first().filter(|_| last).and_then(|output| last_row(function, output));
        let function = rewritten.as_ref().unwrap_or(function);
        let fewest = tokens.low;
        let varying = call.varying.clone().map(|varying| Varying { low: fewest, ..varying });
        let (shapes, exact) = (call.shapes.clone(), options.exact);
        let options = PlanOptions { shapes, varying, tokens: Some(tokens), owner, exact, strict: false };
        let planned = Plan::new(function, &options, &self.caches[part]).map_err(|error| error.to_string());
        let planned = planned.and_then(|plan| PlannedCall::of_widths(call.clone(), plan, fewest, pool.clone()));
        let name = &call.function;
        planned.inspect_err(|error| tracing::debug!("function `{name}`, for any number of tokens: {error}")).ok()
    }

    /// A call of at most so many tokens with the logits of each, of a function that takes any number.
    fn checking(
        &self,
        steps: &[Step],
        most: usize,
        owner: [u8; 32],
        options: &ModelOptions,
        pool: &Pool,
    ) -> Option<PlannedCall> {
        let [call] = &steps.last()?.calls[..] else { return None };
        let tokens = call.tokens.clone().filter(|tokens| tokens.high >= most)?;
        let mut call = Call { width: most, tokens: Some(Varying { high: most, ..tokens.clone() }), ..call.clone() };
        for (input, axis) in &tokens.axes {
            *call.shapes.get_mut(input)?.get_mut(*axis)? = most;
        }
        self.flexible(0, &call, owner, options, pool, false).filter(PlannedCall::gives_each)
    }
}

/// How a conversation is held with packages, if one can be.
pub(crate) fn usable(location: &Location, models: &[Model]) -> Result<Recognized> {
    let paths = &location.parts;
    let recognized = recognize(&models.iter().collect::<Vec<_>>());
    let functions = || models.iter().flat_map(|model| model.program.functions.values());
    let recognized = match recognized {
        Ok(recognized) => recognized,
        Err(_) if functions().all(|f| f.states().next().is_none()) => {
            return Err(Error::Stateless { path: paths[0].clone() });
        }
        Err(tried) => return Err(Error::Signature { path: paths[0].clone(), tried }),
    };
    for step in &recognized.steps {
        for ((call, model), path) in step.calls.iter().zip(models).zip(paths) {
            if let Some(state) = unwritten_state(&model.program.functions[&call.function]) {
                let (path, function) = (path.clone(), call.function.clone());
                return Err(Error::StateIgnored { path, function, state: state.to_owned() });
            }
        }
    }
    let first = recognized.steps.first().and_then(|step| step.calls.last());
    first.map_or(Ok(()), |call| location.agrees_with(models, call.context))?;
    Ok(recognized)
}

/// What the state `name` of a part is called among those of all parts. In order of parts.
pub(crate) fn name_in_parts(parts: usize, part: usize, name: &str) -> String {
    if parts == 1 { name.to_owned() } else { format!("part{:03}.{name}", part + 1) }
}

/// A file of packed weights for each part, with what was in it; none where none are kept.
type Kept = Vec<Option<(PackedFile, Arc<Arena>)>>;

/// What was planned.
enum Planned {
    Call(Result<PlannedCall>),
    Checking(Option<PlannedCall>),
}

pub(crate) fn program(path: &Path, source: impl Into<MilError>) -> Error {
    Error::Program { path: path.to_owned(), source: Box::new(source.into()) }
}

/// The digests of the packages that the manifest states, if there is one.
pub(crate) fn claimed(location: &Location) -> Result<Option<Vec<[u8; 32]>>> {
    let Some(manifest) = &location.manifest else { return Ok(None) };
    let malformed = |problem| {
        let path = location.folder().join(bundle::MANIFEST);
        Error::bundle(BundleError::Malformed { path, problem })
    };
    let digest = |field: &str, text: &str| {
        let mut digest = [0; 32];
        let byte = |i: usize| u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok();
        let whole =
            text.len() == 64 && digest.iter_mut().enumerate().all(|(i, b)| byte(i).map(|found| *b = found).is_some());
        if whole {
            return Ok(digest);
        }
        Err(malformed(format!("`{field}` is {text:?}; expected 64 hexadecimal digits")))
    };
    let whole = digest("package_sha256", &manifest.package_sha256)?;
    if manifest.parts.is_empty() {
        return Ok(Some(vec![whole]));
    }
    let parts = manifest.parts.iter().map(|part| digest("sha256", &part.sha256)).collect::<Result<Vec<_>>>()?;
    match bundle::digest_of_parts(&parts) == whole {
        true => Ok(Some(parts)),
        false => Err(malformed("`package_sha256` is not that of the parts, which belong to another model".to_owned())),
    }
}
