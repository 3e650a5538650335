//! `anemone convert`: a checkpoint becomes a package.

mod course;
mod plan;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anemone::calibrate::{TEXT, calibrate, read_text};
use anemone_cli::acquire::{Terminal, by_id};
use anemone_cli::home::{Home, package_digests};
use anemone_cli::{numbers, units};
use anemone_convert::lint::Os;
use anemone_convert::{
    Conversion, DEFAULT_CONTEXT, Fidelity, Format, Kv, Options, Profile, Rule, STEPS, Scheme, Source, Split, Text,
    Watch, quantize,
};
use anemone_package::bundle;
use anyhow::{Context, Result, bail};
use clap::Args;
use course::during;

use crate::exit::{Interrupted, Usage};
use crate::progress::Interruptible;
use crate::{interrupt, terminal};

/// Convert a language model into a Core ML package whose key-value cache is state
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  anemone convert SmolLM2-135M-Instruct.Q8_0.gguf -o smollm2/
  anemone convert Llama-3.2-1B-Instruct/ -o llama/ --context 8192 --weights int8
  anemone convert hf:HuggingFaceTB/SmolLM2-360M-Instruct -o smollm2-360m/
  anemone convert SmolLM2-135M-Instruct.Q8_0.gguf -o smollm2-ane/ --profile ane --weights lut6
  anemone convert SmolLM2-135M-Instruct.Q8_0.gguf -o smollm2/ --weights int4 --rule 'layers.0=int8' --rule 'lm_head=f16'
  anemone convert Llama-3.2-1B-Instruct/ --plan --weights int4         what it would make; nothing is written
  anemone convert Llama-3.2-1B-Instruct/ -o mine/ --lora my-adapter/   with a LoRA adapter merged in
  anemone chat smollm2/

DIR then holds model.mlpackage (functions `decode` and `prefill` over one state `kv_cache`) or the packages of a model in \
parts, tokenizer.json, the chat template, settings for generation, and anemone.json. It appears complete or not at all; Ctrl-C leaves nothing behind.

What the cache costs in memory and the package on disk is said before anything is written.

Exit codes: 0 converted, 1 something failed, 2 wrong arguments, 130 interrupted.")]
pub(crate) struct Arguments {
    /// A GGUF file, a folder in Hugging Face's form, or hf:OWNER/NAME
    source: PathBuf,
    /// The folder to make
    #[arg(short, long, value_name = "DIR", required_unless_present = "plan")]
    output: Option<PathBuf>,
    #[command(flatten)]
    options: Shape,
    /// A LoRA adapter to merge into the weights: a folder as Hugging Face's PEFT saves it (adapter_config.json and
    /// adapter_model.safetensors)
    #[arg(long, value_name = "DIR")]
    lora: Option<PathBuf>,
    /// Say what would be made (sizes, cache, what the linter finds, the quality to expect) and write nothing
    #[arg(long, conflicts_with = "output")]
    plan: bool,
    /// Print the plan as JSON
    #[arg(long, requires = "plan")]
    json: bool,
    /// A text of the kind that the model will meet: palettes and int4 are made so that the model computes nearly the same on
    /// it. lut4 and lut6 take a text of our own if none is given
    #[arg(long, value_name = "TEXT")]
    calibrate: Option<PathBuf>,
}

/// What a conversion can choose.
#[derive(Debug, Clone, Args)]
pub(crate) struct Shape {
    /// Positions of the cache: the longest conversation. It is baked into the package [default: 4096, or what the model
    /// was made for if that is less]; 8k is 8192
    #[arg(long, value_name = "N", value_parser = numbers::tokens, allow_negative_numbers = true)]
    pub(crate) context: Option<usize>,
    /// How weights are stored: f16, int8, int4, int4-asymmetric, lut4, lut6, lut8 (palettes), or keep, which takes the
    /// blocks of a GGUF file over as they are [default: f16]
    #[arg(long, value_name = "SCHEME", value_parser = scheme)]
    pub(crate) weights: Option<&'static Scheme>,
    /// Store matrices otherwise whose names match, as in lm_head=int8, down_proj=lut6 or layers.1?=f16; * and ? are
    /// wildcards, and the last rule that matches counts. May be given several times
    #[arg(long = "rule", value_name = "PATTERN=SCHEME", value_parser = Rule::parse)]
    pub(crate) rules: Vec<Rule>,
    /// Tokens per call of the function `prefill` [default: 64, or the context if that is less]
    #[arg(long, value_name = "N", value_parser = numbers::tokens, allow_negative_numbers = true)]
    pub(crate) prefill: Option<usize>,
    /// The hardware that the package is meant for: portable, gpu (the interface of swift-transformers) or ane (the Neural
    /// Engine) [default: portable]
    #[arg(long, value_name = "PROFILE", value_parser = super::lint::profile)]
    pub(crate) profile: Option<Profile>,
    /// Where the key-value cache is kept: state, in the package, or io: an input, whose new columns the package gives and
    /// the host writes [default: state]
    #[arg(long, value_name = "WHERE")]
    pub(crate) kv: Option<Kv>,
    /// Put the model into so many packages, which run one after the other: two halves of the layers, or the embeddings,
    /// chunks of layers and the head [default: 1; for --profile ane as many as the Neural Engine's limits ask for]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) parts: Option<u16>,
    /// Cut the layers into packages of at most so many megabytes of weights
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "parts")]
    pub(crate) part_size: Option<u32>,
}

