//! The transformer: token ids in, one vector per text out.

use std::borrow::Cow;
use std::ops::Range;

use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions};
use rten_simd::SimdOp;
use rten_tensor::NdTensorView;

use crate::model_file::{ModelFile, ModelFileError};
use crate::quantised_linear::{ByteProduct, LinearBuffers, QuantisedLinear};
use crate::row_math::{MeanDirection, NormaliseRows, SoftmaxRows, Then};

type FloatProduct = GemmExecutor<f32, f32, f32>;

/// Rows that go through a layer's matrices together: the block's widest activations stay in the L2 cache.
const BLOCK_ROWS: usize = 64;

/// A BERT-like encoder with mean pooling; its sizes come from the model file.
pub(crate) struct Encoder {
    bytes: Cow<'static, [u8]>,
    words: Range<usize>,
    word_scales: Vec<f32>,
    positions: Vec<f32>,
    embedding_norm: Norm,
    layers: Vec<Layer>,
    width: usize,
    heads: usize,
}

struct Layer {
    query_key_value: QuantisedLinear,
    attention_output: QuantisedLinear,
    attention_norm: Norm,
    feed_forward_in: QuantisedLinear,
    feed_forward_out: QuantisedLinear,
    feed_forward_norm: Norm,
}

struct Norm {
    gains: Vec<f32>,
    biases: Vec<f32>,
    epsilon: f32,
}

/// Buffers of one worker.
#[derive(Default)]
pub(crate) struct EncoderBuffers {
    linear: LinearBuffers,
    states: Vec<f32>,
    query_key_value: Vec<f32>,
    attended: Vec<f32>,
    attention: AttentionBuffers,
    hidden: Vec<f32>,
}

#[derive(Default)]
struct AttentionBuffers {
    scores: Vec<f32>,
    inverse_sums: Vec<f32>,
    head: Vec<f32>,
}

impl Encoder {
    pub(crate) fn read(file: ModelFile) -> Result<Self, ModelFileError> {
        let header = file.header();
        let width = header.dimension;
        let byte_product = ByteProduct::new();
        let norm = |name: &str| -> Result<Norm, ModelFileError> {
            Ok(Norm {
                gains: file.floats(&format!("{name}.gain"), &[width])?,
                biases: file.floats(&format!("{name}.bias"), &[width])?,
                epsilon: header.norm_epsilon,
            })
        };
        let linear = |name: &str, inputs, outputs| QuantisedLinear::read(&byte_product, &file, name, inputs, outputs);
        let layers = (0..header.layers)
            .map(|layer| {
                let at = |part: &str| format!("layers.{layer}.{part}");
                let hidden = file.rows(&at("feed_forward_in.weight"))?;
                Ok(Layer {
                    query_key_value: linear(&at("query_key_value"), width, 3 * width)?,
                    attention_output: linear(&at("attention_output"), width, width)?,
                    attention_norm: norm(&at("attention_norm"))?,
                    feed_forward_in: linear(&at("feed_forward_in"), width, hidden)?,
                    feed_forward_out: linear(&at("feed_forward_out"), hidden, width)?,
                    feed_forward_norm: norm(&at("feed_forward_norm"))?,
                })
            })
            .collect::<Result<_, ModelFileError>>()?;
        let vocabulary = file.rows("words.weight")?;
        Ok(Self {
            words: file.codes_place("words.weight", &[vocabulary, width])?,
            word_scales: file.floats("words.scale", &[vocabulary])?,
            positions: file.floats("positions", &[header.token_limit, width])?,
            embedding_norm: norm("embedding_norm")?,
            layers,
            width,
            heads: header.heads,
            bytes: file.into_bytes(),
        })
    }

    /// How many token ids there are vectors for.
    pub(crate) fn vocabulary(&self) -> usize {
        self.word_scales.len()
    }

    /// One vector of length 1 per text. The texts' rows lie one after another: nothing is padded, and no
    /// text's vector depends on its neighbours.
    pub(crate) fn encode(&self, texts: &[&[u32]], buffers: &mut EncoderBuffers) -> Vec<Vec<f32>> {
        // Made anew for each call, because they cannot be sent between threads; it costs two small allocations.
        let (bytes, floats) = (ByteProduct::new(), FloatProduct::new());
        self.look_up(texts, buffers);
        for layer in &self.layers {
            self.attend(layer, texts, (&bytes, &floats), buffers);
            self.feed_forward(layer, &bytes, buffers);
        }
        let mut rest = buffers.states.as_slice();
        let mut vectors = Vec::with_capacity(texts.len());
        for ids in texts {
            let (values, after) = rest.split_at(ids.len() * self.width);
            vectors.push(MeanDirection { values, width: self.width }.dispatch());
            rest = after;
        }
        vectors
    }

