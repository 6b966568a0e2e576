//! Measures how many texts a second the compiled-in model embeds: `embed_speed texts.jsonl [--threads N]
//! [--vectors FILE]`, a JSON string per line. `training/onnx_speed.py` does the same with onnxruntime.
#![expect(clippy::print_stdout, reason = "the figures are what it is run for")]

use std::error::Error;
use std::fs;
use std::io::{BufWriter, Write};
use std::time::Instant;

use canonry_models::{Embedder, LocalEmbedder};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which file of texts?")?;
    let (mut threads, mut vectors_path) = (2, None);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or("an option without a value")?;
        match option.as_str() {
            "--threads" => threads = value.parse()?,
            "--vectors" => vectors_path = Some(value),
            _ => return Err(format!("unknown option {option}").into()),
        }
    }
    let lines = fs::read_to_string(path)?;
    let texts: Vec<String> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;

    let began = Instant::now();
    let embedder = LocalEmbedder::load_with_threads(threads)?;
    embedder.embed_blocking(&["the first vector"])?;
    let first_vector = began.elapsed();
    let tokens: usize = texts.iter().map(|text| embedder.token_ids(text).len()).sum();

    let (began, cpu_before) = (Instant::now(), cpu_seconds());
    let vectors = embedder.embed_blocking(&texts)?;
    let (wall, cpu) = (began.elapsed().as_secs_f64(), cpu_seconds() - cpu_before);
    println!(
        "{}",
        serde_json::json!({
            "engine": embedder.model_id(), "texts": texts.len(), "tokens": tokens, "threads": threads,
            "wall_s": rounded(wall), "cpu_s": rounded(cpu), "texts_per_s": rounded(texts.len() as f64 / wall),
            "texts_per_cpu_s": rounded(texts.len() as f64 / cpu), "first_vector_ms": first_vector.as_millis(),
            "peak_memory_mb": peak_memory_kb() / 1024,
        })
    );
    if let Some(path) = vectors_path {
        let mut out = BufWriter::new(fs::File::create(path)?);
        for number in vectors.iter().flatten() {
            out.write_all(&number.to_le_bytes())?;
        }
        out.flush()?;
    }
    Ok(())
}

fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// User and system time of this process so far; zero where there is no `/proc`.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 = after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / 100.0
}

fn peak_memory_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
