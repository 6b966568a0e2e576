//! Writes the vectors of the public duplicate sets for `canonry-retrieval`'s example `baselines`: `embed_sets FOLDER
//! [SET…]`. A file that the same model wrote earlier stays.
#![expect(clippy::print_stderr, reason = "it runs for minutes and says where it is")]

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use canonry_domain::{ItemNumber, ItemType, parse_import_value, raw_text};
use canonry_models::{Embedder as _, LocalEmbedder};
use flate2::read::GzDecoder;
use serde_json::Value;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SETS: [(&str, ItemType); 6] = [
    ("gitbugs_seamonkey", ItemType::Issue),
    ("gitbugs_hadoop", ItemType::Issue),
    ("openoffice", ItemType::Issue),
    ("rust", ItemType::Pr),
    ("rust", ItemType::Issue),
    ("rails", ItemType::Pr),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let out = PathBuf::from(arguments.next().ok_or("which folder?")?);
    let wanted: Vec<String> = arguments.collect();
    fs::create_dir_all(&out)?;
    let data = std::env::var_os("CANONRY_BENCH_DATA").map_or_else(|| PathBuf::from("../shared/bench"), PathBuf::from);
    let embedder = LocalEmbedder::load()?;
    let model = out.join("model");
    let same_model = fs::read_to_string(&model).is_ok_and(|written_by| written_by == embedder.model_id());
    for (set, item_type) in SETS {
        let path = out.join(format!("{set}.{item_type}.vec"));
        if !same_model && path.exists() {
            fs::remove_file(path)?;
        }
    }
    fs::write(&model, embedder.model_id())?;
    for (set, item_type) in SETS {
        let name = format!("{set}.{item_type}");
        let path = out.join(format!("{name}.vec"));
        if path.exists() || !wanted.is_empty() && !wanted.contains(&name) {
            continue;
        }
        let items = read(&data.join(format!("{set}.jsonl.gz")), item_type)?;
        let (numbers, texts): (Vec<ItemNumber>, Vec<String>) = items.into_iter().unzip();
        let began = Instant::now();
        let vectors = embedder.embed_blocking(&texts)?;
        eprintln!("{name}: {} texts in {:.0} s", texts.len(), began.elapsed().as_secs_f64());
        write(&path, &numbers, &vectors)?;
    }
    Ok(())
}

fn read(path: &Path, item_type: ItemType) -> Result<Vec<(ItemNumber, String)>, Box<dyn Error>> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut items = Vec::new();
    for line in BufReader::new(GzDecoder::new(file)).lines() {
        let mut value: Value = serde_json::from_str(&line?)?;
        // Bugzilla and Jira have other words for states.
        if let Some(object) = value.as_object_mut() {
            object.remove("state");
        }
        let record = parse_import_value(&value)?.record;
        if record.item_type == item_type {
            items.push((record.number, raw_text(&record.title, record.body.as_deref().unwrap_or_default())));
        }
    }
    Ok(items)
}

/// `CNRYVEC1`, dimension and count as u32, then for each item its number as i64 and its vector as f32, little-endian.
fn write(path: &Path, numbers: &[ItemNumber], vectors: &[Vec<f32>]) -> Result<(), Box<dyn Error>> {
    let dimension = u32::try_from(vectors.first().map_or(0, Vec::len))?;
    // Under another name until it is whole: what has its name is never made again.
    let unfinished = path.with_extension("unfinished");
    let mut file = BufWriter::new(File::create(&unfinished)?);
    file.write_all(b"CNRYVEC1")?;
    file.write_all(&dimension.to_le_bytes())?;
    file.write_all(&u32::try_from(vectors.len())?.to_le_bytes())?;
    for (number, vector) in numbers.iter().zip(vectors) {
        file.write_all(&number.get().to_le_bytes())?;
        for part in vector {
            file.write_all(&part.to_le_bytes())?;
        }
    }
    file.flush()?;
    Ok(fs::rename(unfinished, path)?)
}