fn scheme(name: &str) -> Result<&'static Scheme, String> {
    quantize::find(&name.to_ascii_lowercase()).ok_or_else(|| format!("expected {}", quantize::names()))
}

impl Shape {
    /// The options of the converter.
    pub(crate) fn options(&self) -> Options {
        let default = Options::default();
        Options {
            context: self.context,
            weights: self.weights.unwrap_or(default.weights),
            rules: self.rules.clone(),
            prefill: self.prefill,
            profile: self.profile.unwrap_or(default.profile),
            kv: self.kv.unwrap_or(default.kv),
            split: match (self.parts, self.part_size) {
                (Some(count), _) => Split::Count(count.into()),
                (None, Some(megabytes)) => Split::Bytes(u64::from(megabytes) * 1_000_000),
                (None, None) => default.split,
            },
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.json && !arguments.plan {
        return Err(Usage("--json prints a plan: add --plan".into()).into());
    }
    let watch = Watch::default();
    let _guard = interrupt::sets(&watch.stop);
    let done = run_with(arguments, &watch);
    // Whatever gave up, and however it says so.
    if done.is_err() && watch.stop.load(Ordering::SeqCst) {
        return Err(Interrupted.into());
    }
    done
}

fn run_with(arguments: &Arguments, watch: &Watch) -> Result<()> {
    let text = arguments.source.to_string_lossy();
    let fetched = by_id(&text, &Interruptible::new(&Terminal::default(), &watch.stop))?;
    let path = fetched.map_or_else(|| arguments.source.clone(), |acquired| acquired.path);
    let source = Source::open(&path)?;
    let source = match &arguments.lora {
        Some(adapter) => source.with_lora(adapter)?,
        None => source,
    };
    let Some(output) = &arguments.output else {
        let options = arguments.options.options();
        plan::show(&source, &Conversion::new(&source, &options)?, &options, arguments.json)?;
        // Nobody asked for the plan's end who has stopped it.
        return if watch.stop.load(Ordering::SeqCst) { Err(Interrupted.into()) } else { Ok(()) };
    };
    let text = arguments.calibrate.as_deref();
    convert(&source, output, &arguments.options, text, watch, Use::Any)?;
    let out = output.display();
    let speaks = output.join(bundle::TOKENIZER).is_file();
    let command = if speaks { "chat" } else { "inspect" };
    terminal::note(&format!("{out} is ready. Try: anemone {command} {out}"));
    Ok(())
}

/// What a conversion is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Any,
    /// A source without a tokenizer is refused.
    Conversation,
}

/// Converts a checkpoint into `folder`, saying what it costs before and how far it is meanwhile.
///
/// `text` is the file to calibrate with.
pub(crate) fn convert(
    source: &Source,
    folder: &Path,
    shape: &Shape,
    text: Option<&Path>,
    watch: &Watch,
    purpose: Use,
) -> Result<()> {
    let path = source.path();
    if purpose == Use::Conversation && !source.has_tokenizer() {
        bail!(
            "{}: it has no tokenizer, so it cannot be chatted with; put the model's own tokenizer.json into a folder in \
             Hugging Face's form, or convert it with `anemone convert` for use with `anemone predict`",
            path.display()
        );
    }
    let options = shape.options();
    let text = calibration_text(source, &options, text)?;
    // What does not fit is said before the text is read.
    let mut conversion = Conversion::new(source, &options)?;
    conversion.check(folder)?;
    let estimate = conversion.estimate();
    let format = match source.format() {
        Format::Gguf => "GGUF",
        Format::HuggingFace => "Hugging Face",
    };
    let name = path.file_name().map_or_else(|| source.name(), |name| name.to_string_lossy().into_owned());
    let name = terminal::printable(&name);
    terminal::note(&format!("Converting {name} ({}, from {format})", source.architecture().name));
    let hint =
        if shape.context.is_none() && estimate.trained_context > DEFAULT_CONTEXT { "; --context for more" } else { "" };
    conversion.notes().iter().for_each(|note| terminal::note(&format!("  note: {note}")));
    terminal::note(&format!(
        "  context  {} of the {} positions that the model was made for{hint}",
        estimate.context, estimate.trained_context
    ));
    terminal::note(&format!("  cache    {} of memory for each conversation", units::bytes(estimate.cache_bytes)));
    let disk = free_disk(folder).map_or_else(String::new, |free| format!("; {} of disk are free", units::bytes(free)));
    let parts = if estimate.parts > 1 { format!(" in {} parts", estimate.parts) } else { String::new() };
    terminal::note(&format!(
        "  package  about {} with {} weights{parts}{disk}",
        units::bytes(estimate.weight_bytes),
        options.weights_name()
    ));
    let findings = conversion.lint(Os::Ios18)?;
    let mut rules: Vec<&str> = findings.iter().map(|finding| finding.rule.id).collect();
    rules.dedup();
    let rules = if rules.is_empty() { String::new() } else { format!(" ({}); see `anemone lint`", rules.join(", ")) };
    terminal::note(&format!("  lint     for profile {}: {}{rules}", options.profile, super::lint::summary(&findings)));
    let replaced = package_digests(folder);
    if !replaced.is_empty() {
        terminal::note(&format!("  replaces the converted model in {}, once all is well", folder.display()));
    }
    let begin = Instant::now();
    if let Some(text) = text {
        terminal::note("  reading a text, to tell which weights matter");
        let layers = AtomicU64::new(0);
        let at = || ("the text", layers.load(Ordering::Relaxed));
        let work = || calibrate(source, &text, &watch.stop, |read| layers.store(read as u64, Ordering::Relaxed));
        conversion = conversion.calibrated(during(source.config().layers as u64, at, work)?);
    }
    let at = || (watch.step(), watch.done.load(Ordering::Relaxed));
    let fidelity = during(estimate.weights * STEPS.len() as u64, at, || conversion.run(folder, watch))?;
    forget(replaced, folder);
    faithful(&fidelity).iter().for_each(|line| terminal::note(line));
    terminal::note(&format!("  done in {:.1} s", begin.elapsed().as_secs_f64()));
    Ok(())
}

/// Removes what the weights of packages that are no more were packed to. That it stays is no reason to fail.
fn forget(mut digests: Vec<String>, folder: &Path) {
    let there = package_digests(folder);
    digests.retain(|digest| !there.contains(digest));
    let Ok(home) = Home::locate() else { return };
    if let Err(error) = home.forget_packed(&digests) {
        tracing::info!("{error:#}");
    }
}

/// The text to calibrate with, if there is a use for one.
fn calibration_text(source: &Source, options: &Options, given: Option<&Path>) -> Result<Option<String>> {
    match given {
        Some(path) if options.text() >= Text::Useful => Ok(Some(read_text(path).context("--calibrate")?)),
        Some(_) => bail!(
            "--calibrate: {} is the same for every text; palettes (lut4, lut6, lut8) and int4 are made for one",
            options.weights_name()
        ),
        None => Ok((options.text() == Text::Needed && source.has_tokenizer()).then(|| TEXT.to_owned())),
    }
}

/// What became of the weights: one line for each form, then the least faithful matrices.
fn faithful(fidelity: &Fidelity) -> Vec<String> {
    let mut forms: Vec<(&str, &str, usize, usize, f64)> = Vec::new();
    for m in &fidelity.matrices {
        let known = forms.iter().position(|f| (f.0, f.1) == (m.source, m.form));
        let at = known.unwrap_or_else(|| {
            forms.push((m.source, m.form, 0, 0, 0.0));
            forms.len() - 1
        });
        let form = &mut forms[at];
        form.2 += 1;
        form.3 += usize::from(m.exact);
        form.4 = form.4.max(m.relative_error);
    }
    let told = |(source, form, count, exact, worst): &(&str, &str, usize, usize, f64)| {
        let how =
            if exact == count { "the same numbers".to_owned() } else { format!("off by {} at most", share(*worst)) };
        let noun = if *count == 1 { "matrix" } else { "matrices" };
        format!("  {count:>3} {noun} of {source}: {form}; {how}")
    };
    let mut lines: Vec<String> = forms.iter().map(told).collect();
    let worst = fidelity.worst();
    // What rounding to half floats does is nothing to tell.
    let list: Vec<String> = worst
        .iter()
        .filter(|m| m.relative_error > 1e-3)
        .take(3)
        .map(|m| format!("{} ({})", terminal::printable(&m.tensor), share(m.relative_error)))
        .collect();
    if !list.is_empty() {
        lines.push(format!("  least faithful: {}", list.join(", ")));
    }
    lines
}

/// A share of the weights' root mean square.
fn share(relative: f64) -> String {
    format!("{:.2} %", 100.0 * relative)
}

/// Bytes that are free where `folder` will be: its nearest ancestor that exists tells.
fn free_disk(folder: &Path) -> Option<u64> {
    let absolute = std::path::absolute(folder).context("no such path").ok()?;
    let existing = absolute.ancestors().find(|path| path.is_dir())?;
    fs4::available_space(existing).ok()
}
