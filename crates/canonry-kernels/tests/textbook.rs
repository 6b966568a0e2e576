//! Compares every set of kernels that this machine has with the textbook form of the operations.

use canonry_kernels::{
    AttentionBuffers, CodedRows, Epilogue, Heads, Kernels, Linear, attend, mean_direction, normalise, project,
};
use proptest::prelude::{Strategy, prop, prop_assert, proptest};

/// A generator of numbers that are the same in each run.
struct Numbers(u32);

impl Numbers {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as f32 / (1 << 24) as f32 - 0.5
    }

    fn many(&mut self, count: usize, around: f32, spread: f32) -> Vec<f32> {
        (0..count).map(|_| around + spread * self.next()).collect()
    }

    fn codes(&mut self, count: usize) -> Vec<i8> {
        (0..count).map(|_| (self.next() * 254.0) as i8).collect()
    }
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + (0.797_884_560_8 * (x + 0.044_715 * x.powi(3))).tanh())
}

fn shapes() -> impl Strategy<Value = (usize, usize, usize, u32)> {
    (1usize..=70, 1usize..=200, 1usize..=150, prop::num::u32::ANY)
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 48, ..Default::default() })]

    #[test]
    fn a_linear_layer_is_the_product_of_rows_and_weights((rows, inputs, outputs, seed) in shapes()) {
        let mut numbers = Numbers(seed);
        let (values, codes) = (numbers.many(rows * inputs, 0.3, 4.0), numbers.codes(inputs * outputs));
        let (scales, biases) = (numbers.many(outputs, 0.01, 0.01), numbers.many(outputs, 0.0, 2.0));
        let old = numbers.many(rows * outputs, 0.0, 3.0);
        for kernels in Kernels::available() {
            let linear = Linear::pack(kernels, &codes, inputs, scales.clone(), biases.clone());
            let mut coded = CodedRows::default();
            // Other rows are coded first, so that old codes surround those of this test.
            coded.code(kernels, &numbers.many(75 * 211, 0.0, 9.0), 211);
            coded.code(kernels, &values, inputs);
            for then in [Epilogue::Write, Epilogue::Activate, Epilogue::Add] {
                let mut out = old.clone();
                linear.apply(&mut coded, then, &mut out);
                for (at, number) in out.iter().enumerate() {
                    let (row, column) = (&values[at / outputs * inputs..][..inputs], at % outputs);
                    let weights = &codes[column * inputs..][..inputs];
                    let terms = row.iter().zip(weights).map(|(a, b)| f64::from(*a) * f64::from(*b));
                    let scale = f64::from(scales[column]);
                    let exact = terms.sum::<f64>() * scale + f64::from(biases[column]);
                    let wanted = match then {
                        Epilogue::Write => exact,
                        Epilogue::Activate => gelu(exact),
                        Epilogue::Add => exact + f64::from(old[at]),
                    };
                    // Each value is wrong by at most half a step. Without VNNI a step is a 126th of the range.
                    let size: f64 = weights.iter().map(|code| f64::from(*code).powi(2)).sum::<f64>().sqrt();
                    let allowed = 4.3 / 126.0 * scale * size * 2.5 + 2e-3;
                    let error = (f64::from(*number) - wanted).abs();
                    prop_assert!(error <= allowed, "{} {then:?} {at}: {number}, not {wanted}", kernels.name());
                }
            }
        }
    }

    #[test]
    fn attention_is_the_softmax_of_queries_and_keys(
        length in 1usize..=70,
        count in 1usize..=4,
        size in prop::sample::select(vec![1usize, 5, 8, 16, 20, 32, 33, 48, 64, 70]),
        seed in prop::num::u32::ANY,
    ) {
        attention_is_that_of_the_textbook(length, Heads { count, size }, seed);
    }
}

