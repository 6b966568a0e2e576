//! Writes the vectors and token vectors of the public duplicate sets, for the examples that measure retrieval and
//! verdicts: `embed_sets FOLDER [--model FILE] [SET…]`. A file that the same model wrote earlier is kept. A model
//! other than the compiled-in one is named by its file.
#![expect(clippy::print_stderr, reason = "it runs for minutes and says where it is")]

use std::error::Error;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use canonry_domain::{BoilerplateLearner, ItemNumber, ItemRecord, ItemType, parse_import_value, raw_text};
use canonry_models::{Embedder as _, LocalEmbedder, TextEmbedding};
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
    let (mut wanted, mut model_file) = (Vec::new(), None);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--model" => model_file = Some(PathBuf::from(arguments.next().ok_or("which file?")?)),
            _ => wanted.push(argument),
        }
    }
    fs::create_dir_all(&out)?;
    let data = std::env::var_os("CANONRY_BENCH_DATA").map_or_else(|| PathBuf::from("../shared/bench"), PathBuf::from);
    let threads = std::thread::available_parallelism()?.get();
    let embedder = match &model_file {
        Some(file) => LocalEmbedder::load_file(file, threads)?,
        None => LocalEmbedder::load()?,
    };
    let model = out.join("model");
    // The id alone is not enough: a model is converted several times before it gets its final id.
    let probe =
        embedder.embed_with_tokens_blocking(&["What a model makes of one text tells it from others. ".repeat(60)])?;
    let mut hasher = DefaultHasher::new();
    format!("{probe:?}").hash(&mut hasher);
    let stamp = format!("{} {:x}", embedder.model_id(), hasher.finish());
    let same_model = fs::read_to_string(&model).is_ok_and(|written_by| written_by == stamp);
    for (set, item_type) in SETS {
        for kind in ["vec", "tokens"] {
            let path = out.join(format!("{set}.{item_type}.{kind}"));
            if !same_model && path.exists() {
                fs::remove_file(path)?;
            }
        }
    }
    fs::write(&model, stamp)?;
    for (set, item_type) in SETS {
        let name = format!("{set}.{item_type}");
        let path = out.join(format!("{name}.vec"));
        if path.exists() || !wanted.is_empty() && !wanted.contains(&name) {
            continue;
        }
        let items = read(&data.join(format!("{set}.jsonl.gz")), item_type)?;
        let (numbers, texts): (Vec<ItemNumber>, Vec<String>) = items.into_iter().unzip();
        let began = Instant::now();
        let embeddings = embedder.embed_with_tokens_blocking(&texts)?;
        eprintln!("{name}: {} texts in {:.0} s", texts.len(), began.elapsed().as_secs_f64());
        write_tokens(&out.join(format!("{name}.tokens")), &numbers, &embeddings)?;
        write(&path, &numbers, &embeddings)?;
    }
    Ok(())
}

fn read(path: &Path, item_type: ItemType) -> Result<Vec<(ItemNumber, String)>, Box<dyn Error>> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut records: Vec<ItemRecord> = Vec::new();
    for line in BufReader::new(GzDecoder::new(file)).lines() {
        let mut value: Value = serde_json::from_str(&line?)?;
        // Bugzilla and Jira have other names for states.
        if let Some(object) = value.as_object_mut() {
            object.remove("state");
        }
        let record = parse_import_value(&value)?.record;
        if record.item_type == item_type {
            records.push(record);
        }
    }
    // As in `embed`: text that many items share is not embedded.
    let body = |record: &ItemRecord| record.body.clone().unwrap_or_default();
    let mut by_number: Vec<&ItemRecord> = records.iter().collect();
    by_number.sort_by_key(|record| record.number);
    let mut learner = BoilerplateLearner::default();
    for record in by_number {
        learner.read(record.number, record.author.as_ref(), &record.title, &body(record));
    }
    let shared = learner.learn();
    let text = |record: &ItemRecord| (record.number, shared.embedded_text(&record.title, &body(record)));
    let items: Vec<(ItemNumber, String)> = records.iter().map(text).collect();
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let shorter = records
        .iter()
        .zip(&items)
        .filter(|(record, (_, text))| words(text) != words(&raw_text(&record.title, &body(record))));
    eprintln!("{} shared lines and titles, in {} of {} texts", shared.len(), shorter.count(), items.len());
    Ok(items)
}

/// Writes `CNRYVEC1`, dimension and count as u32, then for each item its number as i64 and its vector as f32,
/// little-endian.
fn write(path: &Path, numbers: &[ItemNumber], embeddings: &[TextEmbedding]) -> Result<(), Box<dyn Error>> {
    let dimension = u32::try_from(embeddings.first().map_or(0, |embedding| embedding.vector.len()))?;
    // The file has another name until it is complete, because an existing file is never written again.
    let unfinished = path.with_extension("unfinished");
    let mut file = BufWriter::new(File::create(&unfinished)?);
    file.write_all(b"CNRYVEC1")?;
    file.write_all(&dimension.to_le_bytes())?;
    file.write_all(&u32::try_from(embeddings.len())?.to_le_bytes())?;
    for (number, embedding) in numbers.iter().zip(embeddings) {
        file.write_all(&number.get().to_le_bytes())?;
        for part in &embedding.vector {
            file.write_all(&part.to_le_bytes())?;
        }
    }
    file.flush()?;
    Ok(fs::rename(unfinished, path)?)
}

/// Writes `CNRYTOK1`, the count as u32, then for each item its number as i64, the length of its token vectors in
/// bytes as u32, and the vectors. Writes nothing for a model without them.
fn write_tokens(path: &Path, numbers: &[ItemNumber], embeddings: &[TextEmbedding]) -> Result<(), Box<dyn Error>> {
    let of =
        |(number, embedding): (&ItemNumber, &TextEmbedding)| Some((*number, embedding.tokens.as_ref()?.to_bytes()));
    let tokens: Vec<(ItemNumber, Vec<u8>)> = numbers.iter().zip(embeddings).filter_map(of).collect();
    if tokens.is_empty() {
        return Ok(());
    }
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(b"CNRYTOK1")?;
    file.write_all(&u32::try_from(tokens.len())?.to_le_bytes())?;
    for (number, bytes) in tokens {
        file.write_all(&number.get().to_le_bytes())?;
        file.write_all(&u32::try_from(bytes.len())?.to_le_bytes())?;
        file.write_all(&bytes)?;
    }
    Ok(file.flush()?)
}
