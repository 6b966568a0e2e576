//! Writes the candidates of every query of the public duplicate sets with their features, for
//! `training/fit_ranker.py`.
//!
//! `ranker_pairs OUT --vectors FOLDER SET.TYPE…`. A query's candidates are the hundred that retrieval offers. A
//! duplicate that retrieval missed is not added, because a model could recognise it by that.

mod bench_data;
mod close_look;

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use bench_data::{folder, load};
use canonry_domain::ItemType;
use canonry_retrieval::{ItemIndex, RANKER_FEATURES, ranker_features};
use close_look::{add, looked_at};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let out = PathBuf::from(arguments.next().ok_or("which file?")?);
    let mut vectors = None;
    let mut wanted = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--vectors" => vectors = arguments.next().map(PathBuf::from),
            _ => wanted.push(argument),
        }
    }
    let mut out = BufWriter::new(File::create(out)?);
    writeln!(out, "set\tquery\tcreated\tcandidate\tduplicate\t{}", RANKER_FEATURES.join("\t"))?;
    for name in wanted {
        let (set, item_type) = name.rsplit_once('.').ok_or("a set is named like rust.issue")?;
        let item_type: ItemType = item_type.parse()?;
        let items = load(&folder()?, set, item_type, vectors.as_deref())?;
        let mut index = ItemIndex::new(item_type, "bench");
        for item in &items {
            if !item.relevant.is_empty() && item.vector.is_some() {
                let pool = looked_at(&index, &items, item);
                for (candidate, features) in pool.candidates.iter().zip(ranker_features(&pool.candidates, pool.spread))
                {
                    let created = item.created_at.map_or(0, |time| time.as_second());
                    let is_duplicate = u8::from(item.relevant.contains(&candidate.number));
                    write!(out, "{name}\t{}\t{created}\t{}\t{is_duplicate}", item.number, candidate.number)?;
                    for feature in features {
                        write!(out, "\t{feature:.5}")?;
                    }
                    writeln!(out)?;
                }
            }
            add(&mut index, item);
        }
    }
    Ok(out.flush()?)
}