#[test]
fn attention_of_long_texts_is_the_softmax_of_queries_and_keys() {
    for length in [95, 96, 97, 127, 128, 129, 255, 256] {
        attention_is_that_of_the_textbook(length, Heads { count: 2, size: 32 }, length as u32);
    }
}

fn attention_is_that_of_the_textbook(length: usize, heads: Heads, seed: u32) {
    let mut numbers = Numbers(seed);
    let Heads { count, size } = heads;
    let width = count * size;
    let parts = numbers.many(length * 3 * width, 0.2, 4.0);
    let part = |token: usize, which: usize, head: usize| &parts[(token * 3 + which) * width + head * size..][..size];
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let mut wanted = vec![0.0; length * width];
    for token in 0..length {
        for head in 0..count {
            let score = |other: usize| dot(part(token, 0, head), part(other, 1, head)) / (size as f64).sqrt();
            let scores: Vec<f64> = (0..length).map(score).collect();
            let most = scores.iter().copied().fold(f64::MIN, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
            let total: f64 = weights.iter().sum();
            for (other, weight) in weights.iter().enumerate() {
                let place = &mut wanted[token * width + head * size..][..size];
                let values = part(other, 2, head).iter();
                place.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight / total * f64::from(*value));
            }
        }
    }
    // A longer text comes first, so that its keys surround those of this test.
    let before = numbers.many((length + 29) * 240, 0.0, 50.0);
    for kernels in Kernels::available() {
        let mut buffers = AttentionBuffers::default();
        attend(kernels, Heads { count: 1, size: 80 }, &before, &mut buffers, &mut vec![0.0; before.len() / 3]);
        let mut out = vec![9.0; length * width];
        attend(kernels, heads, &parts, &mut buffers, &mut out);
        let allowed = if kernels.name() == "amx" { 0.05 } else { 1e-3 };
        for (at, (got, wanted)) in out.iter().zip(&wanted).enumerate() {
            let (token, place, name) = (at / width, at % width, kernels.name());
            assert!((f64::from(*got) - wanted).abs() < allowed, "{name} {length} {token} {place}: {got}, not {wanted}");
        }
    }
}

#[test]
fn attention_does_not_depend_on_what_its_buffers_were_used_for() {
    let mut numbers = Numbers(3);
    for kernels in Kernels::available() {
        let mut used = AttentionBuffers::default();
        for (length, count, size) in [(130, 2, 32), (1, 1, 70), (33, 3, 32), (16, 1, 5), (129, 2, 48), (31, 2, 32)] {
            let (heads, width) = (Heads { count, size }, count * size);
            // NaN makes every sum NaN, so any use of old values shows.
            let spoilt = vec![f32::NAN; 3 * 150 * 80];
            attend(kernels, Heads { count: 1, size: 80 }, &spoilt, &mut used, &mut vec![0.0; 150 * 80]);
            let parts = numbers.many(length * 3 * width, 0.2, 4.0);
            let [mut with_used, mut with_fresh] = [vec![7.0; length * width], vec![8.0; length * width]];
            attend(kernels, heads, &parts, &mut used, &mut with_used);
            attend(kernels, heads, &parts, &mut AttentionBuffers::default(), &mut with_fresh);
            assert!(with_fresh.iter().all(|value| value.is_finite()));
            assert_eq!(with_used, with_fresh, "{} {length} {heads:?}", kernels.name());
        }
    }
}