    fn look_up(&self, texts: &[&[u32]], buffers: &mut EncoderBuffers) {
        let words = &self.bytes[self.words.clone()];
        buffers.states.clear();
        for ids in texts {
            for (id, position) in ids.iter().zip(self.positions.chunks_exact(self.width)) {
                let at = *id as usize;
                let scale = self.word_scales[at];
                let codes = &words[at * self.width..(at + 1) * self.width];
                let row = codes.iter().zip(position);
                buffers.states.extend(row.map(|(code, place)| f32::from(code.cast_signed()) * scale + place));
            }
        }
        self.embedding_norm.apply(&mut buffers.states);
    }

    fn attend(
        &self,
        layer: &Layer,
        texts: &[&[u32]],
        (bytes, floats): (&ByteProduct, &FloatProduct),
        buffers: &mut EncoderBuffers,
    ) {
        let EncoderBuffers { linear, states, query_key_value, attended, attention, .. } = buffers;
        query_key_value.resize(states.len() * 3, 0.0);
        attended.resize(states.len(), 0.0);
        let blocks = states.chunks(BLOCK_ROWS * self.width);
        for (x, out) in blocks.zip(query_key_value.chunks_mut(BLOCK_ROWS * 3 * self.width)) {
            layer.query_key_value.apply(bytes, x, linear, Then::Write, out);
        }
        let (mut parts, mut outs) = (query_key_value.as_slice(), attended.as_mut_slice());
        for ids in texts {
            let (part, parts_after) = parts.split_at(ids.len() * 3 * self.width);
            let (out, outs_after) = outs.split_at_mut(ids.len() * self.width);
            self.attend_within_text(floats, part, attention, out);
            (parts, outs) = (parts_after, outs_after);
        }
        let blocks = attended.chunks(BLOCK_ROWS * self.width);
        for (x, out) in blocks.zip(states.chunks_mut(BLOCK_ROWS * self.width)) {
            layer.attention_output.apply(bytes, x, linear, Then::Add, out);
            layer.attention_norm.apply(out);
        }
    }

    fn attend_within_text(
        &self,
        product: &FloatProduct,
        parts: &[f32],
        buffers: &mut AttentionBuffers,
        out: &mut [f32],
    ) {
        let length = out.len() / self.width;
        let size = self.width / self.heads;
        let stride = 3 * self.width;
        let part = |start: usize| {
            NdTensorView::from_slice_with_strides([length, size], &parts[start..], [stride, 1])
                .expect("invariant: a head's part lies within the text's rows")
        };
        let scale = GemmOptions { alpha: (size as f32).powf(-0.5), ..GemmOptions::default() };
        let AttentionBuffers { scores, inverse_sums, head } = buffers;
        scores.resize(length * length, 0.0);
        inverse_sums.resize(length, 0.0);
        head.resize(length * size, 0.0);
        for start in (0..self.width).step_by(size) {
            let (query, key, value) = (part(start), part(self.width + start), part(2 * self.width + start));
            product
                .gemm(scores, GemmInputA::Unpacked(query), GemmInputB::Unpacked(key.transposed()), scale.clone())
                .expect("invariant: query and key have one shape");
            SoftmaxRows { values: scores, width: length, inverse_sums }.dispatch();
            let weights = NdTensorView::from_data([length, length], scores.as_slice());
            product
                .gemm(head, GemmInputA::Unpacked(weights), GemmInputB::Unpacked(value), GemmOptions::default())
                .expect("invariant: there is a weight for each value");
            let rows = out.chunks_exact_mut(self.width).zip(head.chunks_exact(size));
            for ((row, from), inverse) in rows.zip(inverse_sums.iter()) {
                row[start..start + size].iter_mut().zip(from).for_each(|(to, from)| *to = from * inverse);
            }
        }
    }

    fn feed_forward(&self, layer: &Layer, bytes: &ByteProduct, buffers: &mut EncoderBuffers) {
        let EncoderBuffers { linear, states, hidden, .. } = buffers;
        for x in states.chunks_mut(BLOCK_ROWS * self.width) {
            hidden.resize(x.len() / self.width * layer.feed_forward_in.outputs(), 0.0);
            layer.feed_forward_in.apply(bytes, x, linear, Then::Activate, hidden);
            layer.feed_forward_out.apply(bytes, hidden, linear, Then::Add, x);
            layer.feed_forward_norm.apply(x);
        }
    }
}

