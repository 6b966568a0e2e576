//! Measures the parts of one encoder layer in nanoseconds per row:
//! `layer_speed [ROWS] [TEXT_ROWS] [ROWS_TOGETHER]`. There is at least one text.
//!
//! The time shown is the lower quartile, because other work on the machine slows some rounds.
#![expect(clippy::print_stdout, reason = "the figures are what it is run for")]

use std::time::Instant;

use canonry_kernels::{AttentionBuffers, CodedRows, Epilogue, Heads, Kernels, Linear, attend, normalise};

const WIDTH: usize = 384;
const HIDDEN: usize = 1536;
const HEADS: Heads = Heads { count: 12, size: 32 };
const ROUNDS: usize = 60;

fn main() {
    let mut sizes = std::env::args().skip(1).filter_map(|size| size.parse::<usize>().ok());
    let (rows, text) = (sizes.next().unwrap_or(256), sizes.next().unwrap_or(128).max(1));
    let together = sizes.next();
    let rows = (rows / text).max(1) * text;
    let numbers = |count: usize| (0..count).map(|at| (at * 7919 % 1009) as f32 / 500.0 - 1.0).collect::<Vec<f32>>();
    for kernels in Kernels::available() {
        let together = together.unwrap_or(kernels.block_rows()).max(1);
        let linear = |inputs: usize, outputs: usize| {
            let codes: Vec<i8> = (0..inputs * outputs).map(|at| (at * 31 % 251) as u8 as i8).collect();
            Linear::pack(kernels, &codes, inputs, vec![0.0005; outputs], vec![0.1; outputs])
        };
        // Six layers, so that the weights come from the same cache level as in the encoder.
        let layers: Vec<[Linear; 4]> = (0..6)
            .map(|_| [linear(WIDTH, 3 * WIDTH), linear(WIDTH, WIDTH), linear(WIDTH, HIDDEN), linear(HIDDEN, WIDTH)])
            .collect();
        let (mut coded, mut buffers) = (CodedRows::default(), AttentionBuffers::default());
        let mut states = numbers(rows * WIDTH);
        let (mut parts, mut attended, mut hidden) =
            (numbers(rows * 3 * WIDTH), numbers(rows * WIDTH), numbers(rows * HIDDEN));
        let (gains, biases) = (vec![1.0; WIDTH], vec![0.0; WIDTH]);
        let mut spent: [Vec<u64>; 4] = Default::default();
        for _ in 0..ROUNDS {
            let mut last = Instant::now();
            let mut lap = |part: usize| {
                let now = Instant::now();
                spent[part].push((now - last).as_nanos() as u64);
                last = now;
            };
            for [query_key_value, output, first, second] in &layers {
                for (x, out) in states.chunks(together * WIDTH).zip(parts.chunks_mut(together * 3 * WIDTH)) {
                    coded.code(kernels, x, WIDTH);
                    query_key_value.apply(&mut coded, Epilogue::Write, out);
                }
                lap(0);
                for (parts, out) in parts.chunks(text * 3 * WIDTH).zip(attended.chunks_mut(text * WIDTH)) {
                    attend(kernels, HEADS, parts, &mut buffers, out);
                }
                lap(1);
                for (x, out) in attended.chunks(together * WIDTH).zip(states.chunks_mut(together * WIDTH)) {
                    coded.code(kernels, x, WIDTH);
                    output.apply(&mut coded, Epilogue::Add, out);
                    normalise(kernels, out, &gains, &biases, 1e-12);
                }
                lap(2);
                for x in states.chunks_mut(together * WIDTH) {
                    coded.code(kernels, x, WIDTH);
                    let hidden = &mut hidden[..x.len() / WIDTH * HIDDEN];
                    first.apply(&mut coded, Epilogue::Activate, hidden);
                    coded.code(kernels, hidden, HIDDEN);
                    second.apply(&mut coded, Epilogue::Add, x);
                    normalise(kernels, x, &gains, &biases, 1e-12);
                }
                lap(3);
            }
        }
        let names = ["q/k/v", "attend", "output", "feed forward"];
        let spent = spent.map(|mut spent| {
            spent.sort_unstable();
            spent[spent.len() / 4] as f64 / rows as f64
        });
        let parts = names.iter().zip(spent).map(|(name, spent)| format!("{name} {spent:.0}"));
        let total = spent.iter().sum::<f64>();
        println!("{}: {total:.0} ({})", kernels.name(), parts.collect::<Vec<_>>().join(", "));
    }
}