#[test]
fn tiles_and_vectors_make_the_same_of_each_row() {
    let named = |name: &str| Kernels::available().into_iter().find(|kernels| kernels.name() == name);
    let (Some(amx), Some(avx512)) = (named("amx"), named("avx512")) else { return };
    let mut numbers = Numbers(11);
    for (rows, inputs, outputs) in [(1, 1, 1), (16, 64, 32), (33, 65, 31), (70, 384, 100), (50, 1536, 65)] {
        let (values, codes) = (numbers.many(rows * inputs, 0.3, 4.0), numbers.codes(inputs * outputs));
        let (scales, biases) = (numbers.many(outputs, 0.01, 0.01), numbers.many(outputs, 0.0, 2.0));
        for then in [Epilogue::Write, Epilogue::Activate, Epilogue::Add] {
            let [with_tiles, with_vectors] = [amx, avx512].map(|kernels| {
                let linear = Linear::pack(kernels, &codes, inputs, scales.clone(), biases.clone());
                let mut coded = CodedRows::default();
                coded.code(kernels, &values, inputs);
                let mut out = vec![1.5; rows * outputs];
                linear.apply(&mut coded, then, &mut out);
                out
            });
            assert_eq!(with_tiles, with_vectors, "{rows} rows of {inputs} to {outputs}, {then:?}");
        }
    }
}

#[test]
fn the_largest_sums_are_exact() {
    const INPUTS: usize = 1536;
    // Weights of one sign, at their extremes, and of alternating sign; values likewise. All of them have exact codes.
    let weights: [fn(usize) -> i8; 4] = [|_| 127, |_| -128, |at| if at % 2 == 0 { 127 } else { -128 }, |_| 0];
    let codes: Vec<i8> = weights.iter().flat_map(|weight| (0..INPUTS).map(weight)).collect();
    let values: [fn(usize) -> f32; 5] =
        [|_| 3.0, |_| -3.0, |at| if at % 2 == 0 { 3.0 } else { -3.0 }, |_| 0.0, |_| 1e-20];
    let rows: Vec<f32> = values.iter().flat_map(|value| (0..INPUTS).map(value)).collect();
    for kernels in Kernels::available() {
        let linear = Linear::pack(kernels, &codes, INPUTS, vec![0.25; 4], vec![0.0; 4]);
        let mut coded = CodedRows::default();
        coded.code(kernels, &rows, INPUTS);
        let mut out = [9.0; 20];
        linear.apply(&mut coded, Epilogue::Write, &mut out);
        for (at, number) in out.into_iter().enumerate() {
            let terms =
                || (0..INPUTS).map(|input| f64::from(values[at / 4](input)) * f64::from(weights[at % 4](input)));
            let (wanted, size) = (terms().sum::<f64>() * 0.25, terms().map(f64::abs).sum::<f64>() * 0.25);
            let error = (f64::from(number) - wanted).abs();
            assert!(error <= size * 1e-6, "{} {at}: {number}, not {wanted}", kernels.name());
        }
    }
}

#[test]
fn what_becomes_of_a_row_does_not_depend_on_its_neighbours() {
    let mut numbers = Numbers(7);
    let (inputs, outputs) = (100, 70);
    let (values, codes) = (numbers.many(67 * inputs, 0.0, 3.0), numbers.codes(inputs * outputs));
    for kernels in Kernels::available() {
        let linear = Linear::pack(kernels, &codes, inputs, vec![0.01; outputs], vec![0.5; outputs]);
        let mut coded = CodedRows::default();
        let mut apply = |values: &[f32]| {
            coded.code(kernels, values, inputs);
            let mut out = vec![0.0; values.len() / inputs * outputs];
            linear.apply(&mut coded, Epilogue::Activate, &mut out);
            out
        };
        let together = apply(&values);
        for row in [0, 1, 15, 16, 31, 40, 66] {
            let alone = apply(&values[row * inputs..(row + 1) * inputs]);
            assert_eq!(alone, together[row * outputs..(row + 1) * outputs], "{} row {row}", kernels.name());
        }
    }
}