impl Norm {
    fn apply(&self, values: &mut [f32]) {
        NormaliseRows { values, gains: &self.gains, biases: &self.biases, epsilon: self.epsilon }.dispatch();
    }
}

#[cfg(test)]
mod tests {
    use super::{Encoder, EncoderBuffers};
    use crate::model_file::ModelFile;
    use serde_json::{Value, json};
    use std::collections::HashMap;

    const WIDTH: usize = 24;
    const HEADS: usize = 3;
    const HIDDEN: usize = 40;
    const WORDS: usize = 50;

    /// A small model of unusual sizes with made-up weights, and the same weights as plain numbers.
    #[derive(Default)]
    struct Tiny {
        entries: serde_json::Map<String, Value>,
        data: Vec<u8>,
        plain: HashMap<String, Vec<f32>>,
        state: u32,
    }

    impl Tiny {
        fn number(&mut self) -> f32 {
            self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (self.state >> 8) as f32 / (1 << 24) as f32 - 0.5
        }

        fn put(&mut self, name: &str, kind: &str, shape: &[usize], bytes: &[u8]) {
            let start = self.data.len();
            self.data.extend(bytes);
            let entry = json!({"dtype": kind, "shape": shape, "data_offsets": [start, self.data.len()]});
            self.entries.insert(name.to_owned(), entry);
        }

        fn floats(&mut self, name: &str, shape: &[usize], around: f32, spread: f32) -> Vec<f32> {
            let values: Vec<f32> = (0..shape.iter().product()).map(|_| around + spread * self.number()).collect();
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            self.put(name, "F32", shape, &bytes);
            self.plain.insert(name.to_owned(), values.clone());
            values
        }

        fn codes(&mut self, name: &str, rows: usize, columns: usize) {
            let codes: Vec<i8> = (0..rows * columns).map(|_| (self.number() * 254.0) as i8).collect();
            let bytes: Vec<u8> = codes.iter().map(|code| code.cast_unsigned()).collect();
            self.put(&format!("{name}.weight"), "I8", &[rows, columns], &bytes);
            let scales = self.floats(&format!("{name}.scale"), &[rows], 0.003, 0.002);
            let plain = codes.iter().enumerate().map(|(at, code)| f32::from(*code) * scales[at / columns]).collect();
            self.plain.insert(format!("{name}.weight"), plain);
        }

        fn linear(&mut self, name: &str, inputs: usize, outputs: usize) {
            self.codes(name, outputs, inputs);
            self.floats(&format!("{name}.bias"), &[outputs], 0.0, 0.2);
        }

        fn norm(&mut self, name: &str) {
            self.floats(&format!("{name}.gain"), &[WIDTH], 1.0, 0.4);
            self.floats(&format!("{name}.bias"), &[WIDTH], 0.0, 0.4);
        }

        fn make() -> Self {
            let mut tiny = Self::default();
            tiny.codes("words", WORDS, WIDTH);
            tiny.floats("positions", &[16, WIDTH], 0.0, 0.4);
            tiny.norm("embedding_norm");
            for layer in 0..2 {
                tiny.linear(&format!("layers.{layer}.query_key_value"), WIDTH, 3 * WIDTH);
                tiny.linear(&format!("layers.{layer}.attention_output"), WIDTH, WIDTH);
                tiny.linear(&format!("layers.{layer}.feed_forward_in"), WIDTH, HIDDEN);
                tiny.linear(&format!("layers.{layer}.feed_forward_out"), HIDDEN, WIDTH);
                tiny.norm(&format!("layers.{layer}.attention_norm"));
                tiny.norm(&format!("layers.{layer}.feed_forward_norm"));
            }
            tiny
        }

        fn file(&self) -> ModelFile {
            let header = json!({"format": 1, "model_id": "local:tiny", "architecture": "bert", "dimension": WIDTH,
                "layers": 2, "heads": HEADS, "norm_epsilon": 1e-12, "token_limit": 16, "pooling": "mean",
                "lower_case": true, "calibration": {"anchors": []}});
            let mut entries = self.entries.clone();
            entries.insert("__metadata__".to_owned(), json!({"canonry": header.to_string()}));
            let entries = Value::Object(entries).to_string();
            let mut bytes = (entries.len() as u64).to_le_bytes().to_vec();
            bytes.extend(entries.as_bytes());
            bytes.extend(&self.data);
            ModelFile::parse(bytes.into()).expect("well formed")
        }

