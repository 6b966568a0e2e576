//! Measures how many texts per second the compiled-in model embeds: `embed_speed texts.jsonl [--threads N] [--kernels
//! NAME] [--vectors FILE]`, a JSON string per line; one bucket of lengths after the other. `training/onnx_speed.py`
//! does the same with onnxruntime.
#![expect(clippy::print_stdout, reason = "the figures are what it is run for")]

use std::error::Error;
use std::fs;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::time::Instant;

use canonry_kernels::Kernels;
use canonry_models::{Embedder, LocalEmbedder};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const WARM_UP: usize = 32;
/// Token counts of short, medium and long texts; `onnx_speed.py` has the same.
const BUCKETS: [Range<usize>; 3] = [0..65, 65..193, 193..usize::MAX];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which file of texts?")?;
    let (mut threads, mut kernels, mut vectors_path) = (2, Kernels::best(), None);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or("an option without a value")?;
        match option.as_str() {
            "--threads" => threads = value.parse()?,
            "--kernels" => {
                let named = Kernels::available().into_iter().find(|kernels| kernels.name() == value);
                kernels = named.ok_or("this processor does not have those kernels")?;
            }
            "--vectors" => vectors_path = Some(value),
            _ => return Err(format!("unknown option {option}").into()),
        }
    }
    let lines = fs::read_to_string(path)?;
    let texts: Vec<String> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;

    let began = Instant::now();
    let embedder = LocalEmbedder::load_with_kernels(threads, kernels)?;
    embedder.embed_blocking(&["the first vector"])?;
    let first_vector = began.elapsed();
    let lengths: Vec<usize> = texts.iter().map(|text| embedder.token_ids(text).len()).collect();

    // A warm-up: it allocates every worker's buffers and wakes the processor before the measurement.
    embedder.embed_blocking(&texts[..texts.len().min(WARM_UP)])?;

    let (mut vectors, mut rates) = (vec![Vec::new(); texts.len()], Vec::new());
    let (mut wall, cpu_before) = (0.0, cpu_seconds());
    for bucket in BUCKETS {
        let chosen: Vec<usize> = (0..texts.len()).filter(|at| bucket.contains(&lengths[*at])).collect();
        let chosen_texts: Vec<&str> = chosen.iter().map(|at| texts[*at].as_str()).collect();
        let began = Instant::now();
        let made = embedder.embed_blocking(&chosen_texts)?;
        let seconds = began.elapsed().as_secs_f64();
        rates.push(rounded(chosen.len() as f64 / seconds));
        wall += seconds;
        chosen.into_iter().zip(made).for_each(|(at, vector)| vectors[at] = vector);
    }
    let cpu = cpu_seconds() - cpu_before;
    println!(
        "{}",
        serde_json::json!({
            "engine": embedder.model_id(), "texts": texts.len(), "tokens": lengths.iter().sum::<usize>(), "threads": threads, "kernels": kernels.name(),
            "wall_s": rounded(wall), "cpu_s": rounded(cpu), "texts_per_s": rounded(texts.len() as f64 / wall),
            "texts_per_cpu_s": rounded(texts.len() as f64 / cpu), "first_vector_ms": first_vector.as_millis(),
            "short_per_s": rates[0], "medium_per_s": rates[1], "long_per_s": rates[2],
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

/// User and system time of this process so far; zero if there is no `/proc`.
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