#[test]
fn scores_of_any_size_give_weights() {
    let (length, size) = (40, 32);
    let heads = Heads { count: 1, size };
    for kernels in Kernels::available() {
        // Each query strongly prefers its own key, with scores some thousands above and below zero.
        let row = |token: usize, which: usize| {
            (0..size).map(move |at| match which {
                2 => token as f32,
                _ if at == token % size => 200.0 + token as f32,
                _ => -3.0,
            })
        };
        let parts: Vec<f32> = (0..length).flat_map(|token| (0..3).flat_map(move |which| row(token, which))).collect();
        let mut out = vec![0.0; length * size];
        attend(kernels, heads, &parts, &mut AttentionBuffers::default(), &mut out);
        for (token, row) in out.chunks(size).enumerate() {
            let wanted = if token + size < length { token + size } else { token };
            assert!(row.iter().all(|value| (value - wanted as f32).abs() < 0.2), "{} {token}: {row:?}", kernels.name());
        }
    }
}

#[test]
fn rows_of_zeros_give_the_bias() {
    for kernels in Kernels::available() {
        let linear = Linear::pack(kernels, &[1, 2, 3, 4, 5, 6], 3, vec![0.5, 2.0], vec![7.0, -8.0]);
        let mut coded = CodedRows::default();
        coded.code(kernels, &[0.0; 9], 3);
        let mut out = [1.0; 6];
        linear.apply(&mut coded, Epilogue::Write, &mut out);
        assert_eq!(out, [7.0, -8.0, 7.0, -8.0, 7.0, -8.0], "{}", kernels.name());
    }
}

proptest! {
    #[test]
    fn normalised_rows_have_mean_zero_and_variance_one(width in 2usize..=140, seed in prop::num::u32::ANY) {
        let mut numbers = Numbers(seed);
        let (values, gains, biases) =
            (numbers.many(3 * width, 5.0, 4.0), numbers.many(width, 1.0, 0.5), numbers.many(width, 0.0, 2.0));
        for kernels in Kernels::available() {
            let mut out = values.clone();
            normalise(kernels, &mut out, &gains, &biases, 1e-6);
            for (row, old) in out.chunks(width).zip(values.chunks(width)) {
                let mean = old.iter().map(|value| f64::from(*value)).sum::<f64>() / width as f64;
                let variance = old.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>() / width as f64;
                for (at, (value, old)) in row.iter().zip(old).enumerate() {
                    let even = (f64::from(*old) - mean) / (variance + 1e-6).sqrt();
                    let wanted = even * f64::from(gains[at]) + f64::from(biases[at]);
                    let error = (f64::from(*value) - wanted).abs();
                    prop_assert!(error < 1e-3, "{} {at}: {value}, not {wanted}", kernels.name());
                }
            }
        }
    }
}

#[test]
fn rows_are_averaged_and_projected() {
    assert_eq!(mean_direction(&[6.0, 0.0, 0.0, 8.0], 2), [0.6, 0.8]);
    assert_eq!(project(&[1.0, 2.0, 3.0, 4.0], &[1.0, 1.0, 2.0, 0.0, 0.0, 3.0], 2), [3.0, 2.0, 6.0, 7.0, 6.0, 12.0]);
}

#[test]
#[should_panic(expected = "rows for this layer")]
fn rows_of_another_length_are_refused() {
    let kernels = Kernels::best();
    let linear = Linear::pack(kernels, &[1, 2, 3, 4], 2, vec![1.0; 2], vec![0.0; 2]);
    let mut coded = CodedRows::default();
    coded.code(kernels, &[1.0; 6], 3);
    linear.apply(&mut coded, Epilogue::Write, &mut [0.0; 4]);
}

#[test]
#[should_panic(expected = "rows of all heads fit in memory")]
fn heads_beyond_all_memory_are_refused() {
    let heads = Heads { count: usize::MAX / 2, size: 3 };
    attend(Kernels::best(), heads, &[], &mut AttentionBuffers::default(), &mut []);
}

#[test]
#[should_panic(expected = "too many for sums of 32 bits")]
fn more_inputs_than_sums_can_hold_are_refused() {
    let inputs = Linear::MOST_INPUTS + 1;
    Linear::pack(Kernels::best(), &vec![1; inputs], inputs, vec![1.0], vec![0.0]);
}