        fn product(&self, name: &str, x: &[f32]) -> Vec<f32> {
            let weights = self.plain[&format!("{name}.weight")].chunks(x.len());
            let dot = |row: &[f32]| row.iter().zip(x).map(|(a, b)| a * b).sum::<f32>();
            weights.zip(&self.plain[&format!("{name}.bias")]).map(|(row, bias)| dot(row) + bias).collect()
        }

        fn normalised(&self, name: &str, x: &[f32]) -> Vec<f32> {
            let mean = x.iter().sum::<f32>() / x.len() as f32;
            let deviation = (x.iter().map(|v| (v - mean).powi(2)).sum::<f32>() / x.len() as f32).sqrt();
            let learned = self.plain[&format!("{name}.gain")].iter().zip(&self.plain[&format!("{name}.bias")]);
            x.iter().zip(learned).map(|(v, (gain, bias))| (v - mean) / deviation * gain + bias).collect()
        }

        /// The network as a textbook writes it, one number at a time.
        fn vector(&self, ids: &[u32]) -> Vec<f32> {
            let add = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<f32>>();
            let word = |id: &u32| &self.plain["words.weight"][*id as usize * WIDTH..][..WIDTH];
            let places = self.plain["positions"].chunks(WIDTH);
            let mut rows: Vec<Vec<f32>> = ids
                .iter()
                .zip(places)
                .map(|(id, place)| self.normalised("embedding_norm", &add(word(id), place)))
                .collect();
            for layer in 0..2 {
                let at = |part: &str| format!("layers.{layer}.{part}");
                let parts: Vec<Vec<f32>> = rows.iter().map(|row| self.product(&at("query_key_value"), row)).collect();
                let size = WIDTH / HEADS;
                for (row, own) in rows.iter_mut().zip(&parts) {
                    let mut attended = Vec::new();
                    for head in (0..WIDTH).step_by(size) {
                        let part = |of: &[f32], which: usize| of[which * WIDTH + head..][..size].to_vec();
                        let query = part(own, 0);
                        let score = |other: &Vec<f32>| {
                            let dot: f32 = query.iter().zip(part(other, 1)).map(|(a, b)| a * b).sum();
                            (dot / (size as f32).sqrt()).exp()
                        };
                        let scores: Vec<f32> = parts.iter().map(score).collect();
                        let total: f32 = scores.iter().sum();
                        for place in 0..size {
                            let values = parts.iter().map(|other| part(other, 2)[place]);
                            attended.push(scores.iter().zip(values).map(|(score, value)| score / total * value).sum());
                        }
                    }
                    *row = self.normalised(
                        &at("attention_norm"),
                        &add(row, &self.product(&at("attention_output"), &attended)),
                    );
                }
                for row in &mut rows {
                    let tanh_gelu = |x: &f32| 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x.powi(3))).tanh());
                    let hidden: Vec<f32> = self.product(&at("feed_forward_in"), row).iter().map(tanh_gelu).collect();
                    *row = self.normalised(
                        &at("feed_forward_norm"),
                        &add(row, &self.product(&at("feed_forward_out"), &hidden)),
                    );
                }
            }
            rows.iter().fold(vec![0.0; WIDTH], |sum, row| add(&sum, row))
        }
    }

    #[test]
    fn is_the_network_of_the_textbook_whatever_its_sizes() {
        let tiny = Tiny::make();
        let encoder = Encoder::read(tiny.file()).expect("all tensors are there");
        assert_eq!(encoder.vocabulary(), WORDS);
        let texts: [&[u32]; 3] =
            [&[1, 2, 3, 4, 5, 6, 7], &[49, 0], &[9, 9, 9, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42]];
        for (vector, ids) in encoder.encode(&texts, &mut EncoderBuffers::default()).iter().zip(texts) {
            let plain = tiny.vector(ids);
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            let cosine = dot(vector, &plain) / dot(&plain, &plain).sqrt();
            assert!(cosine > 0.998, "{ids:?}: {cosine}");
            assert!((dot(vector, vector) - 1.0).abs() < 1e-5);
        }
    }

    #[test]
    fn a_model_that_lacks_a_tensor_is_refused() {
        let mut tiny = Tiny::make();
        tiny.entries.remove("layers.1.attention_norm.gain");
        let error = Encoder::read(tiny.file()).err().expect("refused").to_string();
        assert_eq!(error, "read tensor layers.1.attention_norm.gain of the model file: it is absent");
    }
}
